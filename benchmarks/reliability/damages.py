"""Ways to damage a file."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

Change = Callable[[Path, random.Random], None]
"""Damages the file at a path."""


def _truncate(path: Path, rng: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data) + 1)])


def _flip(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 4, 30))):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def _zero(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start = rng.randrange(len(data) + 1) // 512 * 512
    size = min(rng.choice((16, 512, 4096)), len(data) - start)
    data[start : start + size] = bytes(size)
    path.write_bytes(data)


def _empty(path: Path, rng: random.Random) -> None:
    path.write_bytes(b"")


def _directory(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _missing(path: Path, rng: random.Random) -> None:
    path.unlink()


def _swap(path: Path, rng: random.Random) -> None:
    root = path.parents[len(path.parts) - path.parts.index("now") - 2]
    others = sorted(p for p in root.rglob("*") if p.is_file() and p.suffix != path.suffix)
    path.write_bytes(rng.choice(others).read_bytes())


def _append(path: Path, rng: random.Random) -> None:
    path.write_bytes(
        path.read_bytes() + rng.choice((b"\0" * 700, b"}", b"\n{\n", rng.randbytes(99)))
    )


def _deep(path: Path, rng: random.Random) -> None:
    path.write_bytes(b'{"a":' * 20_000 + b"1" + b"}" * 20_000)


def _retype(path: Path, rng: random.Random) -> None:
    """A value of another type at a random place of a JSON file; elsewhere a changed byte."""
    try:
        first, _, rest = path.read_bytes().partition(b"\n" if path.suffix == ".jsonl" else b"\0\0")
        tree = json.loads(first)
    except ValueError:
        return _flip(path, rng)
    target: Any = tree
    while True:
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        if not keys:
            break
        key = rng.choice(keys)
        if isinstance(target[key], dict | list) and target[key] and rng.random() < 0.8:
            target = target[key]
            continue
        target[key] = rng.choice((None, "x", -1, 2**70, 1.5, [], {}, [[]], {"value": "x"}, True))
        break
    path.write_bytes(json.dumps(tree).encode() + (b"\n" + rest if rest else b""))
    return None


WAYS: Final[tuple[tuple[str, Change], ...]] = (
    ("truncated", _truncate),
    ("bits flipped", _flip),
    ("page zeroed", _zero),
    ("retyped", _retype),
    ("bits flipped", _flip),
    ("retyped", _retype),
    ("swapped", _swap),
    ("retyped", _retype),
    ("appended", _append),
    ("retyped", _retype),
    ("empty", _empty),
    ("directory", _directory),
    ("missing", _missing),
    ("deep", _deep),
)
