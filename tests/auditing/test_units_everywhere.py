"""Questions that stand on several items count once, wherever something is drawn or fitted."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pytest

import unswayed as us
from claim_rates.answers import estimation_answers
from claim_rates.duplicates import change_said, copied, drift_alarm
from unswayed.auditing.audit import AuditRecord
from unswayed.auditing.comparison import changes, load_answers
from unswayed.auditing.recorded import audit_decisions
from unswayed.auditing.rows import as_json
from unswayed.auditing.settings import AuditSettings
from unswayed.backends.simulated import simulated_items
from unswayed.base.errors import ItemError, MethodError
from unswayed.calls.shadow import Shadow
from unswayed.data.importers import items_from_decisions, read_recording, write_decisions
from unswayed.methods.drift import drift
from unswayed.methods.names import parse_method
from unswayed.model.decisions import Clusters, Decision, Estimate
from unswayed.model.items import Item, ItemSet, units_of
from unswayed.report.collect import load_runs
from unswayed.report.page import render_report
from unswayed.training.groups import build_groups
from unswayed.training.recipe_parts import DataTable, PromptTable
from unswayed.training.targets import questions

LONG = "Which of these two answers is the better one, and why is it so?"


def decisions(count: int, *, seed: int = 0) -> list[Decision]:
    """Both orders of some items by a judge that prefers the first place."""
    rng = np.random.default_rng(seed)
    return [
        Decision(item_id=f"i{at}", order=order, labels=("A", "B"), choice=order[rng.random() > 0.7])
        for at in range(count)
        for order in ((0, 1), (1, 0))
    ]


def audited(prompt: str, texts: tuple[str, str], units: int = 0, count: int = 300) -> AuditRecord:
    named = [f"u{at % units}" if units else None for at in range(count)]
    items = [
        Item(id=f"i{at}", prompt=prompt, candidates=texts, gold=at % 2, unit=unit)
        for at, unit in enumerate(named)
    ]
    settings = AuditSettings(methods=("direct",), resamples=200)
    return audit_decisions(decisions(count), ItemSet.of(items, name="set"), settings, command="")


def accuracy(record: AuditRecord) -> Estimate:
    own = record.metrics.methods["direct"].get("accuracy")
    assert own is not None
    return own


def test_placeholders_give_the_intervals_of_empty_texts() -> None:
    empty, short = audited("", ("", "")), audited("(recorded)", ("x", "y"))
    assert accuracy(short).low is not None
    assert accuracy(short) == accuracy(empty)
    assert as_json(short.metrics) == as_json(empty.metrics)
    assert short.metrics.data.n_units == 300
    (said,) = [text for text in short.run.warnings if "placeholder" in text]
    assert said.startswith('300 items have the same text "(recorded) x y"')
    assert not any("placeholder" in text for text in empty.run.warnings)


def test_a_long_text_on_every_item_is_one_question() -> None:
    record = audited(LONG, ("x", "y"))
    assert record.metrics.data.n_units == 1
    assert set(record.plan.strata[0].folds.tolist()) == {record.plan.strata[0].folds[0]}


def test_a_given_unit_counts_in_audits_and_folds() -> None:
    record = audited("", ("", ""), units=75)
    assert record.metrics.data.n_units == 75
    plain, own = accuracy(audited("", ("", ""))), accuracy(record)
    assert own.value == plain.value
    assert (own.low, own.high) != (plain.low, plain.high)
    folds = set(zip(record.plan.items.units, record.plan.strata[0].folds.tolist(), strict=True))
    assert len(folds) == 75


def runs(tmp_path: Path, order: int = 1, name: str = "run") -> list[Path]:
    """Two runs of one judge on 60 questions, four items each."""
    items = [
        msgspec.structs.replace(item, id=f"{item.id}.{copy}")
        for item in simulated_items(60, 2, seed=3)
        for copy in range(4)
    ]
    paths = []
    for seed in (1, 2):
        paths.append(tmp_path / f"{name}{seed}")
        judge, data = (
            f"simulated/judge?slot=0.6&seed={seed}",
            ItemSet.of(items[::order], name="set"),
        )
        us.audit(judge, data, methods="direct", resamples=100, out=paths[-1])
    return paths


def test_runs_are_compared_by_question_and_old_ones_say_so(tmp_path: Path) -> None:
    paths = runs(tmp_path)
    before, after = map(load_answers, paths)
    assert len(set(before[0].units)) == 60
    gains = changes(before, after)
    assert gains["accuracy_fractional"].n_units == 60
    old = [
        tuple(msgspec.structs.replace(part, units=()) for part in run) for run in (before, after)
    ]
    assert changes(*old)["accuracy_fractional"].n_units == 240
    assert changes(old[0], after) == changes(before, old[1]) == gains
    wide, narrow = (
        own["accuracy_fractional"].high - own["accuracy_fractional"].low
        for own in (gains, changes(*old))
    )
    assert wide > narrow
    for path in paths:
        (path / "SHA256SUMS").unlink()
        answers = msgspec.json.decode((path / "answers.json").read_bytes(), type=list[dict])
        for one in answers:
            del one["units"]
        (path / "answers.json").write_bytes(msgspec.json.encode(answers))
    assert any("did not count distinct questions" in text for text in load_runs(paths)[1].caveats)


def test_the_order_of_items_changes_no_comparison(tmp_path: Path) -> None:
    upright, turned = (
        [load_answers(path) for path in runs(tmp_path, order, name)]
        for order, name in ((1, "a"), (-1, "b"))
    )
    assert changes(*upright) == changes(*turned)


def test_clusters_are_drawn_whole_and_single_items_as_before() -> None:
    clusters = Clusters.among(["a", "b", "a", "c", "b"])
    drawn = clusters.drawn(np.random.default_rng(4)).tolist()
    assert drawn.count(0) == drawn.count(2)
    assert drawn.count(1) == drawn.count(4)
    single = Clusters.among(range(9)).drawn(np.random.default_rng(4))
    assert single.tolist() == np.random.default_rng(4).integers(0, 9, 9).tolist()


@pytest.mark.parametrize(
    "spec", ["pride", "pride:mean=geometric", "cell-median", "additive", "calibraeval:resamples=50"]
)
@pytest.mark.filterwarnings("ignore")
def test_copies_leave_what_is_learned_as_wide(spec: str) -> None:
    method = parse_method(spec)
    once = estimation_answers(method, 70, seed=5)
    plain, four = method.fit_tables(once).estimates(), method.fit_tables(copied(once)).estimates()
    for name, own in plain.items():
        assert four[name].value == pytest.approx(own.value, abs=1e-6)
        assert (four[name].n, four[name].n_units) == (280, 70)
        assert (own.n, own.n_units) == (70, 70)
        width = four[name].high - four[name].low
        assert width == pytest.approx(own.high - own.low, rel=0.25)


@pytest.mark.filterwarnings("ignore")
def test_an_old_file_gives_no_verdict_on_copies() -> None:
    method = parse_method("pride")
    fitted = method.fit_tables(estimation_answers(method, 80, seed=1))
    old = replace(fitted, priors=tuple(replace(prior, units=None) for prior in fitted.priors))
    today = estimation_answers(method, 30, seed=2)
    assert drift(old, today)
    with pytest.raises(MethodError, match="fitted without counting questions"):
        drift(old, copied(today))
    assert drift(fitted, copied(today))


@pytest.mark.parametrize("spec", ["pride", "cell-median"])
def test_copies_raise_few_drift_alarms(spec: str) -> None:
    assert sum(drift_alarm(spec, 50, 30, trial) for trial in range(6)) <= 1


def test_copies_raise_few_alarms_between_runs() -> None:
    assert sum(change_said(50, trial) for trial in range(4)) <= 1


def four_each(questions: int) -> list[Item]:
    return [
        Item(id=f"{at}.{copy}", prompt=f"{at}: {LONG}", candidates=("x", "y"), gold=0)
        for at in range(questions)
        for copy in range(4)
    ]


def test_a_shadow_asks_all_items_of_a_question() -> None:
    method = parse_method("pride")
    shadow = Shadow(method, 0.5)
    items = four_each(40)
    drawn = [item for item in items if shadow.draws(item)]
    assert 0 < len(drawn) < len(items)
    assert len(drawn) == 4 * len(set(units_of(drawn)[0]))
    shadow.add(drawn[:40], [])
    assert shadow.report()[0].startswith("drift not checked: 10 questions asked again")


def test_held_out_items_leave_no_copy_in_training() -> None:
    items = four_each(50)
    groups = build_groups(items, DataTable(held_out=20), PromptTable())
    apart, trained = ({item.prompt for item in part} for part in (groups.held_out, groups.items))
    assert len(groups.held_out) == 20
    assert not apart & trained
    assert len(questions(items)) == 50


def test_items_made_from_decisions_take_their_unit() -> None:
    own = [msgspec.structs.replace(one, unit=f"u{one.item_id[1:-1]}") for one in decisions(40)]
    items = items_from_decisions(own)
    assert [item.unit for item in items] == [f"u{item.id[1:-1]}" for item in items]


@pytest.mark.parametrize("whole", [True, False])
def test_decisions_with_two_units_of_one_item_are_refused(whole: bool, tmp_path: Path) -> None:
    own = [msgspec.structs.replace(one, unit=f"u{at}") for at, one in enumerate(decisions(2))]
    path = tmp_path / "made.jsonl"
    write_decisions(path, own)
    with pytest.raises(ItemError, match="i0: unit is 'u1', but 'u0' in an earlier decision"):
        items_from_decisions(own if whole else read_recording(path))


def test_runs_that_count_questions_differently_say_so(tmp_path: Path) -> None:
    items = simulated_items(40, 2, seed=3)
    paths = [tmp_path / name for name in ("plain", "named", "paired", "other")]
    for path, units, skip in zip(paths, (None, 40, 20, 40), (0, 0, 0, 40), strict=True):
        data = [
            msgspec.structs.replace(item, id=f"{at + skip}", unit=units and f"u{at % units}")
            for at, item in enumerate(items)
        ]
        data = ItemSet.of(data, name="set")
        us.audit("simulated/judge", data, methods="direct", resamples=100, out=path)
    told = "The runs group items into questions differently; the first run decides."
    caveats = [load_runs([paths[0], path])[1].caveats for path in paths[1:]]
    assert [told in own for own in caveats] == [False, True, False]


@pytest.mark.parametrize(("other", "told"), [("class", True), ("exclude", False)])
def test_runs_that_count_gold_ties_differently_say_so(
    other: Literal["class", "exclude"], tmp_path: Path, *, told: bool
) -> None:
    items = ItemSet.of(simulated_items(20, 2), name="set")
    for name, ties in (("one", "exclude"), ("two", other)):
        us.audit("simulated/judge", items, resamples=100, out=tmp_path / name, gold_ties=ties)
    caveats = load_runs([tmp_path / "one", tmp_path / "two"])[1].caveats
    assert any("count ties in the gold differently" in text for text in caveats) == told


def test_runs_without_a_common_item_say_so(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one", "other")]
    for path, first in zip(paths, (0, 30), strict=True):
        data = ItemSet.of(simulated_items(60, 2)[first : first + 30], name="set")
        us.audit("simulated/judge", data, methods="direct", resamples=100, out=path)
    page = render_report(load_runs(paths))
    assert "the runs share no item that was asked in the same presentations" in page
    assert "no item in common" not in render_report(load_runs([paths[0], paths[0]]))
