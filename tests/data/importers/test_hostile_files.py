"""Files that nobody would write: refused with the place and the reason, never an error of ours, never a verdict."""

import json
import random
import zipfile
from pathlib import Path

import pytest
from foreign_files import (
    OWN,
    alpaca,
    grpo_result,
    inspect_json,
    inspect_sample,
    inspect_zip,
    judgebench,
    lines,
    lm_sample,
    reward_columns,
)

from unswayed.base.errors import ItemError, UnswayedError, UsageError
from unswayed.data.importers import import_files, parse_map
from unswayed.model.items import decode_item, encode_item

LONG = "x" * 70_000
"""Longer than what of a file that is one object is decoded at once."""


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def log(samples: bytes) -> bytes:
    return b'{"version": 2, "status": "success", "eval": {}, "samples": ' + samples + b"}"


def results(entries: bytes) -> bytes:
    return b'{"metadata": {"dataset": "d", "num_options": 2}, "results": ' + entries + b"}"


# --- files that are one object, whose long fields are decoded part by part ---------------------


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("inspect", log(b'[{"id": "' + b"\xff" * 70_000 + b'"}]'), "samples: not valid JSON"),
        ("inspect", log(f'"{LONG}"'.encode()), "samples: expected an array, got str"),
        ("inspect", log(b"[]").replace(b"{}", f'"{LONG}'.encode() + b'\xff"'), "eval: not valid"),
        ("pa-grpo-results", results(f'["{LONG}'.encode() + b'\xff"]'), "results: not valid JSON"),
        ("pa-grpo-results", results(f'{{"a": "{LONG}"}}'.encode()), "expected an array, got dict"),
        (
            "reward-bench",
            f'{{"subset": ["s"], "results": "{LONG}"}}'.encode(),
            "results: expected an array, got str",
        ),
        (
            "reward-bench",
            b'{"subset": ["s"], "results": [1], "prompt": ["' + LONG.encode() + b'\xff"]}',
            "prompt: not valid JSON",
        ),
        ("judgebench", b'{"pair_id": "' + LONG.encode() + b'\xff"}', "pair_id: not valid JSON"),
    ],
)
def test_long_field_of_invalid_json_is_named(
    kind: str, text: bytes, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ItemError, match=said):
        import_files(kind, [written(tmp_path / "f.json", text)])


def test_bad_parts_of_one_object_are_left_out_one_by_one(tmp_path: Path) -> None:
    columns = reward_columns(results=[1, 1, 1], text_chosen=[LONG, "BAD", "c"])
    text = json.dumps(columns).encode().replace(b"BAD", b"\xff")
    imported = import_files(
        "reward-bench", [written(tmp_path / "m.json", text)], on_bad_item="skip"
    )
    assert [item.id for item in imported.items] == ["hep-python/0", "hep-python/2"]
    assert [bad.line for bad in imported.bad_records] == [2]


@pytest.mark.parametrize(
    ("kind", "record", "field"),
    [
        ("reward-bench", {key: c[0] for key, c in reward_columns().items() if isinstance(c, list)}, "prompt"),
        ("inspect", inspect_sample(), "input"),
        ("pa-grpo-results", grpo_result("A"), "model_response"),
    ],
)  # fmt: skip
def test_long_texts_of_a_file_with_one_record_are_kept(
    kind: str, record: dict[str, object], field: str, tmp_path: Path
) -> None:
    file = written(tmp_path / "f.jsonl", json.dumps({**record, field: LONG}))
    imported = import_files(kind, [file])
    assert LONG in (imported.items[0].prompt, imported.decisions[0].text)


# --- figures that are none ---------------------------------------------------------------------


def refused(kind: str, file: Path, said: str, **options: object) -> None:
    with pytest.raises(ItemError, match=said):
        import_files(kind, [file], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("scores", [["x", 1], [None, 1], [[1], 1], [10**400, 1], [1e16, 1]])
def test_scores_of_judgebench_are_numbers(scores: object, tmp_path: Path) -> None:
    record = judgebench("A>B")
    record["judgments"][0]["judgment"]["scores"] = scores
    refused("judgebench", lines(tmp_path / "f.jsonl", record), "scores")


@pytest.mark.parametrize("text", [["a"], {"a": 1}, 5, 1.5, True])
def test_the_text_of_a_call_is_text(text: object, tmp_path: Path) -> None:
    record = judgebench("A>B")
    record["judgments"][0]["judgment"]["response"] = text
    refused("judgebench", lines(tmp_path / "f.jsonl", record), "response: Expected text")


def test_labels_without_probability_give_no_verdict(tmp_path: Path) -> None:
    sample = lm_sample(filtered_resps=[["-Infinity", "False"]] * 4)
    refused("lm-eval", lines(tmp_path / "f.jsonl", sample), "-inf is not a log-probability")


@pytest.mark.parametrize("target", ["²", "9" * 5000, "٤"])
def test_target_other_than_index_gives_no_gold(target: str, tmp_path: Path) -> None:
    log = lines(tmp_path / "f.jsonl", lm_sample(target=target), lm_sample(1))
    imported = import_files("lm-eval", [log])
    assert [item.gold for item in imported.items] == [None, 0]
    assert imported.counts["unread: target"] == 1


@pytest.mark.parametrize("score", [1e308, 10**20])
def test_scores_beyond_all_measure_are_refused(score: float, tmp_path: Path) -> None:
    columns = reward_columns(scores_chosen=[score])
    refused("reward-bench", lines(tmp_path / "f.jsonl", columns), "not all numbers below 1e")


def test_number_beyond_float_gives_no_score(tmp_path: Path) -> None:
    file = lines(tmp_path / "f.jsonl", reward_columns(scores_chosen=[10**400]))
    (decision,) = import_files("reward-bench", [file]).decisions
    assert decision.scores is None


@pytest.mark.parametrize(("logprob", "left_out"), [(1e308, False), (-1e4, True)])
def test_log_probabilities_of_alpaca_eval(logprob: float, left_out: bool, tmp_path: Path) -> None:
    row = alpaca(1.0, first_token_logprobs={"m": logprob, "M": logprob})
    said = "no decisions" if left_out else "first_token_logprobs: are not log"
    refused("alpaca-eval", lines(tmp_path / "f.jsonl", row), said)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("s", [10**400, 1], "s: 1000.* is not a number"),
        ("s", "[" * 5000, "1 scores for 2"),
        ("n", "9" * 5000, "n: '999"),
        ("n", 2**70, "sample or tokens: .* is not a count"),
    ],
)
def test_numbers_of_a_mapped_log(field: str, value: object, said: str, tmp_path: Path) -> None:
    file = lines(tmp_path / "f.jsonl", {"q": "1", "v": "A", "s": [1, 2], "n": 0, field: value})
    refused("jsonl", file, said, fields=parse_map("id=q,verdict=v,scores=s,sample=n"))


def test_gold_of_our_own_scorer_is_gold(tmp_path: Path) -> None:
    own = {"decisions": [OWN], "gold": [0]}
    sample = inspect_sample(scores={"s": {"metadata": {"unswayed": own}}})
    (item,) = import_files("inspect", [inspect_json(tmp_path / "l.json", sample)]).items
    assert item.gold == (0,)
    assert decode_item(encode_item(item)) == item
    own["gold"] = {"a": "b"}
    refused("inspect", inspect_json(tmp_path / "l.json", sample), "scores.metadata.unswayed")


def test_a_gold_of_many_digits_is_refused() -> None:
    item = {"id": "q", "prompt": "p", "candidates": ["a", "b"], "gold": "9" * 5000}
    with pytest.raises(ItemError, match="is not a candidate index: write 0 to 1"):
        decode_item(json.dumps(item))


# --- archives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_whose_size_python_does_not_hold_to_are_refused(
    method: int, tmp_path: Path
) -> None:
    file = tmp_path / "log.eval"
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("samples/1_epoch_1.json", json.dumps(inspect_sample()))
    with pytest.raises(UsageError, match=f"'samples/1.*method {method}; logs are"):
        import_files("inspect", [file])


@pytest.mark.parametrize(
    ("offset", "value", "said"),
    [(6, 255, "not an .eval log: zip file version"), (9, 0x08, "not an .eval log: 'utf-8' codec")],
)
def test_unreadable_zip_table_is_not_a_log(
    offset: int, value: int, said: str, tmp_path: Path
) -> None:
    file = inspect_zip(tmp_path / "log.eval", inspect_sample())
    data = bytearray(file.read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + offset] = value
    data[entry + 46] = 0xFF
    with pytest.raises(UsageError, match=said):
        import_files("inspect", [written(file, bytes(data))])


@pytest.mark.parametrize("place", [0, 12, 19], ids=["folder", "name", "suffix"])
def test_sample_whose_name_is_damaged_is_counted(place: int, tmp_path: Path) -> None:
    file = inspect_zip(tmp_path / "log.eval", *map(inspect_sample, (1, 2, 3)))
    data = bytearray(file.read_bytes())
    table = data.index(b"PK\x01\x02")
    data[data.index(b"samples/2_", table) + place] ^= 1
    written(file, bytes(data))
    refused("inspect", file, r"log\.eval:2: .* is damaged \(File name in directory")
    imported = import_files("inspect", [file], on_bad_item="skip")
    assert [item.id for item in imported.items] == ["metals/1", "metals/3"]
    assert imported.counts["bad records"] == 1


@pytest.mark.parametrize("offset", [2**62, 2**64 - 1])
def test_sample_beyond_every_file_is_counted(offset: int, tmp_path: Path) -> None:
    file = inspect_zip(tmp_path / "log.eval", *map(inspect_sample, (1, 2, 3)))
    with zipfile.ZipFile(file, "a") as archive:
        archive.getinfo("samples/3_epoch_1.json").header_offset = offset
        archive.comment = b"changed"  # so that the table is written again
    imported = import_files("inspect", [file], on_bad_item="skip")
    assert [item.id for item in imported.items] == ["metals/1", "metals/2"]
    assert imported.counts["bad records"] == 1


def test_no_changed_byte_of_an_archive_breaks_the_reader(tmp_path: Path) -> None:
    drawn = random.Random(5)
    file = inspect_zip(tmp_path / "log.eval", *map(inspect_sample, (1, 2, 3)))
    data = file.read_bytes()
    refused = 0
    for _ in range(150):
        changed = bytearray(data)
        for _ in range(drawn.choice((1, 2, 8))):
            changed[drawn.randrange(len(changed))] = drawn.choice((0, 1, 255, drawn.randrange(256)))
        try:
            import_files("inspect", [written(file, bytes(changed))], on_bad_item="skip")
        except UnswayedError:
            refused += 1
    assert refused > 10
