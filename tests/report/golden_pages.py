"""The words of the report, kept: a page and a terminal text per state, and one-line variations.

Any change of words fails `test_report_golden.py`. Where it is meant, write the files anew and look
at the difference:

    python tests/report/golden_pages.py
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from page_text import page_text
from report_samples import (
    est,
    figures,
    fixed,
    method,
    null,
    plain_run,
    run_json,
    spans_in,
    with_metrics,
)
from rich.console import Console
from scored_samples import list_run, scale_run

from unswayed.auditing.flips import FlippedItem, Flips, Shown
from unswayed.auditing.records import Run
from unswayed.decisions import Estimate
from unswayed.items import Message
from unswayed.report.claims import bias_of
from unswayed.report.data import RunData
from unswayed.report.explorer import item_view
from unswayed.report.findings import Finding
from unswayed.report.page import render_report
from unswayed.report.scored import lede_of
from unswayed.report.sections import (
    cause_section,
    groups_claim,
    items_claim,
    remedies_claim,
)
from unswayed.report.terminal import terminal_report
from unswayed.report.words import plain, say, sentence

FOLDER = Path(__file__).parent / "golden"
EVEN, STEADY = (0.50, 0.48, 0.52), (0.95, 0.93, 0.97)

Metrics = dict[str, Any]


def shares(first: float, *rest: float, half: float = 0.02) -> list[Metrics]:
    return [est(share, share - half, share + half) for share in (first, *rest)]


def pair(share: float, half: float = 0.02) -> list[Metrics]:
    return shares(share, 1 - share, half=half)


def protocols(position: float, label: float) -> Metrics:
    """Position and label each on its own."""
    return {
        "order": {"position_rate": pair(position), "consistency": est(0.55, 0.52, 0.58)},
        "label": {"label_rate": pair(label), "consistency": est(0.84, 0.82, 0.86)},
    }


def options(first: float, *rest: float, **more: Any) -> RunData:
    """A run with three candidates."""
    rows = shares(first, *rest)
    coupled = {"consistency": est(0.61, 0.58, 0.64), "position_rate": rows, "label_rate": rows}
    direct = {"calls_per_item": 1.0, "accuracy": est(0.6, 0.57, 0.63), **coupled}
    run = plain_run(
        protocols={"coupled": coupled},
        methods={"direct": direct},
        protocol={"name": "cyclic", "n_presentations": 3},
        data={"name": "pairs", "n_items": 1000, "task": "mcq"},
        **more,
    )
    return replace(run, run=run_json(3, 0))


def called(**calls: Any) -> Metrics:
    return {"planned": 2000, "made": 2000, "cached": 0, "unparsed": 0, **calls}


def flipped() -> FlippedItem:
    texts = ("the red one", "the blue one")
    views = []
    for order in ((0, 1), (1, 0)):
        prompt = f"Which is better?\n\nA: {texts[order[0]]}\n\nB: {texts[order[1]]}"
        messages = (Message("user", prompt),)
        shown = Shown(order, ("A", "B"), messages, order[0], "A", 0.8, "A")
        shown = msgspec.structs.replace(shown, spans=spans_in(messages, texts))
        views.append(shown)
    return FlippedItem("item-1", "law", 0, texts, tuple(views))


def whole() -> RunData:
    """Everything at once: protocols, methods, groups, a curve, thresholds, a flipped item."""
    base = figures(plain_run())["methods"]["direct"]
    methods = {
        "direct": {**base, "tie_rate": est(0.0, 0.0, 0.01), "fleiss_kappa": est(0.3, 0.2, 0.4)},
        "canonical": method((0.71, 0.68, 0.74), 1.0, None),
        "pride": {**method((0.85, 0.83, 0.87), 1.2), "calls_per_item": 1.0},
        "repeat": {**method((0.70, 0.68, 0.72), 3.0, (0.45, 0.42, 0.48)), "calls_per_item": 3},
        "vote": {
            **method((0.42, 0.39, 0.45), 2.0, None),
            "tie_rate": est(0.57, 0.54, 0.60),
            "accuracy_fractional": est(0.70, 0.68, 0.72),
            "rstd": null("it names no winner whenever the orders disagree"),
        },
        "average": {**method((0.87, 0.85, 0.89), 2.0, None), "rstd": fixed(0.0, 1000)},
    }
    advice = {
        "method": "average", "reason": "", "criterion": "accuracy", "best": "average",
        "alternative": "pride", "steadiest": "pride",
    }  # fmt: skip
    differences = {
        "average-direct": {"accuracy": est(0.164, 0.142, 0.184)},
        "repeat-direct": {"accuracy": est(-0.01, -0.03, 0.01)},
        "average-canonical": {"consistent_accuracy": est(0.16, 0.13, 0.19)},
    }
    groups = {
        name: {
            "direct": {
                "accuracy": est(0.7, 0.6, 0.8, 120),
                "consistency": est(value, value - 0.08, value + 0.08, 120),
                "position_rate": pair(1 - value, 0.05),
            }
        }
        for name, value in (("law", 0.2), ("chess", 0.45), ("soup", 0.7))
    }
    points = [
        {
            "estimation_items": items,
            "calls_per_item_amortised": 1 + items / 500,
            "accuracy": est(value, value - 0.03, value + 0.03),
            "consistency": est(0.8, 0.77, 0.83),
        }
        for items, value in ((10, 0.8), (40, 0.84))
    ]
    thresholds = {
        "methods": {"pride": {"X0": 0.82, "X1": None}, "direct": {"X0": 0.5, "X1": 0.5}},
        "by_presentation": {"X0": {"threshold": 0.86, "accuracy": 0.87, "n": 1000}},
        "single": None,
        "cells": None,
        "text": "With two candidates a method that reads one call is a threshold.",
    }
    run = plain_run(
        protocols=protocols(0.7, 0.6),
        methods=methods,
        recommendation=advice,
        differences=differences,
        groups=groups,
        macro={"direct": {"consistency": est(0.45, 0.4, 0.5)}},
        flips={"total": 570, "first": 550, "last": 15, "unread": 0, "ties": 5},
        skipped={"batch": "it is asked for by name only"},
        cautions={"pride": ["pride was fitted on few items."]},
        estimation_curve={"pride": points},
        thresholds=thresholds,
    )
    return replace(
        run,
        flips=Flips(570, (flipped(),)),
        caveats=("The bias was planted.",),
        about={"average": "ask in several orders and average the probabilities"},
        run=msgspec.structs.replace(
            run.run,
            asked={"model": "tiny/judge", "directory": "run", "data": "pairs.jsonl"},
            task="pairwise",
        ),
    )


def one_order() -> RunData:
    run = plain_run()
    coupled = figures(run)["protocols"]["coupled"]
    rows = {**coupled, "consistency": null("one order was recorded")}
    direct = {**figures(run)["methods"]["direct"], **rows}
    return with_metrics(run, protocols={"coupled": rows}, methods={"direct": direct})


def without_gold() -> RunData:
    """No gold labels, and nothing shown to beat a single call."""
    run = whole()
    rows = {
        name: {
            **{k: v for k, v in row.items() if "accuracy" not in k},
            "agreement": est(0.8, 0.77, 0.83),
        }
        for name, row in figures(run)["methods"].items()
    }
    advice = {
        "method": "direct", "reason": "", "best": "average",
        "criterion": "agreement with the average over the full pool",
    }  # fmt: skip
    return with_metrics(run, methods=rows, recommendation=advice, differences={})


def recorded() -> RunData:
    return replace(whole(), run=msgspec.structs.replace(whole().run, recorded=True))


def compared() -> list[RunData]:
    other = with_metrics(plain_run((0.6, 0.58, 0.62)), model="simulated/level")
    changes = {
        "accuracy": Estimate(value=0.181, low=0.152, high=0.21, n=800),
        "consistency": Estimate(value=-0.02, low=-0.05, high=0.01, n=800),
        "rstd": Estimate(value=None, reason="no gold"),
    }
    return [whole(), replace(other, changes=changes)]


PAGES: dict[str, Callable[[], list[RunData]]] = {
    "failed": lambda: [plain_run(calls=called(made=0, failed=2000))],
    "unparsed": lambda: [
        replace(
            plain_run(calls=called(unparsed=900)), flips=Flips(570, (), ("I cannot say.",))
        )
    ],
    "unread": lambda: [plain_run(calls=called(unparsed=2000))],
    "one-order": lambda: [one_order()],
    "few": lambda: [plain_run((0.50, 0.44, 0.56), (0.93, 0.88, 0.98), n_items=100, n_flipped=7)],
    "position": lambda: [whole()],
    "position-of-options": lambda: [options(0.2, 0.5, 0.3, n_flipped=480)],
    "hidden": lambda: [plain_run(EVEN, STEADY, n_flipped=50, protocols=protocols(0.5, 0.62))],
    "flips": lambda: [plain_run(EVEN, (0.7, 0.67, 0.73), n_flipped=300)],
    "clean": lambda: [plain_run(EVEN, STEADY, n_flipped=50)],
    "without-gold": lambda: [without_gold()],
    "recorded": lambda: [recorded()],
    "compared": compared,
    "lists": lambda: [list_run()],
    "lists-without-bias": lambda: [list_run((0.1, 0.2, -0.3))],
    "scale": lambda: [scale_run()],
    "scales-compared": lambda: [scale_run(), scale_run((0.02, -0.01, 0.05))],
}  # fmt: skip


def printed(run: RunData) -> str:
    console = Console(file=io.StringIO(), width=110, color_system=None)
    console.print(terminal_report(run), crop=False)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return "".join(f"{line.rstrip()}\n" for line in str(text).splitlines())


def text_of(runs: list[RunData]) -> str:
    """The page, and what the terminal shows of each run."""
    terminal = "\n".join(printed(run) for run in runs)
    return f"{page_text(render_report(runs))}\n== terminal ==\n{terminal}"


def headline(run: RunData) -> str:
    return plain(sentence("lead.headline", Finding(run)))


def bias(position: float, label: float, share: float = 0.7) -> str:
    run = plain_run((share, share - 0.02, share + 0.02), protocols=protocols(position, label))
    return plain(sentence("bias.bias", Finding(run), bias_of(Finding(run))))


def lines() -> Iterator[tuple[str, str]]:
    """Sentences that differ from the pages' in a number or a state."""
    for flips in (0, 1):
        yield f"headline, {flips} flips", headline(plain_run(n_flipped=flips))
        yield f"clean, {flips} flips", headline(plain_run(EVEN, STEADY, n_flipped=flips))
    yield "headline, last", headline(plain_run((0.4, 0.37, 0.43)))
    yield "headline, many items", headline(plain_run(n_items=20_000, n_flipped=11_400))
    yield "clean, many items", headline(plain_run(EVEN, STEADY, n_items=20_000, n_flipped=900))
    mixed = {"total": 570, "first": 500, "last": 20, "unread": 30, "ties": 20}
    yield "headline, no plain flips", headline(plain_run(flips=mixed))
    few = plain_run((0.40, 0.30, 0.50), (0.57, 0.40, 0.74), n_items=35, n_flipped=15)
    yield "few, flips are plain", headline(few)
    yield "few, all alike", headline(plain_run((1.0, 1.0, 1.0), n_items=5))
    wide = {"label": {"label_rate": pair(0.5, 0.05)}}
    yield "few, by label", headline(plain_run(EVEN, STEADY, protocols=wide))
    yield "avoided", headline(options(0.35, 0.35, 0.30))
    hidden = {"order": {"position_rate": pair(0.6)}}
    yield "hidden position", headline(plain_run(EVEN, STEADY, protocols=hidden))
    yield "no item", headline(with_metrics(one_order(), data={"name": "d", "n_items": 0}))
    for missing in (1, 20):
        run = plain_run(calls=called(made=2000 - missing))
        yield f"{missing} missing", plain(sentence("lead.missing", Finding(run)))
    told = with_metrics(plain_run(), calls=called(made=1990))
    told = replace(told, run=Run(failures=("some calls failed: 429.", "Go on.")))
    yield "missing, told", plain(sentence("lead.missing", Finding(told)))
    refused = plain_run(calls=called(unparsed=150, refused=3))
    yield "lede, refused", plain(lede_of(Finding(refused)))
    for position, label in ((0.7, 0.6), (0.3, 0.6), (0.7, 0.5), (0.5, 0.4), (0.5, 0.5)):
        yield f"bias {position} {label}", bias(position, label)
    yield "bias, out by chance", bias(0.522, 0.5, 0.5)
    third = options(0.2, 0.2, 0.6)
    for labels in ((0.2, 0.2, 0.6), (0.6, 0.2, 0.2), (0.41, 0.18, 0.41)):
        alone = {
            "order": {"position_rate": shares(0.2, 0.2, 0.6)},
            "label": {"label_rate": shares(*labels)},
        }
        run = with_metrics(third, protocols={**figures(third)["protocols"], **alone})
        yield (
            f"bias of options {labels}",
            plain(sentence("bias.bias", Finding(run), bias_of(Finding(run)))),
        )
    for order, label in (
        ((0.84, 0.82, 0.87), (0.57, 0.54, 0.60)),
        ((0.80, 0.78, 0.82), (0.81, 0.79, 0.83)),
        ((0.80, 0.70, 0.90), (0.81, 0.71, 0.91)),
        ((0.80, 0.70, 0.90), None),
        (None, (0.80, 0.70, 0.90)),
    ):
        rows = {
            name: {"consistency": est(*values)}
            for name, values in (("order", order), ("label", label))
            if values is not None
        }
        section = cause_section([Finding(plain_run(protocols=rows))])
        assert section is not None
        claim = section.claim
        yield f"cause {order} {label}", " ".join(map(plain, (claim.title, *claim.lines)))
    for values in ((0.4, 0.5), (1.0, 1.0), (0.2, 0.7)):
        for first in ((0.7, 0.7), (0.9, 0.6), (0.6, 0.9)):
            groups = {
                f"g{i}": {
                    "direct": {
                        "consistency": est(value, value - 0.1, min(1.0, value + 0.1), 100),
                        "position_rate": pair(share),
                    }
                }
                for i, (value, share) in enumerate(zip(values, first, strict=True))
            }
            group_claim = groups_claim(Finding(plain_run(groups=groups)))
            assert group_claim is not None
            words = (group_claim.title, *group_claim.lines)
            yield f"groups {values} {first}", " ".join(map(plain, words))
    for number in (2, 10, 19, 50):
        yield f"chance, {number} groups", plain(sentence("groups.chance", number))
    for counts in (
        (0, 0, 0), (570, 570, 0), (570, 15, 550), (122, 37, 7), (1, 1, 0),
    ):  # fmt: skip
        flips = dict(zip(("total", "first", "last"), counts, strict=True))
        items_shown = Flips(counts[0], (flipped(),) if counts[0] else ())
        runs = [Finding(replace(plain_run(flips=flips), flips=items_shown))]
        items = items_claim(runs)
        yield f"items {counts}", " ".join(map(plain, (items.title, *items.lines)))
    yield from advice()
    for number, choices in enumerate(((0, 1), (0, "tie"), (1, None))):
        item = flipped()
        views = [
            msgspec.structs.replace(
                view, choice=choice, label=view.label if isinstance(choice, int) else None
            )
            for view, choice in zip(item.shown, choices, strict=True)
        ]
        gold = (None, "tie", (0, 1))[number]
        view = item_view(msgspec.structs.replace(item, shown=tuple(views), gold=gold), "answer")
        said = " / ".join(
            f"{one.heading}: {''.join(text for text, _ in one.said)}" for one in view.views
        )
        yield f"item {choices}", f"{view.summary} {said}"


def advice() -> Iterator[tuple[str, str]]:
    """The recommendation in every state."""
    run = whole()
    for name, change in (
        ("highest, not at the top", {"method": "pride", "best": "pride", "alternative": None}),
        ("cheapest", {"method": "pride", "alternative": None}),
        ("direct", {"method": "direct", "alternative": None, "steadiest": "pride"}),
        ("direct, none higher", {"method": "direct", "best": "direct", "alternative": None}),
        ("unscored", {"criterion": "rank", "reason": "it was cheap.", "alternative": None}),
        ("none", {"method": None, "reason": "too few calls were answered"}),
    ):
        given = {**figures(run)["recommendation"], **change}
        finding = Finding(with_metrics(run, recommendation=given))
        claim = remedies_claim(finding)
        assert claim is not None
        words = " ".join(map(plain, (claim.title, *claim.lines)))
        yield f"advice, {name}", f"{words} | {plain(lede_of(finding))}"
    for gain in ((0.02, 0.01, 0.03), (-0.02, -0.03, -0.01)):
        differences = {"repeat-direct": {"accuracy": est(*gain)}}
        claim = remedies_claim(Finding(with_metrics(run, differences=differences)))
        assert claim is not None
        yield f"repeat {gain}", " ".join(map(plain, claim.lines))
    assert say("advice.advice", Finding(plain_run()), None) == ()


def files() -> Iterator[tuple[str, str]]:
    """Name and content of every golden file."""
    for name, runs in PAGES.items():
        yield f"{name}.txt", text_of(runs())
    yield "lines.txt", "".join(f"{name}: {words}\n" for name, words in lines())


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, content in files():
        (FOLDER / file).write_text(content, encoding="utf-8")
