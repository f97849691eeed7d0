"""The pool of recorded calls: one SQLite file per run directory.

Committed means acknowledged: a kill at any moment loses at most the batch that was being written.
"""

from unswayed.store.memory import Memory
from unswayed.store.pool import CALL, CallStore
from unswayed.store.records import (
    Recorded,
    RecordedCall,
    Totals,
    is_whole,
    mended_text,
    prompt_bytes,
    readable,
)

Pool = CallStore | Memory
"""Where answers are looked up."""

__all__ = [
    "CALL",
    "CallStore",
    "Memory",
    "Pool",
    "Recorded",
    "RecordedCall",
    "Totals",
    "is_whole",
    "mended_text",
    "prompt_bytes",
    "readable",
]
