"""Auto-J pairwise outputs in both orders, with the human label.

`autoj_output_order1` and `autoj_output_order2` are *displayed* positions (0 first, 1 second, 2 tie);
the second was asked with the responses exchanged. The label is by response (0, 1, 2 tie).

Source: prometheus-eval copies of GAIR-NLP/auto-j, joined by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from unswayed.decisions import Choice, Decision
from unswayed.importers.protocol import (
    BadRecordError,
    Judged,
    Record,
    Source,
    read_as,
    short_name,
)
from unswayed.items import Item
from unswayed.presentation import X0, X2

__all__ = ["AutoJ"]

LABELS: Final = ("1", "2")
"""The prompt calls the answers Response 1 and Response 2."""


class _Row(msgspec.Struct):
    prompt: str
    response_1: str = msgspec.field(name="response 1")
    response_2: str = msgspec.field(name="response 2")
    label: int | None
    row: int | str | None = None
    scenario: str | None = None
    autoj_output_order1: int | None = None
    autoj_output_order2: int | None = None


@dataclass(frozen=True, slots=True)
class AutoJ:
    """Auto-J pairwise outputs in both orders, joined with the human labels."""

    def detects(self, record: Record) -> bool:
        """The joined file's two output columns."""
        return {"response 1", "response 2", "autoj_output_order1"} <= record.keys()

    def convert(self, record: Record, source: Source) -> Judged:
        """One pair and its two outputs."""
        row = read_as(_Row, record)
        item = Item(
            id=f"{short_name(source.file)}-{source.number if row.row is None else row.row}",
            prompt=row.prompt,
            candidates=(row.response_1, row.response_2),
            gold=_place(row.label, "label"),
            group=row.scenario,
        )
        decisions = []
        for k, (shown, said) in enumerate(
            ((X0, row.autoj_output_order1), (X2, row.autoj_output_order2)), start=1
        ):
            place = _place(said, f"autoj_output_order{k}")
            decisions.append(
                Decision(
                    item_id=item.id,
                    order=shown.order,
                    labels=LABELS,
                    label_set=LABELS,
                    choice=shown.order[place] if isinstance(place, int) else place,
                    model="auto-j",
                )
            )
        return Judged(item, tuple(decisions))


def _place(value: int | None, field: str) -> Choice:
    if value not in (0, 1, 2, None):
        raise BadRecordError(field, f"{value} is not 0, 1, 2 (tie) or null")
    return "tie" if value == 2 else value
