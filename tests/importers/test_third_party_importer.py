"""An importer of somebody else's: one file and one line; listed, named, and told from a record."""

import json
from pathlib import Path

from outside_package import OutsidePackage

SOURCE = """
    import msgspec

    from unswayed.importers.protocol import (
        BadFieldError, Importer, Judged, Source, candidate_at, has, pair_decision
    )
    from unswayed.items import Item
    from unswayed.presentation import X0, X2


    class Row(msgspec.Struct):
        case: str
        left: str
        right: str
        picks: list[int]


    def read(row: Row, source: Source) -> Judged:
        if not set(row.picks) <= {0, 1}:
            raise BadFieldError("picks", f"{row.picks} are not 0 or 1")
        item = Item(id=row.case, prompt="Which?", candidates=(row.left, row.right))
        calls = [
            pair_decision(item, shown, ("L", "R"), candidate_at(shown, pick))
            for shown, pick in zip((X0, X2), row.picks)
        ]
        return Judged(item, tuple(calls))


    CASES = Importer(
        title="Cases, left and right.",
        detects=has("case", "left", "right", "picks"),
        schema=Row,
        read=read,
    )
"""


def test_an_importer_from_outside_is_listed_detected_checked_and_used(tmp_path: Path) -> None:
    package = OutsidePackage(
        tmp_path, group="unswayed.importers", line="cases = mine:CASES", source=SOURCE
    )
    row = {"case": "c1", "left": "iron", "right": "oak", "picks": [0, 0]}
    (tmp_path / "cases.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "bad.jsonl").write_text(
        json.dumps({**row, "picks": [7]}) + "\n" + json.dumps({**row, "picks": "x"}) + "\n"
    )

    assert "Cases, left and right." in package.run("list", "importers")
    for kind in ("cases", "auto"):
        shown = package.run(
            "import",
            kind,
            "cases.jsonl",
            "--out",
            f"{kind}-out.jsonl",
            "--items",
            f"{kind}-items.jsonl",
        )
        assert "2 decisions" in shown
        decisions = [
            json.loads(line)
            for line in (tmp_path / f"{kind}-out.jsonl").read_text().split("\n")[:2]
        ]
        assert [(call["order"], call["choice"]) for call in decisions] == [([0, 1], 0), ([1, 0], 1)]
        assert decisions[0]["labels"] == ["L", "R"]
    assert "bad.jsonl:1: picks" in package.run("import", "auto", "bad.jsonl", "--out", "x", code=2)
    assert "Did you mean 'cases'" in package.run(
        "import", "caes", "cases.jsonl", "--out", "x", code=2
    )
