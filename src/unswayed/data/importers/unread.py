"""Values of foreign fields that could not be read: counted, and shown where none or too few were read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from unswayed.base.counts import agrees, plural
from unswayed.data.importers.protocol import ReadRecord, Record
from unswayed.model.decisions import Decision
from unswayed.model.items import Item
from unswayed.model.items.paths import at

MANY: Final = 0.2
"""Share of unparsed answers above which an import warns."""

_SHOWN: Final = 3


class UnreadValues(dict[tuple[str, str], Counter[str]]):
    """Values that gave no `choice`, `gold`, `scores` or `ranking`, counted by that name and their field."""

    def add(self, judged: ReadRecord, record: Record, answer: str) -> None:
        """Count the unread values of a record; `answer` is the field of its answers."""
        unread = list(judged.unread.items())
        if "choice" not in judged.unread:
            texts = [call.text for call in judged.decisions if call.choice is None]
            value = at(record, answer) if texts else None
            simple = isinstance(value, str | int | float) and value != ""
            unread += [("choice", (answer, value if simple else text)) for text in texts]
        for kind, (field, value) in unread:
            written = "" if value is None else str(value)[:60]
            self.setdefault((kind, field), Counter())[written] += 1

    def problem(self, items: Sequence[Item], decisions: Sequence[Decision]) -> tuple[str, str, str]:
        """Return a kind that no record gave, its values, and the first of them; empty texts if there is none."""
        for (kind, field), values in sorted(
            self.items(), key=lambda entry: entry[0][0] != "choice"
        ):
            things: Sequence[Item | Decision] = items if kind == "gold" else decisions
            if all(getattr(thing, kind) is None for thing in things):
                first = ", ".join([repr(value) for value in values if value][:_SHOWN])
                of = f"values of {field!r}" if field else "answers"
                said = f" They begin with {first}." if first else ""
                return kind, f"{values.total():,} {of}", said
        return "", "", ""

    def warning(self, decisions: Sequence[Decision]) -> str:
        """Return a warning with the most frequent unread value if many answers are unparsed, else an empty text."""
        n = sum(decision.choice is None for decision in decisions)
        if n <= MANY * len(decisions):
            return ""
        answers = plural(len(decisions), "answer")
        said = f"{n:,} of {answers} ({n / len(decisions):.0%}) {agrees(n, 'is', 'are')} unparsed."
        fields = ((field, values) for (kind, field), values in self.items() if kind == "choice")
        counts = Counter(
            {(field, word): n for field, own in fields for word, n in own.items() if word}
        )
        for (field, word), count in counts.most_common(1):
            of = f"value of {field!r}" if field else "answer"
            said += f" The most frequent unparsed {of} is {word!r} ({plural(count, 'time')})."
        return said
