"""Methods whose scores are compared with those that people gave."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import unswayed as us
from unswayed.auditing.audit import AuditRecord
from unswayed.auditing.contrasts import Comparison, compare_methods
from unswayed.auditing.evaluation import Scored, score_method
from unswayed.backends.simulated import simulated_items
from unswayed.metrics import Options, measure
from unswayed.model.decisions import FloatArray

ITEMS = 200
OPTIONS: Options = {"resamples": 100, "seed": 0, "gold_ties": "exclude"}
NOISE = {"direct": 1.5, "average": 0.5, "vote": 0.5}


@cache
def audited() -> AuditRecord:
    judge, items = "simulated/judge", simulated_items(ITEMS, 2, seed=1)
    return us.audit(judge, items, methods=list(NOISE), resamples=100).record


def compared(human: FloatArray | None, noise: dict[str, float], *, gold: bool = True) -> Comparison:
    """Methods of a pairwise audit with scores put in: the same quality, each with its own noise."""
    record = audited()
    quality = np.arange(ITEMS) % 7.0
    draw = np.random.default_rng(2)
    scored: dict[str, Scored] = {}
    for name, method in record.plan.methods.items():
        own = score_method(method, record.plan.strata, record.source, estimation_items=None)
        if name not in noise:
            continue
        (outcomes,) = own.outcomes
        score = np.repeat(quality + draw.normal(0, noise[name], ITEMS), 2).reshape(ITEMS, 2)
        kinds = outcomes.gold_kind if gold else np.zeros_like(outcomes.gold_kind)
        changed = replace(outcomes, human=human, score=score, gold_kind=kinds)
        scored[name] = replace(own, outcomes=(changed,))
    rows = {name: measure(own.outcomes, **OPTIONS) for name, own in scored.items()}
    return compare_methods(record.plan, scored, rows, OPTIONS)


@pytest.mark.parametrize("gold", [True, False])
def test_human_scores_are_recommended_by_rank_correlation(gold: bool) -> None:
    human = np.arange(ITEMS) % 7.0
    recommendation = compared(human, NOISE, gold=gold).recommendation
    assert recommendation.criterion == "spearman"
    assert (recommendation.state, recommendation.method) == ("better", "vote")  # both cost 2


def test_methods_alike_are_not_recommended() -> None:
    human = np.arange(ITEMS) % 7.0
    comparison = compared(human, dict.fromkeys(NOISE, 1.0))
    assert comparison.recommendation.method in (None, "direct")
    difference = comparison.differences["average", "direct"]["spearman"]
    assert difference.joint is not None
    assert difference.low is not None
    assert difference.joint[0] < difference.low < 0 < difference.joint[1]


def test_recommendation_uses_accuracy_without_human_scores() -> None:
    comparison = compared(None, NOISE)
    assert comparison.recommendation.criterion == "accuracy_fractional"
    assert "spearman" not in comparison.differences["average", "direct"]


def test_equal_human_scores_leave_the_choice_to_gold() -> None:
    comparison = compared(np.full(ITEMS, 3.0), NOISE)
    assert comparison.recommendation.criterion == "accuracy_fractional"
    difference = comparison.differences["average", "direct"]["spearman"]
    assert difference.value is None
    assert difference.reason
