"""Counts with their nouns and verbs, for messages, summaries and reports."""

from __future__ import annotations


def plural(number: int, noun: str, several: str = "") -> str:
    """Write a count with its noun; `several` is an irregular plural.

    >>> plural(1, "tie"), plural(1000, "call"), plural(0, "reply", "replies")
    ('1 tie', '1,000 calls', '0 replies')

    Raises:
        ValueError: The number is negative.
    """
    if number < 0:
        raise ValueError(f"a count is at least 0, got {number}")
    return f"{number:,} {agrees(number, noun, several or f'{noun}s')}"


def agrees(number: int, single: str, several: str) -> str:
    """Choose the word that goes with a count: "is" for 1, "are" for any other."""
    return single if number == 1 else several
