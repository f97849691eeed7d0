"""What the remedies buy on a real (tiny) language model; only wide margins are asserted."""

import msgspec
import numpy as np
import pytest

from unswayed.auditing.settings import AuditSettings
from unswayed.audits import audit_calls
from unswayed.backends import BackendSettings
from unswayed.calls import Question
from unswayed.methods.calibraeval import CalibraEval
from unswayed.model.decisions import Decision
from unswayed.model.items import blind
from unswayed.model.presentation import X0, X1, X2, X3, Ask
from unswayed.result import AuditResult
from unswayed.tiny.items import builtin_items


@pytest.fixture(scope="module")
def judged() -> AuditResult:
    settings = AuditSettings(
        methods=("direct", "vote", "average", "pride", "calibraeval"), protocol="all", resamples=200
    )
    items = builtin_items("tiny-judge")
    return audit_calls(items, settings, "tiny/judge", BackendSettings(), directory=None)


def value(record: AuditResult, method: str, metric: str) -> float:
    return float(record.metrics["methods"][method][metric]["value"])


def test_the_judge_is_swayed_by_position(judged: AuditResult) -> None:
    assert value(judged, "direct", "consistency") < 0.6
    first, _ = judged.metrics["methods"]["direct"]["position_rate"]
    assert first["low"] > 0.65


def test_position_weighs_more_than_the_label(judged: AuditResult) -> None:
    order = judged.metrics["protocols"]["order"]["consistency"]
    label = judged.metrics["protocols"]["label"]["consistency"]
    assert order["high"] < label["low"]


def test_pride_gains_more_than_twenty_points_of_consistency(judged: AuditResult) -> None:
    assert value(judged, "pride", "consistency") > value(judged, "direct", "consistency") + 0.2


def test_averaging_lifts_accuracy_by_more_than_ten_points(judged: AuditResult) -> None:
    assert value(judged, "average", "accuracy") > value(judged, "direct", "accuracy") + 0.1
    assert judged.metrics["differences"]["average-direct"]["accuracy"]["low"] > 0.1


def test_voting_over_two_orders_is_mostly_ties(judged: AuditResult) -> None:
    assert value(judged, "vote", "tie_rate") == pytest.approx(
        1 - value(judged, "direct", "consistency")
    )
    assert value(judged, "vote", "accuracy") < value(judged, "average", "accuracy") - 0.2


def test_the_recommendation_costs_less_than_the_whole_pool(
    judged: AuditResult,
) -> None:
    recommended = judged.metrics["recommendation"]["method"]
    gain = judged.metrics["differences"][f"{recommended}-direct"]["accuracy"]
    assert recommended in judged.metrics["methods"]
    assert gain["low"] > 0.05


def test_calibraeval_needs_the_coupled_swap(
    judged: AuditResult,
) -> None:
    # CalibraEval's third presentation is X2 (its Eq. 6). Read as "same order, labels swapped"
    # (X3) the position bias is nowhere seen, and the calibrated judge stays inconsistent.
    items = [blind(item) for item in judged.record.plan.items.items[:300]]
    asks = [Ask(shown) for shown in (X0, X1, X2, X3)]
    read = list(judged.record.source(Question(item, ask) for item in items for ask in asks))
    coupled = [decision for decision in read if decision.presentation != X3]
    misread = [
        as_x2(decision) if decision.presentation == X3 else decision
        for decision in read
        if decision.presentation != X2
    ]
    right = consistency(judged, CalibraEval().fit(items, coupled))
    wrong = consistency(judged, CalibraEval().fit(items, misread))
    assert right > wrong + 0.15


def as_x2(decision: Decision) -> Decision:
    """The probability of A under X3, passed off as that under X2 (A is candidate 1 in both)."""
    return msgspec.structs.replace(decision, order=X2.order, labels=X2.symbols(decision.label_set))


def consistency(judged: AuditResult, method: CalibraEval) -> float:
    (stratum,) = judged.record.plan.strata
    table = stratum.table
    verdicts = []
    for shown in (X0, X2):
        seen = table.select(method.asks(2), through=shown)
        choices = method.decide_table(seen).choices
        verdicts.append(np.array(shown.order)[choices])
    return float((verdicts[0] == verdicts[1]).mean())
