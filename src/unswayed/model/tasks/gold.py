"""Gold that names candidates: an index, several, "tie" or nothing."""

from __future__ import annotations

from unswayed.model.items import BadFieldError, Item


def right_candidates(item: Item) -> tuple[int, ...]:
    """Return the candidates that gold names; none where it is a tie or unknown."""
    if isinstance(item.gold, tuple):
        return item.gold
    return (item.gold,) if isinstance(item.gold, int) else ()


def check_gold(item: Item) -> None:
    """Check that gold names candidates, is "tie" or null.

    Raises:
        BadFieldError: With the reason.
    """
    gold, n = item.gold, item.n
    if type(gold) is int and 0 <= gold < n:
        return
    if isinstance(gold, str):
        if gold != "tie":
            raise BadFieldError(
                "gold", f"{gold!r} is not a candidate index: {_index_hint(gold, n)}"
            )
    elif isinstance(gold, float | dict):
        raise BadFieldError("gold", f"{gold!r} is not a candidate index (0 to {n - 1})")
    elif isinstance(gold, tuple):
        if not gold:
            raise BadFieldError("gold", "is an empty list; use null for unknown")
        if len(set(gold)) != len(gold):
            raise BadFieldError("gold", f"{list(gold)} repeats an index")
    for index in right_candidates(item):
        if isinstance(index, bool) or not 0 <= index < n:
            raise BadFieldError(
                "gold", f"{index} is out of range: there are {n} candidates (0 to {n - 1})"
            )


def _index_hint(gold: str, n: int) -> str:
    """Explain how to write textual gold as an index."""
    text = gold.strip().upper()
    if text.isdecimal() and len(text) < 10:
        return f"write {int(text)} without quotes"
    labels = [chr(ord("A") + candidate) for candidate in range(min(n, 26))]
    if text in labels:
        return f"candidates are counted from 0, so write {labels.index(text)} for {gold}"
    return f"write 0 to {n - 1}, a list of them, 'tie' or null"
