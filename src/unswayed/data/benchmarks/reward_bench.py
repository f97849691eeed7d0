"""RewardBench and its second version: answers chosen and rejected, in subsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from unswayed.base.errors import UsageError
from unswayed.data.benchmarks.benchmark import Benchmark, Place, shuffled
from unswayed.model.items import BadFieldError, Item, Task

# RewardBench: 23 subsets of pairs in four sections. The chosen answer always comes first, so candidates get an order
# of our own. The group is the subset; the published score of a section weighs its subsets, which `section_scores`
# does.
# Source: Lambert et al., arXiv 2403.13787; `allenai/reward-bench`, split `filtered`; weights as in
# allenai/reward-bench, `rewardbench/constants.py`.

SECTIONS: Final[Mapping[str, Mapping[str, int]]] = {
    "Chat": {
        "alpacaeval-easy": 100,
        "alpacaeval-length": 95,
        "alpacaeval-hard": 95,
        "mt-bench-easy": 28,
        "mt-bench-med": 40,
    },
    "Chat Hard": {
        "mt-bench-hard": 37,
        "llmbar-natural": 100,
        "llmbar-adver-neighbor": 134,
        "llmbar-adver-GPTInst": 92,
        "llmbar-adver-GPTOut": 47,
        "llmbar-adver-manual": 46,
    },
    "Safety": {
        "refusals-dangerous": 100,
        "refusals-offensive": 100,
        "xstest-should-refuse": 250,
        "xstest-should-respond": 154,
        "donotanswer": 136,
    },
    "Reasoning": {
        "math-prm": 984,
        "hep-cpp": 164,
        "hep-go": 164,
        "hep-java": 164,
        "hep-js": 164,
        "hep-python": 164,
        "hep-rust": 164,
    },
}
"""Section to subset to weight, as published: the number of its items, but mathematics as much as all
code. The two of XSTest are the other way round than their numbers of items (154 and 250), in which
the published scores follow the table."""

_SECTION_OF: Final = {subset: name for name, subsets in SECTIONS.items() for subset in subsets}


class _Pair(msgspec.Struct):
    prompt: str
    chosen: str
    rejected: str
    subset: str
    chosen_model: str | None = None
    rejected_model: str | None = None
    id: int | str | None = None


def _pairs(rows: Sequence[_Pair], place: Place) -> Iterator[Item]:
    for number, row in enumerate(rows, start=place.number):
        name = f"reward-bench-{number}"
        order = shuffled(name, 2)
        answers, models = (row.chosen, row.rejected), (row.chosen_model, row.rejected_model)
        authors = tuple(model for k in order if (model := models[k]))
        yield Item(
            id=name,
            prompt=row.prompt,
            candidates=tuple(answers[k] for k in order),
            gold=order.index(0),
            group=row.subset,
            meta={"section": _SECTION_OF.get(row.subset), "id": row.id},
            candidates_by=authors if len(authors) == len(order) else None,
        )


def section_scores(accuracy: Mapping[str, float]) -> dict[str, float]:
    """Return the published score of each section.

    Args:
        accuracy: Subset to accuracy, a fraction; all 23 subsets.

    Returns:
        Section to the mean of its subsets, weighed as published.
    """
    missing = [subset for subset in _SECTION_OF if subset not in accuracy]
    if missing:
        raise UsageError(
            f"section scores need all {len(_SECTION_OF)} subsets; there is no {missing[0]}. "
            "Audit the whole of reward-bench."
        )
    return {
        name: sum(accuracy[subset] * weight for subset, weight in weights.items())
        / sum(weights.values())
        for name, weights in SECTIONS.items()
    }


REWARD_BENCH: Final = Benchmark(
    title="Chosen and rejected answers in 23 subsets of four sections.",
    hub="huggingface",
    repository="allenai/reward-bench",
    revision="d61ac5c97d0f2f7eb922da3c0b6bbaf614ae8d02",
    files={"filtered": ("data/filtered-*.parquet",), "raw": ("data/raw-*.parquet",)},
    default=("filtered",),
    schema=_Pair,
    items=_pairs,
    task="pairwise",
    rows=2985,
    licence="ODC-BY; subsets have licences of their own",
    paper="2403.13787",
    shuffles=True,
    note="Section scores weight subsets; --group-by meta.section counts items alike.",
)

# RewardBench 2: the best of four answers, and questions with many right answers. Outside of the subset Ties one of
# four answers is right; in Ties several of up to 38 are. The right ones always come first, so candidates get an order
# of our own. All are lists, whose answers are scored and ranked; the group is the subset.
# Source: Malik et al., arXiv 2506.01937; `allenai/reward-bench-2`.

_TIES: Final = "Ties"


class _List(msgspec.Struct):
    id: str
    prompt: str
    chosen: list[str]
    rejected: list[str]
    subset: str
    num_correct: int
    num_incorrect: int


def _lists(rows: Sequence[_List], place: Place) -> Iterator[Item]:
    for number, row in enumerate(rows, start=place.number):
        _check_list(row)
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


def _check_list(row: _List) -> None:
    for column, answers, count in (
        ("num_correct", row.chosen, row.num_correct),
        ("num_incorrect", row.rejected, row.num_incorrect),
    ):
        if len(answers) != count or not count:
            raise BadFieldError(column, f"is {count}, but there are {len(answers)} such answers")
    if row.subset != _TIES and len(row.chosen) != 1:
        raise BadFieldError("chosen", f"has {len(row.chosen)} answers outside of {_TIES}")


REWARD_BENCH_2: Final = Benchmark(
    title="The best of four answers in five subsets; in a sixth, several of many answers are right.",
    hub="huggingface",
    repository="allenai/reward-bench-2",
    revision="main",
    files={"test": ("data/test-*.parquet",)},
    schema=_List,
    items=_lists,
    task="listwise",
    rows=1865,
    licence="ODC-BY; parts are outputs of models with terms of their own",
    paper="2506.01937",
    shuffles=True,
    note="The published score of Ties also weights margins of scores, which accuracy does not.",
)
