"""Made-up runs for the report's tests: a simulated biased judge, measured with a small bootstrap.

Nothing here is measured on a real model; the numbers only have to be plausible and consistent.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from unswayed.auditing.flips import FlippedItem, Flips, Shown
from unswayed.auditing.records import Metrics, Run
from unswayed.auditing.rows import as_json
from unswayed.items import Message
from unswayed.prompts import Span, Spans
from unswayed.report.data import RunData

GROUPS = ("law", "chess", "soup", "rivers", "opera", "cycling", "glass", "bees")
ADJECTIVES = ("plain", "brief", "vivid", "dull", "exact", "kind", "loose", "warm", "odd", "firm")
NOUNS = ("report", "sketch", "letter", "recipe", "survey", "remark", "lesson", "forecast")
RESAMPLES = 200


def estimate(values: NDArray[np.float64], rng: np.random.Generator) -> dict[str, Any]:
    """Mean with a percentile bootstrap over items."""
    n = len(values)
    means = values[rng.integers(0, n, (RESAMPLES, n))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return {"value": float(values.mean()), "low": float(low), "high": float(high), "n": n}


def null(reason: str) -> dict[str, Any]:
    return {"value": None, "low": None, "high": None, "n": 0, "reason": reason}


def fixed(value: float, n: int) -> dict[str, Any]:
    return {"value": value, "low": value, "high": value, "n": n, "by_construction": True}


def spans_in(messages: tuple[Message, ...], texts: tuple[str, ...]) -> Spans:
    """Where each text stands for the last time in the last message."""
    last, content = len(messages) - 1, messages[-1].content
    starts = [content.rindex(text) for text in texts]
    return tuple(
        (Span(last, start, start + len(text)),) for start, text in zip(starts, texts, strict=True)
    )


class Judge:
    """Answers of a simulated judge for n candidates under cyclic orders (two for n = 2)."""

    def __init__(self, n: int, n_items: int, *, seed: int, bias: float, label_bias: float) -> None:
        self.n, self.rng = n, np.random.default_rng(seed)
        self.content = self.rng.normal(0, 1.1, (n_items, n))
        self.gold = (self.content + self.rng.normal(0, 0.7, (n_items, n))).argmax(axis=1)
        self.group = self.rng.integers(0, len(GROUPS), n_items)
        self.tilt = bias + self.rng.normal(0, 0.35, len(GROUPS)) * (bias > 0)
        self.label_bias = label_bias
        self.favourite = 0 if n == 2 else n // 2
        self.orders = [tuple((p + k) % n for p in range(n)) for k in range(n)]

    def probs(self, order: tuple[int, ...], labels: tuple[int, ...]) -> NDArray[np.float64]:
        """Probability by candidate, shape (I, n)."""
        logits = self.content.copy()
        for position, candidate in enumerate(order):
            if position == self.favourite:
                logits[:, candidate] += self.tilt[self.group]
            if labels[position] == self.favourite:
                logits[:, candidate] += self.label_bias
        noise = np.random.default_rng([len(logits), *order, *labels])
        odds = np.exp(logits + noise.normal(0, 0.1, logits.shape))
        return odds / odds.sum(axis=1, keepdims=True)

    def protocol(self, name: str) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        own = tuple(range(self.n))
        return {
            "coupled": [(order, own) for order in self.orders],
            "order": [(order, order) for order in self.orders],
            "label": [(own, order) for order in self.orders],
        }[name]

    def choices(self, name: str) -> NDArray[np.intp]:
        """Chosen candidate, shape (I, P)."""
        return np.stack([self.probs(o, lab).argmax(axis=1) for o, lab in self.protocol(name)], 1)


def agreement(choices: NDArray[np.intp], n: int) -> NDArray[np.float64]:
    counts = np.stack([(choices == c).sum(axis=1) for c in range(n)], axis=1)
    if n == 2:
        return (counts.max(axis=1) == choices.shape[1]).astype(float)
    return counts.max(axis=1) / choices.shape[1]


def rates(
    choices: NDArray[np.intp], places: list[tuple[int, ...]], judge: Judge
) -> list[dict[str, Any]]:
    """Share of each position (places = orders) or label (places = candidate by label)."""
    made = []
    for index in range(judge.n):
        hit = np.stack([choices[:, p] == place[index] for p, place in enumerate(places)], axis=1)
        made.append(estimate(hit.mean(axis=1), judge.rng))
    return made


def protocol_row(judge: Judge, name: str) -> dict[str, Any]:
    choices, shown = judge.choices(name), judge.protocol(name)
    by_label = [tuple(order[labels.index(x)] for x in range(judge.n)) for order, labels in shown]
    return {
        "consistency": estimate(agreement(choices, judge.n), judge.rng),
        "position_rate": rates(choices, [order for order, _ in shown], judge),
        "label_rate": rates(choices, by_label, judge),
    }


def spread_of_recall(judge: Judge, choices: NDArray[np.intp]) -> dict[str, Any]:
    """RStd over displayed labels, pooled over orders (coupled: label = position)."""
    order = np.array(judge.orders)
    right = choices == judge.gold[:, None]

    def spread(rows: NDArray[np.intp]) -> float:
        at = np.stack(
            [(order[p] == judge.gold[rows][:, None]).argmax(1) for p in range(len(order))], 1
        )
        return float(np.std([right[rows][at == label].mean() for label in range(judge.n)]))

    n = len(choices)
    draws = [spread(judge.rng.integers(0, n, n)) for _ in range(40)]
    low, high = np.percentile(draws, [2.5, 97.5])
    return {"value": spread(np.arange(n)), "low": float(low), "high": float(high), "n": n}


def method_row(
    judge: Judge, choices: NDArray[np.intp], calls: float, *, every_order: bool = False
) -> dict[str, Any]:
    """A method's row from its choices by candidate, shape (I, P); -2 is a tie."""
    right = choices == judge.gold[:, None]
    ties = choices == -2
    n = len(choices)
    row = {
        "calls_per_item": round(calls),
        "calls_per_item_amortised": calls,
        "accuracy": (share := estimate(right.mean(axis=1), judge.rng)),
        "accuracy_fractional": share,
        "consistency": estimate(agreement(choices, judge.n), judge.rng),
        "consistent_accuracy": estimate(right.all(axis=1).astype(float), judge.rng),
        "rstd": spread_of_recall(judge, choices),
        "position_rate": rates(choices, judge.orders, judge),
        "tie_rate": estimate(ties.mean(axis=1), judge.rng),
        "unparsed_rate": {"value": 0.0, "low": 0.0, "high": 0.0, "n": n},
        "fleiss_kappa": {"value": 0.31, "low": 0.25, "high": 0.37, "n": n},
        "icc2k": {"value": 0.74, "low": 0.7, "high": 0.78, "n": n},
        "estimation_calls": 0,
    }
    if every_order:
        row["consistency"] = fixed(1.0, n)
        row["rstd"] = fixed(0.0, n)
        row["position_rate"] = [fixed(1 / judge.n, n) for _ in range(judge.n)]
    if ties.any():
        row["rstd"] = null("it names no winner whenever the orders disagree")
        row["position_rate"] = null("it names no winner whenever the orders disagree")
    return row


def methods_of(judge: Judge) -> tuple[dict[str, Any], dict[str, NDArray[np.intp]]]:
    shown = judge.protocol("coupled")
    probs = np.stack([judge.probs(order, labels) for order, labels in shown], axis=1)
    direct = probs.argmax(axis=2)
    mean = probs.mean(axis=1).argmax(axis=1)
    average = np.repeat(mean[:, None], len(shown), axis=1)
    vote = np.where((direct == direct[:, :1]).all(axis=1), direct[:, 0], -2)
    vote = np.repeat(vote[:, None], len(shown), axis=1)
    rng, P = judge.rng, len(shown)  # noqa: N806 - P presentations
    noisy = np.stack(
        [[rng.choice(judge.n, p=row) for row in probs[:, p]] for p in range(P)], axis=1
    )
    corrected = {}
    for name, strength, noise in (
        ("pride", 0.95, 0.25),
        ("contextual", 0.6, 0.5),
        ("domain-contextual", 0.8, 0.3),
        ("batch", 0.9, 0.2),
        ("calibraeval", 1.0, 0.3),
        ("additive", 0.97, 0.22),
        ("pride-by-group", 1.0, 0.1),
    ):
        logits = np.log(probs)
        for p, (order, _) in enumerate(shown):
            shift = strength * (judge.tilt.mean() + judge.label_bias)
            if name == "pride-by-group":
                shift = judge.tilt[judge.group] + judge.label_bias
            logits[:, p, order[judge.favourite]] -= shift
        logits += rng.normal(0, noise, logits.shape)
        corrected[name] = logits.argmax(axis=2)
    chosen = {"direct": direct, "repeat": noisy, "vote": vote, "average": average, **corrected}
    calls = {
        "direct": 1.0, "repeat": 3.0, "vote": float(P), "average": float(P), "pride": 1.05,
        "contextual": 1.03, "domain-contextual": 1.02, "batch": 1.0, "calibraeval": 1.6,
        "additive": 1.15, "pride-by-group": 1.2,
    }  # fmt: skip
    rows = {
        name: method_row(judge, chosen[name], calls[name], every_order=name in {"vote", "average"})
        for name in chosen
    }
    return rows, chosen


def difference(judge: Judge, a: NDArray[np.intp], b: NDArray[np.intp]) -> dict[str, dict[str, Any]]:
    gold = judge.gold[:, None]
    gap = estimate((a == gold).mean(1) - (b == gold).mean(1), judge.rng)
    return {"accuracy": gap, "accuracy_fractional": gap}


def candidate_texts(index: int, n: int) -> tuple[str, ...]:
    words = itertools.product(ADJECTIVES, NOUNS)
    pool = [f"a {a} {b}" for a, b in words]
    return tuple(pool[(index * 7 + 11 * c) % len(pool)] for c in range(n))


def flipped_items(judge: Judge, limit: int = 10_000) -> list[FlippedItem]:
    """The items whose choice changes, surest first."""
    shown = judge.protocol("coupled")
    probs = np.stack([judge.probs(order, labels) for order, labels in shown], axis=1)
    choices = probs.argmax(axis=2)
    surest = probs.max(axis=2).min(axis=1)
    flips = np.flatnonzero((choices != choices[:, :1]).any(axis=1))
    made = []
    for i in sorted(flips, key=lambda i: -surest[i])[:limit]:
        texts = candidate_texts(int(i), judge.n)
        views = []
        for p, (order, labels) in enumerate(shown):
            symbols = tuple(chr(65 + x) for x in labels)
            body = "\n\n".join(f"[{s}]\n{texts[c]}" for s, c in zip(symbols, order, strict=True))
            text = f"Which is the better answer about {GROUPS[judge.group[i]]}?\n\n{body}\n\n"
            choice = int(choices[i, p])
            messages = (Message("user", f"{text}Reply with the letter only."),)
            views.append(
                Shown(
                    order=order,
                    labels=symbols,
                    messages=messages,
                    choice=choice,
                    label=symbols[order.index(choice)],
                    prob=float(probs[i, p].max()),
                    text=symbols[order.index(choice)],
                    spans=spans_in(messages, texts),
                )
            )
        made.append(
            FlippedItem(
                f"item-{i:04d}", GROUPS[judge.group[i]], int(judge.gold[i]), texts, tuple(views)
            )
        )
    return made


def sample_run(
    n: int = 2,
    n_items: int = 600,
    *,
    seed: int = 1,
    bias: float = 1.1,
    label_bias: float = 0.5,
    methods: tuple[str, ...] | None = None,
    model: str = "simulated/tilted",
) -> RunData:
    """A run of a simulated judge."""
    judge = Judge(n, n_items, seed=seed, bias=bias, label_bias=label_bias)
    rows, chosen = methods_of(judge)
    if methods is not None:
        rows = {name: rows[name] for name in methods}
    best = max(rows, key=lambda name: rows[name]["accuracy"]["value"])
    pairs = (("average", "direct"), ("repeat", "direct"), ("average", best))
    metrics = {
        "unswayed": "0.1.0",
        "model": model,
        "data": {
            "name": "made-up pairs" if n == 2 else "made-up options",
            "n_items": n_items,
            "task": "pairwise" if n == 2 else "mcq",
        },
        "protocol": {"name": "swap" if n == 2 else "cyclic", "n_presentations": n},
        "calls": {
            "planned": 3 * n * n_items, "made": 3 * n * n_items, "cached": 0, "failed": 0,
            "unparsed": 0, "input_tokens": 90_000, "output_tokens": 2_400, "cost_usd": 0.31,
        },
        "protocols": {name: protocol_row(judge, name) for name in ("coupled", "order", "label")},
        "methods": rows,
        "differences": {
            f"{a}-{b}": difference(judge, chosen[a], chosen[b])
            for a, b in pairs
            if a != b and a in rows and b in rows
        },
        "recommendation": {
            "state": "better",
            "method": "average" if "average" in rows else next(iter(rows)),
            "gain": est(0.164, 0.142, 0.184),
        },
        "groups": groups_of(judge),
        "macro": {"direct": {"consistency": estimate(judge.rng.random(8), judge.rng)}},
    }  # fmt: skip
    flipped = flipped_items(judge)
    return RunData(Metrics.of(metrics), run_json(n, seed), Flips(len(flipped), tuple(flipped)))


def groups_of(judge: Judge) -> dict[str, Any]:
    choices = judge.choices("coupled")
    made = {}
    for index, name in enumerate(GROUPS):
        members = judge.group == index
        if not members.any():
            continue
        some = choices[members]
        made[name] = {
            "direct": {
                "consistency": estimate(agreement(some, judge.n), judge.rng),
                "position_rate": rates(some, judge.orders, judge),
            }
        }
    return made


def run_json(n: int, seed: int) -> Run:
    record = {
        "version": "0.1.0",
        "created": "2026-11-20T09:30:00+00:00",
        "command": "unswayed audit pairs.jsonl --model simulated/tilted --methods all --protocol "
                   f"all --seed {seed}",
        "data": {"fingerprint": "sha256:0123456789abcdef0123456789abcdef"},
        "prompt": {"name": "direct", "temperature": 0},
        "intervals": f"95 %, percentile bootstrap over items, 1000 resamples, seed {seed}",
        "seed": seed,
        "packages": {"python": "3.11.7", "numpy": "2.2.0"},
        "time_s": 12.4,
        "labels": [chr(65 + label) for label in range(n)],
    }  # fmt: skip
    return msgspec.convert(record, Run)


def figures(run: RunData) -> dict[str, Any]:
    """`metrics.json` of a run, to take apart."""
    record: dict[str, Any] = as_json(run.metrics)
    return record


def with_metrics(run: RunData, **changes: Any) -> RunData:
    """The run with some keys of its metrics replaced."""
    return replace(run, metrics=Metrics.of({**figures(run), **changes}))


def est(value: float, low: float, high: float, n: int = 1000) -> dict[str, Any]:
    """An estimate written down by hand."""
    return {"value": value, "low": low, "high": high, "n": n}


def plain_run(
    first: tuple[float, float, float] = (0.78, 0.76, 0.80),
    consistency: tuple[float, float, float] = (0.43, 0.40, 0.46),
    *,
    n_items: int = 1000,
    n_flipped: int = 570,
    protocols: dict[str, Any] | None = None,
    **metrics: Any,
) -> RunData:
    """A two-candidate run with numbers written down by hand and the single call as its method."""
    value, low, high = first
    coupled = {
        "consistency": est(*consistency, n_items),
        "position_rate": [
            est(value, low, high, 2 * n_items),
            est(1 - value, 1 - high, 1 - low, 2 * n_items),
        ],
        "label_rate": [
            est(value, low, high, 2 * n_items),
            est(1 - value, 1 - high, 1 - low, 2 * n_items),
        ],
    }
    direct = {
        "calls_per_item": 1.0,
        "calls_per_item_amortised": 1.0,
        "accuracy": est(0.71, 0.69, 0.73, n_items),
        "accuracy_fractional": est(0.71, 0.69, 0.73, n_items),
        "consistent_accuracy": est(0.42, 0.39, 0.45, n_items),
        **coupled,
    }
    made = {
        "unswayed": "0.1.0",
        "model": "simulated/plain",
        "data": {"name": "pairs", "n_items": n_items, "task": "pairwise"},
        "protocol": {"name": "swap", "n_presentations": 2},
        "calls": {"planned": 2 * n_items, "made": 2 * n_items, "cached": 0, "unparsed": 0},
        "protocols": {"coupled": coupled, **(protocols or {})},
        "methods": {"direct": direct},
        **metrics,
    }
    return RunData(Metrics.of(made), run_json(2, 0), Flips(n_flipped))


def method(
    accuracy: tuple[float, float, float],
    calls: float,
    consistency: tuple[float, float, float] | None = (0.8, 0.78, 0.82),
) -> dict[str, Any]:
    """A method's row written down by hand; without consistency it reads every order."""
    return {
        "calls_per_item": calls,
        "calls_per_item_amortised": calls,
        "accuracy": est(*accuracy),
        "accuracy_fractional": est(*accuracy),
        "consistency": fixed(1.0, 1000) if consistency is None else est(*consistency),
    }
