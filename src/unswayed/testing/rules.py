"""Rules: functions that raise where a registered thing breaks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def hold(subject: str, rules: Iterable[Callable[..., None]], *arguments: Any) -> None:
    """Raise an `AssertionError` that names the thing, the first broken rule and what was found."""
    if not __debug__:
        raise AssertionError("unswayed.testing needs assertions: run Python without -O.")
    for rule in rules:
        try:
            rule(*arguments)
        except Exception as error:
            sentence = (rule.__doc__ or "").partition("\n")[0]
            problem = f"{type(error).__name__}: {error}".rstrip(": ")
            raise AssertionError(
                f"{subject} breaks the rule {rule.__name__}: {sentence} ({problem})"
            ) from error


def refuses(error: type[Exception], call: Callable[..., object], *arguments: object) -> str:
    """Return the sentence of the error that a call raises, in place of an answer."""
    try:
        call(*arguments)
    except error as raised:
        return str(raised)
    raise AssertionError(f"{arguments} raises no {error.__name__}")
