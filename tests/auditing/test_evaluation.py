"""Defects the naive audit (`test_oracle.py`) and its review found, each with its own small case."""

import msgspec
import numpy as np
import pytest

from unswayed.auditing.design import strata_of
from unswayed.auditing.evaluation import average_of_everything
from unswayed.auditing.pool import with_answers
from unswayed.auditing.recorded import audit_decisions
from unswayed.auditing.settings import AuditSettings
from unswayed.audits import audit_calls
from unswayed.backends import BackendSettings
from unswayed.backends.simulated import simulated_items
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, ItemSet, Task
from unswayed.model.presentation import X0, X2, X3, Presentation
from unswayed.report.collect import run_data
from unswayed.result import AuditResult

Probs = tuple[float, ...] | None


def item(name: str, n: int = 2, *, permutable: bool = True) -> Item:
    texts = tuple(f"{name}{c}" for c in range(n))
    return Item(id=name, prompt="q", candidates=texts, task=Task.MCQ, gold=0, permutable=permutable)


def call(name: str, shown: Presentation, choice: int | None, probs: Probs = None) -> Decision:
    labels, symbols = shown.symbols("ABCDE"), tuple("ABCDE"[: shown.n])
    asked = {"item_id": name, "order": shown.order, "labels": labels, "label_set": symbols}
    return Decision(**asked, choice=choice, probs=probs, model="m")  # type: ignore[arg-type]


def audit(items: list[Item], decisions: list[Decision], *methods: str) -> AuditResult:
    wanted = AuditSettings(methods=methods or ("direct", "vote", "average"), resamples=50)
    whole = ItemSet.of(items, name="d")
    return AuditResult(audit_decisions(decisions, whole, wanted, command="test"))


def simulate(wanted: AuditSettings, n: int = 2, model: str = "slot=0.9&noise=1") -> AuditResult:
    items, judge = simulated_items(40, n, seed=2), f"simulated/judge?{model}"
    return audit_calls(items, wanted, judge, BackendSettings(), directory=None)


def test_a_fixed_item_counts_in_its_own_order_in_every_section() -> None:
    # "a" was asked in both orders all the same; only its own (right) may count, and "b" is half
    # right: (1 + 1/2) / 2. All three of the calls that count were read.
    items = [item("a", permutable=False), item("b")]
    made = [call("a", X0, 0), call("a", X2, None), call("b", X0, 0), call("b", X2, 1)]
    metrics = audit(items, made).metrics
    for row in (metrics["protocols"]["coupled"], metrics["methods"]["direct"]):
        assert row["accuracy"]["value"] == 0.75
        assert row["unparsed_rate"] == metrics["methods"]["direct"]["unparsed_rate"]
        assert row["unparsed_rate"]["value"] == 0.0
        assert row["unparsed_rate"]["n"] == 3


def test_every_method_reads_a_fixed_item_alike() -> None:
    # Unread, though with probabilities: no verdict for `direct`, and none for the others either.
    items = [item("a", permutable=False), item("b")]
    made = [call("a", X0, None, (0.9, 0.1))]
    made += [call("b", shown, 0, (0.9, 0.1)) for shown in (X0, X2)]
    rows = audit(items, made).metrics["methods"]
    assert {name: rows[name]["accuracy"]["value"] for name in rows} == dict.fromkeys(rows, 0.5)


def test_a_fixed_item_scores_the_mean_of_its_samples() -> None:
    human, samples = (1.0, 2.0, 2.2, 3.0), ((0, 0), (0, 1), (1, 1), (1, 2))
    items, made = [], []
    for at, levels in enumerate(samples):
        items.append(
            Item(
                id=str(at), prompt="q", task=Task.RUBRIC, response=f"r{at}", gold=human[at],
                candidates=("low", "middle", "high"), values=(1, 2, 3), permutable=False,
            )
        )  # fmt: skip
        answers = enumerate((0, *levels))
        made += [
            msgspec.structs.replace(call(str(at), Presentation((0, 1, 2), (0, 1, 2)), c), sample=s)
            for s, c in answers
        ]
    rows = audit(items, made, "direct", "repeat-score:samples=2").metrics["methods"]
    assert rows["repeat-score:samples=2"]["pearson"]["value"] == pytest.approx(
        np.corrcoef(human, (1, 1.5, 2, 2.5))[0, 1]
    )
    assert rows["direct"]["pearson"]["value"] is None  # the greedy answers are all the same


def test_choices_and_vote_shares_are_never_probabilities() -> None:
    items = [item(f"i{k}") for k in range(4)]
    made = [call(f"i{k}", shown, k % 2) for k in range(4) for shown in (X0, X2)]
    rows = audit(items, made, "direct", "vote").metrics["methods"]
    for name in ("direct", "vote"):
        assert rows[name]["icc2k"]["value"] is None
        assert rows[name]["icc2k"]["reason"] == "no label probabilities"
        assert "position_bias" not in rows[name]


def test_the_icc_leaves_out_items_without_probabilities() -> None:
    items = [item(f"i{k}") for k in range(4)]
    made = [
        call(f"i{k}", shown, 0, None if k == 0 else (0.5 + k / 10 + bias, 0.5 - k / 10 - bias))
        for k in range(4)
        for shown, bias in ((X0, 0.0), (X2, 0.1))
    ]
    metrics = audit(items, made).metrics
    found = metrics["methods"]["direct"]["icc2k"]
    assert found["n"] == 3
    assert found == metrics["protocols"]["coupled"]["icc2k"]
    # rows (.6,.7),(.7,.8),(.8,.9): MSR .02, MSC .015, MSE 0 -> .02 / (.02 + .015 / 3) = .8
    assert found["value"] == pytest.approx(0.8)


@pytest.mark.parametrize("with_labels", [False, True])
def test_items_of_another_size_without_decisions_are_counted(*, with_labels: bool) -> None:
    items = [*(item(f"i{k}") for k in range(3)), item("z", 3)]
    shown = (X0, X2, X3) if with_labels else (X0, X2)
    made = [call(f"i{k}", one, 0) for k in range(3) for one in shown]
    record = audit(items, made, "direct", "vote")
    accuracy = record.metrics["methods"]["vote"]["accuracy"]
    assert (accuracy["value"], accuracy["n"]) == (1.0, 3)
    assert ("label" in record.metrics["protocols"]) is with_labels
    assert any("1 of 4 items has no decision" in warning for warning in record.run["warnings"])


def test_recorded_samples_alone_give_no_single_answer() -> None:
    made = [msgspec.structs.replace(call("a", shown, 0), sample=1) for shown in (X0, X2)]
    record = audit([item("a")], made)
    assert record.metrics["methods"]["direct"]["accuracy"]["value"] is None
    (said,) = (one for one in record.run["warnings"] if "only repeated samples" in one)
    assert "import it together with the first" in said


def test_a_fold_without_probabilities_is_left_uncorrected() -> None:
    # one item of twelve has probabilities: folds that must not learn from it learn nothing
    items = [item(f"i{k}") for k in range(12)]
    made = [
        call(f"i{k}", shown, 0, (0.6, 0.4) if k == 3 else None)
        for k in range(12)
        for shown in (X0, X2)
    ]
    row = audit(items, made, "pride").metrics["methods"]["pride"]
    assert row["unparsed_rate"]["value"] == pytest.approx(11 / 12)


def test_methods_that_read_sampled_probabilities_pay_for_them() -> None:
    wanted = AuditSettings(
        methods=("vote", "average", "pride"), probs="sampled:5", resamples=20, estimation_items=8
    )
    record = simulate(wanted)
    rows = record.metrics["methods"]
    # a call with its 5 samples is 6: 2 orders x 6; pride 6, and 8 more items in the other order
    assert [rows[name]["calls_per_item"] for name in rows] == [1, 2, 12, 6]
    assert rows["pride"]["calls_per_item_amortised"] == pytest.approx(6 + 8 * 6 / 40)
    assert rows["pride"]["estimation_calls"] == 96
    assert record.metrics["calls"]["made"] == 40 * 12


def test_samples_of_others_never_fill_an_unread_answer() -> None:
    wanted = AuditSettings(methods=("vote", "average"), probs="sampled:5", resamples=20)
    metrics = simulate(wanted, model="slot=0.9&noise=1&unparsed=0.4").metrics
    single = metrics["methods"]["direct"]["unparsed_rate"]
    assert single == metrics["protocols"]["coupled"]["unparsed_rate"]
    assert single["value"] > 0.2
    assert metrics["methods"]["average"]["unparsed_rate"]["value"] < 0.1


def test_content_free_questions_about_every_item_are_read() -> None:
    wanted = AuditSettings(methods=("contextual:per_item=true",), resamples=20)
    record = simulate(wanted, model="slot=0.9&unparsed=0.3")
    row = record.metrics["methods"]["contextual:per_item=true"]
    assert row["calls_per_item"] == 4
    assert row["accuracy"]["n"] == 40
    # what was answered about nothing is not counted among the answers
    assert record.metrics["calls"]["unparsed"] < 80


@pytest.mark.parametrize(
    ("method", "constructed"),
    [
        ("sequential", True),
        *((f"sequential:rule={own}", False) for own in ("agree", "lead:lead=1")),
    ],
)
def test_a_vote_that_stops_early_has_no_dagger(method: str, *, constructed: bool) -> None:
    # of the balanced set, the views forwards read the rotations first, the others the reversed ones
    wanted = AuditSettings(methods=(method,), orders="balanced", resamples=50)
    cell = simulate(wanted, n=3).metrics["methods"][method]["consistency"]
    assert cell.get("by_construction", False) is constructed
    assert cell["low"] < 1 or constructed


def test_the_reference_calls_equal_means_a_tie_despite_rounding() -> None:
    # .45 + .4 + .35 and .35 + .4 + .45 may differ in the last bit of float64
    shown = [Presentation(order, (0, 1, 2)) for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1))]
    probs = [(0.1, 0.3, 0.6), (0.2, 0.2, 0.6), (0.3, 0.1, 0.6)]
    strata = strata_of([item("a", 3)], orders="cyclic", protocols=("coupled",), seed=0)
    made = [call("a", one, 2, p) for one, p in zip(shown, probs, strict=True)]
    assert average_of_everything(*with_answers(strata, made)).tolist() == [2]
    low = [(0.45, 0.35, 0.2), (0.4, 0.4, 0.2), (0.35, 0.45, 0.2)]
    made = [call("a", one, 0, p) for one, p in zip(shown, low, strict=True)]
    assert average_of_everything(*with_answers(strata, made)).tolist() == [-2]


def test_the_flips_are_the_items_that_are_not_consistent() -> None:
    # a: first position twice; b: tie and 1; c: unread once; d: the same twice; e: asked once
    items = [item(name) for name in "abcde"]
    choices = {"a": (0, 1), "b": ("tie", 1), "c": (None, 0), "d": (1, 1)}
    made = [
        msgspec.structs.replace(call(name, shown, 0), choice=choice)
        for name, pair in choices.items()
        for shown, choice in zip((X0, X2), pair, strict=True)
    ]
    record = audit(items, [*made, call("e", X0, 0)])
    flips = record.metrics["flips"]
    assert flips == {"total": 3, "n": 4, "first": 1, "last": 0, "unread": 1, "ties": 1}
    assert record.metrics["methods"]["direct"]["consistency"]["value"] == 1 - 3 / 4
    run = run_data(record.record)
    assert run.flips.n_flipped == 3
    for flipped in run.flips.flipped:  # where each candidate stands in what was shown goes along
        for view in flipped.shown:
            assert tuple(
                view.messages[span.message].content[span.start : span.end] for (span,) in view.spans
            ) == tuple(flipped.candidates)
