"""Made-up runs of lists and of a scale, written down by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from report_samples import est, fixed, plain_run, run_json

from unswayed.auditing.flips import FlippedItem, Flips, Shown
from unswayed.items import Message
from unswayed.report.data import RunData

EXPOSURE = [[3, 2, 2], [1, 3, 3], [3, 2, 2]]
"""Seven orders of three candidates that do not show them evenly."""


def shares(*rates: float) -> list[dict[str, Any]]:
    return [est(rate, rate - 0.02, rate + 0.02, 3000) for rate in rates]


def points(*places: float, half: float = 0.4) -> list[dict[str, Any]]:
    return [est(value, value - half, value + half, 200) for value in places]


def scored(n: int, task: str, rows: dict[str, Any], **metrics: Any) -> RunData:
    """A run whose single calls are `rows["direct"]`."""
    coupled = {name: value for name, value in rows["direct"].items() if "calls" not in name}
    run = plain_run(
        n_items=200,
        data={"name": "scored", "n_items": 200, "task": task},
        methods=rows,
        protocol={"name": "cyclic", "n_presentations": n},
        protocols={"coupled": coupled},
        **metrics,
    )
    asked: dict[str, str | int] = {
        "model": "tiny/rubric",
        "directory": "run",
        "data": "scored.jsonl",
    }
    return replace(run, run=msgspec.structs.replace(run_json(n, 0), task=task, asked=asked))


def priced(calls: float, **metrics: Any) -> dict[str, Any]:
    return {"calls_per_item": calls, "calls_per_item_amortised": calls, **metrics}


def list_run(places: tuple[float, ...] = (4.1, 0.1, -4.2), half: float = 0.4) -> RunData:
    """Lists of three: the first place gains, seeded orders are uneven, `pcf` is recommended."""
    direct = priced(
        1.0,
        accuracy=est(0.6, 0.55, 0.65, 200),
        consistency=est(0.7, 0.66, 0.74, 200),
        position_rate=shares(0.5, 0.3, 0.2),
        label_rate=shares(0.5, 0.3, 0.2),
        rank_stability=est(0.412, 0.35, 0.47, 200),
        position_score=points(*places, half=half),
    )
    pcf = priced(
        7.0,
        accuracy=est(0.74, 0.68, 0.8, 200),
        consistency=est(0.9, 0.87, 0.93, 200),
        rank_stability=est(0.8, 0.75, 0.85, 200),
        exposure={"3": EXPOSURE},
    )
    curve = [
        priced(
            k, accuracy=est(a, a - 0.05, a + 0.05, 200), consistency=est(c, c - 0.04, c + 0.04, 200)
        )
        for k, a, c in ((1, 0.6, 0.7), (7, 0.74, 0.9))
    ]
    improved = {
        "n": 200,
        "improved": 40,
        "regressed": 12,
        "p": 0.0001,
        "improved_shared": 39.5,
        "regressed_shared": 11.0,
    }
    run = scored(
        3,
        "listwise",
        {"direct": direct, "pcf": pcf},
        recommendation={
            "method": "pcf",
            "reason": "",
            "criterion": "accuracy",
            "best": "pcf",
            "alternative": None,
            "steadiest": None,
        },
        differences={"pcf-direct": {"accuracy": est(0.14, 0.08, 0.2, 200)}},
        flips={"total": 90, "n": 200, "first": 12, "last": 0, "unread": 0, "ties": 0},
        order_curve={"pcf": curve},
        improvements={"pcf-direct": improved},
        cautions={"pcf": ["pcf: 7 orders of 3 candidates put them first 3/1/3 times."]},
    )
    views = tuple(
        Shown(
            order,
            ("A", "B", "C"),
            (Message("user", "Rank them."),),
            choice,
            "A",
            None,
            "{}",
            scores=scores,
        )
        for order, choice, scores in (
            ((0, 1, 2), 0, (80.0, 72.0, None)),
            ((1, 2, 0), 1, (71.0, 79.0, 30.0)),
        )
    )
    item = FlippedItem(
        "list-1",
        None,
        0,
        ("red", "green", "blue"),
        views,
        stability=-1 / 3,
        first_gain=(9.0, 7.0, None),
    )
    return replace(run, flips=Flips(90, (item,)))


def scale_run(gain: tuple[float, float, float] = (0.051, 0.041, 0.061)) -> RunData:
    """Three levels: the one shown first is preferred, `average` is closer to the human scores."""
    direct = priced(
        1.0,
        accuracy=est(0.53, 0.4, 0.66, 40),
        consistency=est(0.65, 0.62, 0.68, 200),
        position_rate=shares(0.5, 0.3, 0.2),
        label_rate=shares(0.5, 0.3, 0.2),
        spearman=est(0.825, 0.794, 0.853, 200),
        pearson=est(0.814, 0.784, 0.842, 200),
        kendall_tau=est(0.716, 0.684, 0.747, 200),
        within_item_sd=est(0.523, 0.511, 0.535, 200),
        score_shift=est(-0.12, -0.18, -0.06, 200),
    )
    average = priced(
        3.0,
        accuracy=est(0.6, 0.45, 0.72, 40),
        consistency=fixed(1.0, 200),
        spearman=est(0.876, 0.846, 0.901, 200),
        pearson=est(0.87, 0.842, 0.897, 200),
        kendall_tau=est(0.719, 0.685, 0.752, 200),
    )
    groups = {
        name: {
            "direct": {
                "consistency": est(0.6, 0.5, 0.7, 100),
                "spearman": est(rho, rho - 0.1, rho + 0.08, 100),
            }
        }
        for name, rho in (("wit", 0.7), ("facts", 0.86))
    }
    counts = {
        "values": [1, 2, 3],
        "chosen": [[100, 60, 40], [120, 50, 30], [80, 70, 50]],
        "shown": [[200] * 3] * 3,
    }
    run = scored(
        3,
        "rubric",
        {"direct": direct, "average": average},
        recommendation={
            "method": "average",
            "reason": "",
            "criterion": "rank correlation with human scores",
            "best": "average",
            "alternative": None,
            "steadiest": None,
        },
        differences={
            "average-direct": {"accuracy": est(0.07, -0.1, 0.2, 40), "spearman": est(*gain, 200)}
        },
        groups=groups,
        level_choices={"3": counts},
    )
    views = tuple(
        Shown(order, ("A", "B", "C"), (Message("user", "Rate it."),), choice, "A", 0.9, "A")
        for order, choice in (((0, 1, 2), 0), ((2, 1, 0), 2))
    )
    item = FlippedItem(
        "scale-1", "wit", None, ("poor", "fair", "good"), views, values=(1.0, 2.0, 3.0), human=2.5
    )
    return replace(run, flips=Flips(150, (item,)))
