"""An audit of items that lie in a file says what an audit of items in memory says, to the byte."""

import json
from pathlib import Path

import pytest

import unswayed as us
from unswayed.backends.simulated import simulated_items
from unswayed.cli import main
from unswayed.items import ItemSet, encode_item, lines

JUDGE = "simulated/judge?slot=1&label=0.3&unparsed=0.1&tie=0.05"
METHODS = ("direct", "vote", "average", "pride", "debias-prompt")
FILES = ("metrics.json", "answers.json", "flipped.json")


def audited(items: Path, out: Path, **options: object) -> dict[str, bytes]:
    us.audit(JUDGE, items, methods=METHODS, out=out, **options)  # type: ignore[arg-type]
    return {name: (out / name).read_bytes() for name in FILES}


@pytest.mark.parametrize("group_by", ["group", "meta.half"])
def test_calls_made_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group_by: str
) -> None:
    file = tmp_path / "items.jsonl"
    records = [json.loads(encode_item(item)) for item in simulated_items(120, seed=3)]
    for place, record in enumerate(records):
        record |= {"group": f"g{place % 3}", "meta": {"half": place % 2}}
        record["permutable"] = place % 10 != 0
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    in_memory = audited(file, tmp_path / "a", group_by=group_by)
    again = audited(file, tmp_path / "a", group_by=group_by)
    monkeypatch.setattr(lines, "LARGE", 0)
    assert isinstance(us.load_items(file).items, lines.ItemLines)
    assert audited(file, tmp_path / "b", group_by=group_by) == in_memory
    assert audited(file, tmp_path / "b", group_by=group_by) == again
    assert audited(file, tmp_path / "a", group_by=group_by) == again


def test_recorded_decisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "items.jsonl"
    items: ItemSet | list[us.Item] = simulated_items(90, seed=4)
    file.write_bytes(b"".join(encode_item(item) + b"\n" for item in items))
    us.audit(JUDGE, file, methods=METHODS, out=tmp_path / "a")
    decisions = tmp_path / "decisions.jsonl"
    assert main(["export", str(tmp_path / "a"), "--out", str(decisions)]) == 0
    said = []
    for limit in (1 << 40, 0):
        monkeypatch.setattr(lines, "LARGE", limit)
        out = tmp_path / str(limit)
        us.audit(items=file, decisions=decisions, methods=METHODS, out=out)
        said.append({name: (out / name).read_bytes() for name in (*FILES, "decisions.jsonl")})
    assert said[0] == said[1]


def test_items_with_different_numbers_of_candidates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "items.jsonl"
    items = [
        us.Item(
            id=f"q{k}",
            task=us.Task.MCQ,
            prompt=f"Which is {k}?",
            candidates=tuple("abcd"[: 2 + k % 3]),
            gold=k % 2,
            permutable=k % 10 != 0,
            meta={"utility": [float(k * c % 5) for c in range(2 + k % 3)]},
        )
        for k in range(90)
    ]
    file.write_bytes(b"".join(encode_item(item) + b"\n" for item in items))
    in_memory = audited(file, tmp_path / "a")
    decisions = tmp_path / "decisions.jsonl"
    assert main(["export", str(tmp_path / "a"), "--out", str(decisions)]) == 0
    us.audit(items=file, decisions=decisions, methods=METHODS, out=tmp_path / "c")
    monkeypatch.setattr(lines, "LARGE", 0)
    assert audited(file, tmp_path / "b") == in_memory
    us.audit(items=file, decisions=decisions, methods=METHODS, out=tmp_path / "d")
    for name in FILES:
        assert (tmp_path / "d" / name).read_bytes() == (tmp_path / "c" / name).read_bytes()
