"""MT-Bench pairwise judgments of the Position-Bias-Analyzer: one record per order, raw text.

The candidates are a reference model and another, told apart by name; which of them stood first is in
the record. The verdict is the first [[A]], [[B]] or [[C]] (tie) of the text, as the study's own code
reads it. There is no gold, and the answers' texts are in another file.

Source: Slimshilin/Position-Bias-Analyzer, `judgment_data`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from unswayed.decisions import Choice, Decision
from unswayed.importers.protocol import Judged, Record, Source, read_as
from unswayed.items import Item
from unswayed.presentation import X0, X2

__all__ = ["MTBench"]

LABELS: Final = ("A", "B")

_VERDICT: Final = re.compile(r"\[\[([A-D])\]\]")


class _Row(msgspec.Struct):
    question_id: int | str
    model_shown_as_A: str  # noqa: N815 - the study's own field names
    model_shown_as_B: str  # noqa: N815
    raw: str
    judge: str | None = None


@dataclass(frozen=True, slots=True)
class MTBench:
    """MT-Bench pairs judged in both orders (Position-Bias-Analyzer), verdicts read from the text.

    Attributes:
        reference: The model that is candidate 0; without it the first name in the alphabet is.
    """

    reference: str = "vicuna-13b-v1.3"

    def detects(self, record: Record) -> bool:
        """The names of the models by displayed letter."""
        return {"question_id", "model_shown_as_A", "model_shown_as_B", "raw"} <= record.keys()

    def convert(self, record: Record, source: Source) -> Judged:
        """One call; the item without its texts."""
        row = read_as(_Row, record)
        shown_first = (row.model_shown_as_A, row.model_shown_as_B)
        names = sorted(shown_first, key=lambda name: (name != self.reference, name))
        shown = X0 if names[0] == row.model_shown_as_A else X2
        item = Item(
            id=f"{row.question_id};{names[0]};{names[1]}",
            prompt="",
            candidates=("", ""),
            meta={"question_id": row.question_id, "models": names},
        )
        place = _place(row.raw)
        decision = Decision(
            item_id=item.id,
            order=shown.order,
            labels=LABELS,
            label_set=LABELS,
            choice=shown.order[place] if isinstance(place, int) else place,
            text=row.raw,
            model=row.judge,
        )
        return Judged(item, (decision,))


def _place(text: str) -> Choice:
    """Displayed position of the first verdict in the text; [[D]] is no verdict."""
    found = _VERDICT.search(text)
    places: dict[str, Choice] = {"A": 0, "B": 1, "C": "tie"}
    return places.get(found.group(1)) if found else None
