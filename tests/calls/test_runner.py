"""The runner: each distinct call once, whatever stops it; budgets hold; failures are no verdicts."""

import asyncio
import contextlib
import hashlib
import io
import os
import signal
import subprocess
import sys
import textwrap
import time
import types
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import SETTINGS, FakeBackend, failures, label_by_content, pair, questions
from unswayed.backends import Backend, local_jobs, open_backend
from unswayed.backends.protocol import Wait
from unswayed.base.errors import ItemError, StoreError, TemplateError, UsageError
from unswayed.calls import (
    Caller,
    Progress,
    Question,
    RunCounts,
    RunSettings,
    stop_on_interrupt,
)
from unswayed.calls import caller as engine
from unswayed.calls.interrupts import SIGNALS, catch_interrupt
from unswayed.calls.pricing import Estimator, most_tokens
from unswayed.calls.progress import describe
from unswayed.model.calls import Failure, Query, Request, Response, key_of
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, Task
from unswayed.model.parsing import LABEL
from unswayed.model.presentation import X0, X2, Ask, Substitution, presentations
from unswayed.prompts import PromptSettings, render
from unswayed.store import CallStore, Memory

AT_14_03 = time.mktime((2026, 11, 22, 14, 3, 0, 0, 0, -1))


class Unreachable(FakeBackend):
    async def answer(
        self, queries: Iterable[Query]
    ) -> AsyncIterator[tuple[Query, Response | Failure]]:
        raise AssertionError("a run whose calls are all recorded asked the backend")
        yield  # makes it a generator

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        return None


def run(
    asked: Iterable[Question],
    backend: Backend,
    store: CallStore,
    how: RunSettings = SETTINGS,
    **options: object,
) -> RunCounts:
    return asyncio.run(Caller(backend, store, how).ask(asked, **options))  # type: ignore[arg-type]


def read(asked: Iterable[Question], store: CallStore, model: str = "fake/one") -> list[Decision]:
    return list(Caller(FakeBackend(model=model), store, SETTINGS).read(asked))


def requests(
    asked: Iterable[Question], backend: Backend | None = None, how: RunSettings = SETTINGS
) -> list[Request]:
    caller = Caller(backend or FakeBackend(), Memory(), how)
    return [query.request for query in caller.missing(asked)]


# --- requests --------------------------------------------------------------------------------


def test_requests_are_greedy_except_for_repeated_samples() -> None:
    how = RunSettings(prompts=PromptSettings(), sample_temperature=0.7)
    made = requests(questions(1, *(Ask(X0, sample=sample) for sample in range(3))), how=how)
    assert [(one.temperature, one.sample) for one in made] == [(0.0, 0), (0.7, 1), (0.7, 2)]
    assert len({key_of(request) for request in made}) == 3
    assert made[0].model == "fake/one"
    assert made[0].labels == ("A", "B")


def test_logprobs_are_asked_for_where_the_backend_gives_them() -> None:
    asked, _ = requests(questions(1))
    not_asked, _ = requests(questions(1), FakeBackend(gives_logprobs=False))
    assert asked.top_logprobs == render(pair(0), Ask(X0), SETTINGS.prompts).top_logprobs > 0
    assert not_asked.top_logprobs == 0


def test_the_key_of_a_call_without_schema_is_unchanged() -> None:
    made, _ = requests(questions(1))
    messages = msgspec.json.encode(made.messages).decode()
    before = (
        '{"model":"fake/one","messages":' + messages + ',"labels":["A","B"],"max_tokens":16,'
        '"temperature":0.0,"top_logprobs":20,"sample":0,"nonce":null}'
    )
    assert key_of(made) == hashlib.sha256(before.encode()).digest()


def test_a_schema_is_part_of_the_key_and_of_the_price(monkeypatch: pytest.MonkeyPatch) -> None:
    free, _ = requests(questions(1))
    schema = '{"type":"object","title":"é"}'
    monkeypatch.setattr(
        LABEL, "request", lambda labels, style: style._replace(schema=schema), raising=True
    )
    own = RunSettings(prompts=PromptSettings())  # one value stands for one wording
    made, _ = requests(questions(1), how=own)
    assert made == msgspec.structs.replace(free, schema=schema)
    assert key_of(made) != key_of(free)
    assert most_tokens(made)[0] == most_tokens(free)[0] + len(schema) + 1  # é has two bytes


def test_judges_that_read_the_item_see_it_in_the_key() -> None:
    twins = [Question(Item(id=name, prompt="?", candidates=("a", "b")), Ask(X0)) for name in "xy"]
    reader = FakeBackend(keyed_by_item=True)
    assert [request.nonce for request in requests(twins, reader)] == ["x", "y"]
    assert open_backend("simulated/judge").keyed_by_item
    assert [request.nonce for request in requests(twins)] == [None]  # one call for both


def test_a_lone_surrogate_names_the_item(store: CallStore) -> None:
    broken = Item(id="q7", prompt="half a character: \ud83d", candidates=("a", "b"))
    with pytest.raises(ItemError, match="q7: its text has half a character"):
        run([Question(broken, Ask(X0))], FakeBackend(), store)


# --- each distinct call once -----------------------------------------------------------------


def test_equal_calls_are_made_once(store: CallStore) -> None:
    item = Item(id="m", prompt="?", candidates=("1", "2", "3", "4"), task=Task.MCQ)
    everything = [Question(item, Ask(p)) for p in presentations("full", 4)]
    everything += [Question(item, Ask(p)) for p in presentations("cyclic", 4)]  # a second method
    everything += [Question(item, Ask(presentations("full", 4)[0]))] * 5
    content_free = Substitution(("N/A",) * 4, "N/A")
    everything += [  # the same call for every item
        Question(
            msgspec.structs.replace(item, id=name),
            Ask(everything[0].ask.presentation, substitute=content_free),
        )
        for name in ("m", "m2", "m3")
    ]
    backend = FakeBackend()
    counts = run(everything, backend, store)
    assert len(backend.asked) == len({key_of(request) for request in backend.asked}) == 24 + 1
    assert (counts.planned, counts.made, counts.cached, counts.failed) == (25, 25, 0, 0)
    decisions = read(everything, store)
    assert [d.item_id for d in decisions] == [q.item.id for q in everything]
    assert [d.ask for d in decisions] == [q.ask for q in everything]


def test_decisions_are_the_recorded_answers_by_candidate(store: CallStore) -> None:
    asked = questions(40)
    run(asked, FakeBackend(), store)
    for (item, ask), decision in zip(asked, read(asked, store), strict=True):
        (request,) = requests([Question(item, ask)])
        label = key_of(request)[0] % 2
        assert decision.choice == ask.presentation.order[label]
        assert (decision.item_id, decision.model, decision.cost_usd) == (item.id, "fake/one", 0.01)


def test_questions_without_an_answer_are_left_out(store: CallStore) -> None:
    run(questions(3), FakeBackend(), store)
    assert {one.item_id for one in read(questions(5), store)} == {"q0", "q1", "q2"}
    assert read(questions(3), store, "fake/two") == []


def test_a_second_run_makes_only_what_is_missing(tmp_path: Path) -> None:
    with CallStore.open(tmp_path) as store:
        first = FakeBackend()
        run(questions(30), first, store)
    with CallStore.open(tmp_path) as store:
        second = FakeBackend()
        counts = run(questions(50), second, store)
    assert (counts.planned, counts.made, counts.cached) == (100, 40, 60)
    assert len(second.asked) == 40
    assert not {key_of(r) for r in first.asked} & {key_of(r) for r in second.asked}


def test_a_run_that_is_all_recorded_needs_no_backend(store: CallStore) -> None:
    asked = questions(300)
    run(asked, FakeBackend(), store)
    counts = run(asked, Unreachable(), store)
    assert (counts.planned, counts.made, counts.cached, counts.exit_code) == (600, 0, 600, 0)


def test_what_was_priced_as_recorded_is_not_looked_at_again(store: CallStore) -> None:
    asked = questions(30)
    run(asked, FakeBackend(), store)
    caller = Caller(Unreachable(), store, SETTINGS)
    priced = caller.price(asked)
    stream = io.StringIO()
    never: Iterable[Question] = (pytest.fail("looked at") for _ in range(1))
    shown = Progress(60, stream=stream)
    counts = asyncio.run(caller.ask(never, priced=priced, progress=shown))
    assert counts == asyncio.run(caller.ask(asked))
    assert stream.getvalue().startswith("60/60 calls · 60 reused")


def test_what_was_priced_is_asked_where_anything_is_missing(store: CallStore) -> None:
    run(questions(30), FakeBackend(), store)
    caller = Caller(FakeBackend(), store, SETTINGS)
    priced = caller.price(questions(31))
    counts = asyncio.run(caller.ask(questions(31), priced=priced))
    assert (counts.planned, counts.cached, counts.made) == (62, 60, 2)


def test_questions_are_pulled_as_calls_are_made(store: CallStore) -> None:
    pulled = 0

    def endless() -> Iterator[Question]:
        nonlocal pulled
        for question in questions(1000):
            pulled += 1
            yield question

    ahead = 0

    def reply(query: Query) -> Response:
        nonlocal ahead
        ahead = max(ahead, pulled - len(backend.asked))
        return label_by_content(query)

    backend = FakeBackend(reply)
    counts = run(endless(), backend, store)
    assert counts.made == 2000
    assert ahead <= 100  # one chunk


def test_two_runs_at_once_share_a_store(store: CallStore) -> None:
    async def both() -> list[RunCounts]:
        one, two = FakeBackend(delay_s=0.0005), FakeBackend(delay_s=0.0005)
        return await asyncio.gather(
            Caller(one, store, SETTINGS).ask(questions(60, Ask(X0))),
            Caller(two, store, SETTINGS).ask(questions(60, Ask(X2))),
        )

    assert [counts.made for counts in asyncio.run(both())] == [60, 60]
    assert len(store) == 120


def test_keys_stay_when_the_server_turns_out_to_give_no_logprobs(tmp_path: Path) -> None:
    backend = FakeBackend()

    def reply(query: Query) -> Response:
        backend.gives_logprobs = False  # learned from the first answer
        return label_by_content(query)

    backend.reply = reply
    with CallStore.open(tmp_path) as store:
        run(questions(200), backend, store)
        assert {request.top_logprobs for request in backend.asked} == {20}
        counts = run(questions(200), backend, store)
        assert (counts.made, counts.cached) == (0, 400)
        assert Caller(backend, store, SETTINGS).price(questions(200)).n_to_make == 0
        assert len(read(questions(200), store)) == 400


# --- planning --------------------------------------------------------------------------------


def test_a_plan_counts_and_prices_and_writes_nothing(tmp_path: Path) -> None:
    with CallStore.open(tmp_path) as store:
        run(questions(5), FakeBackend(), store)
    backend = FakeBackend(per_token=0.001)
    with CallStore.open(tmp_path, read_only=True) as store:
        plan = Caller(backend, store, SETTINGS).price([*questions(8), *questions(8)])
    assert (plan.n_questions, plan.n_distinct, plan.n_cached, plan.n_to_make) == (32, 16, 10, 6)
    assert backend.asked == []
    (request,) = requests(questions(8)[-1:])
    size = sum(len(message.content) for message in request.messages)
    # by the rules of thumb: a token per 4 bytes, 4 per message, the whole cap
    tokens_in = -(-size // 4) + 4 * len(request.messages)
    assert plan.est_input_tokens == pytest.approx(6 * tokens_in, abs=6)
    assert plan.est_output_tokens == 6 * request.max_tokens
    assert plan.est_cost_usd == pytest.approx(
        0.001 * (plan.est_input_tokens + plan.est_output_tokens)
    )


def test_a_plan_learns_from_recorded_calls(store: CallStore) -> None:
    run(questions(50), FakeBackend(), store)  # 100 tokens in, 1 out, each
    plan = Caller(FakeBackend(per_token=0.001), store, SETTINGS).price(questions(60))
    assert plan.n_to_make == 20
    assert plan.est_input_tokens == pytest.approx(20 * 100, rel=0.02)
    assert plan.est_output_tokens == 20


def test_an_unknown_price_is_none_and_a_local_model_is_free(store: CallStore) -> None:
    for offline, cost in ((False, None), (True, 0.0)):
        backend = FakeBackend(per_token=None, offline=offline)
        assert Caller(backend, store, SETTINGS).price(questions(2)).est_cost_usd == cost


def test_an_estimate_needs_enough_calls_to_learn_from(store: CallStore) -> None:
    run(questions(9), FakeBackend(), store)  # 18 calls
    assert Estimator.learned(store.totals()) == Estimator()
    run(questions(10), FakeBackend(), store)
    assert Estimator.learned(store.totals()) != Estimator()


# --- budget ----------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    budget=st.floats(0, 2.0),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=20),
    connections=st.integers(1, 30),
    unstated=st.booleans(),
)
def test_a_budget_is_never_exceeded_and_used_while_a_call_fits(
    budget: float, shares: list[float], connections: int, unstated: bool
) -> None:
    paid: list[float] = []

    def reply(query: Query) -> Response:
        most = 0.0001 * sum(most_tokens(query.request))
        cost = most * shares[len(paid) % len(shares)]
        paid.append(cost)
        known = not unstated or len(paid) % 3  # some servers do not state their usage
        return Response(text="A", cost_usd=cost if known else None)

    backend = FakeBackend(reply, per_token=0.0001, connections=connections)
    how = RunSettings(prompts=PromptSettings(), budget_usd=budget)
    with Memory() as store:
        counts = run(questions(20), backend, store, how)
    assert sum(paid) <= budget
    assert counts.made == len(paid)
    if counts.budget_spent:
        assert counts.made < 40
        assert counts.exit_code == 3
        if not unstated:  # what is left would not pay for one more call
            sizes = [sum(most_tokens(r)) for r in backend.asked or requests(questions(1))]
            assert budget - sum(paid) < 0.0001 * max(sizes) * 1.2
    else:
        assert counts.made == 40


def test_a_budget_holds_for_64_calls_in_two_event_loops(store: CallStore) -> None:
    most = 0.0001 * sum(most_tokens(requests(questions(1))[0]))
    backend = FakeBackend(
        lambda query: Response(text="A", cost_usd=0.9 * most),
        per_token=0.0001,
        connections=64,
        delay_s=0.001,
    )
    caller = Caller(backend, store, replace(SETTINGS, budget_usd=40 * most))

    def asked(number: int) -> RunCounts:
        return asyncio.run(caller.ask(questions(100)[number::2]))

    with ThreadPoolExecutor(2) as threads:
        counts = list(threads.map(asked, range(2)))
    assert sum(one.made for one in counts) == len(backend.asked) == len(store)
    assert 39 * most < store.totals().cost_usd <= 40 * most
    assert any(one.budget_spent for one in counts)


def test_a_budget_counts_earlier_runs_of_the_directory(tmp_path: Path) -> None:
    how = RunSettings(prompts=PromptSettings(), budget_usd=0.305)
    free_to_reserve = FakeBackend(per_token=0.0)  # every answer is billed 0.01
    with CallStore.open(tmp_path) as store:
        counts = run(questions(10), free_to_reserve, store, how)
        assert counts.cost_usd == pytest.approx(0.2)
    with CallStore.open(tmp_path) as store:
        counts = run(questions(30), FakeBackend(connections=1), store, how)
        assert counts.budget_spent
        assert store.totals().cost_usd == pytest.approx(0.31)  # a bill above the price it stated
    with CallStore.open(tmp_path) as store:
        counts = run(questions(30), Unreachable(offline=True), store, how)
        assert (counts.made, counts.budget_spent) == (0, True)


def test_an_answer_without_usage_costs_its_maximum(
    tmp_path: Path,
) -> None:
    def reply(query: Query) -> Response:
        return Response(text="A", usage_known=False)

    with CallStore.open(tmp_path) as store:
        counts = run(questions(2), FakeBackend(reply, per_token=0.001), store)
        most = sum(0.001 * sum(most_tokens(request)) for request in requests(questions(2)))
        assert counts.unknown_usage == counts.made == 4
        assert counts.cost_usd == store.totals().cost_usd == pytest.approx(most)
        assert (counts.input_tokens, counts.output_tokens) == (0, 0)
    how = RunSettings(prompts=PromptSettings(), budget_usd=most)
    with CallStore.open(tmp_path) as store:
        counts = run(questions(3), FakeBackend(reply, per_token=0.001), store, how)
    assert (counts.made, counts.cached, counts.budget_spent) == (0, 4, True)


def test_refusals_and_answers_without_usage_or_price_are_counted(store: CallStore) -> None:
    def reply(query: Query) -> Response:
        reason = "content_filter" if query.item.id == "q1" else "stop"
        return Response(text="A", finish_reason=reason, usage_known=False)

    counts = run(questions(3), FakeBackend(reply, per_token=None), store)
    assert (counts.made, counts.unparsed, counts.refused, counts.failed) == (6, 2, 2, 0)
    assert {call.response.cost_usd for call in store.calls()} == {None}


def test_unread_content_free_answer_is_not_unparsed(store: CallStore) -> None:
    free = Question(pair("q"), Ask(X0, substitute=Substitution(("N/A", "N/A"))))
    counts = run([free, *questions(1)], FakeBackend(lambda _: Response(text="none")), store)
    assert (counts.made, counts.unparsed) == (6, 2)


def test_a_budget_without_a_price_is_refused_before_any_call(store: CallStore) -> None:
    backend = FakeBackend(per_token=None)
    with pytest.raises(UsageError, match="the price of fake/one is unknown"):
        run(questions(1), backend, store, RunSettings(prompts=PromptSettings(), budget_usd=1.0))
    assert backend.asked == []


def test_a_recorded_run_fits_into_any_budget(store: CallStore) -> None:
    run(questions(5), FakeBackend(), store)
    how = RunSettings(prompts=PromptSettings(), budget_usd=0.0)
    counts = run(questions(5), FakeBackend(per_token=1.0), store, how)
    assert (counts.cached, counts.budget_spent, counts.exit_code) == (10, False, 0)


# --- failures --------------------------------------------------------------------------------


def test_failed_calls_are_counted_and_tried_again_next_time(store: CallStore) -> None:
    def reply(query: Query) -> Response | Failure:
        if query.item.id in {"q1", "q3"}:
            return Failure(error="ServerError", message=f"{query.item.id}: 500", attempts=4)
        return msgspec.structs.replace(label_by_content(query), retries=1)

    counts = run(questions(5), FakeBackend(reply), store)
    assert (counts.planned, counts.made, counts.failed, counts.exit_code) == (10, 6, 4, 3)
    assert counts.retried == 6 * 1 + 4 * 3
    assert [failure.error for _, _, failure, _ in failures(store)] == ["ServerError"] * 4
    assert {one.item_id for one in read(questions(5), store)} == {"q0", "q2", "q4"}
    counts = run(questions(5), FakeBackend(), store)
    assert (counts.made, counts.cached, counts.failed) == (4, 6, 0)
    assert failures(store) == []


def test_a_fatal_failure_stops_the_run_and_keeps_what_was_done(store: CallStore) -> None:
    def reply(query: Query) -> Response | Failure:
        if query.item.id == "q10":
            return Failure(error="AuthError", message="the key was refused", status=401, fatal=True)
        return label_by_content(query)

    backend = FakeBackend(reply)
    counts = run(questions(500), backend, store)
    assert counts.fatal == "the key was refused"
    assert counts.exit_code == 3
    assert not counts.interrupted
    assert 20 <= len(backend.asked) <= 60  # 20 calls before q10, then those in flight
    assert counts.made + counts.failed == len(backend.asked)
    assert len(store) == counts.made


def test_a_call_that_a_backend_forgets_is_a_failure(store: CallStore) -> None:
    def reply(query: Query) -> Response | None:
        return None if query.item.id == "q1" else label_by_content(query)

    counts = run(questions(3), FakeBackend(reply), store)
    assert (counts.made, counts.failed) == (4, 2)
    assert all(
        "q1: fake/one took the call" in failure.message for _, _, failure, _ in failures(store)
    )


def test_an_error_in_a_question_keeps_what_was_answered(store: CallStore) -> None:
    odd = Question(
        Item(id="odd", prompt="?", candidates=("a", "b", "c"), task=Task.MCQ),
        Ask(presentations("identity", 3)[0]),
    )
    how = RunSettings(prompts=PromptSettings(label_set=("A", "B")))
    with pytest.raises(TemplateError, match="odd"):
        run([*questions(200), odd], FakeBackend(), store, how)
    assert len(store) == 400


# --- stopping --------------------------------------------------------------------------------


def stop_after(n: int, store: CallStore, **options: object) -> tuple[RunCounts, FakeBackend]:
    async def work() -> tuple[RunCounts, FakeBackend]:
        stop = asyncio.Event()

        def reply(query: Query) -> Response:
            if len(backend.asked) >= n:
                stop.set()
            return label_by_content(query)

        backend = FakeBackend(reply, **options)  # type: ignore[arg-type]
        return await Caller(backend, store, SETTINGS).ask(questions(500), stop=stop), backend

    return asyncio.run(work())


def test_a_stop_lets_calls_in_flight_finish_and_keeps_them(store: CallStore) -> None:
    counts, backend = stop_after(100, store)
    assert counts.interrupted
    assert counts.exit_code == 130
    assert 100 <= len(backend.asked) <= 120
    assert len(store) == counts.made == len(backend.asked)
    assert run(questions(500), FakeBackend(), store).made == 1000 - counts.made


def test_a_stop_does_not_wait_long_for_calls_in_flight(
    store: CallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "GRACE_S", 0.05)

    async def work() -> RunCounts:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(0.1, stop.set)
        async with asyncio.timeout(20):
            slow = FakeBackend(delay_s=3600)
            return await Caller(slow, store, SETTINGS).ask(questions(5), stop=stop)

    counts = asyncio.run(work())
    assert counts.interrupted
    assert (counts.made, counts.failed) == (0, 0)


def test_stop_while_recording_large_batch_keeps_it(
    store: CallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = []

    class Batches(FakeBackend):
        hands_over = True

        def answer(
            self, queries: Iterable[Query]
        ) -> AsyncGenerator[tuple[Query, Response | Failure], None]:
            return local_jobs.answer_in_windows(
                queries, thread, lambda window: ([], []), lambda _: held, self.answered
            )

        def answered(
            self, batch: Sequence[Query]
        ) -> Iterator[list[tuple[Query, Response | Failure]]]:
            batches.append(batch)
            time.sleep(0.3)
            yield [(query, label_by_content(query)) for query in batch]

    asked = questions(800)
    queries = list(Caller(FakeBackend(), Memory(), SETTINGS).missing(asked))
    held = [queries[k : k + 400] for k in range(0, 1600, 400)]
    put_many = store.put_many

    async def work() -> RunCounts:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def slow(*rows: Any, **options: Any) -> None:
            loop.call_soon_threadsafe(stop.set)
            time.sleep(0.1)
            put_many(*rows, **options)

        monkeypatch.setattr(store, "put_many", slow)
        return await Caller(Batches(), store, SETTINGS).ask(asked, stop=stop)

    with ThreadPoolExecutor(1) as thread:
        counts = asyncio.run(work())
    assert len(batches) in (1, 2)  # the stop may come before the second
    assert len(store) == counts.made == 400 * len(batches)
    assert counts.interrupted


def test_stop_after_last_call_does_not_interrupt(store: CallStore) -> None:
    async def work() -> RunCounts:
        stop = asyncio.Event()
        counts = await Caller(FakeBackend(), store, SETTINGS).ask(questions(5), stop=stop)
        stop.set()
        return counts

    assert not asyncio.run(work()).interrupted


async def test_a_cancelled_run_commits_what_it_has(store: CallStore) -> None:
    backend = FakeBackend(delay_s=0.001)
    task = asyncio.create_task(Caller(backend, store, SETTINGS).ask(questions(5000)))
    while len(backend.asked) < 60:
        await asyncio.sleep(0.001)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert len(store) >= len(backend.asked) - backend.connections


def test_a_full_disk_stops_the_run_at_once(tmp_path: Path) -> None:
    def reply(query: Query) -> Response:
        return Response(text="A" + "x" * 3000)

    with CallStore.open(tmp_path) as store:
        run(questions(2), FakeBackend(), store)
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages + 30}")
        backend = FakeBackend(reply)
        with pytest.raises(StoreError, match="Free some space"):
            run(questions(5000), backend, store)
        committed = len(store)
    assert 4 < committed < 1000
    assert len(backend.asked) <= committed + 100 + 8  # what came in while the commit failed
    with CallStore.open(tmp_path) as store:
        assert run(questions(500), FakeBackend(), store).cached == committed


INTERRUPTED = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from fakes import SETTINGS, FakeBackend, label_by_content, questions
from unswayed.calls import Caller, stop_on_interrupt
from unswayed.store import CallStore

async def main():
    def reply(query):
        if len(backend.asked) == 300:
            print("going", flush=True)
        return label_by_content(query)
    backend = FakeBackend(reply, delay_s=float(sys.argv[3]))
    with CallStore.open(sys.argv[2]) as store, stop_on_interrupt() as stop:
        counts = await Caller(backend, store, SETTINGS).ask(questions(100_000), stop=stop)
        print(counts.made, len(store), flush=True)
        sys.exit(counts.exit_code)

asyncio.run(main())
"""


def start(code: str, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(code),
            str(Path(__file__).parents[1]),
            *map(str, args),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ctrl_c_once_stops_flushes_and_reports(tmp_path: Path) -> None:
    process = start(INTERRUPTED, tmp_path, 0.001)
    assert process.stdout is not None
    assert process.stdout.readline() == "going\n"
    process.send_signal(signal.SIGINT)
    said, complaints = process.communicate(timeout=30)
    assert process.returncode == 130
    made, recorded = map(int, said.split())
    assert made == recorded >= 290
    assert "run the same command again to resume" in complaints


def test_ctrl_c_twice_leaves_at_once_and_loses_nothing_committed(tmp_path: Path) -> None:
    hang = INTERRUPTED.replace(
        'print("going", flush=True)',
        'print("going", flush=True); backend.delay_s = 3600',
    )
    process = start(hang, tmp_path, 0.001)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "going\n"
    process.send_signal(signal.SIGINT)
    assert any("Press Ctrl-C again" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == ""  # it never got to its report
    with CallStore.open(tmp_path) as store:
        assert 100 <= len(store) <= 300
        assert len(list(store.calls())) == len(store)


def test_interrupts_are_left_alone_afterwards_and_in_threads() -> None:
    async def entered() -> tuple[bool, object]:
        with stop_on_interrupt() as stop:
            return stop.is_set(), signal.getsignal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    is_set, during = asyncio.run(entered())
    assert not is_set
    assert during is not before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    with ThreadPoolExecutor(1) as pool:  # signals belong to the main thread
        assert pool.submit(lambda: asyncio.run(entered())).result() == (False, before[0])


def test_a_loop_of_steps_is_asked_to_stop_and_then_interrupted() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    pressed: list[str] = []
    with catch_interrupt() as interrupt:
        assert not interrupt.is_set()
        assert signal.getsignal(signal.SIGTERM) is before[1]
        signal.raise_signal(signal.SIGINT)
        assert interrupt.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with catch_interrupt(
        first=lambda: pressed.append("first"),
        again=lambda: pressed.append("again"),
        signals=(signal.SIGTERM,),
    ) as interrupt:
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
    assert pressed == ["first", "again", "again"]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN])
def test_sighup_asks_a_run_to_stop_unless_it_is_ignored(handler: signal.Handlers) -> None:
    before = signal.signal(signal.SIGHUP, handler)  # ignored: started by nohup
    try:
        with catch_interrupt(signals=SIGNALS) as interrupt:
            signal.raise_signal(signal.SIGHUP)
            assert interrupt.is_set() == (handler is signal.SIG_DFL)
        assert signal.getsignal(signal.SIGHUP) is handler
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_requested_stop_makes_the_next_ctrl_c_the_second() -> None:
    with catch_interrupt() as interrupt:
        interrupt.set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


# --- progress --------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Steps:
    def __init__(self, *times: float) -> None:
        self.times = iter(times)

    def __call__(self) -> float:
        return next(self.times)


def test_the_line_says_everything() -> None:
    counts = RunCounts(
        planned=900, made=500, cached=200, failed=3, retried=7, unparsed=2,
        input_tokens=409_000, output_tokens=1_500, cost_usd=1.25,
    )  # fmt: skip
    assert describe(counts, total=4800, per_s=10.0) == (
        "703/4,800 calls · 200 reused · 10/s · 410k tokens · $1.25 · 7 retries · "
        "2 unparsed · 3 failed · 7 min left"  # 4097 calls at 10/s: 409.7 s = 6.8 min
    )
    assert "2 unparsed · 1 refused · 3 failed" in describe(
        replace(counts, refused=1), total=4800, per_s=10.0
    )
    assert describe(RunCounts(made=5), total=None, per_s=0.0) == (
        "5 calls · 0 tokens · $0.0000 · 0 retries · 0 unparsed"
    )


def test_progress_in_notebook_prints_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    shown = io.StringIO()
    progress = Progress(2, stream=shown, clock=Steps(0.0, 1000.0, 2000.0))
    progress.update(RunCounts(planned=2, made=1, retried=1000))
    assert shown.getvalue() == ""
    progress.update(RunCounts(planned=2, made=2))
    progress.close()
    assert shown.getvalue().startswith("2/2 calls")
    assert shown.getvalue().count("\n") == 1


@pytest.mark.parametrize(
    ("wait", "shown"),
    [
        (
            Wait(server="h:1", reason="503 Busy", next_try_s=12.3, gives_up_at=AT_14_03),
            "waiting for h:1 (503 Busy), next try in 12 s, gives up at 14:03",
        ),
        (
            Wait(server="h:1", reason="no connection", next_try_s=0.0, gives_up_at=AT_14_03),
            "waiting for h:1 (no connection), trying now, gives up at 14:03",
        ),
        (
            Wait(server="h:1", reason="429 Too Many", next_try_s=30.0, gives_up_at=None),
            "waiting for h:1 (429 Too Many), next try in 30 s",
        ),
    ],
)
def test_the_line_says_what_is_waited_for_and_until_when(wait: Wait, shown: str) -> None:
    counts = RunCounts(planned=40, made=3, waiting=wait)
    assert describe(counts, total=40, per_s=1.0) == f"3/40 calls · {shown}"


def test_waiting_of_a_backend_is_shown_at_once(
    store: CallStore,
) -> None:
    lines: list[Wait | None] = []

    class Watched:
        def update(self, counts: RunCounts) -> None:
            lines.append(counts.waiting)

        def close(self) -> None:
            pass

    wait = Wait(server="h:1", reason="no connection", next_try_s=1.0, gives_up_at=None)
    run(questions(3), FakeBackend(waiting=wait), store, progress=Watched())
    assert lines[0] == wait
    assert lines[-1] is None


def test_retries_of_cut_off_answers_raise_the_total() -> None:
    assert describe(RunCounts(planned=12, made=12), total=10, per_s=1.0).startswith("12/12 calls")


def test_a_terminal_gets_one_live_line() -> None:
    stream = Terminal()
    progress = Progress(100, stream=stream, clock=Steps(0.0, 0.0, 2.0))
    progress.update(RunCounts(made=0))
    progress.update(RunCounts(made=40))
    progress.close()
    shown = stream.getvalue()
    assert shown.count("\n") == 1
    assert shown.count("\r") == 2
    assert "40/100 calls · 20/s" in shown  # 40 calls in 2 s
    assert "3 s left" in shown


def test_a_log_gets_plain_lines_now_and_then_and_the_last_one() -> None:
    stream = io.StringIO()
    progress = Progress(10, stream=stream, clock=Steps(0.0, 0.2, 0.4, 5.1, 5.3))
    for made in range(1, 5):
        progress.update(RunCounts(made=made))
    progress.close()
    assert [line.split(" · ")[0] for line in stream.getvalue().splitlines()] == [
        "3/10 calls",
        "4/10 calls",
    ]
    assert "\r" not in stream.getvalue()


def test_the_progress_line_goes_to_standard_error_by_default(
    capsys: pytest.CaptureFixture[str], store: CallStore
) -> None:
    run(questions(20), FakeBackend(), store, progress=Progress(40))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("40/40 calls")  # the final counts


def test_decisions_do_not_depend_on_the_order_of_answers(tmp_path: Path) -> None:
    found: list[Sequence[object]] = []
    for connections in (1, 30):
        with CallStore.open(tmp_path / str(connections)) as store:
            run(questions(100), FakeBackend(connections=connections), store)
            found.append(read(questions(100), store))
    assert found[0] == found[1]
    assert os.listdir(tmp_path / "1") == ["calls.sqlite"]
