"""The chat client against planned faults: nothing is lost, nothing is asked for in vain."""

import asyncio
import logging
import random
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from chat_cases import (
    KEY,
    Counted,
    FakeWire,
    JumpClock,
    backend_at,
    collect,
    failures,
    good_reply,
    queries,
    query,
)
from fake_server import ASKED, FakeServer, Fault, answer_of

from unswayed.backends import transport, workers
from unswayed.backends.client import HttpBackend
from unswayed.backends.faults import HttpReply, LostError, UnreachableError
from unswayed.backends.patience import FIRST_CONTACT_S
from unswayed.backends.protocol import Wait
from unswayed.calls import Failure, Query, Response
from unswayed.errors import UsageError

ONCE = [
    Fault(kind="status", status=500, times=1),
    Fault(kind="status", status=502, times=1),
    Fault(kind="status", status=503, times=1),
    Fault(kind="status", status=529, times=1),
    Fault(kind="status", status=408, times=1),
    Fault(kind="status", status=429, times=1),
    Fault(kind="status", status=429, retry_after="2", times=1),
    Fault(kind="status", status=429, retry_after="Tue, 14 Nov 2023 22:13:22 GMT", times=1),
    Fault(kind="reset", times=1),
    Fault(kind="close", times=1),
    Fault(kind="half", times=1),
    Fault(kind="hang", times=1),
    Fault(kind="not_json", times=1),
    Fault(kind="wrong_shape", times=1),
    Fault(kind="body", message='{"error": {"message": "upstream"}}', times=1),
    Fault(kind="body", message="", times=1),
]


def name_of(fault: Fault) -> str:
    return f"{fault.kind}-{fault.status}-{fault.retry_after or ''}"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_every_query_is_answered_once_with_the_servers_answer() -> None:
    async def work() -> None:
        async with FakeServer(latency_s=0.001) as server:
            outcomes = await collect(backend_at(server.url), queries(200))
            expected = {
                body: answer_of(ASKED.decode(body), ("A", "B"))[0][0] for body in server.bodies
            }
        assert len(outcomes) == server.received == len(expected) == 200
        texts = [outcome.text for outcome in outcomes.values() if isinstance(outcome, Response)]
        assert sorted(texts) == sorted(expected.values())
        assert {"A", "B"} == set(texts)

    asyncio.run(work())


def test_a_response_carries_usage_cost_and_the_servers_model() -> None:
    async def work() -> None:
        async with FakeServer() as server:
            outcomes = await collect(backend_at(server.url), [query()])
        (response,) = outcomes.values()
        assert isinstance(response, Response)
        assert response.model == "m"
        assert response.input_tokens > 0
        assert response.output_tokens == 1
        assert response.cost_usd == 0.0
        assert response.retries == 0
        assert response.latency_s > 0

    asyncio.run(work())


@pytest.mark.parametrize("fault", ONCE, ids=name_of)
def test_a_passing_fault_is_tried_again(fault: Fault) -> None:
    fault = msgspec.structs.replace(fault)

    async def work() -> None:
        async with FakeServer(faults=[fault]) as server:
            clock = JumpClock().clock()
            backend = backend_at(server.url, clock=clock, timeout=0.3)
            outcomes = await collect(backend, [query()])
        (response,) = outcomes.values()
        assert isinstance(response, Response)
        assert response.text in {"A", "B"}
        assert response.retries == 1
        assert server.received == 2
        assert server.bodies[0] == server.bodies[1]

    asyncio.run(work())


@pytest.mark.parametrize(
    ("fault", "error", "attempts", "status"),
    [
        (Fault(kind="status", status=500), "ServerError", 4, 500),
        (Fault(kind="hang"), "ServerError", 4, None),
        (Fault(kind="not_json"), "BadResponseError", 4, 200),
        (Fault(kind="wrong_shape"), "BadResponseError", 4, 200),
        (Fault(kind="body", message='{"choices": []}'), "BadResponseError", 4, 200),
    ],
    ids=lambda value: name_of(value) if isinstance(value, Fault) else "",
)
def test_a_lasting_fault_is_a_failure_and_never_an_answer(
    fault: Fault, error: str, attempts: int, status: int | None
) -> None:
    async def work() -> None:
        async with FakeServer(faults=[fault]) as server:
            clock = JumpClock().clock()
            backend = backend_at(server.url, clock=clock, timeout=0.1)
            outcomes = await collect(backend, [query()])
        (failure,) = outcomes.values()
        assert isinstance(failure, Failure)
        assert (failure.error, failure.attempts, failure.status) == (error, attempts, status)
        assert not failure.fatal
        assert failure.message.startswith("q0: ")
        assert server.received == attempts

    asyncio.run(work())


LOSSES = ["reset", "close", "half"]


@pytest.mark.parametrize("kind", LOSSES)
def test_losing_one_connection_in_five_loses_no_call(kind: str) -> None:
    chance = random.Random(kind)
    lost = [number for number in range(1, 3000) if chance.random() < 0.2]

    async def work() -> None:
        async with FakeServer(faults=[Fault(kind=kind, on=lost)]) as server:
            backend = backend_at(server.url, clock=JumpClock().clock())
            outcomes = await collect(backend, queries(1200))
        assert len(outcomes) == 1200
        assert failures(outcomes) == []

    asyncio.run(work())


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("alone", [True, False])
def test_server_losing_every_connection_is_awaited_for_patience(kind: str, alone: bool) -> None:
    async def work() -> None:
        jump = JumpClock()
        async with FakeServer(faults=[Fault(kind=kind)]) as server:
            backend = backend_at(server.url, clock=jump.clock(), patience=40)
            if alone:
                outcomes = {"q0": await backend.call(query())}
                await backend.close()
            else:
                outcomes = await collect(backend, queries(1000))
        fatal = [failure for failure in failures(outcomes) if failure.fatal]
        assert "answered nothing for 40 seconds" in fatal[0].message
        assert 40 <= jump.time - 1000.0 < 60
        assert len(outcomes) <= 64

    asyncio.run(work())


def test_call_losing_every_connection_ends_while_others_succeed() -> None:
    async def work() -> None:
        jump = JumpClock()

        async def answer(body: bytes) -> HttpReply:
            if b'question 3"' in body:
                raise LostError("the connection was reset")
            return good_reply(body)

        backend = backend_at("http://x/v1", clock=jump.clock(), connect=lambda: FakeWire(answer))
        lost = asyncio.create_task(backend.call(query(3)))
        while not lost.done():
            await asyncio.sleep(0)
            assert isinstance(await backend.call(query(4)), Response)
        failure = lost.result()
        assert isinstance(failure, Failure)
        assert not failure.fatal
        assert failure.message.startswith("q3: the connection was reset (")
        assert jump.time - 1000.0 >= 180

    asyncio.run(work())


def test_passing_failures_are_retried_after_all_other_calls() -> None:
    async def work() -> None:
        faults = [Fault(kind="status", contains='question 3"', times=3)]
        async with FakeServer(faults=faults) as server:
            backend = backend_at(server.url, clock=JumpClock().clock())
            outcomes = await collect(backend, queries(60))
            *_, last = server.bodies
        assert failures(outcomes) == []
        assert b'question 3"' in last
        assert outcomes["q3"].retries == 3  # type: ignore[union-attr]

    asyncio.run(work())


def test_single_call_is_retried_after_passing_failure() -> None:
    async def work() -> None:
        async with FakeServer(faults=[Fault(kind="status", times=3)]) as server:
            backend = backend_at(server.url, clock=JumpClock().clock())
            response = await backend.call(query())
            await backend.close()
        assert isinstance(response, Response)
        assert response.retries == 3

    asyncio.run(work())


def test_stopped_run_hands_over_calls_set_aside() -> None:
    async def work() -> None:
        faults = [
            Fault(kind="status", contains='question 0"'),
            Fault(kind="status", status=401, contains='question 50"'),
        ]
        async with FakeServer(faults=faults) as server:
            backend = backend_at(server.url, clock=JumpClock().clock(), max_connections=2)
            outcomes = await collect(backend, queries(1000))
        assert {key for key, one in outcomes.items() if isinstance(one, Failure)} >= {"q0", "q50"}
        assert outcomes["q0"].attempts == 3  # type: ignore[union-attr]
        assert len(outcomes) < 100

    asyncio.run(work())


def test_number_of_calls_set_aside_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "MOST_ASIDE", 2)

    async def work() -> None:
        faults = [Fault(kind="status", contains="odd")]
        async with FakeServer(faults=faults) as server:
            backend = backend_at(server.url, clock=JumpClock().clock())
            asked = [query(k, text=f"{'odd' if k % 2 else 'even'} {k}") for k in range(20)]
            outcomes = await collect(backend, asked)
        assert sorted(failure.attempts for failure in failures(outcomes)) == [3] * 8 + [4] * 2

    asyncio.run(work())


@pytest.mark.parametrize("status", [429, 502, 503, 529])
@pytest.mark.parametrize("retry_after", [None, "0", "1", "3600", "-5", "nan"])
def test_a_server_that_turns_everything_away_is_waited_for_and_no_longer_than_patience(
    status: int, retry_after: str | None
) -> None:
    async def work() -> None:
        jump = JumpClock()
        faults = [Fault(kind="status", status=status, retry_after=retry_after)]
        async with FakeServer(faults=faults) as server:
            backend = backend_at(server.url, clock=jump.clock(), patience=40, max_retries=0)
            outcomes = await collect(backend, queries(1000))
        fatal = [failure for failure in failures(outcomes) if failure.fatal]
        assert fatal
        assert "answered nothing for 40 seconds" in fatal[0].message
        assert "--patience" in fatal[0].message
        assert jump.time - 1000.0 == pytest.approx(40)
        assert len(failures(outcomes)) == len(outcomes) <= 64
        assert server.received < 200  # nor is it asked without a pause

    asyncio.run(work())


def test_a_call_that_is_turned_away_while_others_are_answered_is_given_up_after_its_retries() -> (
    None
):
    async def work() -> None:
        faults = [Fault(kind="status", status=503, contains='question 3"')]
        async with FakeServer(faults=faults) as server:
            backend = backend_at(
                server.url, clock=JumpClock().clock(), max_retries=2, max_connections=4
            )
            outcomes = await collect(backend, queries(300))
        (failure,) = failures(outcomes)
        assert not failure.fatal
        assert failure.message.startswith("q3: ")
        assert failure.attempts >= 3
        assert len(outcomes) == 300

    asyncio.run(work())


def test_an_outage_after_an_answer_is_waited_for_and_loses_no_call() -> None:
    async def work() -> None:
        jump = JumpClock()
        n = 0

        async def answer(body: bytes) -> HttpReply:
            nonlocal n
            n += 1
            if n > 20 and jump.time < 1030.0:
                raise UnreachableError("cannot connect")
            return good_reply(body)

        backend = backend_at("http://x/v1", clock=jump.clock(), connect=lambda: FakeWire(answer))
        outcomes = await collect(backend, queries(100))
        assert not failures(outcomes)
        assert len(outcomes) == 100
        assert n < 200

    asyncio.run(work())


def test_a_server_that_was_never_reached_is_given_up_within_seconds() -> None:
    async def work() -> None:
        jump = JumpClock()

        async def answer(body: bytes) -> HttpReply:
            raise UnreachableError("cannot connect")

        backend = backend_at("http://x/v1", clock=jump.clock(), connect=lambda: FakeWire(answer))
        outcomes = await collect(backend, queries(100))
        fatal = [failure.message for failure in failures(outcomes) if failure.fatal]
        assert "It was never reached. Start it, or check its address" in fatal[0]
        assert jump.time - 1000.0 <= FIRST_CONTACT_S

    asyncio.run(work())


def test_patience_begins_anew_with_the_next_run_of_the_same_backend() -> None:
    async def work() -> None:
        jump = JumpClock()

        async def answer(body: bytes) -> HttpReply:
            return HttpReply(503, {}, b"")

        backend = backend_at("http://x/v1", clock=jump.clock(), connect=lambda: FakeWire(answer))
        outcomes = await collect(backend, [query()])
        assert [failure.fatal for failure in failures(outcomes)] == [True]
        jump.time += 3600.0
        asked = 0

        async def recovers(body: bytes) -> HttpReply:
            nonlocal asked
            asked += 1
            return HttpReply(503, {}, b"") if asked == 1 else good_reply(body)

        backend._connect = lambda: FakeWire(recovers)
        assert not failures(await collect(backend, [query()]))

    asyncio.run(work())


def test_what_is_waited_for_can_be_asked() -> None:
    async def work() -> None:
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
        backend = backend_at(
            "http://127.0.0.1:8000/v1", clock=clock, connect=lambda: FakeWire(answer)
        )
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

    asyncio.run(work())


def test_failures_that_differ_are_tried_up_to_the_cap_on_attempts() -> None:
    faults = [Fault(kind="status", message=f"trace {i}", on=[i]) for i in range(1, 10)]

    async def work() -> None:
        async with FakeServer(faults=faults) as server:
            backend = backend_at(server.url, clock=JumpClock().clock(), max_retries=4)
            outcomes = await collect(backend, [query()])
        assert [failure.attempts for failure in failures(outcomes)] == [6]

    asyncio.run(work())


def test_one_bad_call_does_not_hold_up_the_others() -> None:
    async def work() -> None:
        faults = [Fault(kind="status", status=500, contains='question 3"')]
        async with FakeServer(faults=faults) as server:
            backend = backend_at(server.url, clock=JumpClock().clock())
            outcomes = await collect(backend, queries(60))
        assert len(outcomes) == 60
        assert [key for key, outcome in outcomes.items() if isinstance(outcome, Failure)] == ["q3"]

    asyncio.run(work())


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refused_request_is_not_tried_again_and_others_go_on(status: int) -> None:
    async def work() -> None:
        faults = [Fault(kind="status", status=status, message="too long", contains='question 1"')]
        async with FakeServer(faults=faults) as server:
            outcomes = await collect(backend_at(server.url), queries(5))
        (failure,) = failures(outcomes)
        assert (failure.error, failure.attempts, failure.fatal) == ("BackendError", 1, False)
        assert "too long" in failure.message
        assert server.received == 5

    asyncio.run(work())


@pytest.mark.parametrize(
    ("fault", "error", "hint"),
    [
        (Fault(kind="status", status=401, message="bad key"), "AuthError", "key"),
        (Fault(kind="status", status=403, message="no access"), "AuthError", "key"),
        (Fault(kind="status", status=404, message="no model m"), "BackendError", "model name"),
        (Fault(kind="status", status=402, message="pay"), "RateLimitedError", "billing"),
        (
            Fault(kind="status", status=429, message="You quota", code="insufficient_quota"),
            "RateLimitedError",
            "billing",
        ),
        (
            Fault(kind="status", status=400, message="Your credit balance is too low."),
            "RateLimitedError",
            "billing",
        ),
        (Fault(kind="redirect"), "BackendError", "redirects are not followed"),
    ],
    ids=lambda value: name_of(value) if isinstance(value, Fault) else "",
)
def test_what_would_fail_every_call_stops_the_run_at_once(
    fault: Fault, error: str, hint: str
) -> None:
    async def work() -> None:
        asked = Counted(1000)
        async with FakeServer(faults=[fault]) as server:
            outcomes = await collect(backend_at(server.url), asked)
        assert asked.pulled == len(outcomes) == server.received <= 8
        for failure in failures(outcomes):
            assert (failure.error, failure.fatal, failure.attempts) == (error, True, 1)
            assert hint in failure.message
        assert len(failures(outcomes)) == len(outcomes)

    asyncio.run(work())


def test_nothing_is_pulled_after_a_fatal_failure_and_answers_under_way_are_kept() -> None:
    async def work() -> None:
        faults = [
            Fault(kind="slow", delay_s=0.1, on=[1, 2]),
            Fault(kind="status", status=401, on=[3]),
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

    asyncio.run(work())


def test_calls_waiting_to_be_tried_again_give_up_when_the_run_stops() -> None:
    async def work() -> None:
        faults = [
            Fault(kind="status", status=500, retry_after="30", contains='question 0"'),
            Fault(kind="status", status=401, delay_s=0.05, contains='question 1"'),
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

    asyncio.run(work())


def test_a_server_that_is_down_stops_the_run() -> None:
    async def work() -> None:
        asked = Counted(10_000)
        backend = backend_at(f"http://127.0.0.1:{free_port()}/v1", clock=JumpClock().clock())
        outcomes = await collect(backend, asked)
        fatal = [failure for failure in failures(outcomes) if failure.fatal]
        assert len(failures(outcomes)) == len(outcomes) == asked.pulled <= 64
        assert fatal
        assert "the server is down" in fatal[0].message
        assert {failure.error for failure in failures(outcomes)} == {"ServerError"}

    asyncio.run(work())


def test_a_server_that_answers_with_errors_only_stops_the_run() -> None:
    async def work() -> None:
        asked = Counted(10_000)
        async with FakeServer(faults=[Fault(kind="status", status=500)]) as server:
            outcomes = await collect(backend_at(server.url, clock=JumpClock().clock()), asked)
        assert any("errors only" in failure.message for failure in failures(outcomes))
        assert 25 <= asked.pulled == len(outcomes) < 100

    asyncio.run(work())


def test_a_server_that_turns_everything_away_stops_the_run_after_minutes_not_hours() -> None:
    async def work() -> None:
        asked = Counted(10_000)
        jump = JumpClock()
        faults = [Fault(kind="status", status=429, retry_after="60")]
        async with FakeServer(faults=faults) as server:
            outcomes = await collect(
                backend_at(server.url, clock=jump.clock(), max_retries=999), asked
            )
        fatal = [failure.message for failure in failures(outcomes) if failure.fatal]
        assert fatal
        assert "answered nothing for 3 minutes" in fatal[0]
        assert len(failures(outcomes)) == len(outcomes) == asked.pulled <= 64

    asyncio.run(work())


def test_an_answer_in_between_resets_the_count_of_failed_calls() -> None:
    async def work() -> None:
        asked = Counted(300)
        # numbers 1, 11, 21, ... succeed: never 25 calls in a row fail
        faults = [Fault(kind="status", status=500, without='1"}')]
        async with FakeServer(faults=faults) as server:
            outcomes = await collect(
                backend_at(server.url, clock=JumpClock().clock(), max_connections=4), asked
            )
        assert len(outcomes) == 300
        assert len(failures(outcomes)) == 270
        assert not any(failure.fatal for failure in failures(outcomes))

    asyncio.run(work())


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [("7", 7, 8), ("3600", 60, 61), ("Tue, 14 Nov 2023 22:13:30 GMT", 10, 11), ("soon", 0, 2)],
)
def test_retry_after_is_honoured_and_capped(
    retry_after: str, least: float, most: float, status: int
) -> None:
    async def work() -> None:
        jump = JumpClock()
        fault = Fault(kind="status", status=status, retry_after=retry_after, times=1)
        async with FakeServer(faults=[fault]) as server:
            outcomes = await collect(backend_at(server.url, clock=jump.clock()), [query()])
        assert not failures(outcomes)
        assert least <= jump.time - 1000.0 <= most

    asyncio.run(work())


def test_a_rate_limit_holds_up_all_calls_not_one() -> None:
    async def work() -> None:
        jump = JumpClock()
        starts: list[float] = []

        async def answer(body: bytes) -> HttpReply:
            starts.append(jump.time)
            number = len(starts)
            await asyncio.sleep(0)
            if number == 1:
                return HttpReply(429, {"retry-after": "30"}, b"{}")
            return good_reply(body)

        backend = backend_at(
            "http://x/v1", clock=jump.clock(), connect=lambda: FakeWire(answer), max_connections=4
        )
        outcomes = await collect(backend, queries(40))
        assert not failures(outcomes)
        under_way = [start for start in starts if start < 1030.0]
        assert len(under_way) <= 4
        assert len(starts) == 41

    asyncio.run(work())


def test_pulling_is_lazy_and_bounded_even_when_the_caller_is_slow() -> None:
    async def work() -> None:
        asked = Counted(400)
        taken = 0
        async with FakeServer() as server:
            backend = backend_at(server.url, max_connections=16)
            async for _ in backend.answer(asked):
                taken += 1
                if taken % 20 == 0:
                    await asyncio.sleep(0.005)  # the others have time to run ahead
                assert asked.pulled - taken <= 16
            await backend.close()
        assert taken == 400

    asyncio.run(work())


def test_pulling_stays_bounded_when_workers_wait_in_line_and_the_caller_is_slow() -> None:
    async def work() -> None:
        async def answer(body: bytes) -> HttpReply:
            return good_reply(body)

        asked = Counted(50)
        taken = 0
        backend = backend_at(
            "http://x/v1",
            clock=JumpClock().clock(),
            connect=lambda: FakeWire(answer),
            max_connections=2,
            requests_per_minute=60,  # each start waits its second
        )
        async for _ in backend.answer(asked):
            taken += 1
            for _ in range(50):
                await asyncio.sleep(0)
            assert asked.pulled - taken <= 2
        assert taken == 50

    asyncio.run(work())


def test_concurrency_grows_to_the_cap_and_never_above() -> None:
    async def work() -> None:
        async with FakeServer(latency_s=0.01) as server:
            outcomes = await collect(backend_at(server.url, max_connections=24), queries(600))
        assert len(outcomes) == 600
        assert server.max_in_flight == 24

    asyncio.run(work())


def test_concurrency_is_cut_when_the_server_pushes_back() -> None:
    async def work() -> None:
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

        backend = backend_at(
            "http://x/v1", clock=JumpClock().clock(), connect=lambda: FakeWire(answer)
        )
        outcomes = await collect(backend, queries(500))
        assert not failures(outcomes)
        retries = sum(outcome.retries for outcome in outcomes.values())  # type: ignore[union-attr]
        assert 0 < retries < 250
        assert most == 6

    asyncio.run(work())


def test_many_queries_are_never_many_tasks() -> None:
    async def work() -> None:
        most = 0

        async def answer(body: bytes) -> HttpReply:
            nonlocal most
            most = max(most, len(asyncio.all_tasks()))
            await asyncio.sleep(0)
            return reply

        reply = good_reply(b'{"model":"m","messages":[]}')
        backend = backend_at("http://x/v1", connect=lambda: FakeWire(answer), max_connections=32)
        n = 0
        async for _ in backend.answer(queries(20_000)):
            n += 1
        assert n == 20_000
        assert most <= 34

    asyncio.run(work())


def test_cancelling_ends_quickly_and_leaves_nothing_behind() -> None:
    async def work() -> None:
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

    asyncio.run(work())


def test_leaving_the_loop_early_breaks_off_what_is_under_way() -> None:
    async def work() -> None:
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

    asyncio.run(work())


def test_closing_a_backend_ends_its_runs() -> None:
    async def work() -> None:
        async with FakeServer(faults=[Fault(kind="hang")]) as server:
            backend = backend_at(server.url)
            task = asyncio.create_task(collect(backend, queries(10)))
            while not server.received:
                await asyncio.sleep(0.001)
            await backend.close()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, timeout=5)

    asyncio.run(work())


def test_an_error_of_the_iterable_is_raised_after_what_is_under_way() -> None:
    def asked() -> Iterator[Query]:
        yield from queries(5)
        raise RuntimeError("the store is gone")

    async def work() -> None:
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

    asyncio.run(work())


def test_a_defect_is_raised_and_not_swallowed() -> None:
    async def answer(body: bytes) -> HttpReply:
        raise ZeroDivisionError

    async def work() -> None:
        asked = Counted(100)
        backend = backend_at("http://x/v1", connect=lambda: FakeWire(answer))
        with pytest.raises(ZeroDivisionError):
            await collect(backend, asked)
        assert asked.pulled <= 9

    asyncio.run(work())


@pytest.mark.parametrize(
    "name",
    ["max_connections", "timeout", "patience", "requests_per_minute", "tokens_per_minute"],
)
def test_a_limit_of_zero_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        backend_at("http://x/v1", **{name: 0})


@pytest.mark.parametrize("name", ["timeout", "patience"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_a_time_that_is_none_is_refused(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=name):
        backend_at("http://x/v1", **{name: value})


@pytest.mark.parametrize("alone", [True, False])
def test_low_limit_of_open_files_is_refused_before_calls(
    alone: bool,
) -> None:
    resource = pytest.importorskip("resource")
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


def test_no_queries_no_connection() -> None:
    async def work() -> None:
        assert await collect(backend_at("http://127.0.0.1:9/v1"), []) == {}

    asyncio.run(work())


def test_one_backend_serves_one_event_loop_after_another() -> None:
    backend = backend_at("http://127.0.0.1:0/v1")

    async def work() -> None:
        async with FakeServer() as server:
            backend.address = replace(backend.address, url=server.url)
            n = 0
            async for _, outcome in backend.answer(queries(20)):
                assert isinstance(outcome, Response)
                n += 1
            assert n == 20

    asyncio.run(work())
    asyncio.run(work())
    asyncio.run(backend.close())


def test_the_connections_of_an_ended_loop_are_let_go() -> None:
    wires: list[FakeWire] = []

    async def answer(body: bytes) -> HttpReply:
        return good_reply(body)

    def connect() -> FakeWire:
        wires.append(FakeWire(answer))
        return wires[-1]

    backend = backend_at("http://x/v1", connect=connect)

    async def work() -> None:
        assert len([pair async for pair in backend.answer(queries(3))]) == 3

    asyncio.run(work())
    asyncio.run(work())
    assert [wire.closed for wire in wires] == [True, False]
    asyncio.run(backend.close())
    assert [wire.closed for wire in wires] == [True, True]


def test_one_backend_serves_event_loops_of_several_threads_at_once() -> None:
    wires: list[FakeWire] = []
    together = threading.Barrier(3)

    async def answer(body: bytes) -> HttpReply:
        await asyncio.to_thread(together.wait, 10)  # a call of every loop is under way
        return good_reply(body)

    def connect() -> FakeWire:
        wires.append(FakeWire(answer))
        return wires[-1]

    backend = backend_at("http://x/v1", connect=connect)

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


def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LARGEST_BODY", 1000)

    async def work() -> None:
        fault = Fault(kind="body", message="x" * 2000)
        async with FakeServer(faults=[fault]) as server:
            backend = backend_at(server.url, clock=JumpClock().clock())
            (failure,) = (await collect(backend, [query()])).values()
        assert isinstance(failure, Failure)
        assert failure.error == "ServerError"
        assert "too large" in failure.message

    asyncio.run(work())


ECHOES = [
    Fault(kind="status", status=400, message=f"your header was Bearer {KEY}"),
    Fault(kind="status", status=401, message=f"Incorrect API key provided: {KEY}."),
    Fault(kind="status", status=404, message=KEY),
    Fault(kind="status", status=429, message=KEY, code="insufficient_quota"),
    Fault(kind="status", status=500, message=f"Authorization={KEY}"),
    Fault(kind="status", status=500, message="x" * 390 + KEY),
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


def test_a_redirect_does_not_carry_the_key_elsewhere() -> None:
    async def work() -> None:
        async with FakeServer() as other:
            fault = Fault(kind="redirect", location=f"{other.url}/chat/completions")
            async with FakeServer(faults=[fault]) as server:
                outcomes = await collect(backend_at(server.url, key=KEY), [query()])
            assert other.received == 0
        assert [failure.fatal for failure in failures(outcomes)] == [True]

    asyncio.run(work())


# --- one call in the caller's own task -----------------------------------------------------------


@pytest.mark.parametrize("fault", [*ONCE, None], ids=lambda fault: fault and name_of(fault))
def test_one_call_is_tried_again_as_many_are(fault: Fault | None) -> None:
    faults = [] if fault is None else [msgspec.structs.replace(fault)]

    async def work() -> None:
        async with FakeServer(faults=faults) as server:
            backend = backend_at(server.url, clock=JumpClock().clock(), timeout=0.3)
            response = await backend.call(query())
            await backend.close()
        assert isinstance(response, Response)
        assert response.text in {"A", "B"}
        assert response.retries == len(faults)
        assert server.received == 1 + len(faults)

    asyncio.run(work())


def test_one_call_fails_as_one_of_many_does() -> None:
    async def work() -> None:
        for fault in (
            Fault(kind="status", status=401),
            Fault(kind="status", status=400, message="too long"),
            Fault(kind="status", status=500),
        ):
            outcomes = []
            for alone in (True, False):
                async with FakeServer(faults=[msgspec.structs.replace(fault)]) as server:
                    backend = backend_at(
                        server.url, clock=JumpClock().clock(), max_retries=2, timeout=0.3
                    )
                    if alone:
                        outcome = await backend.call(query())
                        await backend.close()
                    else:
                        (outcome,) = (await collect(backend, [query()])).values()
                    assert isinstance(outcome, Failure)
                    message = outcome.message.replace(server.url, "")
                    outcomes.append(msgspec.structs.replace(outcome, message=message))
            assert outcomes[0] == outcomes[1]

    asyncio.run(work())


def test_calls_wait_for_their_turn_and_a_closed_backend_sends_no_more() -> None:
    under_way: list[bytes] = []

    async def hang(body: bytes) -> HttpReply:
        under_way.append(body)
        await asyncio.sleep(0.02)
        return good_reply(body)

    async def work() -> None:
        backend = backend_at("http://x/v1", connect=lambda: FakeWire(hang), max_connections=2)
        calls = [asyncio.create_task(backend.call(query(number))) for number in range(3)]
        await asyncio.sleep(0.005)
        assert len(under_way) == 2
        await backend.close()
        outcomes = await asyncio.gather(*calls)
        assert [type(outcome) for outcome in outcomes] == [Response, Response, Failure]
        assert len(under_way) == 2

    asyncio.run(work())
