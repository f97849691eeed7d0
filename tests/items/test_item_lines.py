"""Sets too large for objects lie in a file as lines, and are the same items in every way."""

import copy
import io
import os
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from unswayed import files
from unswayed.auditing.design import group_items, strata_of
from unswayed.decisions import Subjects
from unswayed.errors import ItemError, UsageError
from unswayed.items import (
    Gathered,
    Item,
    ItemSet,
    Message,
    Task,
    blind,
    blinded,
    by_kind,
    encode_item,
    expanded,
    ids_of,
    lines,
    load_items,
    of_kinds,
    picked,
)
from unswayed.items.lines import ItemLines
from unswayed.metrics.outcomes import with_gold
from unswayed.sources import load_data

GOLDS = (0, 1, "tie", None, (0, 1), 2)


def written(path: Path, items: list[Item]) -> Path:
    path.write_bytes(b"".join(encode_item(item) + b"\n" for item in items))
    return path


def questions(count: int) -> list[Item]:
    return [
        Item(
            id=f"q{k}",
            task=Task.MCQ,
            prompt=f"Which is {k}?" if k % 5 else (Message("user", f"Which, {k}?\n\u2028"),),
            candidates=tuple(f"it is {k}.{c} ä\u0000" for c in range(3 + k % 2)),
            gold=GOLDS[k % 6],
            group=None if k % 7 == 0 else f"group {k % 3}",
            reference="a reference" if k % 4 == 0 else None,
            meta={"source": [k, {"deep": 1.0, "big": 2**60}]} if k % 2 else {},
            permutable=k % 11 != 0,
        )
        for k in range(count)
    ]


def graded(count: int) -> list[Item]:
    return [
        Item(
            id=f"r{k}",
            task=Task.RUBRIC,
            prompt=f"Tell {k}.",
            response=f"Told {k}.",
            candidates=("bad", "fair", "good"),
            values=(1.0, 2.0, 3.5),
            criteria=("style", "truth"),
            gold={"style": 1.0 + k % 2, "truth": 2.25},
        )
        for k in range(count)
    ]


@pytest.fixture(params=[0, 2_000])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets become lines at once, or after some items."""
    monkeypatch.setattr(lines, "LARGE", request.param)


def both(path: Path, items: list[Item], patch: pytest.MonkeyPatch) -> tuple[ItemSet, ItemSet]:
    """The same set as objects and as lines."""
    file = written(path / "items.jsonl", items)
    filed = load_items(file)
    with patch.context() as large:
        large.setattr(lines, "LARGE", 1 << 40)
        plain = load_items(file)
    assert isinstance(plain.items, tuple)
    assert isinstance(filed.items, ItemLines)
    return plain, filed


@pytest.mark.usefixtures("small")
def test_they_are_the_same_sequence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, filed = both(tmp_path, questions(600), monkeypatch)
    assert filed == plain
    assert list(filed) == list(plain) == questions(600)
    assert filed.fingerprint == plain.fingerprint
    assert (len(filed), filed.task, filed.name) == (600, Task.MCQ, "items")
    assert filed[7] == plain[7]
    assert filed[-1] == plain[-1]
    assert filed[3:300:7] == plain[3:300:7]
    assert filed[250:260] == plain[250:260]
    assert plain[5] in filed
    assert filed.index(plain[400]) == 400
    assert list(reversed(filed)) == list(reversed(plain))
    with pytest.raises(IndexError):
        filed[600]


@pytest.mark.usefixtures("small")
def test_they_are_copied_and_pickled_as_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, filed = both(tmp_path, questions(40), monkeypatch)
    assert pickle.loads(pickle.dumps(filed)) == plain
    assert copy.deepcopy(filed) == plain
    assert filed.items != questions(39)


@pytest.mark.usefixtures("small")
def test_what_is_no_text_is_the_same_of_every_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, filed = both(tmp_path, questions(300), monkeypatch)
    places = [5, 3, 299, 41, 43]  # all of four candidates
    for theirs, own in (
        (plain.items, filed.items),
        (blinded(plain.items), blinded(filed.items)),
        (picked(plain.items, places), picked(filed.items, places)),
        (picked(blinded(plain.items), places), blinded(picked(filed.items, places))),
    ):
        assert own == theirs
        assert ids_of(own) == ids_of(theirs)
        for read in (
            Item.gold_candidates,
            Item.human_score,
            lambda item: (item.n, item.group, item.permutable, item.task, item.gold),
        ):
            assert of_kinds(own, read) == of_kinds(theirs, read) == list(map(read, theirs))
        assert {item.n for item in theirs} == {item.n for item in by_kind(own)}
        assert {item.gold for item in theirs} == {item.gold for item in by_kind(own)}
    assert [item.gold for item in blinded(filed.items)] == [None] * 300
    assert list(blinded(filed.items)) == list(map(blind, plain))


@pytest.mark.usefixtures("small")
def test_strata_and_what_is_counted_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, filed = both(tmp_path, [*questions(200)], monkeypatch)
    theirs = strata_of(plain.items, orders="cyclic", protocols=("coupled",), seed=1)
    own = strata_of(filed.items, orders="cyclic", protocols=("coupled",), seed=1)
    assert [stratum.n for stratum in own] == [3, 4]
    for mine, other in zip(own, theirs, strict=True):
        assert mine.items == other.items
        assert list(mine.subjects) == list(other.subjects)
        assert mine.rank.tolist() == other.rank.tolist()
        assert mine.folds.tolist() == other.folds.tolist()
        assert mine.permutable.tolist() == other.permutable.tolist()
        assert mine.unanswered.item_ids == other.unanswered.item_ids
        assert mine.unanswered.groups == other.unanswered.groups
        assert mine.unanswered.gold.tolist() == other.unanswered.gold.tolist()
        assert mine.unanswered.gold_kind.tolist() == other.unanswered.gold_kind.tolist()
        rows = mine.rank[::3]
        some, others = mine.subjects.rows(rows), other.subjects.rows(rows)
        assert list(some) == list(others)
        assert some.permutable.tolist() == others.permutable.tolist()


@pytest.mark.usefixtures("small")
def test_criteria_are_taken_apart_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, filed = (expanded(own) for own in both(tmp_path, graded(30), monkeypatch))
    assert isinstance(filed.items, ItemLines)
    assert filed == plain
    assert of_kinds(filed.items, Item.human_score) == [item.human_score() for item in plain]
    shown = group_items(filed.items, lambda n, first: {"coupled": ()}, seed=0)
    others = group_items(plain.items, lambda n, first: {"coupled": ()}, seed=0)
    for mine, other in zip(shown, others, strict=True):
        one, two = (
            with_gold(
                own.items,
                shown=(),
                label_set=("1", "2", "3"),
                choices=mine.folds[:, None][:, :0],
                clusters=own.clusters,
            )
            for own in (mine, other)
        )
        assert one.human is not None
        assert two.human is not None
        assert one.human.tolist() == two.human.tolist()
        assert one.clusters is not None
        assert two.clusters is not None
        assert one.clusters.of_item.tolist() == two.clusters.of_item.tolist()
        assert Subjects.blind(mine.items).values is not None


def test_a_part_of_a_set_is_chosen_without_reading_its_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LARGE", 0)
    plain, filed = both(tmp_path, questions(300), monkeypatch)
    read: list[int] = []
    decoded = ItemLines._decoded

    def noted(self: ItemLines, rows: Sequence[int]) -> Iterator[Item]:
        read.extend(rows)
        return decoded(self, rows)

    with monkeypatch.context() as patch:
        patch.setattr(ItemLines, "_decoded", noted)
        assert load_data(filed, task="mcq") is filed
        assert load_data(filed, limit=300) is filed
        part = load_data(filed, sample=9, seed=4)
        assert len(set(read) - {0}) <= 9
    assert part == load_data(plain, sample=9, seed=4)
    assert isinstance(part.items, ItemLines)
    assert list(load_data(filed, sample=9, seed=4, limit=5)) == list(part[:5])
    assert list(load_data(filed, limit=7)) == list(plain[:7])


def test_only_what_came_as_json_becomes_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LARGE", 0)
    item = questions(1)[0]
    assert isinstance(ItemSet.of([item], name="x").items, tuple)
    assert isinstance(ItemSet.of(Gathered([item], are_json=True), name="x").items, ItemLines)


@pytest.mark.parametrize("first", [0, 7])  # at once, or once some are lines
def test_items_whose_gold_is_read_from_meta_stay_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    items = [
        Item(
            id=f"q{k}",
            task=Task.MCQ,
            prompt="Which?",
            candidates=("one", "two"),
            group=f"group {k}",
            meta={"right": (0 if k < first else 1)},
        )
        for k in range(30)
    ]
    path = written(tmp_path / "items.jsonl", items)
    monkeypatch.setattr(lines, "LARGE", 1)
    assert isinstance(load_items(path).items, ItemLines)
    monkeypatch.setattr(Item, "gold_candidates", lambda item: (item.meta.get("right", 0),))
    kept = load_items(path)
    assert kept.items == tuple(items)
    assert of_kinds(kept.items, Item.gold_candidates) == [(int(k >= first),) for k in range(30)]
    monkeypatch.setattr(Item, "gold_candidates", lambda item: (item.meta["right"],))
    assert load_items(path).items == tuple(items)


def test_errors_of_loading_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = questions(20)
    rows = [encode_item(item) for item in items]
    rows[4] = b'{"id": "", "prompt": "p", "candidates": ["a", "b"], "task": "mcq"}'
    rows[9] = rows[8]
    rows.append(b"{")
    file = tmp_path / "bad.jsonl"
    file.write_bytes(b"\n".join(rows))
    said, kept = [], []
    for limit in (1 << 40, 0):
        monkeypatch.setattr(lines, "LARGE", limit)
        with pytest.raises(ItemError) as stopped:
            load_items(file)
        said.append(str(stopped.value))
        kept.append(load_items(file, on_bad_item="skip"))
    assert said[0] == said[1]
    assert "id: is empty" in said[0]
    assert "was used on line 9 already" in said[0]
    assert kept[0] == kept[1]
    assert len(kept[1].bad_lines) == 3


def test_the_file_that_was_read_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LARGE", 0)
    file = written(tmp_path / "items.jsonl", questions(50))
    filed = load_items(file)
    file.write_bytes(b"something else")
    assert list(filed) == questions(50)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_processes_that_are_forked_read_the_same_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LARGE", 0)
    items = questions(600)
    filed = load_items(written(tmp_path / "items.jsonl", items))
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            try:
                os._exit(int(any(list(filed) != items for _ in range(10))))
            except BaseException:
                os._exit(2)
        children.append(child)
    read = [list(filed) == items for _ in range(10)]
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert (read, ends) == ([True] * 10, [0, 0])
    assert list(filed) == items


def test_an_index_may_be_any_whole_number() -> None:
    filed = ItemSet.of(questions(3), name="x")
    assert filed[np.int64(1)] == filed[1]  # type: ignore[call-overload]


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(lines, "LARGE", 0)
    monkeypatch.setattr(files.tempfile, "TemporaryFile", Full)
    with pytest.raises(UsageError, match=r"temporary file: No space left on device. Set TMPDIR"):
        load_items(written(tmp_path / "items.jsonl", questions(3)))
