"""What every registered metric must do, and what one registered from outside gets without an edit."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from unswayed.auditing.comparison import changes, load_answers
from unswayed.cli import main
from unswayed.decisions import MISSING, TIE, UNPARSED
from unswayed.errors import UnknownNameError
from unswayed.metrics import METRICS, Metric, Need, Outcomes, difference, measure
from unswayed.metrics.gold import GOLD_ONE
from unswayed.metrics.simultaneous import contrasts
from unswayed.metrics.table import compared_metrics, load_metrics
from unswayed.presentation import presentations

ALL = load_metrics()
EVERY = pytest.mark.parametrize("name", sorted(ALL))
ORDERS = {2: "swap", 3: "cyclic"}
ROOT = Path(__file__).parents[2]


def sizes(metric: Metric) -> list[int]:
    """Numbers of candidates that a metric is tried with."""
    return [n for n in ORDERS if metric.applies_to(n)]


def judged(
    n: int, seed: int, *, items: int = 40, steady: bool = False, yardstick: bool = False
) -> Outcomes:
    """A random judge: every kind of answer and of item; where `steady`, one verdict per item."""
    draw = np.random.default_rng([seed, n])
    shown = presentations(ORDERS[n], n)
    views = 1 if steady else len(shown)
    logits = draw.normal(size=(items, views, n))
    probs = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    probs = np.broadcast_to(probs, (items, len(shown), n)).copy()
    choices = probs.argmax(axis=2).astype(np.int16)
    kinds = draw.random(choices.shape)
    if steady:
        choices[kinds[:, 0] < 0.1] = TIE
    else:
        for code, limit in ((MISSING, 0.15), (UNPARSED, 0.1), (TIE, 0.05)):
            choices[kinds < limit] = code
        probs[kinds < 0.15] = np.nan
    gold = np.eye(n, dtype=np.bool_)[draw.integers(0, n, items)]
    fixed = draw.random(items) < (0.0 if steady else 0.1)
    choices[fixed, 1:] = MISSING
    return Outcomes(
        item_ids=tuple(str(number) for number in range(items)),
        groups=(None,) * items,
        shown=shown,
        label_set=tuple("ABC"[:n]),
        choices=choices,
        gold=gold,
        gold_kind=np.full(items, GOLD_ONE, dtype=np.int8),
        permutable=~fixed,
        probs=probs,
        label_mass=np.where(choices == MISSING, np.nan, draw.random(choices.shape)),
        yardstick=yardstick,
        human=np.where(draw.random(items) < 0.1, np.nan, draw.integers(1, 6, items)),
        score=np.where(choices >= 0, choices + 1.0, np.nan),
        scores=np.where((choices >= 0)[:, :, None], logits, np.nan),
        places=np.add.outer(np.arange(items), np.arange(len(shown))).astype(np.int16) % 3,
    )


def beside(metric: Metric) -> bool:
    """Whether its outcomes are those beside the yardstick."""
    return Need.YARDSTICK in metric.needs


@EVERY
def test_a_metric_says_what_it_is(name: str) -> None:
    metric = ALL[name]
    assert metric.title
    assert metric.undefined
    assert metric.meaning
    assert not metric.meaning.endswith(".")
    assert [other for other in ALL if ALL[other].title == metric.title] == [name]


@EVERY
def test_statistics_have_a_row_per_item_and_nothing_of_those_left_out(name: str) -> None:
    metric = ALL[name]
    for n in sizes(metric):
        outcomes = judged(n, 1)
        statistics = metric.statistics(outcomes)
        assert statistics.shape == (40, statistics.shape[1])
        assert statistics.dtype == np.float64
        assert np.isfinite(statistics).all()
        assert not statistics[statistics[:, 0] == 0].any()
        assert (statistics[:, 0] > 0).any()


@EVERY
def test_sums_over_two_sets_of_items_are_those_of_both_together(name: str) -> None:
    metric = ALL[name]
    for n in sizes(metric):
        outcomes = judged(n, 2)
        whole = metric.statistics(outcomes)
        parts = [
            metric.statistics(outcomes.rows(rows)) for rows in np.split(np.arange(40), [11, 12, 30])
        ]
        np.testing.assert_allclose(np.vstack(parts), whole, atol=1e-12)
        sums = np.vstack([part.sum(axis=0) for part in (*parts, whole)])
        each = [metric.values(row[None, :]) for row in sums]
        np.testing.assert_allclose(metric.values(sums), np.concatenate(each), atol=1e-12)


@EVERY
def test_what_a_metric_reads_of_continuous_quantities_is_among_its_needs(name: str) -> None:
    metric = ALL[name]
    for n in sizes(metric):
        outcomes = judged(n, 3)
        changes_with = not np.array_equal(
            metric.statistics(outcomes), metric.statistics(outcomes.categorical())
        )
        assert changes_with == metric.continuous


@EVERY
def test_an_undefined_value_has_a_reason_or_is_left_out(name: str) -> None:
    metric = ALL[name]
    for n in sizes(metric):
        outcomes = judged(n, 4, yardstick=beside(metric))
        nothing = replace(
            outcomes,
            choices=np.full_like(outcomes.choices, MISSING),
            probs=None,
            label_mass=None,
            yardstick=False,
            human=None,
            score=None,
            scores=None,
        )
        row = measure([nothing], names=[name], resamples=5)
        if metric.optional:
            assert name not in row.values
            continue
        for estimate in row.values[name]:
            assert (estimate.value, estimate.low) == (None, None)
            assert estimate.reason


@EVERY
def test_a_metric_is_measured_where_it_applies(name: str) -> None:
    metric = ALL[name]
    for n in ORDERS:
        outcomes = judged(n, 5, yardstick=beside(metric))
        row = measure([outcomes], names=[name], resamples=50)
        assert (name in row.values) == metric.applies_to(n)
        for estimate in row.values.get(name, ()):
            assert estimate.value is not None
            if metric.limits is not None:
                low, high = metric.limits(n)
                assert low <= estimate.value <= high
    both = [judged(n, 5, yardstick=beside(metric)) for n in sizes(metric)]
    if len(both) > 1:
        assert (name in measure(both, names=[name], resamples=5).values) == metric.across


def everywhere(metric: Metric, name: str, n: int) -> set[tuple[float | None, ...]]:
    """The values of a metric for judges whose verdicts do not depend on the presentation."""
    rows = [
        measure(
            [judged(n, seed, steady=True, yardstick=beside(metric))], names=[name], resamples=0
        ).values[name]
        for seed in range(6)
    ]
    return {tuple(None if x.value is None else round(x.value, 9) for x in row) for row in rows}


@EVERY
def test_what_holds_by_construction_holds_for_every_judge_and_the_rest_does_not(name: str) -> None:
    metric = ALL[name]
    for n in sizes(metric):
        if name == "unparsed_rate":
            continue  # steady judges say something every time
        assert (len(everywhere(metric, name, n)) == 1) == bool(metric.constructed)


@EVERY
def test_by_construction_the_value_is_its_own_interval(name: str) -> None:
    metric = ALL[name]
    for n in sizes(metric):
        outcomes = judged(n, 1, steady=True, yardstick=beside(metric))
        row = measure([outcomes], names=[name], resamples=20, constructed=True)
        for estimate in row.values[name]:
            assert estimate.by_construction == bool(metric.constructed)
            if metric.constructed:
                assert estimate.low == estimate.value == estimate.high


@pytest.mark.parametrize("name", sorted(compared_metrics()))
def test_a_difference_is_the_difference_of_the_values(name: str) -> None:
    metric = ALL[name]
    for n in sizes(metric):
        # the same items count on both sides
        a, b = (
            replace(
                judged(n, seed, yardstick=beside(metric)),
                choices=np.random.default_rng(seed).integers(0, n, (40, n)).astype(np.int16),
                human=np.arange(40) % 5.0,
                score=np.random.default_rng(seed).integers(1, 6, (40, n)).astype(float),
                scores=np.random.default_rng(seed).normal(size=(40, n, n)),
                gold=np.eye(n, dtype=np.bool_)[np.arange(40) % n],
                permutable=np.ones(40, dtype=np.bool_),
            )
            for seed in (6, 7)
        )
        values = [measure([side], names=[name], resamples=0)[name].value for side in (a, b)]
        paired = difference([a], [b], name, resamples=200)
        assert values[0] is not None
        assert values[1] is not None
        assert paired.value == pytest.approx(values[0] - values[1], abs=1e-12)
        assert paired.low is not None
        assert paired.high is not None
        assert paired.low <= paired.value <= paired.high
        if metric.compared == "jointly":
            together = contrasts({"a": [a], "b": [b]}, name).against("b")["a"]
            assert together.value == pytest.approx(paired.value, abs=1e-12)
            assert together.low == pytest.approx(paired.low, abs=1e-3)


# a metric of somebody else's package: one file and one line

FILE = '''
"""Whether the first two presentations give one verdict, and how sure the verdicts are."""

import numpy as np

from unswayed.decisions import UNPARSED
from unswayed.metrics import Metric, Need, Outcomes, fraction, item_means


def _same(outcomes: Outcomes):
    first, second = outcomes.choices[:, 0], outcomes.choices[:, min(1, outcomes.n_views - 1)]
    return item_means((first == second) & (first != UNPARSED), outcomes.complete)


FIRST_TWO = Metric(
    title="First two alike",
    meaning="share of items with one verdict in the first two presentations",
    statistics=_same,
    undefined="no complete item",
    needs=(Need.ORDERS, Need.PERMUTABLE, Need.COMPLETE),
    better=1,
    percent=True,
    compared="jointly",
    constructed=True,
    curve=True,
    limits=fraction,
    across=True,
)


def _surest(outcomes: Outcomes):
    return item_means(np.nanmax(outcomes.probs, axis=2).mean(axis=1), outcomes.complete)


SUREST = Metric(
    title="Surest",
    meaning="mean of the largest label probability",
    statistics=_surest,
    undefined="no complete item",
    needs=(Need.PROBS,),
    compared="paired",
    across=True,
)
'''
LINE = "[unswayed.metrics]\nfirst_two = outside_metric:FIRST_TWO\nsurest = outside_metric:SUREST\n"


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of somebody else that registers a metric."""
    package = tmp_path / "site"
    information = package / "outside-1.0.dist-info"
    information.mkdir(parents=True)
    (package / "outside_metric.py").write_text(FILE, encoding="utf-8")
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(LINE)
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.chdir(tmp_path)
    vars(METRICS).pop("_all", None)  # entry points are read once
    try:
        yield tmp_path
    finally:
        vars(METRICS).pop("_all", None)
        sys.modules.pop("outside_metric", None)


def items(path: Path, counts: Sequence[int]) -> Path:
    """Items in two groups, with 2, 3, … candidates."""
    rows = [
        {
            "id": f"{n}-{number}",
            "task": "mcq",
            "prompt": f"question {number}",
            "candidates": [f"text {candidate} of {number}" for candidate in range(n)],
            "gold": number % n,
            "group": "odd" if number % 2 else "even",
        }
        for n, count in enumerate(counts, start=2)
        for number in range(count)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_metric_from_outside_is_listed_and_documented(
    outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", "metrics"]) == 0
    assert "first_two" in capsys.readouterr().out
    row = next(line for line in generator().metric_table().splitlines() if "first_two" in line)
    assert "First two alike | share of items with one verdict" in row
    assert "jointly | says nothing" in row


def test_a_metric_from_outside_is_everywhere_in_an_audit(outside: Path) -> None:
    data = items(outside / "items.jsonl", (40, 30))
    asked = ("--methods", "direct,vote,pride", "--estimation-sizes", "10", "--resamples", "100")
    model = ("--model", "simulated/judge?slot=0.6")
    assert main(["audit", str(data), *model, *asked, "--out", "run", "--protocol", "all"]) == 0
    metrics = json.loads((outside / "run" / "metrics.json").read_text(encoding="utf-8"))
    direct, vote = metrics["methods"]["direct"], metrics["methods"]["vote"]
    assert 0 < direct["first_two"]["low"] < direct["first_two"]["high"] < 1
    assert {row["first_two"]["n"] for row in direct["strata"].values()} == {40, 30}
    # the vote reads the same questions under every presentation
    assert "by_construction" not in direct["first_two"]
    assert vote["first_two"] == {
        "value": 1.0, "low": 1.0, "high": 1.0, "n": 70, "by_construction": True,
    }  # fmt: skip
    assert metrics["differences"]["vote-direct"]["first_two"]["by_construction"] is True
    pride = metrics["differences"]["pride-direct"]["first_two"]
    assert pride["joint"][0] <= pride["low"] <= pride["value"] <= pride["high"] <= pride["joint"][1]
    assert all("first_two" in row for row in metrics["protocols"].values())
    assert all("first_two" in row["direct"] for row in metrics["groups"].values())
    assert metrics["macro"]["direct"]["first_two"]["groups"] == 2
    assert "first_two" in metrics["estimation_curve"]["pride"][0]


def test_difference_without_probabilities_on_one_side_is_none(
    outside: Path,
) -> None:
    """A vote has verdicts and no probabilities: the value is null there, and so is the difference."""
    data = items(outside / "items.jsonl", (20, 20))
    asked = ("--methods", "direct,vote,average", "--resamples", "100")
    assert main(["audit", str(data), "--model", "simulated/judge", *asked, "--out", "run"]) == 0
    metrics = json.loads((outside / "run" / "metrics.json").read_text(encoding="utf-8"))
    lacking = {"value": None, "reason": "no label probabilities"}
    vote, average = metrics["methods"]["vote"], metrics["methods"]["average"]
    assert lacking.items() <= vote["surest"].items()
    assert average["surest"]["value"] is not None
    differences = metrics["differences"]
    assert lacking.items() <= differences["vote-direct"]["surest"].items()
    assert differences["average-direct"]["surest"]["low"] is not None
    assert differences["vote-direct"]["accuracy"]["value"] is not None


def test_a_metric_from_outside_is_compared_between_runs(outside: Path) -> None:
    data = items(outside / "items.jsonl", (30,))
    asked = ("--methods", "direct", "--resamples", "100")
    for seed in ("1", "2"):
        model = f"simulated/judge?slot=0.6&seed={seed}"
        assert main(["audit", str(data), "--model", model, *asked, "--out", seed]) == 0
    compared = changes(load_answers(outside / "1"), load_answers(outside / "2"))
    everywhere_defined = {name for name, own in compared_metrics().items() if not own.optional}
    assert set(compared) == {*everywhere_defined, "first_two"} - {"accuracy"}  # ties are shared
    assert compared["first_two"].n == 30


def test_a_metric_knows_the_name_it_is_registered_under() -> None:
    assert [METRICS.name_of(METRICS.load(name)) for name in METRICS] == list(METRICS)
    with pytest.raises(UnknownNameError, match="no metric is"):
        METRICS.name_of(replace(METRICS.load("accuracy"), title="a copy"))
