"""The figures of a judge of pairs by counting its decisions: what `expected/*.json` hold, field by field."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from unswayed.metrics import sign_test
from unswayed.model.decisions import Decision
from unswayed.model.items import Item

Symbols = tuple[str, str]


def symbol(decision: Decision) -> str:
    """What was displayed beside the choice: A or B, T for a tie, None where nothing was read."""
    if decision.choice is None:
        return "None"
    if decision.choice == "tie":
        return "T"
    return "AB"[decision.order.index(decision.choice)]


def pairs_of(decisions: Iterable[Decision]) -> dict[str, Symbols]:
    """By item: the symbols in the own order and in the other one."""
    by_item: dict[str, list[str]] = {}
    for decision in decisions:
        by_item.setdefault(decision.item_id, ["", ""])[decision.order[0]] = symbol(decision)
    return {name: (first, second) for name, (first, second) in by_item.items() if first and second}


def candidate(symbols: Symbols) -> tuple[object, object]:
    """What the two answers mean by candidate."""
    own, other = symbols
    return {"A": 0, "B": 1}.get(own, own), {"A": 1, "B": 0}.get(other, other)


def wilson(k: int, n: int) -> list[float]:
    """The 95% interval of a share, without continuity correction."""
    z = 1.959963984540054
    middle, half = (
        k / n + z * z / (2 * n),
        z * math.sqrt(k / n * (1 - k / n) / n + z * z / (4 * n * n)),
    )
    return [(middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)]


def of_verdicts(pairs: Sequence[Symbols]) -> dict[str, Any]:
    """What needs no gold."""
    n, both = len(pairs), [candidate(pair) for pair in pairs]
    shown = Counter(symbol for pair in pairs for symbol in pair)
    counts = Counter(f"{own}|{other}" for own, other in pairs)
    same = [a == b != "None" for a, b in both]
    untied = [a == b and a in (0, 1) for a, b in both]
    decided = [{own, other} <= {"A", "B"} for own, other in pairs]
    first, second = counts["A|A"], counts["B|B"]
    return {
        "n_pairs": n,
        "raw_pair_counts": dict(counts),
        "verdicts_total": {
            "A": shown["A"],
            "B": shown["B"],
            "tie": shown["T"],
            "unparsed": shown["None"],
        },
        "tie_order1": sum(own == "T" for own, _ in pairs),
        "tie_order2": sum(other == "T" for _, other in pairs),
        "unparsed_order1": sum(own == "None" for own, _ in pairs),
        "unparsed_order2": sum(other == "None" for _, other in pairs),
        "first_position_rate": shown["A"] / (shown["A"] + shown["B"]),
        "n_consistent_strict": sum(same),
        "consistency_strict": sum(same) / n,
        "n_consistent_no_tie": sum(untied),
        "consistency_strict_no_tie": sum(untied) / n,
        "n_both_decided": sum(decided),
        "consistency_among_both_decided": sum(untied) / sum(decided),
        "both_first": first,
        "both_second": second,
        "primacy": sum(counts[name] for name in ("A|A", "A|T", "T|A")),
        "recency": sum(counts[name] for name in ("B|B", "B|T", "T|B")),
        "inconsistent_rate": 1 - sum(same) / n,
        "position_sign_test_p": sign_test(first, second) if first + second else None,
        "consistency_strict_wilson95": wilson(sum(same), n),
    }


def of_gold(pairs: dict[str, Symbols], items: Iterable[Item]) -> dict[str, Any]:
    """What needs gold, on the items whose gold is a candidate."""
    gold = {item.id: item.gold for item in items if item.gold in (0, 1)}
    decided = [(gold[name], pair) for name, pair in pairs.items() if name in gold]
    n = len(decided)
    own = [right == candidate(pair)[0] for right, pair in decided]
    other = [right == candidate(pair)[1] for right, pair in decided]
    wrong = [candidate(pair) == (1 - right, 1 - right) for right, pair in decided]
    displayed = Counter(
        ("AB"[right if place == 0 else 1 - right], symbol)
        for right, pair in decided
        for place, symbol in enumerate(pair)
    )
    said = Counter(symbol for _, pair in decided for symbol in pair)
    recalls = [displayed[letter, letter] / n for letter in "AB"]
    return {
        "n_gold_decided": n,
        "gold_is_cand1": sum(right == 0 for right, _ in decided),
        "n_correct_order1": sum(own),
        "n_correct_order2": sum(other),
        "accuracy_order1": sum(own) / n,
        "accuracy_order2": sum(other) / n,
        "order_level_accuracy": (sum(own) + sum(other)) / (2 * n),
        "n_both_correct": sum(a and b for a, b in zip(own, other, strict=True)),
        "consistent_accuracy": sum(a and b for a, b in zip(own, other, strict=True)) / n,
        "n_both_wrong_opposite": sum(wrong),
        "recall_A": recalls[0],
        "recall_B": recalls[1],
        "rstd": float(np.std(recalls)),
        "ckld": divergence(said, 2 * n),
        "ckld_AB_only": divergence(Counter({s: said[s] for s in "AB"}), said["A"] + said["B"]),
    }


def divergence(said: Counter[str], total: int) -> float:
    """Of what was displayed as right (half A, half B) from what was said, a sliver added to each count."""
    sliver, value = 1e-10, 0.0
    for letter in {"A", "B", *said}:
        p = ((total / 2 if letter in "AB" else 0.0) + sliver) / total
        value += p * math.log(p / ((said[letter] + sliver) / total))
    return value


def figures(items: Sequence[Item], decisions: Iterable[Decision]) -> dict[str, Any]:
    """All fields of a judge, or of a group of its items."""
    names = {item.id for item in items}
    pairs = {name: pair for name, pair in pairs_of(decisions).items() if name in names}
    with_gold = any(item.gold is not None for item in items)
    return of_verdicts(list(pairs.values())) | (of_gold(pairs, items) if with_gold else {})
