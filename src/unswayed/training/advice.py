"""Advise an objective and give the reason: compare gold with the model's own average.

    no gold, too little of it, or gold that is unrelated to the average   distill
    gold, wrong in part or in an unknown share                            rl-exact
    gold, hardly ever wrong                                               sft with target.invariance
    answers after reasoning                                               rl with reward inv

Whether gold is about what the judge will be used on cannot be seen in the data; the advice says so.
How often it is wrong: docs/evidence/claims.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from unswayed.metrics.uncertainty import exact_interval
from unswayed.model.decisions import Estimate
from unswayed.model.items import Item
from unswayed.training.base_answers import ask_base
from unswayed.training.groups import usable_items
from unswayed.training.planning import answers_with_label, plan_training
from unswayed.training.recipe_parts import DataTable, PromptTable, Recipe
from unswayed.training.rewards import FloatArray
from unswayed.training.targets import compared, questions, wrong_gold

CLEAN: Final = 0.10
"""Gold counts as clean where the interval of the share that is wrong ends below this."""

SUREST: Final = 0.1
"""Share of the questions, those on which the average is surest, that bounds how much gold is wrong."""

FEWEST: Final = 200
"""Questions with gold from which an objective that learns from it is advised."""

CHANCE: Final = 0.01
"""Gold is related to the average where lots would agree as often with less probability than this."""

MASS: Final = 0.5
"""Probability of all labels together below which the model does not answer with a label."""

STEADY: Final = 0.95
"""Consistency above which there is little to gain."""

CONDITION: Final = "This holds if gold is about the judge's later task, which no data can show. Otherwise, train distill."
CLOSE_ITEMS: Final = "Gold that is wrong only on close items looks right here: then scores follow the annotators, not the truth."


Rule = tuple[str, dict[str, str], list[str]]
"""Objective, changes and reasons of an `Advice`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Advised objective and its reasons."""

    objective: str  # a registered name
    changes: Mapping[str, str]  # fields of a recipe with their values, as for `--set`
    reasons: tuple[str, ...]  # sentences: what goes before any training, then the decisive one
    # What was counted and estimated; shares from 0 to 1, the ends of intervals as `..._low` and
    # `..._high`. What was not estimated is not there.
    figures: Mapping[str, float]


def surest_contradicted(mean_logits: FloatArray, gold: Sequence[int]) -> Estimate:
    """Estimate how often gold contradicts the average on the tenth of the questions where it is surest.

    Gold that is wrong by lot in a share e is expected to contradict the average on at least a share
    e of any items, whether or not the average is calibrated. Surest is where the largest mean logit,
    shape (items, n) over a balanced set, leads the second by most, which no temperature changes.
    """
    ordered = np.sort(mean_logits, axis=1)
    surest = np.argsort(ordered[:, -2] - ordered[:, -1], kind="stable")
    surest = surest[: int(np.ceil(SUREST * len(surest)))]
    others = mean_logits[surest].argmax(axis=1) != np.asarray(gold)[surest]
    return _share(int(others.sum()), len(surest))


def hardly_wrong(wrong: Estimate, surest: Estimate) -> bool:
    """Return True if gold counts as clean: by the interval of the wrong share and where the average is surest.

    An average that is unsure everywhere explains whatever gold says, so that the interval alone
    would call wrong gold clean.
    """
    return _below(wrong.high) and _below(surest.value)


def advise(items: Sequence[Item], answers: Mapping[str, FloatArray] | None) -> Advice:
    """Name the objective for these items and this model.

    `answers` are those of the untrained model by item id: log-probabilities of the candidates' labels
    among all tokens over `balanced(n)`, shape (presentations, n); None where the prompt asks for reasoning.
    """
    gold, _ = usable_items(items, DataTable(without_gold="drop"))
    figures: dict[str, float]
    if answers is None:
        figures = {"items": float(len(items)), "gold": float(len(gold))}
        objective, changes, reasons = _after_reasoning(len(questions(gold)), len(questions(items)))
    else:
        counts, shares, chance = _measured(items, gold, answers)
        objective, changes, reasons = _rule(shares, chance)
        reasons = [*_warnings(counts["mass"], shares["steady"]), *reasons]
        figures = {
            "items": len(items),
            **counts,
            **{name: value for share in shares.items() for name, value in _parts(*share)},
            **({"gold_preferred_by_lot": chance} if gold else {}),
        }
    if len(gold) < len(items) and objective != "distill":
        changes = {**changes, "data.without_gold": "drop"}
    return Advice(objective=objective, changes=changes, reasons=tuple(reasons), figures=figures)


def advise_training(items: Sequence[Item], *, model: str, recipe: Recipe, out: Path) -> Advice:
    """Say which objective to train with, from what the untrained model answers in a balanced set.

    Nothing is asked where the prompt asks for reasoning. The calls are recorded where a training into
    `out` looks for them, so neither asks twice: after an error or an interrupt the same call asks the rest.
    """
    if not answers_with_label(items, model=model, recipe=recipe):
        return advise(items, None)
    # the layouts that every other training's prompts are among
    data = msgspec.structs.replace(recipe.data, layouts=recipe.data.layouts or "coupled")
    recipe = msgspec.structs.replace(recipe, data=data)
    # distill needs no gold, and the others ask about no other item
    plan = plan_training("distill", items, model=model, recipe=recipe)
    return advise(plan.groups.items, ask_base(plan, out))


def _measured(
    items: Sequence[Item], usable: Sequence[Item], answers: Mapping[str, FloatArray]
) -> tuple[dict[str, float], dict[str, Estimate], float]:
    """Return counts and shares of the answers and of the gold beside them, and the agreement of gold by lot.

    Shares are of questions, each of which counts once. How much gold is wrong is missing where too few can
    be compared.
    """
    once, asked = questions(items), questions(usable)
    right = [item.gold_candidates() for item in asked]
    hits = sum(
        _preferred(answers[item.id].mean(axis=0, keepdims=True)) in candidates
        for item, candidates in zip(asked, right, strict=True)
    )
    mass = [float(np.exp(answers[item.id]).sum(axis=-1).mean()) for item in items]
    by_lot = [len(set(candidates)) / item.n for item, candidates in zip(asked, right, strict=True)]
    counts = {
        "asked": len(items),
        "mass": sum(mass) / len(items),  # mean probability of all labels together
        "gold": len(usable),
        "gold_of_several": sum(len(set(item.gold_candidates())) > 1 for item in usable),
    }
    # steady: one candidate is most probable in every presentation; preferred: gold is, on average
    steady = sum(_preferred(answers[item.id]) is not None for item in once)
    shares = {"steady": _share(steady, len(once)), "gold_preferred": _share(hits, len(asked))}
    if (against := compared(usable, answers)) is not None:
        shares["wrong_gold"] = wrong_gold(*against)
        shares["surest_contradicted"] = surest_contradicted(*against)
    return counts, shares, sum(by_lot) / max(len(by_lot), 1)


def _rule(shares: Mapping[str, Estimate], chance: float) -> Rule:
    preferred = shares["gold_preferred"]
    distill = ["It makes answers steadier without gold; errors of the average remain."]
    if preferred.n < FEWEST:
        return "distill", {}, [_too_little(preferred.n, shares["steady"].n), *distill]
    agreement = (
        f"gold names the candidate that the model prefers on average in {_range(preferred)} of {preferred.n:,} "
        f"questions; random gold would in {chance:.1%}"
    )
    if _by_lot(preferred, chance) >= CHANCE:
        return "distill", {}, [
            f"distill: {agreement}. The gold is about something else, wrong, or too little: look at some of it.",
            *distill,
        ]  # fmt: skip
    changes = {"reward.consistency": "inv", "target.distill": "0.5"}
    reasons = [f"{agreement[0].upper()}{agreement[1:]}.", CONDITION]
    unsaid = "rl-exact: the share of wrong gold is unknown"
    if "wrong_gold" not in shares:
        return "rl-exact", changes, [
            "rl-exact: the share of wrong gold was not estimated.", *reasons,
        ]  # fmt: skip
    wrong, surest = shares["wrong_gold"], shares["surest_contradicted"]
    share = f"of the gold of {wrong.n:,} questions {_range(wrong)} is wrong at random"
    if hardly_wrong(wrong, surest):
        return "sft", {"target.invariance": "1"}, [
            f"sft: {share}, below the limit of {CLEAN:.0%} for clean gold.",
            CLOSE_ITEMS,
            CONDITION,
        ]  # fmt: skip
    if _below(wrong.high):  # clean only if the average is trusted to be unsure everywhere
        reason = (
            f"{unsaid}: even in the {surest.n:,} questions where the model's average is surest, gold contradicts it "
            f"in {_range(surest)}, so the model may be unsure there or the gold wrong."
        )
    elif wrong.low:
        reason = (
            f"rl-exact: {share}, unless the model's average is wrong where it is sure: "
            "gold alone cannot tell the two apart."
        )
    else:
        reason = f"{unsaid}: {wrong.low:.1%} to {wrong.high:.1%}, from {wrong.n:,} questions."
    return "rl-exact", changes, [reason, *reasons]


def _after_reasoning(gold: int, asked: int) -> Rule:
    if gold < FEWEST:
        return "distill", {"prompt.style": PromptTable().style}, [
            _too_little(gold, asked),
            "Answers after reasoning cannot be trained without gold, so the prompt changes to "
            "one whose answer is the label alone.",
        ]  # fmt: skip
    return "rl", {"reward.consistency": "inv"}, [
        "rl with reward inv: the prompt asks for reasoning, so responses have to be sampled.",
        "The share of wrong gold was not estimated: no label's probability is known before the reasoning.",
        CONDITION,
    ]  # fmt: skip


def _warnings(mass: float, steady: Estimate) -> Iterator[str]:
    if mass < MASS:
        yield (
            f"First fix the prompt: all labels together have a probability of {mass:.1%}, so "
            "the model mostly answers something else, and this advice has little to rest on."
        )
    if steady.low is not None and steady.low > STEADY:
        yield (
            f"There is little consistency to gain: in {_range(steady)} of {steady.n:,} "
            "questions one candidate is preferred in every order asked."
        )


def _too_little(gold: int, questions: int) -> str:
    amount = "no item has" if not gold else f"only {gold:,} of {questions:,} questions have"
    return (
        f"distill: {amount} gold that distinguishes candidates; objectives that learn from gold are advised from "
        f"{FEWEST} on."
    )


def _range(estimate: Estimate) -> str:
    return f"{estimate.value:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"


def _preferred(log_p: FloatArray) -> int | None:
    best = log_p.max(axis=-1, keepdims=True) == log_p
    first = int(best[0].argmax())
    return first if bool((best.sum(axis=-1) == 1).all() and best[:, first].all()) else None


def _by_lot(agreement: Estimate, chance: float) -> float:
    """Return the probability that gold by lot agrees as often."""
    from scipy.special import bdtrc

    hits = round((agreement.value or 0.0) * agreement.n)
    return float(bdtrc(hits - 1, agreement.n, chance)) if hits else 1.0


def _below(share: float | None) -> bool:
    return share is not None and share < CLEAN


def _share(count: int, total: int) -> Estimate:
    if not total:
        return Estimate(value=None, reason="nothing to count")
    low, high = exact_interval(count / total, total, (0.0, 1.0))
    return Estimate(value=count / total, low=low, high=high, n=total)


def _parts(name: str, estimate: Estimate) -> Iterator[tuple[str, float]]:
    """Yield a share that was estimated, the ends of its interval, and what it is a share of."""
    if estimate.value is not None and estimate.low is not None and estimate.high is not None:
        yield name, estimate.value
        yield f"{name}_low", estimate.low
        yield f"{name}_high", estimate.high
        yield f"{name}_of", estimate.n
