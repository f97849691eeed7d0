"""The chat client against planned faults: nothing is lost, nothing is asked for in vain."""

import asyncio
import logging
import math
import random
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from chat_cases import (
    KEY,
    Counted,
    FakeWire,
    JumpClock,
    Wires,
    against,
    answers_well,
    backend_at,
    collect,
    failures,
    good_reply,
    queries,
    query,
    wired,
)
from fake_server import ASKED, FakeServer, Fault, answer_of

from unswayed.backends import workers
from unswayed.backends.client import HttpBackend
from unswayed.backends.faults import HttpReply, LostError, UnreachableError
from unswayed.backends.pacing import FIRST_CONTACT_S
from unswayed.backends.protocol import Wait
from unswayed.base.errors import UsageError
from unswayed.model.calls import Failure, Query, Response


def status(number: int, /, *words: str, **fields: Any) -> Fault:
    message = " ".join(words) or "planned fault"
    return Fault(kind="status", status=number, message=message, **fields)


PASSING = [
    *(status(code, times=1) for code in (500, 502, 503, 529, 408, 429)),
    status(500, times=3),
    status(429, retry_after="2", times=1),
    status(429, retry_after="Tue, 14 Nov 2023 22:13:22 GMT", times=1),
    *(Fault(kind=kind, times=1) for kind in ("reset", "close", "half", "hang")),
    *(Fault(kind=kind, times=1) for kind in ("not_json", "wrong_shape")),
    Fault(kind="body", message='{"error": {"message": "upstream"}}', times=1),
    Fault(kind="body", message="", times=1),
]
LASTING = [
    (status(500), "ServerError", 4, ""),
    (Fault(kind="hang"), "ServerError", 4, "did not answer within"),
    (Fault(kind="not_json"), "BadResponseError", 4, ""),
    (Fault(kind="wrong_shape"), "BadResponseError", 4, ""),
    (Fault(kind="body", message='{"choices": []}'), "BadResponseError", 4, "no choices"),
    *((status(code, "too long"), "BackendError", 1, "too long") for code in (400, 413, 422)),
]
FATAL = [
    (status(401, "bad key"), "AuthError", 1, "key"),
    (status(403, "no access"), "AuthError", 1, "key"),
    (status(404, "no model m"), "BackendError", 1, "model name"),
    (status(402, "pay"), "RateLimitedError", 1, "billing"),
    (status(429, "You", code="insufficient_quota"), "RateLimitedError", 1, "billing"),
    (status(400, "Your credit balance is too low."), "RateLimitedError", 1, "billing"),
    (Fault(kind="redirect"), "BackendError", 1, "redirects are not followed"),
]


def name_of(fault: Fault) -> str:
    return f"{fault.kind}-{fault.status}-{fault.retry_after or ''}"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def test_every_query_is_answered_once_with_the_servers_answer() -> None:
    async with FakeServer(latency_s=0.001) as server:
        outcomes = await collect(backend_at(server.url), queries(200))
        expected = {body: answer_of(ASKED.decode(body), ("A", "B"))[0][0] for body in server.bodies}
    assert len(outcomes) == server.received == len(expected) == 200
    responses = [outcome for outcome in outcomes.values() if isinstance(outcome, Response)]
    for one in responses:
        assert (one.model, one.output_tokens, one.cost_usd, one.retries) == ("m", 1, 0.0, 0)
        assert min(one.input_tokens, one.latency_s) > 0
    texts = [response.text for response in responses]
    assert sorted(texts) == sorted(expected.values())
    assert {"A", "B"} == set(texts)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("fault", PASSING, ids=name_of)
async def test_a_passing_fault_is_tried_again(fault: Fault, alone: bool) -> None:
    met = await against([fault], [query()], alone=alone, timeout=0.1)
    (response,) = met.outcomes.values()
    assert isinstance(response, Response)
    assert response.text in {"A", "B"}
    assert response.retries == fault.times
    assert len(met.server.bodies) == met.server.received == 1 + response.retries
    assert len(set(met.server.bodies)) == 1


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    ("fault", "error", "attempts", "words"),
    LASTING + FATAL,
    ids=lambda value: name_of(value) if isinstance(value, Fault) else "",
)
async def test_a_lasting_fault_is_a_failure_and_never_an_answer(
    fault: Fault, error: str, attempts: int, words: str, alone: bool
) -> None:
    met = await against([fault], [query()], alone=alone, timeout=0.05)
    (failure,) = met.failures
    expected = {"hang": None, "status": fault.status, "redirect": failure.status}
    assert (failure.error, failure.attempts) == (error, attempts)
    assert failure.status == expected.get(fault.kind, 200)
    assert failure.fatal == any(fault is row[0] for row in FATAL)
    assert failure.message.startswith("q0: ")
    assert words in failure.message
    assert met.server.received == attempts


LOSSES = ["reset", "close", "half"]


@pytest.mark.parametrize("kind", LOSSES)
async def test_losing_one_connection_in_five_loses_no_call(kind: str) -> None:
    chance = random.Random(kind)
    lost = [number for number in range(1, 1000) if chance.random() < 0.2]
    met = await against([Fault(kind=kind, on=lost)], queries(150))
    assert len(met.outcomes) == 150
    assert met.failures == []


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("alone", [True, False])
async def test_server_losing_every_connection_is_awaited_for_patience(
    kind: str, alone: bool
) -> None:
    asked = queries(1 if alone else 1000)
    met = await against([Fault(kind=kind)], asked, alone=alone, patience=40)
    assert "answered nothing for 40 seconds" in met.fatal[0]
    assert 40 <= met.seconds < 60
    assert len(met.outcomes) <= 64


async def test_call_losing_every_connection_ends_while_others_succeed() -> None:
    jump = JumpClock()

    async def answer(body: bytes) -> HttpReply:
        if b'question 3"' in body:
            raise LostError("the connection was reset")
        return good_reply(body)

    backend = wired(answer, jump)
    lost = asyncio.create_task(backend.call(query(3)))
    while not lost.done():
        await asyncio.sleep(0)
        assert isinstance(await backend.call(query(4)), Response)
    failure = lost.result()
    assert isinstance(failure, Failure)
    assert not failure.fatal
    assert failure.message.startswith("q3: the connection was reset (")
    assert jump.time - 1000.0 >= 180


async def test_passing_failures_are_retried_after_all_other_calls() -> None:
    met = await against([status(500, contains='question 3"', times=3)], queries(60))
    assert met.failures == []
    assert b'question 3"' in met.server.bodies[-1]
    assert met.outcomes["q3"].retries == 3  # type: ignore[union-attr]


async def test_stopped_run_hands_over_calls_set_aside() -> None:
    faults = [status(500, contains='question 0"'), status(401, contains='question 50"')]
    met = await against(faults, queries(1000), max_connections=2)
    failed = {key for key, one in met.outcomes.items() if isinstance(one, Failure)}
    assert failed >= {"q0", "q50"}
    assert met.outcomes["q0"].attempts == 3  # type: ignore[union-attr]
    assert len(met.outcomes) < 100


async def test_number_of_calls_set_aside_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MOST_ASIDE", 2)
    asked = [query(k, text=f"{'odd' if k % 2 else 'even'} {k}") for k in range(20)]
    met = await against([status(500, contains="odd")], asked)
    assert sorted(failure.attempts for failure in met.failures) == [3] * 8 + [4] * 2


@pytest.mark.parametrize(
    ("code", "retry_after", "patience", "told"),
    [
        *((code, None, 40, "40 seconds") for code in (429, 502, 503, 529)),
        *((429, wait, 40, "40 seconds") for wait in ("0", "1", "3600", "-5", "nan")),
        (429, "60", 180, "3 minutes"),
    ],
)
async def test_a_server_that_rejects_all_is_waited_for_up_to_patience(
    code: int, retry_after: str | None, patience: float, told: str
) -> None:
    faults = [status(code, retry_after=retry_after)]
    met = await against(faults, queries(1000), patience=patience, max_retries=0)
    assert f"answered nothing for {told}" in met.fatal[0]
    assert "--patience" in met.fatal[0]
    assert met.seconds == pytest.approx(patience)
    assert len(met.failures) == len(met.outcomes) <= 64
    assert met.server.received < 200  # nor is it asked without a pause


async def test_a_rejected_call_among_answered_ones_ends_after_retries() -> None:
    faults = [status(503, contains='question 3"')]
    met = await against(faults, queries(300), max_retries=2, max_connections=4)
    (failure,) = met.failures
    assert not failure.fatal
    assert failure.message.startswith("q3: ")
    assert failure.attempts >= 3
    assert len(met.outcomes) == 300


async def test_an_outage_after_an_answer_loses_no_call() -> None:
    jump = JumpClock()
    n = 0

    async def answer(body: bytes) -> HttpReply:
        nonlocal n
        n += 1
        if n > 20 and jump.time < 1030.0:
            raise UnreachableError("cannot connect")
        return good_reply(body)

    outcomes = await collect(wired(answer, jump), queries(100))
    assert not failures(outcomes)
    assert len(outcomes) == 100
    assert n < 200


async def test_an_unreachable_server_is_given_up_within_seconds() -> None:
    jump, asked = JumpClock(), Counted(10_000)
    backend = backend_at(f"http://127.0.0.1:{free_port()}/v1", clock=jump.clock())
    failed = failures(await collect(backend, asked))
    fatal = next(failure.message for failure in failed if failure.fatal)
    assert "the server is down" in fatal
    assert "It was never reached. Start it, or check its address" in fatal
    assert {failure.error for failure in failed} == {"ServerError"}
    assert len(failed) == asked.pulled <= 64
    assert jump.time - 1000.0 <= FIRST_CONTACT_S


async def test_patience_begins_anew_with_the_next_run() -> None:
    jump = JumpClock()
    busy = [True] * 100

    async def answer(body: bytes) -> HttpReply:
        return HttpReply(503, {}, b"") if busy and busy.pop() else good_reply(body)

    backend = wired(answer, jump)
    outcomes = await collect(backend, [query()])
    assert [failure.fatal for failure in failures(outcomes)] == [True]
    jump.time += 3600.0
    busy[:] = [True]
    assert not failures(await collect(backend, [query()]))


async def test_what_is_waited_for_can_be_asked() -> None:
    jump = JumpClock()
    waits: list[Wait | None] = []

    async def sleep(seconds: float) -> None:
        waits.append(backend.waiting)
        await jump.sleep(seconds)

    async def answer(body: bytes) -> HttpReply:
        if len(waits) < 2:
            return HttpReply(503, {"retry-after": "12"}, b"\x1b[31mbusy")
        return good_reply(body)

    clock = replace(jump.clock(), sleep=sleep)
    backend = backend_at("http://127.0.0.1:8000/v1", clock=clock, connect=lambda: FakeWire(answer))
    assert backend.waiting is None
    assert not failures(await collect(backend, [query()]))
    assert backend.waiting is None
    first, second = waits
    assert first == Wait(
        server="127.0.0.1:8000",
        reason="503 Service Unavailable",
        next_try_s=12.0,
        gives_up_at=1_700_000_180.0,
    )
    assert second is not None
    assert second.gives_up_at == 1_700_000_168.0


async def test_differing_failures_are_tried_up_to_the_cap() -> None:
    faults = [status(500, f"trace {i}", on=[i]) for i in range(1, 10)]
    met = await against(faults, [query()], max_retries=4)
    assert [failure.attempts for failure in met.failures] == [6]


@pytest.mark.parametrize(("code", "received"), [(500, 63), (400, 60)])
async def test_one_bad_call_does_not_hold_up_the_others(code: int, received: int) -> None:
    met = await against([status(code, contains='question 3"')], queries(60))
    assert len(met.outcomes) == 60
    assert [failure.message.partition(":")[0] for failure in met.failures] == ["q3"]
    assert met.server.received == received


@pytest.mark.parametrize("fault", [status(401), Fault(kind="redirect")], ids=name_of)
async def test_what_would_fail_every_call_stops_the_run_at_once(fault: Fault) -> None:
    asked = Counted(1000)
    met = await against([fault], asked)
    assert asked.pulled == len(met.fatal) == len(met.outcomes) == met.server.received <= 8


async def test_after_a_fatal_failure_only_running_answers_are_kept() -> None:
    faults = [
        Fault(kind="slow", delay_s=0.1, on=[1, 2]),
        status(401, on=[3]),
        Fault(kind="hang", without="question"),
    ]
    asked = Counted(1000)
    async with FakeServer(faults=faults) as server:
        pulled_when_fatal = None
        outcomes: list[Response | Failure] = []
        backend = backend_at(server.url, max_connections=3)
        async for _, outcome in backend.answer(asked):
            if isinstance(outcome, Failure) and pulled_when_fatal is None:
                pulled_when_fatal = asked.pulled
            outcomes.append(outcome)
        await backend.close()
    assert asked.pulled == pulled_when_fatal == len(outcomes) == 3
    assert sum(isinstance(outcome, Response) for outcome in outcomes) == 2


async def test_waiting_retries_give_up_when_the_run_stops() -> None:
    faults = [
        status(500, retry_after="30", contains='question 0"'),
        status(401, delay_s=0.05, contains='question 1"'),
    ]
    async with FakeServer(faults=faults) as server:
        # real clock: without being woken, the first call would sleep for half a minute
        backend = backend_at(server.url, max_connections=2)
        outcomes = await asyncio.wait_for(collect(backend, queries(2)), timeout=5)
    first, second = outcomes["q0"], outcomes["q1"]
    assert isinstance(first, Failure)
    assert isinstance(second, Failure)
    assert second.fatal
    assert "the run was stopped" in first.message
    assert not first.fatal


async def test_a_server_that_answers_with_errors_only_stops_the_run() -> None:
    asked = Counted(10_000)
    met = await against([status(500)], asked)
    assert any("errors only" in message for message in met.fatal)
    assert 25 <= asked.pulled == len(met.outcomes) < 100


async def test_an_answer_in_between_resets_the_count_of_failed_calls() -> None:
    # numbers 1, 11, 21, ... succeed: never 25 calls in a row fail
    met = await against([status(500, without='1"}')], queries(100), max_connections=4)
    assert len(met.outcomes) == 100
    assert len(met.failures) == 90
    assert met.fatal == []


@pytest.mark.parametrize("code", [429, 500, 503])
@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [("7", 7, 8), ("3600", 60, 61), ("Tue, 14 Nov 2023 22:13:30 GMT", 10, 11), ("soon", 0, 2)],
)
async def test_retry_after_is_honoured_and_capped(
    retry_after: str, least: float, most: float, code: int
) -> None:
    met = await against([status(code, retry_after=retry_after, times=1)], [query()])
    assert not met.failures
    assert least <= met.seconds <= most


async def test_a_rate_limit_holds_up_all_calls_not_one() -> None:
    jump = JumpClock()
    starts: list[float] = []

    async def answer(body: bytes) -> HttpReply:
        starts.append(jump.time)
        number = len(starts)
        await asyncio.sleep(0)
        if number == 1:
            return HttpReply(429, {"retry-after": "30"}, b"{}")
        return good_reply(body)

    assert not failures(await collect(wired(answer, jump, max_connections=4), queries(40)))
    assert len([start for start in starts if start < 1030.0]) <= 4
    assert len(starts) == 41


@pytest.mark.parametrize("per_minute", [None, 60], ids=["at once", "each start waits its second"])
@pytest.mark.parametrize("most", [2, 16])
async def test_pulling_stays_bounded_for_a_slow_caller(per_minute: float | None, most: int) -> None:
    asked, taken = Counted(50), 0
    limits = {"max_connections": most, "requests_per_minute": per_minute}
    async for _ in wired(answers_well, JumpClock(), **limits).answer(asked):
        taken += 1
        for _ in range(50):  # the others have time to run ahead
            await asyncio.sleep(0)
        assert asked.pulled - taken <= most
    assert taken == 50


async def test_concurrency_grows_to_the_cap_and_never_above() -> None:
    async with FakeServer(latency_s=0.01) as server:
        outcomes = await collect(backend_at(server.url, max_connections=24), queries(300))
    assert len(outcomes) == 300
    assert server.max_in_flight == 24


async def test_concurrency_is_cut_when_the_server_pushes_back() -> None:
    most = 0
    under_way = 0

    async def answer(body: bytes) -> HttpReply:
        nonlocal under_way, most
        under_way += 1
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        refused = under_way > 6  # the server copes with six at a time
        under_way -= 1
        if refused:
            return HttpReply(503, {}, b"overloaded")
        most = max(most, under_way + 1)
        return good_reply(body)

    outcomes = await collect(wired(answer, JumpClock()), queries(500))
    assert not failures(outcomes)
    retries = sum(outcome.retries for outcome in outcomes.values())  # type: ignore[union-attr]
    assert 0 < retries < 250
    assert most == 6


async def test_many_queries_are_never_many_tasks() -> None:
    most = 0

    async def answer(body: bytes) -> HttpReply:
        nonlocal most
        most = max(most, len(asyncio.all_tasks()))
        await asyncio.sleep(0)
        return reply

    reply = good_reply(b'{"model":"m","messages":[]}')
    n = 0
    async for _ in wired(answer, max_connections=32).answer(queries(1000)):
        n += 1
    assert n == 1000
    assert most <= 34


async def test_cancelling_ends_quickly_and_leaves_nothing_behind() -> None:
    async with FakeServer(faults=[Fault(kind="hang")]) as server:
        backend = backend_at(server.url)
        task = asyncio.create_task(collect(backend, queries(1000)))
        while server.received < 8:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, timeout=5)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        for _ in range(200):
            if not server.connections:
                break
            await asyncio.sleep(0.005)
        assert not server.connections


async def test_leaving_the_loop_early_breaks_off_what_is_under_way() -> None:
    asked = Counted(1000)
    async with FakeServer(faults=[Fault(kind="hang", without='question 0"')]) as server:
        backend = backend_at(server.url)
        answers = backend.answer(asked)
        async for _ in answers:
            break
        await answers.aclose()  # type: ignore[attr-defined]
        assert asyncio.all_tasks() == {asyncio.current_task()}
        pulled = asked.pulled
        # the same backend still works, with all of its places free
        server.faults.clear()
        outcomes = await collect(backend, queries(50))
    assert pulled <= 9
    assert len(outcomes) == 50


async def test_closing_a_backend_ends_its_runs() -> None:
    async with FakeServer(faults=[Fault(kind="hang")]) as server:
        backend = backend_at(server.url)
        task = asyncio.create_task(collect(backend, queries(10)))
        while not server.received:
            await asyncio.sleep(0.001)
        await backend.close()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, timeout=5)


async def test_an_error_of_the_iterable_follows_running_calls() -> None:
    def asked() -> Iterator[Query]:
        yield from queries(5)
        raise RuntimeError("the store is gone")

    outcomes = []

    async def take(backend: HttpBackend) -> None:
        async for _, outcome in backend.answer(asked()):
            outcomes.append(outcome)

    async with FakeServer(latency_s=0.01) as server:
        backend = backend_at(server.url)
        with pytest.raises(RuntimeError, match="the store is gone"):
            await take(backend)
        await backend.close()
    assert len(outcomes) == 5


async def test_a_defect_is_raised_and_not_swallowed() -> None:
    async def answer(body: bytes) -> HttpReply:
        raise ZeroDivisionError

    asked = Counted(100)
    backend = wired(answer)
    with pytest.raises(ZeroDivisionError):
        await collect(backend, asked)
    assert asked.pulled <= 9


LIMITS = ["max_connections", "timeout", "patience", "requests_per_minute", "tokens_per_minute"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 0) for name in LIMITS),
        *((name, v) for name in ("timeout", "patience") for v in (math.nan, math.inf, -1.0)),
    ],
)
def test_an_impossible_limit_is_refused(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=name):
        backend_at("http://x/v1", **{name: value})


@pytest.mark.parametrize("alone", [True, False])
def test_low_limit_of_open_files_is_refused_before_calls(alone: bool) -> None:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def work() -> None:
        async with FakeServer() as server:
            backend = backend_at(server.url)
            n_open = len(list(Path("/dev/fd").iterdir()))
            resource.setrlimit(resource.RLIMIT_NOFILE, (n_open + 40, limits[1]))
            with pytest.raises(
                UsageError, match=r"may need \d+; no call was made.*\(ulimit -n 256\)"
            ) as told:
                await (backend.call(query()) if alone else collect(backend, queries(3)))
            assert str(n_open + 40) in str(told.value)
            assert server.received == 0
            fewer = backend_at(server.url, max_connections=8)
            assert failures(await collect(fewer, queries(3))) == []

    try:
        asyncio.run(work())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_no_queries_no_connection() -> None:
    assert await collect(backend_at("http://127.0.0.1:9/v1"), []) == {}


def test_the_connections_of_an_ended_loop_are_let_go() -> None:
    wires = Wires(answers_well)
    backend = backend_at("http://x/v1", connect=wires.connect)

    async def work() -> None:
        assert len([pair async for pair in backend.answer(queries(3))]) == 3

    asyncio.run(work())
    asyncio.run(work())
    assert [wire.closed for wire in wires] == [True, False]
    asyncio.run(backend.close())
    assert [wire.closed for wire in wires] == [True, True]


def test_one_backend_serves_event_loops_of_several_threads() -> None:
    together = threading.Barrier(3)

    async def answer(body: bytes) -> HttpReply:
        await asyncio.to_thread(together.wait, 10)  # a call of every loop is under way
        return good_reply(body)

    wires = Wires(answer)
    backend = backend_at("http://x/v1", connect=wires.connect)

    async def work() -> bool:
        (query,) = queries(1)
        outcome = await backend.call(query)
        assert not any(wire.closed for wire in wires)
        return isinstance(outcome, Response)

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(lambda _: asyncio.run(work()), range(3)))
    assert len(wires) == 3
    asyncio.run(backend.close())
    assert all(wire.closed for wire in wires)


ECHOES = [
    status(400, f"your header was Bearer {KEY}"),
    status(401, f"Incorrect API key provided: {KEY}."),
    status(404, KEY),
    status(429, KEY, code="insufficient_quota"),
    status(500, f"Authorization={KEY}"),
    status(500, "x" * 390 + KEY),
    Fault(kind="body", message=f'{{"{KEY}": 1}}'),
    Fault(kind="body", message=f'{{"error": "{KEY}"}}'),
    Fault(kind="redirect", location=f"http://127.0.0.1:9/?key={KEY}"),
    Fault(kind="echo_key"),
    Fault(kind="half"),
    Fault(kind="hang"),
]


@pytest.mark.parametrize("fault", ECHOES, ids=name_of)
def test_the_key_appears_nowhere(fault: Fault, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> dict[str, Response | Failure]:
        async with FakeServer(faults=[fault]) as server:
            backend = backend_at(server.url, key=KEY, clock=JumpClock().clock(), timeout=0.1)
            outcomes = await collect(backend, [query()])
            assert server.headers[0]["authorization"] == f"Bearer {KEY}"
            assert KEY not in repr(backend)
            assert KEY not in repr(backend.address)
            assert KEY not in repr(vars(backend))
        return outcomes

    with caplog.at_level(logging.DEBUG):
        outcomes = asyncio.run(work())
    stored = msgspec.json.encode(outcomes).decode()
    assert KEY not in stored
    assert KEY[:16] not in stored
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    "pieces", [("A", KEY), ("A", KEY[:9], KEY[9:])], ids=["whole", "in pieces"]
)
@pytest.mark.parametrize("alternative", [False, True])
def test_the_key_is_not_kept_among_the_generated_tokens(
    pieces: tuple[str, ...], alternative: bool
) -> None:
    tops = [[{"token": piece, "logprob": -0.1}] for piece in pieces]
    if alternative:
        pieces, tops = ("A",), [[{"token": "A", "logprob": -0.1}, {"token": KEY, "logprob": -3}]]
    content = [
        {"token": piece, "top_logprobs": top} for piece, top in zip(pieces, tops, strict=True)
    ]
    body = msgspec.json.encode(
        {"choices": [{"message": {"content": "A"}, "logprobs": {"content": content}}]}
    )

    async def answer(_: bytes) -> HttpReply:
        return HttpReply(200, {}, body)

    backend = backend_at("http://x/v1", key=KEY, connect=lambda: FakeWire(answer))
    (response,) = asyncio.run(collect(backend, [query(top_logprobs=20)])).values()
    assert isinstance(response, Response)
    assert response.text == "A"
    assert response.tokens is None
    assert KEY not in msgspec.json.encode(response).decode()


async def test_a_redirect_does_not_carry_the_key_elsewhere() -> None:
    async with FakeServer() as other:
        fault = Fault(kind="redirect", location=f"{other.url}/chat/completions")
        async with FakeServer(faults=[fault]) as server:
            outcomes = await collect(backend_at(server.url, key=KEY), [query()])
        assert other.received == 0
    assert [failure.fatal for failure in failures(outcomes)] == [True]


async def test_calls_wait_their_turn_and_a_closed_backend_sends_none() -> None:
    under_way: list[bytes] = []

    async def hang(body: bytes) -> HttpReply:
        under_way.append(body)
        await asyncio.sleep(0.02)
        return good_reply(body)

    backend = wired(hang, max_connections=2)
    calls = [asyncio.create_task(backend.call(query(number))) for number in range(3)]
    await asyncio.sleep(0.005)
    assert len(under_way) == 2
    await backend.close()
    outcomes = await asyncio.gather(*calls)
    assert [type(outcome) for outcome in outcomes] == [Response, Response, Failure]
    assert len(under_way) == 2
