"""Measure the advised objective for the tiny judge, by kind and amount of gold.

Its answers are the shipped model's; a trial draws items and gold. Training sets hold what the model
answers differently in different orders, as the study's do, or anything.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from claim_rates.rate import Rate
from unswayed.model.items import Item, Task
from unswayed.tiny.answers import encode, prompt_tokens
from unswayed.tiny.backend import WEIGHTS
from unswayed.tiny.forward import read_model
from unswayed.tiny.items import LABELS, judge_items, mcq_items
from unswayed.training.advice import Advice, advise
from unswayed.training.base_answers import balanced

FloatArray = NDArray[np.float64]
Kind = Literal["clean", "raters", "flips", "lot", "none"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""True gold, a Bradley-Terry rater's, true but for 35% flips, by lot, none."""

TRIALS: Final = 30
SIZES: Final = (200, 400, 1600)
DRAWN: Final = 5000
"""Items of a pool, of which about half are answered differently in different orders."""

RATERS: Final = {Task.PAIRWISE: 0.75, Task.MCQ: 0.30}
"""Temperature of the Bradley-Terry rater, as in the study."""
FLIPS: Final = 0.35
OTHER: Final = "anything but distill"


class Pool(NamedTuple):
    """Items with the untrained model's answers, by item id."""

    items: tuple[Item, ...]
    answers: Mapping[str, FloatArray]


@functools.cache
def pool_of(task: Task, *, filtered: bool, drawn: int = DRAWN) -> Pool:
    """Items of the tiny judge, all of them or those that it answers differently."""
    items = (judge_items if task is Task.PAIRWISE else mcq_items)(drawn, 777).items
    question = np.stack([encode(str(item.prompt)) for item in items])
    candidates = np.stack([[encode(str(text)) for text in item.candidates] for item in items])
    model, labels = read_model(WEIGHTS), encode(" ".join(LABELS))
    views = []
    for view in balanced(items[0].n):
        shown = candidates[:, list(view.order)]
        prompts = prompt_tokens(task, question, shown, np.tile(view.labels, (len(items), 1)))
        parts = [model.logprobs(prompts[at : at + 64]) for at in range(0, len(prompts), 64)]
        views.append(np.concatenate(parts)[:, labels[list(view.labels_by_candidate())]])
    log_p = np.stack(views, axis=1)
    chosen = log_p.argmax(axis=-1)
    kept = (chosen != chosen[:, :1]).any(axis=1) if filtered else np.ones(drawn, dtype=np.bool_)
    rows = np.flatnonzero(kept)
    return Pool(tuple(items[row] for row in rows), {items[row].id: log_p[row] for row in rows})


def gold_of(items: Sequence[Item], kind: Kind, rng: np.random.Generator) -> list[int | None]:
    """Gold of a kind."""
    worth = np.array([item.meta["utility"] for item in items])
    size, n = worth.shape
    truth = worth.argmax(axis=1)
    if kind == "none":
        return [None] * size
    if kind == "raters":
        scaled = worth / RATERS[items[0].task]
        return [int(gold) for gold in (scaled + rng.gumbel(size=worth.shape)).argmax(axis=1)]
    share = {"clean": 0.0, "flips": FLIPS, "lot": (n - 1) / n}[kind]
    other = (truth + rng.integers(1, n, size)) % n
    return [int(gold) for gold in np.where(rng.random(size) < share, other, truth)]


def advised(pool: Pool, kind: Kind, size: int, seed: int) -> Advice:
    """Return the advice for so many of the pool's items with gold of a kind."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(pool.items), min(size, len(pool.items)), replace=False)
    items = [pool.items[row] for row in rows]
    golden = [
        msgspec.structs.replace(item, gold=gold)
        for item, gold in zip(items, gold_of(items, kind, rng), strict=True)
    ]
    return advise(golden, pool.answers)


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Measure how often each objective is advised; bounds where one of them is an error."""
    runs = trials or TRIALS
    drawn = DRAWN if runs >= TRIALS else 600
    for task in (Task.PAIRWISE, Task.MCQ):
        for filtered in (True, False):
            pool = pool_of(task, filtered=filtered, drawn=drawn)
            for kind in KINDS:
                count = 5 * runs if kind == "lot" else runs
                for size in SIZES:
                    advice = [advised(pool, kind, size, seed).objective for seed in range(count)]
                    counts = {
                        **{one: advice.count(one) for one in ("distill", "rl-exact", "sft")},
                        OTHER: count - advice.count("distill"),
                    }
                    for objective, times in counts.items():
                        yield Rate(
                            statement=f"{objective} is advised",
                            setting=f"tiny judge, {task.value}, "
                            f"{'inconsistent' if filtered else 'any'} items, gold: {kind}, {size:,} items",
                            count=times,
                            trials=count,
                            at_most=_bound(kind, objective),
                        )


def _bound(kind: Kind, objective: str) -> float | None:
    """Return the largest share of advice for an objective that is an error for this gold."""
    if kind in ("lot", "none") and objective == OTHER:
        return 0.03 if kind == "lot" else 0.0
    return 0.05 if kind == "flips" and objective == "sft" else None
