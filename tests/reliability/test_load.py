"""What a run holds in memory is bounded; the scenarios of the long run work."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from reliability.load import SCENARIOS, pairs, run
from unswayed.backends.simulated import SimulatedBackend, SimulatedJudge
from unswayed.calls import judge as judging
from unswayed.calls.judge import Judge
from unswayed.model.calls import Query, Response
from unswayed.model.items import Item
from unswayed.store import CallStore, Memory


class Counting(SimulatedBackend):
    asked = 0

    def respond(self, query: Query) -> Response:
        self.asked += 1
        return super().respond(query)


@pytest.fixture
def backend() -> Counting:
    return Counting(SimulatedJudge(slot=(0.6, 0.0)))


def remembered(judge: Judge) -> Memory:
    pool = judge._caller.pool
    assert isinstance(pool, Memory)
    return pool


def test_a_judge_without_a_store_forgets_its_oldest_answers(
    backend: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "MOST_IN_MEMORY", 1 << 20)
    items = list(pairs(1500))
    with Judge(backend, method="average") as judge:
        first = list(judge.verdicts(items))
        assert backend.asked == 3000
        memory = remembered(judge)
        assert memory.n_bytes <= 1 << 20
        assert 0 < len(memory) < 2999
        assert memory.totals().calls == 3000
        assert list(judge.verdicts(items[-10:])) == first[-10:]
        assert backend.asked == 3000  # the newest are remembered
        assert list(judge.verdicts(items[:10])) == first[:10]
        assert backend.asked == 3020  # the oldest are asked again


def test_a_judge_with_a_store_forgets_nothing(
    backend: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "MOST_IN_MEMORY", 1 << 10)
    with Judge(backend, method="average", calls=tmp_path) as judge:
        list(judge.verdicts(pairs(200)))
    with CallStore.open(tmp_path) as store:
        assert len(store) == 400


def test_items_judged_at_once_get_verdicts_despite_eviction(
    backend: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "MOST_IN_MEMORY", 1 << 14)

    async def all_at_once(judge: Judge) -> list[object]:
        return await asyncio.gather(*(judge.ajudge(item) for item in pairs(200)))

    with Judge(backend, method="average") as judge:
        assert len(judge._run(lambda: all_at_once(judge))) == 200
        assert remembered(judge).n_bytes <= 1 << 14


def test_a_judge_that_is_never_idle_is_emptied_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judging, "MOST_IN_MEMORY", 1 << 19)
    sizes: list[int] = []

    async def service(judge: Judge, chain: Sequence[Item]) -> None:
        for item in chain:  # each of several callers has always one item under way
            await judge.ajudge(item)
            sizes.append(remembered(judge).n_bytes)

    async def several(judge: Judge) -> None:
        items = list(pairs(1200))
        await asyncio.gather(*(service(judge, items[k::4]) for k in range(4)))

    with Judge("simulated/judge", method="average") as judge:
        judge._run(lambda: several(judge))
        assert len(sizes) == 1200
        assert max(sizes) <= 1 << 19
        assert sizes[-1] > 1 << 18  # what fits is kept


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_asks_what_it_says(name: str) -> None:
    sizes = {"judge": 200, "resume": 200, "replies": 2, "server": 40, "candidates": 1}
    calls_per_item = 128 if name == "candidates" else 2
    load = run(name, sizes[name] / SCENARIOS[name][1])
    assert load.asked == calls_per_item * sizes[name]
    assert load.peak_mib > 0
