"""Logs of Inspect: what a sample is read as, both file forms, and archives that are refused."""

import json
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from foreign_files import (
    EVAL,
    OWN,
    choices,
    counted,
    inspect_json,
    inspect_sample,
    inspect_zip,
    whole,
)

from unswayed.base.errors import ItemError, UsageError
from unswayed.data.importers import eval_archive, import_files

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def scored(answer: str, **fields: object) -> dict[str, Any]:
    return inspect_sample(scores={"choice": {"value": "C", "answer": answer}}, **fields)


def test_an_ordinary_run_keeps_its_order_and_epochs_are_samples(tmp_path: Path) -> None:
    samples = [
        scored("B"),
        {**scored("C"), "epoch": 2},
        inspect_sample(2, scores={"choice": {"answer": "A, B"}}, target=["C"]),
        inspect_sample(3, error={"message": "timeout"}),
        inspect_sample(4, choices=None),
        inspect_sample(5, scores=None),
        inspect_sample(6, scores={"match": {"answer": "tin"}}, target="tin"),
    ]
    zipped = import_files("auto", [inspect_zip(tmp_path / "log.eval", *samples)])
    written = import_files("auto", [inspect_json(tmp_path / "log.json", *samples)])
    assert (zipped.items, zipped.decisions) == (written.items, written.decisions)
    assert [(d.item_id, d.order, d.sample, d.choice) for d in zipped.decisions] == [
        ("metals/1", (0, 1, 2), 0, 1),
        ("metals/1", (0, 1, 2), 1, 2),
        ("metals/2", (0, 1, 2), 0, None),
        ("metals/6", (0, 1, 2), 0, None),
    ]
    assert [item.gold for item in zipped.items] == [0, 2, 0]  # the last by its text
    assert zipped.decisions[0].model == "mockllm/model"
    assert counted(zipped, "left out: a sample ") == {
        "that failed (error)": 1,
        "without choices: no multiple choice": 1,
        "that was not scored": 1,
    }


def test_several_right_letters_are_list_of_gold(tmp_path: Path) -> None:
    mark = {"item": "q", "order": [2, 0, 1], "gold": [0, 1]}
    samples = [
        scored("B"),
        inspect_sample(2, scores={"choice": {"answer": "A, C"}}, target=["A", "C"]),
        inspect_sample(3, scores={"choice": {"answer": "A"}}, target="AC"),  # the same to Inspect
        inspect_sample(4, metadata={"unswayed": mark}),
        inspect_sample(5, target=["A", "A"]),
        inspect_sample(6, target="DEAD"),  # a text: there is no D
    ]
    made = import_files("auto", [inspect_zip(tmp_path / "log.eval", *samples)])
    assert [(item.id, item.gold) for item in made.items] == [
        ("metals/1", 0),
        ("metals/2", (0, 2)),
        ("metals/3", (0, 2)),
        ("metals/q", (0, 1)),
        ("metals/5", 0),
        ("metals/6", None),
    ]
    assert [decision.choice for decision in made.decisions] == [1, None, 0, 2, 0, 0]
    several = {name.partition(",")[0].partition(":")[0]: n for name, n in made.counts.items()}
    assert several["several letters in the answer"] == made.counts["unparsed"] == 1
    assert several["several right letters in the target"] == 3
    assert made.counts["unread: target"] == 1


def test_a_permuted_run_is_read_through_its_mark(tmp_path: Path) -> None:
    mark = {"item": "q", "order": [2, 0, 1], "n": 3, "gold": [0], "permutable": False}
    sample = scored("B", choices=["elm", "tin", "oak"], target="B", metadata={"unswayed": mark})
    sample["id"] = "q@1"
    made = import_files("auto", [inspect_zip(tmp_path / "log.eval", sample)])
    (item,), (decision,) = made.items, made.decisions
    assert (item.id, item.candidates, item.gold) == ("metals/q", ("tin", "oak", "elm"), 0)
    assert (decision.order, decision.choice, item.permutable) == ((2, 0, 1), 0, False)
    mark["order"] = [2, 0]
    with pytest.raises(
        ItemError, match=r"metadata\.unswayed\.order: \[2, 0\] is not an order of 3"
    ):
        import_files("auto", [inspect_zip(tmp_path / "bad.eval", sample)])


def test_shuffled_logs_are_matched_by_the_texts_of_options(tmp_path: Path) -> None:
    first = inspect_zip(
        tmp_path / "a.eval", scored("A"), inspect_sample(2, choices=["x", "x", "y"])
    )
    second = inspect_json(
        tmp_path / "b.json",
        scored("A", choices=["elm", "tin", "oak"], target="B"),
        inspect_sample(2, choices=["y", "x", "x"]),
    )
    made = import_files("auto", [first, second])
    assert [(d.item_id, d.order, d.choice) for d in made.decisions] == [
        ("metals/1", (0, 1, 2), 0),
        ("metals/2", (0, 1, 2), 0),
        ("metals/1", (2, 0, 1), 2),
    ]
    assert made.items[0].gold == 0
    equal = "two options have the same text, so their shuffled order is unknown"
    assert counted(made) == {equal: 1}
    other = inspect_json(tmp_path / "c.json", scored("A", choices=["ore", "tin", "oak"]))
    with pytest.raises(
        ItemError, match="choices: differ from the options in the log that was read first"
    ):
        import_files("auto", [first, other])


def test_our_decisions_in_a_score_come_first(tmp_path: Path) -> None:
    calls = [{**OWN, "order": order, "choice": 1} for order in ([0, 1], [1, 0])]
    score = {"value": 1, "metadata": {"unswayed": {"decisions": calls, "gold": 1}}}
    sample = inspect_sample(scores={"u": score})
    made = import_files("auto", [inspect_zip(tmp_path / "l.eval", sample)])
    assert choices(made.decisions) == [((0, 1), 1), ((1, 0), 1)]
    assert (made.items[0].id, made.items[0].gold) == ("q", 1)
    calls[1]["item_id"] = "q2"
    with pytest.raises(ItemError, match="are not about one item"):
        import_files("auto", [inspect_zip(tmp_path / "m.eval", sample)])


def test_a_log_that_was_cut_off_still_says_its_model(tmp_path: Path) -> None:
    path = tmp_path / "cut.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": EVAL}))
        archive.writestr("samples/1_epoch_1.json", json.dumps(scored("B")))
    assert import_files("auto", [path]).decisions[0].model == "mockllm/model"


def test_nan_in_header_and_samples_is_null(tmp_path: Path) -> None:
    nan = {"value": float("nan"), "answer": "B"}
    sample = inspect_sample(scores={"choice": nan}, store={"text": "q" * 100_000, "x": nan})
    header = json.dumps({"eval": EVAL, "results": {"metrics": {"stderr": float("nan")}}})
    zipped = inspect_zip(tmp_path / "z.eval", sample, **{"header.json": header})
    log = {"version": 2, "status": "success", "eval": EVAL, "stats": nan, "samples": [sample]}
    for indent in (2, None):
        path = whole(tmp_path / f"{indent}.json", log, indent)
        assert "NaN" in path.read_text()
        assert import_files("auto", [path]) == import_files("auto", [zipped])
    (decision,) = import_files("auto", [zipped]).decisions
    assert (decision.choice, decision.model) == (1, "mockllm/model")


def test_other_faults_beside_nan_stay_errors(tmp_path: Path) -> None:
    for text in ('{"eval": NaN, "x": "\\ud800"}', '{"eval": NaN, "x": 1e999}', '{"eval": NaN,'):
        log = inspect_zip(tmp_path / "z.eval", inspect_sample(), **{"header.json": text})
        with pytest.raises(UsageError, match=r"header\.json: not valid JSON"):
            import_files("auto", [log])


def zstandard(path: Path, sample: dict[str, Any], *, size: int | None = None) -> Path:
    """A log whose sample is Zstandard (method 93), which zipfile cannot write before Python 3.14."""
    text = json.dumps(sample).encode()
    half = len(text) // 2
    packed = zstd.compress(text[:half]) + zstd.compress(text[half:])  # two frames
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("samples/1_epoch_1.json", packed)
        archive.writestr("header.json", json.dumps({"eval": EVAL}))
    data = bytearray(path.read_bytes())
    for signature, method_at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        start = data.index(signature)
        struct.pack_into("<H", data, start + method_at, 93)
        sizes = zlib.crc32(text), len(packed), len(text) if size is None else size
        struct.pack_into("<3L", data, start + method_at + 6, *sizes)
    path.write_bytes(bytes(data))
    return path


def test_members_in_zstandard_are_read(tmp_path: Path) -> None:
    sample = scored("B", input="q" * 5000)
    made = import_files("auto", [zstandard(tmp_path / "z.eval", sample)])
    assert made.decisions[0].choice == 1
    assert len(made.items[0].prompt) == 5000  # type: ignore[arg-type]


def test_no_more_than_the_stated_size_is_taken(tmp_path: Path) -> None:
    file = zstandard(tmp_path / "z.eval", scored("B", input="q" * 5_000_000), size=1000)
    with pytest.raises(ItemError, match="is damaged"):
        import_files("auto", [file])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("samples/../../etc/passwd", "leads out of the archive"),
        ("/samples/1.json", "leads out of the archive"),
        ("C:samples/1.json", "leads out of the archive"),
        ("samples\\1.json", "is not a valid member name"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(name: str, said: str, tmp_path: Path) -> None:
    file = inspect_zip(tmp_path / "log.eval", inspect_sample(), **{name: "{}"})
    with pytest.raises(UsageError, match=said):
        import_files("auto", [file])


def test_bombs_overlaps_and_absurd_sizes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unswayed.model.items.lines.FREE", 10_000_000)
    bomb = inspect_zip(tmp_path / "bomb.eval", **{"samples/1_epoch_1.json": " " * 20_000_000})
    with pytest.raises(UsageError, match=r"its [\d,]+ bytes expand to 20,000,2"):
        import_files("auto", [bomb])
    monkeypatch.setattr(eval_archive, "LARGEST", 10_000)
    large = inspect_zip(tmp_path / "large.eval", inspect_sample(input="q" * 20_000))
    with pytest.raises(UsageError, match="the most for one sample is 10,000"):
        import_files("auto", [large])
    sound = inspect_zip(tmp_path / "sound.eval", inspect_sample())
    data = bytearray(sound.read_bytes())
    struct.pack_into("<L", data, data.index(b"PK\x01\x02") + 20, len(data))
    (tmp_path / "overlap.eval").write_bytes(bytes(data))
    with pytest.raises(UsageError, match="its members overlap"):
        import_files("auto", [tmp_path / "overlap.eval"])


def test_repeated_encrypted_and_damaged_members_are_refused(tmp_path: Path) -> None:
    sound = inspect_zip(tmp_path / "sound.eval", inspect_sample())
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(sound, "a") as archive:
        archive.writestr("samples/1_epoch_1.json", "{}")
    with pytest.raises(UsageError, match="occurs twice"):
        import_files("auto", [sound])
    sound = inspect_zip(tmp_path / "sound.eval", inspect_sample())
    data = bytearray(sound.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "locked.eval").write_bytes(bytes(data))
    with pytest.raises(UsageError, match="is encrypted"):
        import_files("auto", [tmp_path / "locked.eval"])
    data = bytearray(sound.read_bytes())
    at = data.index(b"samples/1_epoch_1.json") + 40
    data[at : at + 8] = bytes(8)
    (tmp_path / "torn.eval").write_bytes(bytes(data))
    with pytest.raises(ItemError, match=r"samples/1_epoch_1\.json: is damaged"):
        import_files("auto", [tmp_path / "torn.eval"])
    for text, said in ((b"no zip", "not an .eval log"), (b"", "not an .eval log")):
        (tmp_path / "x.eval").write_bytes(text)
        with pytest.raises(UsageError, match=said):
            import_files("auto", [tmp_path / "x.eval"])
    with zipfile.ZipFile(tmp_path / "other.eval", "w") as archive:
        archive.writestr("document.xml", "<a/>")
    with pytest.raises(UsageError, match="no samples/ in it"):
        import_files("auto", [tmp_path / "other.eval"])
    with pytest.raises(UsageError, match="cannot read"):
        import_files("auto", [tmp_path / "none.eval"])
