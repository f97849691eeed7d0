"""Runs for the tests of reports: written down by hand, audited, and of judges whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

import unswayed as us
from unswayed.auditing.audit import AuditRecord
from unswayed.auditing.flips import FlippedItem, Flips, Shown
from unswayed.auditing.recorded import audit_decisions
from unswayed.auditing.records import Metrics, RunRecord
from unswayed.auditing.rows import as_json, converted
from unswayed.auditing.settings import AuditSettings
from unswayed.backends.simulated import simulated_items
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, ItemSet, Message, Task
from unswayed.prompts import Span, Spans
from unswayed.report.collect import run_data
from unswayed.report.data import RunData

GROUPS = ("law", "chess", "soup", "rivers", "opera", "cycling", "glass", "bees")
THINGS = ("report", "sketch", "letter", "recipe", "survey", "remark", "lesson", "forecast")
METHODS = (
    "direct", "canonical", "repeat", "vote", "average", "pride", "additive", "cell-median",
    "contextual", "domain-contextual",
)  # fmt: skip
COMMAND = "unswayed audit pairs.jsonl --model simulated/tilted --methods all --protocol all"
EXPOSURE = [[3, 2, 2], [1, 3, 3], [3, 2, 2]]
"""Seven orders of three candidates that do not show them evenly."""


def est(value: float, low: float, high: float, n: int = 1000) -> dict[str, Any]:
    """An estimate written down by hand."""
    return {"value": value, "low": low, "high": high, "n": n}


def null(reason: str) -> dict[str, Any]:
    return {"value": None, "low": None, "high": None, "n": 0, "reason": reason}


def fixed(value: float, n: int) -> dict[str, Any]:
    return {**est(value, value, value, n), "by_construction": True}


def better(method: str, criterion: str, gain: dict[str, Any]) -> dict[str, Any]:
    """A recommendation of one method beside a single call."""
    named = {"method": method, "most_accurate": method, "criterion": criterion}
    return {**named, "state": "better", "gain": gain, "items": gain["n"], "units": gain["n"]}


def shares(*rates: float, half: float = 0.02, n: int = 3000) -> list[dict[str, Any]]:
    return [est(rate, rate - half, rate + half, n) for rate in rates]


def spans_in(messages: tuple[Message, ...], texts: tuple[str, ...]) -> Spans:
    """Where each text stands for the last time in the last message."""
    last, content = len(messages) - 1, messages[-1].content
    starts = [content.rindex(text) for text in texts]
    return tuple(
        (Span(last, start, start + len(text)),) for start, text in zip(starts, texts, strict=True)
    )


def run_json(n: int, seed: int = 0) -> RunRecord:
    record = {
        "version": "0.1.0",
        "created": "2026-11-20T09:30:00+00:00",
        "command": f"{COMMAND} --seed {seed}",
        "data": {"fingerprint": "sha256:0123456789abcdef0123456789abcdef"},
        "prompt": {"name": "direct", "temperature": 0},
        "intervals": f"95%, percentile bootstrap over items, 1000 resamples, seed {seed}",
        "seed": seed,
        "packages": {"python": "3.11.7", "numpy": "2.2.0"},
        "time_s": 12.4,
        "labels": [chr(65 + label) for label in range(n)],
    }
    return msgspec.convert(record, RunRecord)


def figures(run: RunData) -> dict[str, Any]:
    """`metrics.json` of a run, to take apart."""
    record: dict[str, Any] = as_json(run.metrics)
    return record


def with_metrics(run: RunData, **changes: Any) -> RunData:
    """The run with some keys of its metrics replaced."""
    return replace(run, metrics=converted({**figures(run), **changes}, Metrics))


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
    rates = [est(value, low, high, 2 * n_items), est(1 - value, 1 - high, 1 - low, 2 * n_items)]
    coupled = {
        "consistency": est(*consistency, n_items), "position_rate": rates, "label_rate": rates,
    }  # fmt: skip
    right = est(0.71, 0.69, 0.73, n_items), est(0.42, 0.39, 0.45, n_items)
    accuracy = {"accuracy": right[0], "accuracy_fractional": right[0]}  # without ties
    direct = {**priced(1.0, consistent_accuracy=right[1], **accuracy), **coupled}
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
    return RunData(converted(made, Metrics), run_json(2), Flips(n_flipped))


def priced(calls: float, **metrics: Any) -> dict[str, Any]:
    return {"calls_per_item": calls, "calls_per_item_amortised": calls, **metrics}


def method(
    accuracy: tuple[float, float, float],
    calls: float,
    consistency: tuple[float, float, float] | None = (0.8, 0.78, 0.82),
) -> dict[str, Any]:
    """A method's row written down by hand; without consistency it reads every order."""
    steady = fixed(1.0, 1000) if consistency is None else est(*consistency)
    right = {"accuracy": est(*accuracy), "accuracy_fractional": est(*accuracy)}  # without ties
    return priced(calls, consistency=steady, **right)


def scored(n: int, task: str, rows: dict[str, Any], **metrics: Any) -> RunData:
    """A run whose single calls are `rows["direct"]`."""
    run = plain_run(
        n_items=200,
        data={"name": "scored", "n_items": 200, "task": task},
        methods=rows,
        protocol={"name": "cyclic", "n_presentations": n},
        protocols={"coupled": {k: row for k, row in rows["direct"].items() if "calls" not in k}},
        **metrics,
    )
    asked: dict[str, str | int] = {
        "model": "tiny/rubric", "directory": "run", "data": "scored.jsonl",
    }  # fmt: skip
    return replace(run, run=msgspec.structs.replace(run_json(n), task=task, asked=asked))


def shown(order: tuple[int, ...], said: str, choice: int, **more: Any) -> Shown:
    return Shown(order, ("A", "B", "C"), (Message("user", said),), choice, "A", **more)


def list_run(places: tuple[float, ...] = (4.1, 0.1, -4.2), half: float = 0.4) -> RunData:
    """Lists of three: the first place gains, seeded orders are uneven, `pcf` is recommended."""
    even = shares(0.5, 0.3, 0.2)
    direct = priced(
        1.0, accuracy=est(0.6, 0.55, 0.65, 200), consistency=est(0.7, 0.66, 0.74, 200),
        position_rate=even, label_rate=even, rank_stability=est(0.412, 0.35, 0.47, 200),
        position_score=shares(*places, half=half, n=200),
    )  # fmt: skip
    pcf = priced(
        7.0, accuracy=est(0.74, 0.68, 0.8, 200), consistency=est(0.9, 0.87, 0.93, 200),
        rank_stability=est(0.8, 0.75, 0.85, 200), exposure={"3": EXPOSURE},
    )  # fmt: skip
    curve = [
        priced(k, accuracy=est(a, a - 0.05, a + 0.05, 200), consistency=est(c, c - 0.04, c + 0.04))
        for k, a, c in ((1, 0.6, 0.7), (7, 0.74, 0.9))
    ]
    improved = {
        "n": 200, "improved": 40, "regressed": 12, "p": 0.0001,
        "improved_shared": 39.5, "regressed_shared": 11.0,
    }  # fmt: skip
    run = scored(
        3,
        "listwise",
        {"direct": direct, "pcf": pcf},
        recommendation=better("pcf", "accuracy_fractional", est(0.14, 0.08, 0.2, 200)),
        differences={"pcf-direct": {"accuracy": est(0.14, 0.08, 0.2, 200)}},
        flips={"total": 90, "n": 200, "first": 12, "last": 0, "unread": 0, "ties": 0},
        order_curve={"pcf": curve},
        improvements={"pcf-direct": improved},
        cautions={"pcf": ["pcf: 7 orders of 3 candidates put them first 3/1/3 times."]},
    )
    views = (
        shown((0, 1, 2), "Rank them.", 0, text="{}", scores=(80.0, 72.0, None)),
        shown((1, 2, 0), "Rank them.", 1, text="{}", scores=(71.0, 79.0, 30.0)),
    )
    item = FlippedItem(
        "list-1", None, 0, ("red", "green", "blue"), views,
        stability=-1 / 3, first_gain=(9.0, 7.0, None),
    )  # fmt: skip
    return replace(run, flips=Flips(90, (item,)))


def scale_run(gain: tuple[float, float, float] = (0.051, 0.041, 0.061)) -> RunData:
    """Three levels: the one shown first is preferred, `average` is closer to the human scores."""
    even = shares(0.5, 0.3, 0.2)
    direct = priced(
        1.0, accuracy=est(0.53, 0.4, 0.66, 40), consistency=est(0.65, 0.62, 0.68, 200),
        position_rate=even, label_rate=even, spearman=est(0.825, 0.794, 0.853, 200),
        pearson=est(0.814, 0.784, 0.842, 200), kendall_tau=est(0.716, 0.684, 0.747, 200),
        within_item_sd=est(0.523, 0.511, 0.535, 200), score_shift=est(-0.12, -0.18, -0.06, 200),
    )  # fmt: skip
    average = priced(
        3.0, accuracy=est(0.6, 0.45, 0.72, 40), consistency=fixed(1.0, 200),
        spearman=est(0.876, 0.846, 0.901, 200), pearson=est(0.87, 0.842, 0.897, 200),
        kendall_tau=est(0.719, 0.685, 0.752, 200),
    )  # fmt: skip
    steady = {"consistency": est(0.6, 0.5, 0.7, 100)}
    groups = {
        name: {"direct": {**steady, "spearman": est(rho, rho - 0.1, rho + 0.08, 100)}}
        for name, rho in (("wit", 0.7), ("facts", 0.86))
    }
    counts = {
        "values": [1, 2, 3],
        "chosen": [[100, 60, 40], [120, 50, 30], [80, 70, 50]],
        "shown": [[200] * 3] * 3,
    }
    changed = {"accuracy": est(0.07, -0.1, 0.2, 40), "spearman": est(*gain, 200)}
    run = scored(
        3,
        "rubric",
        {"direct": direct, "average": average},
        recommendation=better("average", "spearman", changed["spearman"]),
        differences={"average-direct": changed},
        groups=groups,
        level_choices={"3": counts},
    )  # fmt: skip
    views = tuple(
        shown(order, "Rate it.", choice, prob=0.9, text="A")
        for order, choice in (((0, 1, 2), 0), ((2, 1, 0), 2))
    )
    item = FlippedItem(
        "scale-1", "wit", None, ("poor", "fair", "good"), views, values=(1.0, 2.0, 3.0), human=2.5
    )
    return replace(run, flips=Flips(150, (item,)))


@cache
def sample_run(
    n: int = 2,
    n_items: int = 600,
    *,
    seed: int = 1,
    bias: float = 1.1,
    label_bias: float = 0.5,
) -> RunData:
    """A run of a simulated judge that favours one place and one label."""
    worth = simulated_items(n_items, n, seed=seed)
    items = [
        msgspec.structs.replace(
            item,
            group=GROUPS[number % 8],
            prompt=f"Question {number} about {GROUPS[number % 8]}",
            candidates=tuple(f"{THINGS[(number // 8 + c) % 8]} {number}.{c}" for c in range(n)),
        )
        for number, item in enumerate(worth)
    ]
    favours = "&".join(
        f"{what}={','.join(str(logit * (k == n // 2 * (n > 2))) for k in range(n))}"
        for what, logit in (("slot", bias), ("label", label_bias))
    )
    audited = us.audit(
        f"simulated/judge?{favours}&noise=0.2",
        ItemSet.of(items, name="made-up pairs" if n == 2 else "made-up options"),
        methods=[own for own in METHODS if n == 2 or own != "cell-median"],
        protocol="all",
        seed=seed,
        resamples=100,
    )
    run = with_metrics(run_data(audited.record), model="simulated/tilted")
    return replace(run, run=run_json(n, seed))


TIE, UNREAD = -1, -2


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A judge of pairs or options whose effects are planted, in logits; `drawn` is its law.

    Attributes:
        place: By how much the first place is favoured over the last, falling evenly in between.
        label: The same for labels.
        worth: Standard deviation of what a candidate is worth.
        noise: Standard deviation of the log-odds of two candidates over presentations.
        ties: Share of answers that call a tie.
        always: What every answer is: the candidate at this place, or a tie.
        coin: Whether gold has nothing to do with the candidates.
        opposed: Whether every other group favours the last place as much.
        gaps: Items whose last order was not recorded.
        unread: Every so manieth answer cannot be read; 0: none.
        copies: Items that ask the same question, answered alike.
        placeholder: Whether all items have the same short texts.
        samples: Times that each presentation was asked.
        apart: Whether labels were moved without the order, too.
    """

    n: int = 2
    items: int = 300
    place: float = 0.0
    label: float = 0.0
    worth: float = 1.5
    noise: float = 0.6
    ties: float = 0.0
    always: int | None = None
    probs: bool = False
    coin: bool = False
    opposed: bool = False
    gaps: int = 0
    unread: int = 0
    copies: int = 1
    placeholder: bool = False
    samples: int = 1
    apart: bool = False

    @property
    def layouts(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Order and labels by position: coupled first, then the orders with labels moved on."""
        own = range(self.n)
        turns = [tuple((p + k) % self.n for p in own) for k in own]
        return [
            (order, labels) for labels in (turns if self.apart else turns[:1]) for order in turns
        ]

    def drawn(self, seed: int, size: int) -> tuple[NDArray[np.intp], ...]:
        """Gold (I,), choices (I, layouts, samples) and probabilities beside them, by candidate."""
        rng = np.random.default_rng(seed)
        falling = np.linspace(0.5, -0.5, self.n)
        worth = rng.normal(0, self.worth, (size // self.copies, self.n))
        gold = (worth * (not self.coin) + rng.gumbel(size=worth.shape)).argmax(1)
        side = np.where(np.arange(len(worth)) % 2 * self.opposed, -1.0, 1.0)
        shape = (len(worth), len(self.layouts), self.samples, self.n)
        logits = rng.normal(0, self.noise / np.sqrt(2), shape) + worth[:, None, None]
        for at, (order, labels) in enumerate(self.layouts):
            tilt = np.outer(side, self.place * falling) + self.label * falling[list(labels)]
            logits[:, at][:, :, list(order)] += tilt[:, None]
        odds = np.exp(logits)
        choices = logits.argmax(-1)
        choices[rng.random(choices.shape) < self.ties] = TIE
        if self.always is not None:
            for at, (order, _) in enumerate(self.layouts):
                choices[:, at] = TIE if self.always == TIE else order[self.always]
        rows = np.arange(len(worth)).repeat(self.copies)
        choices = choices[rows]
        if self.unread:
            choices.reshape(-1)[:: self.unread] = UNREAD
        return gold[rows], choices, (odds / odds.sum(-1, keepdims=True))[rows]

    def audited(self, seed: int) -> AuditRecord:
        gold, choices, probs = self.drawn(seed, self.items)
        items, decisions = [], []
        for i in range(self.items):
            asked, texts = (
                f"question {seed} {i // self.copies}",
                [f"text {c}" for c in range(self.n)],
            )
            items.append(
                Item(
                    id=f"item-{i}",
                    task=Task.PAIRWISE if self.n == 2 else Task.MCQ,
                    prompt="(recorded)" if self.placeholder else asked,
                    candidates=tuple(
                        texts if self.placeholder else (f"{asked} {t}" for t in texts)
                    ),
                    gold=int(gold[i]),
                    group=f"g{i // self.copies % 2}" if self.opposed else None,
                )
            )
            for at, (order, labels) in enumerate(self.layouts[: -1 if i < self.gaps else None]):
                for sample, choice in enumerate(choices[i, at].tolist()):
                    given = self.probs and choice >= 0
                    decisions.append(
                        Decision(
                            item_id=items[-1].id,
                            order=order,
                            labels=tuple("ABCDEFGH"[label] for label in labels),
                            label_set=tuple("ABCDEFGH"[: self.n]),
                            sample=sample,
                            choice={TIE: "tie", UNREAD: None}.get(choice, choice),
                            probs=tuple(probs[i, at, sample].tolist()) if given else None,
                            model="planted",
                        )
                    )
        settings = AuditSettings(methods=("all",), resamples=100, seed=seed)
        return audit_decisions(decisions, ItemSet.of(items, name="planted"), settings, command="x")


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A judge of lists, or of responses on a scale, whose first place is worth `slot` logits more
    than the last.
    """

    task: Task
    n: int
    slot: float
    items: int = 100

    def audited(self, seed: int) -> AuditRecord:
        return us.audit(
            f"simulated/judge?slot={self.slot}&label=0&noise=0.4&seed={seed}",
            simulated_items(self.items, self.n, seed=seed, task=self.task),
            methods=("direct", "vote", "average"),
            resamples=100,
            seed=seed,
        ).record


STATES: dict[str, Planted | Scored] = {
    "calm": Planted(noise=0.05, probs=True, apart=True, items=400),
    "noise without bias": Planted(noise=2.5, samples=3),
    "first place": Planted(place=1.5),
    "first place, probabilities": Planted(place=1.5, probs=True, apart=True),
    "place and label opposed": Planted(place=1.2, label=-1.2, items=600),
    "ties and first place": Planted(place=1.5, ties=0.3),
    "always a tie": Planted(always=TIE),
    "always the first": Planted(always=0),
    "placeholder texts": Planted(place=1.0, placeholder=True, probs=True),
    "gold is a coin": Planted(place=1.5, coin=True, probs=True, samples=3),
    "four options": Planted(n=4, place=2.0),
    "groups opposed": Planted(place=2.0, opposed=True, items=600),
    "gaps": Planted(place=1.0, gaps=100, unread=13),
    "duplicates": Planted(place=1.0, copies=4, items=400),
    "lists": Scored(task=Task.LISTWISE, n=3, slot=2.0),
    "scale": Scored(task=Task.RUBRIC, n=5, slot=1.0),
}
