"""What a log says of a question that was shown in an order of ours: a note under `unswayed`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from unswayed.items import BadFieldError
from unswayed.permutations import Order

MARK: Final = "unswayed"


class Mark(msgspec.Struct):
    """One presentation of a question: which, the candidate at each place, and what is right."""

    item: str | int
    order: Order
    gold: int | list[int] | None = None
    permutable: bool = True


def mark_of(fields: Mapping[str, Any] | None, *, field: str) -> Mark | None:
    """The mark among the fields that a log keeps of a question; None where there is none.

    Raises:
        BadFieldError: If there is something else under its name in `field`.
    """
    if not fields or fields.get(MARK) is None:
        return None
    try:
        return msgspec.convert(fields[MARK], Mark)
    except msgspec.ValidationError as error:
        raise BadFieldError(f"{field}.{MARK}", str(error)) from None
