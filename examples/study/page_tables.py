"""The tables and figures of `study.md` and `beyond.md`, chosen from the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from arms import FINALISTS, PAPER
from figures import AVERAGED, BASE
from settings import PARTS, SETTINGS, SWEEPS

from unswayed.model.items import Task

TASKS = {Task.PAIRWISE: "judge", Task.MCQ: "MCQ"}
APART: Final = {"label": "labels only", "order": "orders only"}
PAIRS = (
    ("PA-GRPO", "GRPO"),
    ("+r_con", "GRPO"),
    ("+A_PA (EIS-GRPO)", "GRPO"),
    ("PA-GRPO", "+r_con"),
    ("inv", "probability-weighted"),
    ("exact inv", "exact pair"),
    ("exact inv, lambda 3", "exact pair"),
    ("exact inv", "inv"),
    ("exact inv + distill", "permuted SFT"),
    ("SFT + inv", "permuted SFT"),
    ("weighed gold", "permuted SFT"),
    ("distill, random pairs", "distill"),
    ("distill", AVERAGED),
    ("exact inv + distill", AVERAGED),
    ("permuted SFT", AVERAGED),
)
SHOWN: Final = (
    *PAPER,
    "joint",
    "inv",
    "exact pair",
    "exact inv",
    "exact inv + distill",
    "permuted SFT",
    "SFT + inv",
    "weighed gold",
    "PIF",
    "distill",
    AVERAGED,
)
"""Arms of the main tables; the file of records has all."""
BRIEF: Final = ("Acc", "Con", "CA", "ECE")
"""Metrics of the main tables."""

Record = dict[str, str]
Table = tuple[Sequence[str], list[list[str]]]


def page_data(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Choose the tables and figures of `study.md` and `beyond.md`, by page."""
    chosen = _Records(records)
    parts = {
        "study": (_study_tables(chosen), _study_figures(chosen)),
        "beyond": (_beyond_tables(chosen), _beyond_figures(chosen)),
    }
    return {
        page: {
            "tables": {
                name: {"columns": list(head), "rows": rows} for name, (head, rows) in tables.items()
            },
            "figures": figures,
        }
        for page, (tables, figures) in parts.items()
    }


class _Records:
    """All records, by setting, arm, rival and step; and the titles of the settings."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.all = records
        self.tasks = list(TASKS.values())
        self.main = [setting.title for setting in PARTS["main"]]
        self.held_out = [setting.title for setting in PARTS["robustness"]]
        self.second = [f"second base: {task}" for task in self.tasks]
        self.finalists = [arm for arm in FINALISTS if arm != "PA-GRPO"]
        self._last = str(PARTS["main"][0].steps)
        self._kept = {
            (r["setting"], r["arm"], r.get("against", ""), r.get("step", "")): r for r in records
        }

    def cells(self, setting: str, arm: str, fields: Sequence[str], against: str = "") -> list[str]:
        """Fields of an arm after the last step, or without one; dashes where nothing was measured."""
        places = ((setting, arm, against, step) for step in (self._last, ""))
        record = next((self._kept[place] for place in places if place in self._kept), {})
        return [record.get(field) or "–" for field in fields]

    def rows(
        self,
        settings: Sequence[str],
        arms: Sequence[str],
        fields: Sequence[str],
        against: str = "",
    ) -> list[list[str]]:
        """Setting, arm and fields of every pair that was measured."""
        every = [[s, arm, *self.cells(s, arm, fields, against)] for s in settings for arm in arms]
        return [row for row in every if set(row[2:]) != {"–"}]


def _study_tables(chosen: _Records) -> dict[str, Table]:
    main, cells, rows = chosen.main, chosen.cells, chosen.rows
    untrained = dict.fromkeys(r["arm"] for r in chosen.all if r["setting"].endswith("untrained"))
    swept = dict.fromkeys(setting.title for group in SWEEPS.values() for setting in group)
    settings = [f"{task}, untrained" for task in chosen.tasks]
    by_setting = [
        [arm, *(cells(setting, arm, ["CA"], "PA-GRPO")[0] for setting in main)]
        for arm in SHOWN
        if arm != "PA-GRPO"
    ]
    pairs = [
        [task, f"{first} − {other}", *cells(task, first, BRIEF, other)]
        for task in chosen.tasks
        for first, other in PAIRS
    ]
    held_out = [
        [
            *row,
            *cells(row[0], row[1], ["CA"], "PA-GRPO"),
            *cells(row[0], row[1], ["Acc", "CA"], AVERAGED),
        ]
        for row in rows(chosen.held_out, FINALISTS, BRIEF[:3])
    ]
    noisy = rows(main[:1], (BASE, AVERAGED, *SHOWN[:-1]), BRIEF)
    wrong = [
        f"{setting} ({cells(setting, 'PA-GRPO', ['wrong gold'])[0]}% wrong)" for setting in main
    ]
    beside = ("CA − PA-GRPO", "Acc − average", "CA − average")
    rivals = [*chosen.finalists, AVERAGED]
    return {
        "untrained": (
            ["judge", "method", "calls per item", *BRIEF[:3]],
            rows(settings, list(untrained), ("calls", *BRIEF[:3])),
        ),
        "noisy-judge": (["arm", *BRIEF], [row[1:] for row in noisy]),
        "by-setting": (["arm", *wrong], by_setting),
        "pairs": (["task", "comparison", *BRIEF], pairs),
        "held-out": (["held out", "arm", *BRIEF[:3], *beside], held_out),
        "second-base": (
            ["base and task", "arm", *BRIEF],
            rows(chosen.second, rivals, BRIEF, "PA-GRPO"),
        ),
        "sweeps": (
            ["varied", "value", *BRIEF[:3], "CPU s"],
            rows(list(SWEEPS), list(swept), (*BRIEF[:3], "CPU steps")),
        ),
    }


def _study_figures(chosen: _Records) -> dict[str, str]:
    arms = (BASE, AVERAGED, "GRPO", "PA-GRPO", "permuted SFT")
    return {_key(arm): chosen.cells(chosen.main[0], arm, ["CA"])[0] for arm in arms}


def _beyond_tables(chosen: _Records) -> dict[str, Table]:
    rows = chosen.rows
    layouts = [setting for setting in SETTINGS if setting.layouts == "all"]
    moved = dict.fromkeys((*FINALISTS, *(arm for setting in layouts for arm in setting.arms)))
    groups = [chosen.main[0], *(setting.title for setting in layouts)]
    apart = ("Con", *APART.values(), "CA", "Acc")
    at_steps = ("setting", "arm", "step", "against", *BRIEF[:3])
    unequal = [
        [record[field] for field in at_steps]
        for record in chosen.all
        if " after " in record.get("against", "")
        and record["arm"] in ("exact pair", *chosen.finalists[-3:])
    ]
    return {
        "against": (
            ["task", "arm", *BRIEF],
            rows(chosen.tasks, [*chosen.finalists, AVERAGED], BRIEF, "PA-GRPO"),
        ),
        "layouts": (["training groups", "arm", *apart], rows(groups, list(moved), apart)),
        "cost": (
            ["setting", "arm", "CPU s of 100 steps", "CPU s before them"],
            rows([chosen.main[0], chosen.held_out[-1]], FINALISTS, ("CPU steps", "CPU before")),
        ),
        "steps": (["task", *at_steps[1:]], unequal),
    }


def _beyond_figures(chosen: _Records) -> dict[str, str]:
    return {
        _key(title): chosen.cells(title, "exact inv + distill", ["CA"], "PA-GRPO")[0]
        for title in (*chosen.tasks, *chosen.second)
    }


def _key(title: str) -> str:
    return title.lower().replace(": ", "-").replace(" ", "-")
