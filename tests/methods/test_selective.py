"""Selective: the rule by hand, gold of others alone, and abstentions apart from wrong and tied verdicts."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta
from simulated_judges import table_of

import unswayed as us
from claim_rates import selection
from needs import DATA, recorded
from unswayed.auditing.design import Stratum, strata_of
from unswayed.auditing.evaluation import score_method
from unswayed.backends.simulated import simulated_items
from unswayed.base.errors import UsageError
from unswayed.data.importers import import_files
from unswayed.methods.checks import UnsoundError
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.selective import Selection, Selective
from unswayed.metrics import measure, outcomes_from_decisions
from unswayed.metrics.abstention import risk_curve
from unswayed.metrics.outcomes import Outcomes
from unswayed.model.decisions import ABSTAINED, DecisionTable, IntArray
from unswayed.model.items import Item, ItemSet
from unswayed.model.presentation import Ask
from unswayed.testing.judges import answer, make_items
from unswayed.tiny.items import judge_items


def pairs(gaps: np.ndarray, right: np.ndarray) -> DecisionTable:
    """Pairs answered alike in both orders: candidate 0 leads by the gap, gold is 0 where that is right."""
    p = 1 / (1 + np.exp(-np.asarray(gaps, float)))
    probs = np.repeat(np.stack([p, 1 - p], axis=1)[:, None], 2, axis=1)
    shown = [ask.presentation for ask in Selective(orders="auto").asks(2)]
    gold = np.where(np.asarray(right, bool), 0, 1)
    return replace(table_of(probs, shown), gold=gold[:, None] == np.arange(2))


def selected(method: Selective, table: DecisionTable) -> Selection:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        (own,) = method.fit_tables({table.n: table}).selections or ()
    return own


@pytest.mark.parametrize(("errors", "decided"), [(8, 71), (0, 0)])
def test_values_that_no_fit_makes_are_refused(errors: int, decided: int) -> None:
    own = Selection(2, (0.0, 0.0), 0.2, errors, decided, 80)
    with pytest.raises(UnsoundError, match=f"{errors} events among {decided} do not prove a share"):
        Selective(selections=(own,))
    Selective(selections=(replace(own, gap=None),))
    with pytest.raises(UnsoundError, match=r"sum of offsets: 10\.0"):
        replace(own, offsets=(5.0, 5.0))


def test_fewest_decided_are_those_of_the_formula() -> None:
    """ceil(1.15 ln .1 / ln .9) = ceil(25.13); without an error 9 questions give (0 + 1)/(9 + 1) = .1."""
    assert Selective().fewest_decided == 26
    assert Selective(error=0.05).fewest_decided == 52
    assert Selective(guarantee="mean").fewest_decided == 9


def test_a_mean_guarantee_takes_the_largest_set_that_passes() -> None:
    """Errors at places 5 and 25 of 30: (1 + 1)/(k + 1) <= .1 from 19 to 24, (2 + 1)/(30 + 1) <= .1 at 30."""
    right = np.ones(30, bool)
    right[[4, 24]] = False
    own = selected(Selective(orders="auto", guarantee="mean"), pairs(np.arange(30, 0, -1), right))
    assert (own.gap, own.decided, own.errors) == (pytest.approx(1), 30, 2)
    right[28] = False  # (3 + 1)/(30 + 1) > .1, and 3/(25..28 + 1) > .1: 24 are the most
    own = selected(Selective(orders="auto", guarantee="mean"), pairs(np.arange(30, 0, -1), right))
    assert (own.gap, own.decided, own.errors) == (pytest.approx(7), 24, 1)


def test_a_high_guarantee_stops_at_the_first_failure() -> None:
    """One error among 37 has an upper end of .1009, among 38 of .0984; the steps are all of 26 to 60."""
    gaps, right = np.arange(60, 0, -1) / 10, np.ones(60, bool)
    assert beta.ppf(0.9, 2, 36) > 0.1 > beta.ppf(0.9, 2, 37)
    right[29] = False
    own = selected(Selective(orders="auto"), pairs(gaps, right))
    assert (own.decided, own.errors, own.gap) == (29, 0, pytest.approx(3.2))
    right[29], right[45] = True, False
    own = selected(Selective(orders="auto"), pairs(gaps, right))
    assert (own.decided, own.errors) == (60, 1)
    right[:2] = False  # the surest are wrong: nothing passes, however good the rest
    assert selected(Selective(orders="auto"), pairs(gaps, right)).gap is None


def test_equal_gaps_are_decided_together() -> None:
    gaps, right = np.repeat([3.0, 2.0, 1.0], [26, 10, 10]), np.ones(46, bool)
    right[30:36] = False
    own = selected(Selective(orders="auto"), pairs(gaps, right))
    assert (own.decided, own.errors, own.gap) == (26, 0, pytest.approx(3))


@pytest.mark.parametrize(("orders", "needed"), [("identity", 39), ("auto", 26)])
def test_too_little_gold_abstains_and_says_how_much_is_needed(orders: str, needed: int) -> None:
    table = pairs(np.linspace(4, 1, needed), np.ones(needed, bool))
    method = Selective(orders=orders)
    assert selected(method, table).gap is not None
    fewer = table.rows(np.arange(needed - 1))
    with pytest.warns(MethodWarning, match=f"at least {needed} estimation questions with gold"):
        fitted = method.fit_tables({2: fewer})
    verdicts = fitted.decide_table(table.select(fitted.asks(2)))
    assert (verdicts.choices == ABSTAINED).all()
    record = verdicts.verdict(0, item_id="q", method="selective")
    assert (record.choice, record.abstained, record.tie, record.confidence) == (
        None,
        True,
        None,
        None,
    )
    assert record.scores is not None


def test_questions_without_gold_teach_offsets_alone() -> None:
    table = pairs(np.linspace(4, 1, 60), np.ones(60, bool))
    assert table.gold is not None
    gold = table.gold.copy()
    gold[::2] = False
    own = selected(Selective(), replace(table, gold=gold))
    assert (own.count, own.units) == (30, 60)


def verdicts_of(items: Sequence[Item]) -> tuple[Stratum, IntArray]:
    """Verdicts of a cross-fitted audit under both views, and the items."""
    (part,) = strata_of(ItemSet.of(items, name="d"), orders="swap", protocols=("coupled",), seed=0)
    asks = [Ask(shown) for shown in part.views]
    part = part.with_table(
        DecisionTable.of(part.items, [answer(item, ask) for item in part.items for ask in asks])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        scored = score_method(
            Selective(error=0.3),
            [part],
            lambda questions: (answer(own.item, own.ask) for own in questions),
            estimation_items=150,
        )
    return part, scored.outcomes[0].choices


def test_gold_of_an_item_never_changes_its_verdict() -> None:
    """Gold of one fold is turned round: its own verdicts rest on the other folds alone."""
    items = make_items(Selective(), 400, 2)
    leaders = {item.id: answer(item, Selective().asks(2)[0]).choice for item in items}
    items = [msgspec.structs.replace(item, gold=leaders[item.id]) for item in items]
    part, first = verdicts_of(items)
    own = part.folds == 0
    ids = {part.items[row].id for row in np.flatnonzero(own)}
    turned = [
        msgspec.structs.replace(item, gold=1 - item.gold) if item.id in ids else item
        for item in items
    ]
    _, second = verdicts_of(turned)
    assert {ABSTAINED, 0, 1} <= set(first[own].ravel().tolist())
    np.testing.assert_array_equal(first[own], second[own])
    assert (first[~own] != second[~own]).any()


def test_abstentions_are_neither_wrong_nor_tied_nor_unread() -> None:
    """Of six pairs two are withheld: coverage 4/6, accuracy 3/4, with nothing unread, tied or missing."""
    table = pairs([4, 3, 2, 1.5, 1, 0.5], [1, 1, 0, 1, 0, 1])
    own = Selection(2, (0.0, 0.0), 1.2, 0, 30, 30, units=30)
    method = Selective(orders="auto", selections=(own,))
    views = [ask.presentation for ask in method.asks(2)]
    choices = [method.decide_table(table.select(method.asks(2), through=v)) for v in views]
    codes = np.stack([v.renumbered(views[k].order).choices for k, v in enumerate(choices)], axis=1)
    probs = np.stack(
        [np.asarray(v.scores)[:, list(views[k].order)] for k, v in enumerate(choices)], 1
    )
    outcomes = Outcomes(
        item_ids=tuple("abcdef"),
        groups=(None,) * 6,
        shown=tuple(views),
        label_set=("A", "B"),
        choices=codes,
        gold=table.gold,
        gold_kind=np.ones(6, np.int8),
        permutable=np.ones(6, bool),
        probs=probs,
        abstains=True,
    )
    row = measure([outcomes])
    assert row["coverage"].value == pytest.approx(4 / 6)
    assert row["accuracy"].value == pytest.approx(3 / 4)
    assert row["consistency"].n == 4
    assert (row["unparsed_rate"].value, row["tie_rate"].value, row.incomplete) == (0, 0, 0)
    # each pair twice, surest first: errors among 1, 2, ... 12 answers
    wrong = np.repeat([0, 0, 1, 0, 1, 0], 2)
    area = (wrong.cumsum() / np.arange(1, 13)).mean()
    assert row["aurc"].value == pytest.approx(area)
    curve = risk_curve([outcomes])
    assert curve[4].coverage == 0.5
    assert curve[4].error == pytest.approx(2 / 6)
    assert curve[-1].error == pytest.approx(2 / 6)


def test_an_audit_shows_abstentions_apart_and_compares_none() -> None:
    asked = {"methods": "direct,selective,average", "limit": 600, "estimation_items": 300}
    metrics = us.audit("tiny/judge", "tiny-judge", resamples=100, **asked).metrics
    row = metrics["methods"]["selective"]
    assert 0.5 < row["coverage"]["value"] < 0.95
    assert row["accuracy"]["value"] > 0.9 > metrics["methods"]["average"]["accuracy"]["value"]
    assert 0 < row["aurc"]["value"] < 0.1
    assert len(metrics["risk_curve"]["selective"]) == 10
    assert "coverage" not in metrics["methods"]["average"]
    assert not any(pair.startswith("selective") for pair in metrics["differences"])
    assert any("withholds" in said for said in metrics["cautions"]["selective"])
    assert metrics["recommendation"]["method"] == "average"


def test_unparsed_replies_are_not_covered() -> None:
    judge = "simulated/judge?slot=3&label=0&content=0&unparsed=0.1"  # always abstains
    items = simulated_items(200, 2, seed=1)
    row = us.audit(judge, items, methods="direct,selective", reask=False).metrics["methods"][
        "selective"
    ]
    assert (row["coverage"]["value"], row["unparsed_rate"]["value"]) == (0, 1)


def test_figures_say_that_every_verdict_is_withheld() -> None:
    result = us.audit("tiny/judge", judge_items(30, 5), methods="direct,selective")
    row = result.metrics["methods"]["selective"]
    assert row["coverage"]["value"] == 0
    assert {row[name]["reason"] for name in ("accuracy", "consistency", "tie_rate")} == {
        "the method withheld every verdict"
    }


def test_without_gold_it_is_refused_or_skipped(tmp_path: Path) -> None:
    items = [msgspec.structs.replace(item, gold=None) for item in judge_items(10, 5)]
    why, judge = "it needs items with the field gold, and none has it", "simulated/judge"
    with pytest.raises(UsageError, match=f"selective: {why}"):
        us.audit(judge, items, methods="direct,selective")
    skipped = us.audit(judge, items, methods="all", resamples=100).metrics["skipped"]
    assert skipped["selective"] == why
    with pytest.raises(UsageError, match=why):
        us.calibrate("selective", items, model=judge, out=tmp_path / "s.json")


def test_a_judge_withholds_what_the_file_does_not_decide(tmp_path: Path) -> None:
    us.calibrate("selective", judge_items(300, 7), model="tiny/judge", out=tmp_path / "s.json")
    judge = us.Judge("tiny/judge", method=us.load_method(tmp_path / "s.json"))
    verdicts = list(judge.verdicts(judge_items(60, 8)))
    withheld = [verdict for verdict in verdicts if verdict.abstained]
    assert 0 < len(withheld) < 60
    assert all(verdict.choice is None for verdict in withheld)
    assert judge.null_reasons == {"abstained": len(withheld)}
    assert "abstained" not in json.loads(
        msgspec.json.encode(next(v for v in verdicts if not v.abstained))
    )


@settings(max_examples=20)
@given(st.permutations(range(60)))
def test_order_of_estimation_items_does_not_matter(order: list[int]) -> None:
    table = pairs(np.linspace(4, 1, 60), np.arange(60) < 50)
    own = selected(Selective(), table)
    assert selected(Selective(), table.rows(np.array(order))) == own


def test_one_call_of_a_fixed_item_does_not_decide_for_several() -> None:
    table = pairs(np.linspace(4, 1, 3), np.ones(3, bool))
    fixed = [msgspec.structs.replace(item, permutable=False) for item in table.items]
    own = Selection(2, (0.0, 0.0), 0.1, 0, 30, 30, units=30)
    several, single = (Selective(orders=o, selections=(own,)) for o in ("auto", "identity"))
    alone = replace(table, items=tuple(fixed))
    assert (several.decide_table(alone).choices == ABSTAINED).all()
    assert (single.decide_table(alone.select(single.asks(2))).choices == 0).all()


@recorded
def test_agreement_of_both_orders_bounds_no_errors() -> None:
    """Recorded judges: where both orders agree, Claude 3 Haiku is right less often than over all verdicts,
    and five of eight LLMBar evaluators err in more than a tenth.
    """
    files = sorted(DATA.glob("llmbar/*_*[!t].json.gz")) + sorted(
        DATA.glob("judgebench/outputs*haiku*")
    )
    worse, often = [], []
    for file in files:
        imported = import_files("auto", [file])
        for part in outcomes_from_decisions(imported.items, imported.decisions):
            whole = part.complete & part.decided
            agreed = part.right[whole & part.unanimous].mean()
            worse += [file.name] if agreed < part.right[whole].mean() else []
            often += [file.name] if agreed < 0.9 else []
    assert len(files) == 9
    assert len(worse) == 1
    assert "haiku" in worse[0]
    assert len(often) == 6


def test_the_bound_holds_on_new_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "POOL", 3000)
    assert all(rate.count <= 4 for rate in itertools.islice(selection.rates(16), 3))
