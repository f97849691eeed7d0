"""An importer of recorded verdicts, and a benchmark."""

import msgspec

from unswayed.ext.data import (
    X0,
    X2,
    BadFieldError,
    Benchmark,
    Item,
    candidate_at,
    importer,
    pair_decision,
)


class Case(msgspec.Struct):
    """Fields of one record of the log."""

    case: str
    left: str
    right: str
    picks: list[int]


def _said(row, source):
    if not {*row.picks} <= {0, 1}:
        raise BadFieldError("picks", f"{row.picks} are not 0 or 1")
    item = Item(id=row.case, prompt="Which?", candidates=(row.left, row.right))
    yield item
    for shown, pick in zip((X0, X2), row.picks, strict=False):
        yield pair_decision(item, shown, ("L", "R"), candidate_at(shown, pick))


CASES = importer("Cases, left and right.", Case, _said)


class Duel(msgspec.Struct):
    """A published row."""

    name: str
    left: str
    right: str
    better: int


def _items(rows, place):
    for row in rows:
        yield Item(id=row.name, prompt="Which?", candidates=(row.left, row.right), gold=row.better)


DUELS = Benchmark(
    title="Duels.",
    hub="huggingface",
    repository="mine/duels",
    revision="main",
    files={"test": ("duels.jsonl",)},
    schema=Duel,
    items=_items,
    task="pairwise",
    rows=2,
    licence="CC0",
    paper="0000.00000",
    note="Do not publish rows.",
)
