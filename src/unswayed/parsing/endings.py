"""Why a reply ended: what servers say, by allow-list. A word that is not listed is no good ending."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Ending(StrEnum):
    """How a reply ended: refused and broken ones are no verdicts, whatever they say."""

    COMPLETE = "complete"
    CUT = "cut"
    REFUSED = "refused"
    BROKEN = "broken"

    @property
    def is_read(self) -> bool:
        """Whether a reply that ended so may be a verdict."""
        return self in {Ending.COMPLETE, Ending.CUT}


WORDS: Final = {
    Ending.COMPLETE: "stop eos eos_token end_turn stop_sequence stop_token completed complete",
    Ending.CUT: "length max_tokens model_length max_output_tokens token_limit time_limit",
    Ending.REFUSED: "refusal content_filter contentfilter content_filtered safety image_safety "
    "recitation blocklist prohibited_content spii guardrail_intervened sensitive",
}
"""Finish reasons by what they mean; every other one is broken."""
FAILED: Final = "abort aborted cancelled error network_error timeout insufficient_system_resource"
"""Broken ones that another attempt may mend: a live model is asked again."""
_BY_WORD: Final = {word: kind for kind, words in WORDS.items() for word in words.split()}


def ending(reason: str | None) -> Ending:
    """What a finish reason means, without regard to case, `-` as `_`; none is a complete reply.

    >>> [str(ending(reason)) for reason in ("end_turn", "MAX_TOKENS", "content-filter", "abort")]
    ['complete', 'cut', 'refused', 'broken']
    """
    return _BY_WORD.get(_word(reason), Ending.BROKEN) if reason else Ending.COMPLETE


def is_failed_attempt(reason: str | None) -> bool:
    """Whether a live model's reply that ended so is tried again, like a dropped connection."""
    return reason is not None and _word(reason) in FAILED.split()


def _word(reason: str) -> str:
    return reason.casefold().replace("-", "_")
