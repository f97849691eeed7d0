"""Random decisions files, good and bad lines mixed, for the readers to agree about."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from typing import Any

LETTERS = "ABCD"


def random_row(
    draw: random.Random, sizes: Sequence[int], *, criteria: bool = False
) -> dict[str, Any]:
    """One good decision about one of a few items."""
    number = draw.randrange(12)
    n = sizes[number % len(sizes)]
    orders = list(itertools.permutations(range(n)))
    label_set = list(LETTERS[:n])
    row: dict[str, Any] = {
        "item_id": f"{n}-{number}" + draw.choice(("", " é")) * (number == 3),
        "order": list(draw.choice(orders[:6])),
        "labels": draw.choice((label_set, label_set, label_set[::-1])),
        "label_set": label_set,
        "sample": draw.choice((0, 0, 0, 1, 2)),
        "choice": draw.choice((*range(n), None, "tie")),
    }
    if draw.random() < 0.3:
        del row["label_set"]
    if draw.random() < 0.6:
        shares = [draw.random() + 0.01 for _ in range(n)]
        row["probs"] = [share / sum(shares) for share in shares]
    if draw.random() < 0.4:
        row["label_mass"] = draw.choice((0.0, 0.5, 0.999, 1.0005))
    if draw.random() < 0.15:
        row["scores"] = [draw.choice((None, float(draw.randrange(9)))) for _ in range(n)]
    if draw.random() < 0.1:
        row["ranking"] = list(draw.choice(orders))
    if draw.random() < 0.1:
        row["flags"] = {"short": [draw.choice((None, True, False)) for _ in range(n)]}
    if draw.random() < 0.15:
        row["substitute"] = ["N/A"] * n
        row["substitute_prompt"] = draw.choice((None, "N/A"))
    if draw.random() < 0.2:
        row["finish_reason"] = draw.choice(("stop", "content_filter", "refusal", "abort"))
    if draw.random() < 0.5:
        row["text"] = draw.choice(("A", "B\nbecause", "ü" * 30, ',"reasked":false'))
    for name in ("reasked", "disagrees"):
        if draw.random() < 0.1:
            row[name] = draw.random() < 0.9
    if criteria:
        row["criterion"] = draw.choice(("clear", "right"))
        row["criteria_order"] = draw.choice((None, [0, 1], [1, 0]))
    return row


def spoilt(draw: random.Random, row: dict[str, Any]) -> bytes:
    """A line with something wrong in it, or hardly right."""
    n = len(row["order"])
    faults: list[dict[str, Any]] = [
        {"order": [0] * n},
        {"choice": n},
        {"choice": -1},
        {"choice": 70_000},
        {"choice": "left"},
        {"probs": [0.5] * (n + 1)},
        {"probs": [1.5, -0.5, *[0.0] * (n - 2)]},
        {"probs": [1.0009, *[0.0] * (n - 1)]},
        {"probs": [1.002, *[0.0] * (n - 1)]},
        {"probs": []},
        {"labels": ["A"] * n},
        {"labels": ["X", "Y", "Z", "W"][:n], "label_set": []},
        {"label_mass": 1.2},
        {"label_mass": -1},
        {"scores": [1e16] * n},
        {"ranking": [0] * n},
        {"flags": {"score": [True] * n}},
        {"text": 5},
        {"reasked": 1},
        {"criteria_order": [0, 1], "criterion": None},
        {"item_id": None},
    ]
    return json.dumps({**row, **draw.choice(faults)}).encode()


def random_file(seed: int, size: int = 150, *, bad: float = 0.0, criteria: bool = False) -> bytes:
    """Lines of a file: of `bad` of them nobody knows whether they are good."""
    draw = random.Random(seed)
    sizes = draw.choice(((2,), (2, 3), (2, 3, 4)))
    lines: list[bytes] = []
    for _ in range(size):
        row = random_row(draw, sizes, criteria=criteria)
        if draw.random() >= bad:
            lines.append(json.dumps(row, ensure_ascii=draw.random() < 0.5).encode())
        elif draw.random() < 0.6:
            lines.append(spoilt(draw, row))
        else:
            lines.append(draw.choice((b"", b"  ", b"{", b'{"item_id":"\xff"}', b"[" * 3000, b"7")))
    return (
        (b"\xef\xbb\xbf" if draw.random() < 0.2 else b"") + b"\n".join(lines) + b"\n" * (seed % 2)
    )
