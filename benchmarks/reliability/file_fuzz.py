"""Random files through every reader: each is read or refused with a reason, never a crash.

    python benchmarks/reliability/file_fuzz.py [--cases N] [--write]

A case starts from a valid item, decision, recipe or fitted method. Some of its fields get values
of any type and size, then some bytes of the text are changed. A reader may return a value or raise
an `UnswayedError`; an item that was read must be the same after writing and reading it again.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from evidence_table import Table, add_write
from unswayed.base.errors import UnswayedError
from unswayed.data.importers import read_decisions_file
from unswayed.methods.fitted_file import load_method
from unswayed.model.items import decode_item, encode_item, load_items
from unswayed.training.recipe import load_recipe

CASES: Final = 120_000
LINES: Final = 100
"""Items or decisions in one file; each line is a case."""

ITEM: Final = {
    "id": "q1", "task": "pairwise", "prompt": "Which?", "candidates": ["one", "two"], "gold": 0,
    "group": "g", "meta": {"a": [1, {"b": 2}]}, "reference": "r", "permutable": True,
}  # fmt: skip
DECISION: Final = {
    "item_id": "q1", "order": [1, 0], "labels": ["A", "B"], "label_set": ["A", "B"], "sample": 0,
    "choice": 1, "probs": [0.25, 0.75], "label_mass": 0.9, "text": "B", "model": "m",
    "ranking": [1, 0], "flags": {"x": [True, False]}, "cost_usd": 0.1, "substitute": ["", ""],
}  # fmt: skip
FITTED: Final = {
    "unswayed_method": 1,
    "method": {
        "name": "pride", "prior": "global", "resamples": 100, "seed": 0,
        "priors": [{"n": 2, "layout": [0, 1], "values": [0.7, 0.3], "count": 9, "group": None}],
    },
    "model": "m", "prompt_fingerprint": "sha256:0", "label_set": ["A", "B"],
    "estimation_fingerprint": "sha256:1", "estimation_marks": ["0"], "diagnostics": {"n": 3},
}  # fmt: skip
RECIPE: Final[dict[str, Any]] = {
    "name": "mine", "task": "pairwise",
    "data": {"orders": "swap", "held_out": 3, "shuffle": True},
    "prompt": {"style": "direct", "labels": ["A", "B"]},
    "reward": {"lam": 1.0, "ddof": 1, "length_band": [1, 5]},
    "rollout": {"samples": 8, "temperature": 1.0, "engine": "transformers"},
    "optimiser": {"learning_rate": 1e-5, "epochs": 2.0, "steps": 4, "schedule": "linear"},
    "lora": {"rank": 8, "target": "all-linear"}, "run": {"seed": 1, "save_every": 2},
}  # fmt: skip

ODD: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 2**31, 2**63, 2**64, 10**40, -0.0, 0.5, 1e308, -1e-320, float("nan"),
    float("inf"), "", "A", "tie", "\x00", "\x1b[2J", "\u202eab", "=1+1", "é" * 300, "\ud800",
    [], {}, [0], [0, 0], [1, 0], [[0]], ["A"], ["A", "A"], [None], {"a": 1}, {"": {}}, [True, False],
    [{"role": "user", "content": "hi"}], [0.5, 0.5], [1e308, 1e308],
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=CASES)
    add_write(parser, "reliability")
    given = parser.parse_args()
    outcomes, crashes = fuzz(given.cases)
    table = Table(("reader", "cases", "read", "refused", "crashed"))
    for reader in sorted({name for name, _ in outcomes}):
        counts = [outcomes[reader, end] for end in ("read", "refused", "crashed")]
        table.add(reader, *(f"{count:,}" for count in (sum(counts), *counts)))
    if given.write:
        table.keep("reliability", "files")
    for crash, count in crashes.most_common():
        print(f"crash, {count} times: {crash}")
    sys.exit(bool(crashes))


def fuzz(cases: int, *, seed: int = 0) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """Outcomes by reader, and what crashed."""
    rng = random.Random(seed)
    outcomes: Counter[tuple[str, str]] = Counter()
    crashes: Counter[str] = Counter()
    readers: list[tuple[str, Callable[[random.Random, Path], Iterator[str]]]] = [
        ("item", _item),
        ("items file", _items_file),
        ("decisions", _decisions),
        ("recipe", _recipe),
        ("fitted", _fitted),
    ]
    with tempfile.TemporaryDirectory() as folder:
        while sum(outcomes.values()) < cases:
            for name, read in readers:
                try:
                    for end in read(rng, Path(folder)):
                        outcomes[name, end] += 1
                except Exception as error:  # the harness counts what a reader lets through
                    outcomes[name, "crashed"] += 1
                    crashes[f"{name}: {type(error).__name__}: {str(error)[:100]}"] += 1
    return outcomes, crashes


def _item(rng: random.Random, folder: Path) -> Iterator[str]:
    for _ in range(LINES):
        try:
            item = decode_item(_line(ITEM, rng))
        except UnswayedError:
            yield "refused"
            continue
        if decode_item(encode_item(item)) != item:
            raise AssertionError(f"not the same when written and read again: {item}")
        yield "read"


def _items_file(rng: random.Random, folder: Path) -> Iterator[str]:
    file = folder / "items.jsonl"
    file.write_bytes(b"\n".join(_line(ITEM, rng) for _ in range(LINES)))
    yield _outcome(lambda: load_items(file, on_bad_item=rng.choice(("stop", "skip"))))


def _decisions(rng: random.Random, folder: Path) -> Iterator[str]:
    for _ in range(LINES // 4):
        file = folder / "decisions.jsonl"
        file.write_bytes(b"\n".join(_line(DECISION, rng) for _ in range(rng.randint(1, 3))))
        yield _outcome(partial(read_decisions_file, file, on_bad_item="skip"))


def _recipe(rng: random.Random, folder: Path) -> Iterator[str]:
    for _ in range(LINES // 4):
        file = folder / "recipe.toml"
        file.write_bytes(
            _bytes_changed(_toml(_changed(RECIPE, rng)).encode("utf-8", "replace"), rng)
        )
        yield _outcome(partial(load_recipe, file))


def _fitted(rng: random.Random, folder: Path) -> Iterator[str]:
    for _ in range(LINES // 4):
        file = folder / "fitted.json"
        file.write_bytes(_line(FITTED, rng))
        yield _outcome(partial(load_method, file))


def _outcome(read: Callable[[], object]) -> str:
    try:
        read()
    except UnswayedError:
        return "refused"
    return "read"


def _line(record: dict[str, Any], rng: random.Random) -> bytes:
    """One record as JSON, changed; now and then nested far too deeply."""
    if rng.random() < 0.01:
        deep = rng.choice((50, 500, 5000, 100_000))
        return (
            json.dumps(record)[:-1].encode()
            + b', "meta": '
            + b'{"a":[' * deep
            + b"]}" * deep
            + b"}"
        )
    text = json.dumps(_changed(record, rng), ensure_ascii=rng.random() < 0.5)
    return _bytes_changed(text.encode("utf-8", "surrogatepass"), rng).replace(b"\n", b" ")


def _changed(record: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A copy with values of any type at random places."""
    made: dict[str, Any] = json.loads(json.dumps(record))
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        target: Any = made
        while True:
            keys = list(target) if isinstance(target, dict) else list(range(len(target)))
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(target[key], dict | list) and rng.random() < 0.6:
                target = target[key]
                continue
            if rng.random() < 0.1:
                del target[key]
            else:
                target[key] = copy.deepcopy(rng.choice(ODD))
            break
        if isinstance(target, dict) and rng.random() < 0.1:
            target[rng.choice(("", "extra", "\x00", "name"))] = copy.deepcopy(rng.choice(ODD))
    return made


def _bytes_changed(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.6 or not data:
        return data
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 20))):
        place = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[place] = rng.randrange(256)
            case 1:
                del changed[place : place + rng.randrange(9)]
            case 2:
                changed[place:place] = rng.randbytes(rng.randrange(5))
            case _:
                changed[place:place] = changed[: rng.randrange(40)]
        if not changed:
            break
    return bytes(changed)


def _toml(record: dict[str, Any]) -> str:
    tables = {key: value for key, value in record.items() if isinstance(value, dict)}
    lines = [f"{_key(key)} = {_value(v)}" for key, v in record.items() if key not in tables]
    for name, table in tables.items():
        lines.append(f"[{_key(name)}]")
        lines += [f"{_key(key)} = {_value(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return key if key.isidentifier() and key.isascii() else json.dumps(key)


def _value(value: object) -> str:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(key)} = {_value(v)}' for key, v in value.items())}}}"
    return "[]" if value is None else json.dumps(value)


if __name__ == "__main__":
    main()
