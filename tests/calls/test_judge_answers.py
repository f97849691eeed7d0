"""How a judge's questions get their answers: remembered, shared, cut off, failed, within a budget."""

import asyncio
import gc
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fakes import SETTINGS, FakeBackend, pair
from unswayed.backends import Backend, open_backend
from unswayed.backends.protocol import Outcome
from unswayed.backends.simulated import simulated_items
from unswayed.base.errors import BackendError, StoreError
from unswayed.base.sync import LoopThread
from unswayed.calls import Caller, Question, RunSettings, flights
from unswayed.calls.judge import Judge
from unswayed.calls.judging import Case, JudgeFailure, Judging
from unswayed.methods import METHODS
from unswayed.methods.names import parse_method
from unswayed.methods.protocol import is_fitted, why_not
from unswayed.model.calls import Failure, Query, Request, Response, TokenLogprob, key_of
from unswayed.model.decisions import Verdict
from unswayed.model.items import Item, Task
from unswayed.model.presentation import X0, X2, Ask, settled
from unswayed.prompts import PromptSettings, render
from unswayed.store import CallStore, Memory, Recorded
from unswayed.store.memory import ENTRY_BYTES

Row = tuple[bytes, Request, Response]

PAIR = Item(id="q", prompt="Question?", candidates=("yes", "no"))


def first_label(query: Query) -> Outcome:
    return Response(text=query.request.labels[0], input_tokens=100, output_tokens=1, cost_usd=0.01)


@dataclass
class Slow(FakeBackend):
    """Pulls all it can, and takes its time."""

    reply: Callable[[Query], Outcome] = first_label
    gives_logprobs: bool = False
    connections: int = 1000
    delay_s: float = 0.001


@dataclass
class Narrow(Slow):
    """Sees one call through before it pulls the next."""

    connections: int = 1


def answers_of(backend: Backend, settings: RunSettings = SETTINGS) -> Caller:
    return Caller(backend, Memory(1 << 20), settings, remembers=False)


async def at_once(judge: Judge, prompts: Iterable[str]) -> list[Verdict | BaseException]:
    """Verdicts on pairs that are asked about together, or errors."""
    asked = (judge.acompare(prompt, "a", "b") for prompt in prompts)
    return list(await asyncio.gather(*asked, return_exceptions=True))


def on_full_disk(*_: object, **__: object) -> None:
    raise StoreError("the disk is full.")


# --- shared calls --------------------------------------------------------------------------------


async def test_equal_questions_under_way_at_once_make_one_call() -> None:
    backend = Slow()
    async with Judge(backend, method="vote") as judge:
        first, *others = await at_once(judge, ["q"] * 20)
        assert isinstance(first, Verdict)
        assert others == [first] * 19
        counts = judge.counts
        assert (counts.made, counts.planned, counts.cached) == (2, 40, 38)
    assert len(backend.asked) == 2


def test_call_of_stopped_asker_serves_others() -> None:
    backend = Slow(delay_s=0.05)

    async def work() -> Verdict:
        async with Judge(backend, method="direct") as judge:
            first = asyncio.create_task(judge.acompare("q", "a", "b"))
            await asyncio.sleep(0.005)
            second = asyncio.create_task(judge.acompare("q", "a", "b"))
            await asyncio.sleep(0.005)
            first.cancel()
            return await second

    assert asyncio.run(work()).choice == 0
    assert len(backend.asked) == 1


def test_abandoned_call_is_recorded(tmp_path: Path) -> None:
    backend = Narrow(delay_s=0.05)

    async def stopped(*, then_s: float) -> None:
        async with Judge(backend, method="vote", calls=tmp_path) as judge:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(judge.acompare(f"q{then_s}", "a", "b"), 0.02)
            await asyncio.sleep(then_s)
            assert judge.counts.made == (then_s > 0)

    for number, then_s in enumerate((0.2, 0.0), start=1):  # before the judge is closed, and by that
        asyncio.run(stopped(then_s=then_s))
        assert len(backend.asked) == number  # the second of the vote is not sent
        with CallStore.open(tmp_path) as store:
            assert len(store) == number


def test_equal_questions_of_event_loops_make_one_call() -> None:
    backend = Slow(delay_s=0.1)
    judge = Judge(backend, method="vote")
    meeting = threading.Barrier(6)

    def judged(_: int) -> Verdict:
        meeting.wait()
        return asyncio.run(judge.acompare("q", "a", "b"))

    with ThreadPoolExecutor(6) as threads:
        verdicts = list(threads.map(judged, range(6)))
    assert len(backend.asked) == judge.counts.made == 2
    assert len({verdict.choice for verdict in verdicts}) == 1
    judge.close()


def test_equal_event_loops_pay_each_call_once() -> None:
    backend = Slow(delay_s=0)
    judge = Judge(backend, method="direct")

    def judged(_: int) -> None:
        for number in range(100):
            asyncio.run(judge.ajudge(pair(number)))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(judged, range(4)))
    assert len(backend.asked) == judge.counts.made == 100
    judge.close()


@pytest.mark.parametrize("is_ended", [True, False])
def test_call_is_taken_over_if_its_event_loop_stops(is_ended: bool) -> None:
    backend = Slow(delay_s=0.3)
    judge = Judge(backend, method="direct")
    loop = asyncio.new_event_loop()
    carried = loop.create_task(judge.acompare("q", "a", "b"))
    stopped = threading.Event()

    async def begun() -> None:
        while not backend.asked:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.1)

    def end() -> None:
        others = asyncio.all_tasks(loop)
        for task in others:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*others, return_exceptions=True))
        loop.close()

    def carry() -> None:
        loop.run_until_complete(begun())
        if is_ended:
            end()
        stopped.set()

    async def wait() -> Verdict:
        while not backend.asked:
            await asyncio.sleep(0.001)
        async with asyncio.timeout(20):
            return await judge.acompare("q", "a", "b")

    with ThreadPoolExecutor(1) as threads:
        carrying = threads.submit(carry)
        assert asyncio.run(wait()).choice == 0
        carrying.result()
    assert len(backend.asked) == 2
    if not is_ended:
        end()
    assert carried.cancelled()
    judge.close()


@pytest.mark.parametrize("is_stored", [False, True])
async def test_callers_with_the_same_items_pay_each_call_once(
    is_stored: bool, tmp_path: Path
) -> None:
    backend = Narrow()
    items = [pair(number) for number in range(8)]

    async def judged(judge: Judge, own: list[Item]) -> list[Verdict | JudgeFailure]:
        return [verdict async for verdict in judge.averdicts(own)]

    async with Judge(backend, method="vote", calls=tmp_path if is_stored else None) as judge:
        lists = [items, items[::-1], items[5:] + items[:5]]
        verdicts = await asyncio.gather(*(judged(judge, own) for own in lists))
        assert [len(own) for own in verdicts] == [8, 8, 8]
        assert (judge.counts.made, judge.counts.cached) == (16, 32)
    assert len(backend.asked) == 16


async def test_a_shared_answer_is_recorded_before_any_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_many = CallStore.put_many

    def slowly(store: CallStore, rows: Sequence[Row], *, unread: Collection[bytes] = ()) -> None:
        time.sleep(0.05)
        put_many(store, rows, unread=unread)

    monkeypatch.setattr(CallStore, "put_many", slowly)
    backend, seen = Slow(), []
    async with Judge(backend, method="direct", calls=tmp_path) as judge:

        async def compared(after_s: float) -> None:
            await asyncio.sleep(after_s)
            await judge.acompare("q", "a", "b")
            with CallStore.open(tmp_path, read_only=True) as store:
                seen.append(store.totals().calls)

        # beside the first, while its call is made, and while its answer is written
        await asyncio.gather(*map(compared, (0.0, 0.0, 0.0005, 0.02)))
    assert seen == [1, 1, 1, 1]
    assert len(backend.asked) == 1


async def test_a_budget_is_refused_where_answers_cannot_be_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spends_all = Narrow(lambda query: Response(text="A", cost_usd=1.0), per_token=1e-9)
    async with Judge(spends_all, method="vote", calls=tmp_path, budget=1.0) as judge:
        monkeypatch.setattr(CallStore, "put_many", on_full_disk)
        with pytest.raises(StoreError, match="the disk is full"):
            await asyncio.wait_for(judge.acompare("q", "a", "b"), 20)


def test_lost_answer_is_paid_once_by_all_who_share_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = Slow()

    async def work() -> list[Verdict | BaseException]:
        monkeypatch.setattr(CallStore, "put_many", on_full_disk)
        async with Judge(backend, method="direct", calls=tmp_path) as judge:
            return await at_once(judge, ["q"] * 4)

    first, *others = asyncio.run(work())
    assert len(backend.asked) == 1
    assert isinstance(first, StoreError)
    assert {type(other) for other in others} == {BackendError}


async def test_error_of_abandoned_call_is_not_reported_by_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: reported.append(told))
    monkeypatch.setattr(CallStore, "put_many", on_full_disk)
    async with Judge(Slow(delay_s=0.05), method="direct", calls=tmp_path) as judge:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(judge.acompare("q", "a", "b"), 0.01)
    gc.collect()
    await asyncio.sleep(0.01)
    assert reported == []


def test_threads_that_begin_together_share_one_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    class Counted(LoopThread):
        def __init__(self) -> None:
            begun.append(self)
            time.sleep(0.05)
            super().__init__()

    monkeypatch.setattr("unswayed.calls.judge.LoopThread", Counted)
    backend = Slow()
    with Judge(backend, method="vote") as judge, ThreadPoolExecutor(8) as threads:
        verdicts = threads.map(lambda _: judge.compare("q", "a", "b"), range(8))
        assert len({verdict.choice for verdict in verdicts}) == 1
    assert (len(begun), len(backend.asked)) == (1, 2)


def test_threads_of_one_judge_get_the_verdicts_of_one_thread(tmp_path: Path) -> None:
    rows = [
        {"prompt": f"q{number % 7}", "candidates": [f"a{number % 11}", f"b{number % 13}"]}
        for number in range(120)
    ]
    with Judge("simulated/judge?slot=1", method="vote") as judge:
        alone = list(judge.verdicts(rows))
    parts = [rows[first::8] for first in range(8)]
    with (
        Judge("simulated/judge?slot=1", method="vote", calls=tmp_path) as judge,
        ThreadPoolExecutor(8) as threads,
    ):
        together = list(threads.map(lambda part: list(judge.verdicts(part)), parts))
        distinct = {(row["prompt"], *row["candidates"]) for row in rows}
        assert judge.counts.made == 2 * len(distinct)
    assert [together[place % 8][place // 8] for place in range(120)] == alone


def test_a_judge_closed_while_working_sends_nothing_more() -> None:
    backend = Narrow(delay_s=0.02)

    async def work() -> None:
        judge = Judge(backend, method="vote")
        verdict = asyncio.create_task(judge.acompare("q", "a", "b"))
        await asyncio.sleep(0.005)
        await judge.aclose()
        assert judge.counts.made == 1  # what was under way was recorded
        with pytest.raises(BackendError, match="the judge was closed while it was asked"):
            await verdict

    asyncio.run(work())
    assert len(backend.asked) == 1


async def test_a_failure_is_shared_and_the_next_question_tries_again() -> None:
    replies = iter([Failure(error="ServerError", message="q: it is down")])
    backend = Slow(lambda query: next(replies, None) or first_label(query))
    async with Judge(backend, method="direct") as judge:
        outcomes = await at_once(judge, ["q"] * 3)
        assert [str(outcome).partition(": ")[2] for outcome in outcomes] == [
            "no verdict, 1 call failed: q: it is down"
        ] * 3
        assert judge.counts.failed == 1
        assert (await judge.acompare("q", "a", "b")).choice == 0
    assert len(backend.asked) == 2


def test_a_backend_that_gives_no_outcome_is_a_failure() -> None:
    class Mute(Slow):
        async def answer(self, queries: Iterable[Query]) -> AsyncIterator[tuple[Query, Outcome]]:
            list(queries)
            return
            yield  # makes it a generator

    for method in ("direct", "vote"):
        with (
            Judge(Mute(), method=method) as judge,
            pytest.raises(BackendError, match="neither an answer nor an error"),
        ):
            judge.compare("q", "a", "b")


# --- cut-off answers -----------------------------------------------------------------------------


def cut_off_below(limit: int) -> Callable[[Query], Response]:
    def reply(query: Query) -> Response:
        if query.request.max_tokens < limit:
            return Response(
                text="I was about to", finish_reason="length", cost_usd=0.01, output_tokens=5
            )
        return Response(text=query.request.labels[1], cost_usd=0.02, output_tokens=9)

    return reply


@pytest.mark.parametrize("recorded", [False, True])
def test_a_cut_off_answer_is_asked_again_once_as_in_an_audit(
    recorded: bool, tmp_path: Path
) -> None:
    cap = render(PAIR, Ask(X0), SETTINGS.prompts).max_tokens
    backend = Slow(cut_off_below(2 * cap))
    pool = CallStore.open(tmp_path) if recorded else Memory(1 << 20)
    answers = Caller(backend, pool, SETTINGS, remembers=False)
    questions = [Question(PAIR, Ask(X0)), Question(PAIR, Ask(X2))]
    asked = asyncio.run(answers.decide(questions))
    assert [decision and decision.choice for decision in asked.decisions] == [1, 0]
    assert {d and (d.output_tokens, d.cost_usd) for d in asked.decisions} == {(14, 0.03)}
    assert sorted({request.max_tokens for request in backend.asked}) == [cap, 4 * cap]
    counts = answers.counts
    assert (counts.made, counts.seconds, counts.unparsed) == (4, 2, 0)
    again = asyncio.run(answers.decide(questions))
    assert again == asked
    assert len(backend.asked) == 4
    pool.close()


def test_answers_outside_json_are_read_as_in_an_audit() -> None:
    def reply(query: Query) -> Response:
        tops = (TokenLogprob("A", 0.0), TokenLogprob("B", -math.inf), TokenLogprob("C", math.nan))
        return Response(text="A", tokens=("A",), top_logprobs=(tops,))

    question = Question(PAIR, Ask(X0))
    backend = Slow(reply, gives_logprobs=True)
    asked = asyncio.run(answers_of(backend).decide([question]))
    with Memory() as store:
        caller = Caller(backend, store, SETTINGS)
        asyncio.run(caller.ask([question]))
        assert list(caller.read([question])) == list(asked.decisions)


# --- budgets -------------------------------------------------------------------------------------


async def test_a_budget_holds_over_all_that_is_asked_at_once() -> None:
    backend = Slow(per_token=0.0001, delay_s=0.002)
    most = Judge(backend, method="direct", budget=1.0).price([pair(0)]).most_cost_usd
    assert most is not None
    async with Judge(backend, method="direct", budget=most + 0.035) as judge:
        outcomes = await at_once(judge, [f"q{i}" for i in range(20)])
        failed = [str(outcome) for outcome in outcomes if isinstance(outcome, BackendError)]
        assert len(failed) == 16
        assert judge.counts.made == 4  # of 0.01 each, while the most that one can cost is left
        assert judge.counts.budget_spent
        assert all("does not cover the next call" in said for said in failed)


def test_calls_ended_with_event_loop_count_as_paid() -> None:
    backend = Slow(per_token=0.0001, delay_s=60)
    most = Judge(backend, method="direct", budget=1.0).price([pair(0)]).most_cost_usd
    assert most is not None
    judge = Judge(backend, method="direct", budget=2.5 * most)

    async def stopped(number: int) -> None:
        sent = len(backend.asked)
        verdict = asyncio.create_task(judge.ajudge(pair(number)))
        while len(backend.asked) == sent and not verdict.done():
            await asyncio.sleep(0)
        verdict.cancel()
        with suppress(asyncio.CancelledError, BackendError):
            await verdict

    for number in range(6):
        asyncio.run(stopped(number))
    assert len(backend.asked) == 2
    judge.close()


def test_what_is_reserved_and_not_used_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "LOOK_S", 3600)  # a payment wakes who waits for it
    backend = Slow(per_token=0.0001, delay_s=0.002)

    async def made(budget: float) -> int:
        async with asyncio.timeout(60), Judge(backend, method="direct", budget=budget) as judge:
            await at_once(judge, [f"q{budget}-{i}" for i in range(3)])
            return judge.counts.made

    plan = Judge(backend, method="direct", budget=1.0).price([pair(0)])
    assert plan.most_cost_usd is not None
    assert plan.most_cost_usd > 0.02
    assert asyncio.run(made(plan.most_cost_usd + 0.0205)) == 3  # never two at once: 0.01 each


@dataclass
class InStep(Slow):
    """Callers in two threads are told a price at the same time, where both ask for one."""

    per_token: float | None = 1e-6
    meeting: threading.Barrier = field(default_factory=lambda: threading.Barrier(2, timeout=1))

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        with suppress(threading.BrokenBarrierError):
            self.meeting.wait()
        return super().price(input_tokens, output_tokens)


def test_a_budget_for_one_call_makes_one_across_threads() -> None:
    plan = Judge(Slow(per_token=1e-6), method="direct", budget=1.0).price([pair(0)])
    most = plan.most_cost_usd or 0.0
    backend = InStep(lambda query: Response(text="A", cost_usd=most))
    judge = Judge(backend, method="direct", budget=1.5 * most)

    async def judged(number: int) -> Verdict | BackendError:
        try:
            return await judge.ajudge(pair(number))
        except BackendError as error:
            return error

    with ThreadPoolExecutor(2) as threads:
        verdicts = list(threads.map(lambda number: asyncio.run(judged(number)), range(2)))
    assert len(backend.asked) == judge.counts.made == 1
    assert sorted(type(verdict).__name__ for verdict in verdicts) == ["BackendError", "Verdict"]
    judge.close()


# --- what is recorded ----------------------------------------------------------------------------


def test_a_judge_remembers_what_was_asked_and_what_it_cost() -> None:
    items = [pair(number) for number in range(4)]
    replies = iter([Failure(error="ServerError", message="q0: no answer")])

    def reply(query: Query) -> Outcome:
        return (query.item.id == "q0" and next(replies, None)) or first_label(query)

    backend = Slow(reply, per_token=0.0001)
    with Judge(backend, method="direct") as judge:
        assert judge.price(items).n_to_make == 4
        assert not judge.was_asked(items[0])
        outcomes = list(judge.verdicts(items[:3]))
        assert isinstance(outcomes[0], JudgeFailure)
        assert all(judge.was_asked(item) for item in items[:3])
        assert not judge.was_asked(items[3])
        plan = judge.price(items)
        assert (plan.n_distinct, plan.n_cached, plan.n_to_make) == (4, 2, 2)
        assert judge.budget_for(items) == pytest.approx(
            0.02 + (plan.most_cost_usd or 0) + (plan.most_more_usd or 0)
        )
        before = judge.counts
        list(judge.verdicts(items))
        assert (before.made, judge.counts.made) == (2, 4)


def rows(n: int) -> list[tuple[bytes, Request, Response]]:
    requests = [
        Request(model="m", messages=(), labels=("A", "B"), max_tokens=4, sample=i) for i in range(n)
    ]
    return [(key_of(request), request, Response(text="A" * 100)) for request in requests]


def test_memory_forgets_what_was_not_used_for_longest() -> None:
    kept = rows(5)
    size = ENTRY_BYTES + len(b'{"text":""}') + 100
    memory = Memory(3 * size)
    for key, request, response in kept[:3]:
        memory.put_many([(key, request, response)])
    assert memory.n_bytes == 3 * size
    assert dict(memory.responses([kept[0][0]])) == {kept[0][0]: kept[0][2]}  # used
    memory.put_failures(
        [(*kept[4][:2], Failure(error="ServerError", message="down"))]
    )  # smaller than an answer, and yet one must go
    assert memory.recorded(key for key, _, _ in kept).keys() == {kept[0][0], kept[2][0]}
    assert memory.failed(key for key, _, _ in kept) == {kept[4][0]}
    memory.put_many([kept[4]])
    assert not memory.failed([kept[4][0]])
    assert memory.recorded(key for key, _, _ in kept) == {
        kept[0][0]: Recorded(None, unread=False),
        kept[2][0]: Recorded(None, unread=False),
        kept[4][0]: Recorded(None, unread=False),
    }
    assert memory.n_bytes == 3 * size
    assert memory.totals().calls == 4
    assert memory.get(kept[4][0]) == kept[4][1:]
    assert memory.get(kept[1][0]) is None


def test_memory_without_requests_gives_no_call() -> None:
    memory = Memory(keeps_requests=False)
    memory.put_many(rows(1))
    (key, _, response) = rows(1)[0]
    assert memory.get(key) is None
    assert dict(memory.responses([key])) == {key: response}


def test_memory_takes_no_answer_that_does_not_fit() -> None:
    memory = Memory(100)
    memory.put_many(rows(1))
    assert (len(memory), memory.n_bytes, memory.totals().calls) == (0, 0, 1)


# --- verdicts of several at once -----------------------------------------------------------------


JUDGING = [
    (name, n)
    for name in METHODS
    for n in (2, 4)
    if is_fitted(method := parse_method(name))
    and why_not(method, task=Task.PAIRWISE if n == 2 else Task.MCQ, n=n) is None
]


@pytest.mark.parametrize(("name", "n"), JUDGING)
def test_a_verdict_is_the_same_whoever_is_decided_with_it(name: str, n: int) -> None:
    backend = open_backend("simulated/judge?slot=1&noise=0.6&unparsed=0.2")
    items = list(simulated_items(30, n, seed=3))
    items += items[:3]  # asked about twice at once
    method = parse_method(name)
    judging = Judging.by(method, backend, PromptSettings())
    cases = []
    for place, item in enumerate(items):
        asks = [about for ask in method.asks(n) if (about := settled(ask, item)) is not None]
        asked = asyncio.run(answers_of(backend).decide([Question(item, ask) for ask in asks]))
        decisions = [decision for decision in asked.decisions if decision is not None]
        cases.append(Case(item, decisions[: len(decisions) - place % 2]))  # some lack one
    alone = [judging.decide([case])[0] for case in cases]
    assert judging.decide(cases) == alone
    assert [verdict.item_id for verdict in alone] == [item.id for item in items]


def test_a_case_that_cannot_be_decided_takes_no_other_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decide = Judging.decide

    def touchy(self: Judging, cases: list[Case]) -> list[Verdict]:
        if any(case.item.prompt == "q3" for case in cases):
            raise ArithmeticError("of q3")
        return decide(self, cases)

    monkeypatch.setattr(Judging, "decide", touchy)

    async def work() -> list[Verdict | BaseException]:
        async with Judge(Slow(), method="direct") as judge:
            return await at_once(judge, [f"q{i}" for i in range(6)])

    kinds = [type(outcome) for outcome in asyncio.run(work())]
    assert kinds == [Verdict] * 3 + [ArithmeticError] + [Verdict] * 2
