"""Recorded decisions as columns: tables, answered questions and kept lines, against plain loops."""

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np
import pytest

from plain_decisions import read_plainly
from random_decisions import random_file
from unswayed.auditing.answered import AnswerSource, answered_part
from unswayed.auditing.audit import AuditRecord
from unswayed.auditing.design import (
    Stratum,
    asked_rows,
    group_items,
    stratum_questions,
)
from unswayed.auditing.pool import with_answers
from unswayed.auditing.recorded import audit_decisions
from unswayed.auditing.settings import FOLDS, AuditSettings
from unswayed.base.digests import digest
from unswayed.base.errors import ShapeError
from unswayed.data.importers import (
    items_from_decisions,
    line_of,
    read_recording,
    write_decisions,
)
from unswayed.model.decisions import (
    DISAGREES,
    MISSING,
    REASKED,
    Decision,
    DecisionTable,
    code_of,
    record,
)
from unswayed.model.items import Item, ItemSet, question_mark
from unswayed.model.parsing import Ending, ending
from unswayed.model.presentation import X2, Ask, canonical

SEEDS = range(10)


def decisions_of(seed: int, path: Path) -> tuple[Decision, ...]:
    path.write_bytes(random_file(seed, size=60 + 4 * seed, criteria=seed % 5 == 4))
    return read_plainly(path, "skip")[0]


def strata_of(items: Sequence[Item]) -> tuple[Stratum, ...]:
    return group_items(items, lambda n, first: {"coupled": (canonical(n),)}, seed=0)


class PlainTable:
    """The columns of a table as a loop over decisions fills them."""

    def __init__(self, items: Sequence[Item], decisions: Iterable[Decision]) -> None:
        rows = {item.id: row for row, item in enumerate(items)}
        n = items[0].n
        own = [decision for decision in decisions if decision.item_id in rows]
        self.asks = tuple(dict.fromkeys(decision.ask for decision in own))
        shape = len(items), len(self.asks)
        self.label_sets = {decision.label_set for decision in own}
        self.choices = np.full(shape, MISSING)
        self.probs = np.full((*shape, n), np.nan)
        self.mass = np.full(shape, np.nan)
        self.marked = np.zeros((2, *shape), dtype=bool)
        names = dict.fromkeys(name for decision in own for name in decision.ratings)
        self.ratings = {name: np.full((*shape, n), np.nan) for name in names}
        for decision in own:
            cell = rows[decision.item_id], self.asks.index(decision.ask)
            self.choices[cell] = code_of(decision.choice)
            self.probs[cell] = np.nan if decision.probs is None else decision.probs
            self.mass[cell] = np.nan if decision.label_mass is None else decision.label_mass
            self.marked[:, *cell] = decision.reasked, decision.disagrees
            for name, values in self.ratings.items():
                given = decision.ratings.get(name, (None,) * n)
                values[cell] = [np.nan if value is None else value for value in given]


def check_table(table: DecisionTable, plain: PlainTable) -> None:
    assert table.asks == plain.asks
    assert table.label_set in plain.label_sets or not plain.label_sets
    np.testing.assert_array_equal(table.choices, plain.choices)
    assert (table.probs is None) == bool(np.isnan(plain.probs).all())
    assert (table.label_mass is None) == bool(np.isnan(plain.mass).all())
    if table.probs is not None:
        np.testing.assert_array_equal(table.probs, plain.probs)
    if table.label_mass is not None:
        np.testing.assert_array_equal(table.label_mass, plain.mass)
    for mark, marked in zip((REASKED, DISAGREES), plain.marked, strict=True):
        np.testing.assert_array_equal(table.marked(mark), marked)
    assert list(table.ratings) == list(plain.ratings)
    for name, values in plain.ratings.items():
        np.testing.assert_array_equal(table.ratings[name], values)


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_hold_what_a_loop_over_decisions_finds(seed: int, tmp_path: Path) -> None:
    decisions = decisions_of(seed, tmp_path / "d.jsonl")
    recording = read_recording(tmp_path / "d.jsonl", "skip")
    strata = strata_of(items_from_decisions(decisions))
    content = [decision for decision in decisions if decision.substitute is None]
    for stratum in with_answers(strata, recording):
        check_table(stratum.table, PlainTable(stratum.items, content))
    for stratum in strata:
        whole = PlainTable(stratum.items, decisions)
        check_table(DecisionTable.of_recording(stratum.items, recording), whole)
        check_table(DecisionTable.of(stratum.items, decisions), whole)
        asks = tuple(decision.ask for decision in decisions[:3])
        chosen = DecisionTable.of(stratum.items, iter(decisions), asks=asks)
        assert chosen.asks == tuple(dict.fromkeys(asks))
        own = [decision for decision in decisions if decision.ask in asks]
        plain = PlainTable(stratum.items, own)
        for column, ask in enumerate(chosen.asks):
            expected = np.full(len(stratum.items), MISSING)
            if ask in plain.asks:
                expected = plain.choices[:, plain.asks.index(ask)]
            np.testing.assert_array_equal(chosen.choices[:, column], expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_item_answers_the_questions_of_its_decisions(seed: int, tmp_path: Path) -> None:
    decisions = decisions_of(seed, tmp_path / "d.jsonl")
    items = items_from_decisions(decisions)
    silent = msgspec.structs.replace(items[0], id="silent")
    strata = strata_of([*items, silent])
    recording = read_recording(tmp_path / "d.jsonl", "skip")
    for stratum in strata:
        answered = answered_part(recording, stratum)
        for item, code in zip(stratum.items, answered.of_item.tolist(), strict=True):
            own = {decision.ask for decision in decisions if decision.item_id == item.id}
            assert answered.sets[code] == own
        assert len(set(answered.sets)) == len(answered.sets)


def plain_lines(audited: AuditRecord, decisions: Iterable[Decision]) -> list[bytes]:
    """The decisions of the questions that an audit asks, sorted lines as a file has them."""
    answers = {(decision.item_id, decision.ask): decision for decision in decisions}
    asked = {(question.item.id, question.ask) for question in audited.plan.questions()}
    return sorted(line_of(answers[key]) for key in asked if key in answers)


@pytest.mark.parametrize("seed", SEEDS)
def test_lines_kept_and_decisions_given_are_those_of_the_plan(seed: int, tmp_path: Path) -> None:
    raw = decisions_of(seed, tmp_path / "raw.jsonl")
    path = tmp_path / "d.jsonl"
    prompt = ("default", "direct", None)[seed % 3]
    decisions = tuple(
        msgspec.structs.replace(own, prompt_id=prompt or ("a", "a", "b")[place % 3], model="m")
        for place, own in enumerate(raw)
    )
    write_decisions(path, decisions)
    settings = AuditSettings(methods=("direct",), resamples=100)
    listed, filed = (
        audit_decisions(given, None, settings, command="test", model="m")
        for given in (decisions, read_recording(path))
    )
    taken = [own for own in decisions if own.prompt_id in (prompt, "a")]
    as_asked = [msgspec.structs.replace(own, prompt_id="default") for own in taken]
    assert listed.metrics == filed.metrics
    assert listed.run.warnings == filed.run.warnings
    assert listed.metrics.calls.planned == len(taken)
    confounded = any("order of the criteria" in said for said in filed.run.warnings)
    if confounded:
        as_asked = [msgspec.structs.replace(own, criteria_order=None) for own in as_asked]
    calls, unread = filed.metrics.calls, {Ending.REFUSED: set(), Ending.BROKEN: set()}
    for own in as_asked:
        ended = ending(own.finish_reason)
        if own.choice is None and own.substitute is None and ended in unread:
            unread[ended].add((own.item_id, own.ask))
    assert calls.refused == len(unread[Ending.REFUSED])
    assert calls.broken.get("abort", 0) == len(unread[Ending.BROKEN])
    expected = plain_lines(filed, as_asked)
    assert list(chain.from_iterable(filed.answers.lines(filed.plan))) == expected
    assert list(chain.from_iterable(listed.answers.lines(listed.plan))) == expected
    again = [line_of(own) for own in filed.source(filed.plan.questions())]
    assert sorted(again) == expected


@pytest.mark.parametrize("again", [False, True])
def test_items_are_shuffled_and_folded_by_question(again: bool) -> None:
    items = [
        Item(id=f"q{99 - number}", prompt=f"Question {number}", candidates=("yes", "no"))
        for number in range(60)
    ]
    if again:  # two of them once more, with their candidates the other way round
        items += [
            msgspec.structs.replace(items[at], id=f"a{at}", candidates=("no", "yes"))
            for at in (7, 3)
        ]
    (stratum,) = strata_of(items)
    marks = [digest("0", question_mark(item)) for item in items]
    by_mark = sorted(range(len(items)), key=lambda row: (marks[row], items[row].id))
    assert stratum.rank.tolist() == by_mark
    assert stratum.folds.tolist() == [int.from_bytes(mark[:4], "big") % FOLDS for mark in marks]
    together = None if stratum.clusters is None else stratum.clusters.of_item.tolist()
    assert together == ([*range(60), 7, 3] if again else None)


def test_recorded_items_are_found_among_others_in_any_order() -> None:
    items = [Item(id=name, prompt="?", candidates=("x", "y")) for name in "abcd"]
    asked = [
        Decision(item_id=name, order=(0, 1), labels=("A", "B"), label_set=("A", "B"), choice=0)
        for name in "abcd"
    ]
    assert record(asked).places_among([item.id for item in items]).tolist() == [0, 1, 2, 3]
    assert record(asked).places_among([item.id for item in items[::-1]]).tolist() == [3, 2, 1, 0]
    assert record(asked[1:]).places_among([item.id for item in items[:3]]).tolist() == [1, 2, -1]


def test_questions_by_rows_are_the_questions_one_by_one() -> None:
    """Orders by content, rotated criteria, and items that may not be permuted."""
    texts = [("", "") if k == 3 else (f"x{k}", f"y{7 * k}") for k in range(9)]
    items = [
        Item(id=f"q{k}", prompt="p", candidates=own, permutable=k % 4 != 1)
        for k, own in enumerate(texts)
    ]
    (stratum,) = strata_of(items)
    own, swapped = canonical(2), X2
    asks = [Ask(own), Ask(swapped), Ask(own, arranged="content"), Ask(swapped, sample=2)]
    by_rows = {
        (stratum.items[row].id, ask)
        for ask, rows in asked_rows(stratum, asks)
        for row in rows.tolist()
    }
    assert by_rows == {(q.item.id, q.ask) for q in stratum_questions(stratum, asks)}


def test_an_error_names_the_first_decision_of_another_label_set() -> None:
    decisions = [
        Decision(item_id=name, order=(0, 1), labels=labels, label_set=labels)
        for name, labels in (("a", ("A", "B")), ("b", ("A", "B")), ("c", ("X", "Y")))
    ]
    with pytest.raises(ShapeError, match="c: label set"):
        DecisionTable.of(items_from_decisions(decisions), decisions)


def test_the_last_answer_stands_and_the_earlier_is_forgotten() -> None:
    asked = {"item_id": "a", "order": (0, 1), "labels": ("A", "B")}
    early = Decision(**asked, choice=0, probs=(0.9, 0.1), label_mass=0.5)  # type: ignore[arg-type]
    late = Decision(**asked, choice=1, scores=(1.0, None))  # type: ignore[arg-type]
    table = DecisionTable.of(items_from_decisions([early]), [early, late])
    assert table.choices.tolist() == [[1]]
    assert table.probs is not None
    assert np.isnan(table.probs).all()
    assert table.label_mass is not None
    assert np.isnan(table.label_mass).all()
    assert str(table.ratings["score"].tolist()) == "[[[1.0, nan]]]"


def test_a_source_leaves_out_what_was_never_asked() -> None:
    decision = Decision(item_id="a", order=(0, 1), labels=("A", "B"), choice=0)
    items = ItemSet.of(items_from_decisions([decision]), name="d")
    recording = record([decision])
    source = AnswerSource(recording)
    (stratum,) = strata_of(items)
    questions = list(stratum_questions(stratum, [Ask(X2)]))
    assert list(source(questions)) == []
