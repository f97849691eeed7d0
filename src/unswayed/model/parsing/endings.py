"""Finish reasons of servers, by allow-list: a word that is not listed means a broken reply."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Ending(StrEnum):
    """Ending of a reply. Refused and broken replies are never verdicts, whatever their text."""

    COMPLETE = "complete"
    CUT = "cut"
    REFUSED = "refused"
    BROKEN = "broken"

    @property
    def is_read(self) -> bool:
        """True if a reply with this ending may be a verdict."""
        return self in {Ending.COMPLETE, Ending.CUT}


WORDS: Final = {
    Ending.COMPLETE: "stop eos eos_token end_turn stop_sequence stop_token completed complete",
    Ending.CUT: "length max_tokens model_length max_output_tokens token_limit time_limit",
    Ending.REFUSED: "refusal content_filter contentfilter content_filtered safety image_safety "
    "recitation blocklist prohibited_content spii guardrail_intervened sensitive",
}
"""Finish reasons by ending; every other reason means a broken reply."""
FAILED: Final = "abort aborted cancelled error network_error timeout insufficient_system_resource"
"""Reasons of broken replies that another attempt may fix: a live model is asked again."""
_BY_WORD: Final = {word: kind for kind, words in WORDS.items() for word in words.split()}


def ending(reason: str | None) -> Ending:
    """Return the ending that a finish reason means, ignoring case, `-` as `_`; None means complete.

    >>> [str(ending(reason)) for reason in ("end_turn", "MAX_TOKENS", "content-filter", "abort")]
    ['complete', 'cut', 'refused', 'broken']
    """
    return _BY_WORD.get(_word(reason), Ending.BROKEN) if reason else Ending.COMPLETE


def is_failed_attempt(reason: str | None) -> bool:
    """Return True if a live model is tried again after this ending, as after a dropped connection."""
    return reason is not None and _word(reason) in FAILED.split()


def _word(reason: str) -> str:
    return reason.casefold().replace("-", "_")
