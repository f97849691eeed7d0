"""RewardBench 2: the best of four answers, and questions with many right answers.

Outside of the subset Ties one of four answers is right; in Ties several of up to 38 are. The right
ones always come first, so candidates get an order of our own. All are lists, whose answers are
scored and ranked; the group is the subset.

Source: Malik et al., arXiv 2506.01937; `allenai/reward-bench-2`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, Place, shuffled
from unswayed.model.items import BadFieldError, Item, Task

TIES: Final = "Ties"


class _Row(msgspec.Struct):
    id: str
    prompt: str
    chosen: list[str]
    rejected: list[str]
    subset: str
    num_correct: int
    num_incorrect: int


def _items(rows: Sequence[_Row], place: Place) -> Iterator[Item]:
    for number, row in enumerate(rows, start=place.number):
        _check(row)
        name = f"reward-bench-2-{number}"
        answers = (*row.chosen, *row.rejected)
        order = shuffled(name, len(answers))
        right = tuple(c for c, k in enumerate(order) if k < len(row.chosen))
        yield Item(
            id=name,
            task=Task.LISTWISE,
            prompt=row.prompt,
            candidates=tuple(answers[k] for k in order),
            gold=right[0] if len(right) == 1 else right,
            group=row.subset,
            meta={"id": row.id, "published_order": order},
        )


def _check(row: _Row) -> None:
    for column, answers, count in (
        ("num_correct", row.chosen, row.num_correct),
        ("num_incorrect", row.rejected, row.num_incorrect),
    ):
        if len(answers) != count or not count:
            raise BadFieldError(column, f"is {count}, but there are {len(answers)} such answers")
    if row.subset != TIES and len(row.chosen) != 1:
        raise BadFieldError("chosen", f"has {len(row.chosen)} answers outside of {TIES}")


REWARD_BENCH_2: Final = Benchmark(
    title="The best of four answers in five subsets; in a sixth several of many are right.",
    hub="huggingface",
    repository="allenai/reward-bench-2",
    revision="main",
    files={"test": ("data/test-*.parquet",)},
    schema=_Row,
    items=_items,
    task="listwise",
    rows=1865,
    licence="ODC-BY; parts are outputs of models with terms of their own",
    paper="2506.01937",
    shuffles=True,
    note="The published score of Ties also weighs margins of scores, which accuracy does not.",
)
