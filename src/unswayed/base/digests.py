"""Hash texts; the hash draws names, folds, samples, tie rules and shadows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def digest(*texts: str) -> bytes:
    """sha256 of texts with a zero character between them; lone surrogates are texts, too."""
    return hashlib.sha256("\x00".join(texts).encode("utf-8", "surrogatepass")).digest()


def drawn(names: Iterable[str], count: int, *, seed: int) -> frozenset[str]:
    """So many of the names, the same ones in whatever order they come."""
    return frozenset(sorted(names, key=lambda name: digest(str(seed), name))[:count])


def number_of(name: str) -> int:
    """Return a number that depends on the name alone; its remainder draws a shard or an order."""
    marks = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(marks.digest(), "big")
