"""Concurrency, spacing and back-off on clocks that need no waiting."""

import asyncio

import pytest
from chat_cases import JumpClock, SimulatedClock, failures, good_reply, queries, wired
from hypothesis import example, given, settings
from hypothesis import strategies as st

from unswayed.backends.faults import HttpReply
from unswayed.backends.pacing import Clock, Concurrency, Gate, Spacing, backoff_s
from unswayed.model.calls import Failure, Response


def test_the_limit_doubles_per_round_until_it_is_pushed_back() -> None:
    concurrency = Concurrency(100, JumpClock().clock())
    assert concurrency.limit == 8
    for _ in range(8):
        concurrency.answered(concurrency.limit)
    assert concurrency.limit == 16
    for _ in range(200):
        concurrency.answered(concurrency.limit)
    assert concurrency.limit == 100


def test_the_limit_does_not_grow_when_it_is_not_used() -> None:
    concurrency = Concurrency(100, JumpClock().clock())
    for _ in range(50):
        concurrency.answered(3)
    assert concurrency.limit == 8


def test_the_limit_halves_once_per_burst_and_grows_slowly() -> None:
    jump = JumpClock()
    concurrency = Concurrency(64, jump.clock())
    for _ in range(100):
        concurrency.answered(concurrency.limit)
    started = jump.time
    jump.time += 1.0
    assert concurrency.pushed_back(started)
    assert [concurrency.pushed_back(started) for _ in range(63)] == [False] * 63
    assert concurrency.limit == 32
    for _ in range(33):  # one round of 32 adds about one
        concurrency.answered(concurrency.limit)
    assert concurrency.limit == 33


@example(cap=64, events=[False] * 20)
@given(cap=st.integers(1, 300), events=st.lists(st.booleans(), max_size=300))
def test_the_limit_stays_between_one_and_the_cap(cap: int, events: list[bool]) -> None:
    jump = JumpClock()
    concurrency = Concurrency(cap, jump.clock())
    for answered in events:
        jump.time += 1.0
        if answered:
            concurrency.answered(concurrency.limit)
        else:
            concurrency.pushed_back(jump.time)
        assert 1 <= concurrency.limit <= cap
    assert concurrency.limit == 1 or len(events) < 20 or any(events)


@given(failed=st.integers(1, 2000), chance=st.floats(0, 1, exclude_max=True))
def test_back_off_is_jittered_fully_and_capped(failed: int, chance: float) -> None:
    wait = backoff_s(failed, JumpClock().clock(chance=chance))
    assert wait == pytest.approx(chance * min(60.0, 2.0 ** min(failed - 1, 10)))


def run_paced(
    n: int, latency_s: float, **limits: float
) -> tuple[list[float], list[tuple[float, int]]]:
    """Starts, and tokens with the time they were started at, of a run on simulated time."""
    simulated = SimulatedClock()
    starts: list[float] = []
    tokens: list[tuple[float, int]] = []

    async def answer(body: bytes) -> HttpReply:
        start = simulated.time
        starts.append(start)
        await simulated.sleep(latency_s)
        reply = good_reply(body)
        tokens.append((start, -1))
        return reply

    async def work() -> None:
        backend = wired(answer, simulated, **limits)
        outcomes = {}
        async for query, outcome in backend.answer(queries(n)):
            outcomes[query.item.id] = outcome
            if isinstance(outcome, Response):
                used = outcome.input_tokens + outcome.output_tokens
                tokens[len(outcomes) - 1] = (tokens[len(outcomes) - 1][0], used)
        assert len(outcomes) == n
        assert not failures(outcomes)

    simulated.run(work())
    return starts, tokens


def most_in_a_minute(events: list[tuple[float, int]]) -> int:
    ordered = sorted(events)
    return max(
        sum(units for time, units in ordered if start <= time < start + 60.0 - 1e-6)
        for start, _ in ordered
    )


@settings(max_examples=9, deadline=None)
@given(limit=st.sampled_from([6, 30, 200]), latency_s=st.sampled_from([0.0, 0.5, 7.0]))
def test_no_minute_holds_more_requests_than_the_limit(limit: int, latency_s: float) -> None:
    starts, _ = run_paced(limit + 20, latency_s, requests_per_minute=limit)
    assert most_in_a_minute([(start, 1) for start in starts]) <= limit
    if latency_s < 1.0:  # and the limit is used, where concurrency is not what binds
        assert max(starts) <= (limit + 19) * 60.0 / limit + 1e-6


@settings(max_examples=10, deadline=None)
@given(limit=st.sampled_from([300, 1200]), latency_s=st.sampled_from([0.0, 0.5, 3.0]))
def test_no_minute_holds_many_more_tokens_than_the_limit(limit: int, latency_s: float) -> None:
    n = 3 * limit // 25
    starts, tokens = run_paced(n, latency_s, tokens_per_minute=limit)
    largest = max(units for _, units in tokens)
    assert largest > 0
    # a start books what it is expected to use; the difference is settled when it is known
    assert most_in_a_minute(tokens) <= limit + 9 * largest
    assert max(starts) >= 60.0
    total = sum(units for _, units in tokens)
    assert max(starts) <= 60.0 * total / limit * 1.5 + 10 * latency_s


def test_tokens_that_were_not_used_are_given_back() -> None:
    spacing = Spacing(60.0)  # one per second
    spacing.take(30, now=0.0)
    assert spacing.free_at == 30.0
    spacing.correct(-20)
    assert spacing.free_at == 10.0


def test_no_limit_means_no_waiting() -> None:
    spacing = Spacing(None)
    spacing.take(1e9, now=5.0)
    spacing.correct(1e9)
    assert spacing.free_at == float("-inf")


async def test_those_who_wait_are_let_in_first_come_first_served() -> None:
    clock = Clock()
    gate = Gate(Concurrency(1, clock), Spacing(None), Spacing(None), clock)
    stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    order: list[int] = []

    async def visit(number: int) -> None:
        assert await gate.enter(stop)
        order.append(number)
        await asyncio.sleep(0)
        gate.leave()

    await asyncio.gather(*(visit(number) for number in range(10)))
    assert order == list(range(10))
    assert gate.in_flight == 0


async def test_a_stop_turns_away_everyone_who_waits() -> None:
    clock = Clock()
    gate = Gate(Concurrency(1, clock), Spacing(1.0), Spacing(None), clock)
    stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    assert await gate.enter(stop)
    gate.leave()
    waiting = [asyncio.create_task(gate.enter(stop)) for _ in range(3)]  # for a minute
    await asyncio.sleep(0)
    stop.set_result(None)
    assert await asyncio.wait_for(asyncio.gather(*waiting), timeout=5) == [False] * 3
    assert gate.in_flight == 0


async def test_pauses_grow_with_refusals_and_reset_on_an_answer() -> None:
    jump = JumpClock()
    clock = jump.clock(chance=0.5)
    gate = Gate(Concurrency(64, clock), Spacing(None), Spacing(None), clock)
    pauses = []
    for answered in (False, False, False, True, False):
        jump.time += 100.0
        if answered:
            gate.answered()
            continue
        gate.pushed_back(jump.time, None)
        pauses.append(gate.paused_until - jump.time)
    assert pauses == [0.5, 1.0, 2.0, 0.5]  # half of 1, 2, 4, then 1 again


def test_a_rate_limited_server_is_soon_asked_within_its_limit() -> None:
    """A server of 30 requests a minute that says nothing but 429: all calls get through."""
    simulated = SimulatedClock()
    allowed: list[float] = []
    refused = 0

    async def answer(body: bytes) -> HttpReply:
        nonlocal refused
        await simulated.sleep(0.2)
        now = simulated.time
        if sum(1 for time in allowed if time > now - 60.0) >= 30:
            refused += 1
            return HttpReply(429, {}, b"slow down")
        allowed.append(now)
        return good_reply(body)

    async def work() -> None:
        backend = wired(answer, simulated)
        outcomes = [outcome async for _, outcome in backend.answer(queries(150))]
        assert not [outcome for outcome in outcomes if isinstance(outcome, Failure)]

    simulated.run(work())
    assert len(allowed) == 150
    assert refused < 150
