"""From the runs' files to the study's tables and plot."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from arms import FINALISTS, PAPER, STEPPED
from figures import AVERAGED, BASE, METRICS, Figures, Run, difference, mean, spread
from plot import plot
from settings import DECOMPOSED, LAYOUTS, PARTS, SETTINGS, SWEEPS, Setting, jobs

from unswayed.model.items import Task

__all__ = ["STEPS", "write_tables"]

STEPS = (10, 25, 50, 100)
EARLY = (10, 25)
"""Steps of PA-GRPO that cost as much as 100 exact ones where responses are not shared."""
TASKS = {Task.PAIRWISE: "judge", Task.MCQ: "MCQ"}
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


def write_tables(out: Path, *, seeds: int, command: str) -> str:
    """Write `study.md`, `study.json` and a plot of the runs that are there; returns the Markdown."""
    planned = {job.name for job in jobs(seeds)}
    files = [path for path in sorted((out / "runs").glob("*.json")) if path.stem in planned]
    runs = [json.loads(path.read_text()) for path in files]
    base = json.loads((out / "base.json").read_text())
    figures = Figures(runs)
    text = "\n".join(
        [
            f"Command: `{command}`. Percent, mean ± sd over training seeds; evaluation items, "
            "true gold, all orders (2 for the judge, 24 for MCQ). ECE: 15 bins of the top "
            "probability; Brier: summed over the candidates, times 100. RStd, ECE, Brier: less is "
            "better. CPU: seconds of the steps, and of what goes before them, the least of the "
            "seeds.",
            "",
            *_base_table(base),
            *_setting_tables(figures, (*PARTS["main"], *PARTS["secondary"])),
            *_against(figures, "main"),
            *_by_setting(figures),
            *_pairs_table(figures),
            *_matched_table(figures),
            *_sweep_tables(figures),
            *_protocol_table(figures, base),
            *_step_table(figures),
            *_setting_tables(figures, PARTS["robustness"]),
            *_robustness_table(figures),
            *_setting_tables(figures, PARTS["confirmation"]),
            *_against(figures, "confirmation"),
        ]
    )
    (out / "study.md").write_text(text + "\n")
    (out / "study.json").write_text(json.dumps({"base": base, "runs": runs}, indent=1))
    plot(figures, [s for s in PARTS["main"] if s.name in DECOMPOSED], STEPS, out / "study.svg")
    return text


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A section with one table; nothing if it has no row."""
    if not rows:
        return []
    return [
        f"## {title}",
        "",
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]


def _base_table(base: Run) -> list[str]:
    rows = []
    for task, name in TASKS.items():
        for method, row in base["methods"][task.value].items():
            cells = ["–" if row[m] is None else f"{row[m]:.1f}" for m in METRICS[:4]]
            title = "base (direct)" if method == "direct" else method
            rows.append([name, title, f"{row['calls']:.2f}", *cells])
    columns = ["task", "method", "calls per item", *METRICS[:4]]
    return _table("Without training", columns, rows)


def _setting_tables(figures: Figures, settings: Sequence[Setting]) -> list[str]:
    """One table per setting: every arm with every metric and what it cost."""
    lines = []
    for setting in settings:
        runs = figures.runs(setting, "PA-GRPO")
        if not runs:
            continue
        rows = []
        for arm in (BASE, AVERAGED, *setting.arms):
            values = [figures.values(setting, arm, metric) for metric in METRICS]
            if values[0]:
                rows.append([arm, *map(spread, values), *_cost(figures, setting, arm)])
        wrong = 100 * mean([run["wrong_gold"] for run in runs])
        title = f"{setting.title} ({wrong:.0f} % of the gold wrong)"
        lines += _table(title, ["arm", *METRICS, "CPU steps", "before", "seeds"], rows)
    return lines


def _cost(figures: Figures, setting: Setting, arm: str) -> list[str]:
    """CPU seconds, the least of the seeds: other work on the machine only adds to them; and seeds."""
    if arm in (BASE, AVERAGED):
        return ["–", "–", "–"]
    runs = figures.runs(setting, arm)
    least = [min(run[name] for run in runs) for name in ("seconds", "seconds_before")]
    return [*(f"{seconds:.1f}" for seconds in least), str(len(runs))]


def _rivals(settings: Sequence[Setting]) -> list[str]:
    """What could be used in place of PA-GRPO."""
    arms = dict.fromkeys(arm for setting in settings for arm in setting.arms)
    return [*(arm for arm in arms if arm != "PA-GRPO"), AVERAGED]


def _against(figures: Figures, part: str) -> list[str]:
    """Everything against PA-GRPO, pooled by task."""
    lines = []
    for task, name in TASKS.items():
        settings = [setting for setting in PARTS[part] if setting.task is task]
        rows = [
            [arm, *(difference(m, figures.paired(settings, m, arm)) for m in METRICS)]
            for arm in _rivals(settings)
            if figures.paired(settings, "CA", arm)
        ]
        where = "" if part == "main" else ", second base"
        title = (
            f"Against PA-GRPO, paired by seed, {name}{where}: mean difference ± standard error "
            "(runs in which the arm is better)"
        )
        lines += _table(title, ["arm", *METRICS], rows)
    return lines


def _by_setting(figures: Figures) -> list[str]:
    """Consistent accuracy against PA-GRPO, setting by setting."""
    shown = [s for s in (*PARTS["main"], *PARTS["secondary"]) if set(FINALISTS) <= set(s.arms)]
    rows = [
        [arm, *(difference("CA", figures.paired([s], "CA", arm)) for s in shown)]
        for arm in _rivals(shown)
    ]
    title = "Consistent accuracy against PA-GRPO, paired by seed, by setting"
    return _table(title, ["arm", *(s.title for s in shown)], rows)


def _pairs_table(figures: Figures) -> list[str]:
    """Comparisons of two arms, pooled by task."""
    rows = []
    for task, name in TASKS.items():
        settings = [setting for setting in PARTS["main"] if setting.task is task]
        for first, second in PAIRS:
            cells = [difference(m, figures.paired(settings, m, first, second)) for m in METRICS]
            rows.append([name, f"{first} − {second}", *cells])
    return _table("Paired by seed, two arms", ["task", "comparison", *METRICS], rows)


def _matched_table(figures: Figures) -> list[str]:
    """100 steps of an arm against the first steps of PA-GRPO, and both after the first steps."""
    rows = []
    for task, name in TASKS.items():
        settings = [setting for setting in PARTS["main"] if setting.task is task]
        for arm in (arm for arm in STEPPED if arm not in (*PAPER, "inv", "PIF")):
            for early in EARLY:
                for step in (None, early):
                    after = f"{arm} after {step or settings[0].steps}"
                    differences = {
                        metric: figures.paired(settings, metric, arm, steps=(step, early))
                        for metric in ("Acc", "Con", "CA", "ECE")
                    }
                    if differences["CA"]:
                        cells = [difference(*pair) for pair in differences.items()]
                        rows.append([name, after, f"PA-GRPO after {early}", *cells])
    columns = ["task", "arm, steps", "against", "Acc", "Con", "CA", "ECE"]
    return _table("At unequal and at equal steps, paired by seed", columns, rows)


def _sweep_tables(figures: Figures) -> list[str]:
    lines = []
    for title, settings in SWEEPS.items():
        rows = [
            [
                setting.title,
                *(spread(figures.values(setting, "PA-GRPO", metric)) for metric in METRICS),
                *_cost(figures, setting, "PA-GRPO")[:1],
            ]
            for setting in settings
            if figures.runs(setting, "PA-GRPO")
        ]
        lines += _table(f"PA-GRPO, sweep over {title}", ["", *METRICS, "CPU steps"], rows)
    return lines


def _protocol_table(figures: Figures, base: Run) -> list[str]:
    """Consistency by what moves."""

    def row(title: str, of: Callable[[str], str]) -> list[str]:
        return [title, *(of(protocol) for protocol in LAYOUTS)]

    rows = []
    for setting in (s for s in SETTINGS if s.name in DECOMPOSED):
        before = base[setting.task.value]
        rows.append(row(f"{setting.title}: base", lambda p, b=before: f"{b[p]['Con']:.1f}"))
        for arm in setting.arms:
            apart = [run["protocols"] for run in figures.runs(setting, arm) if run["protocols"]]
            if apart:
                consistency = {p: spread([layouts[p]["Con"] for layouts in apart]) for p in LAYOUTS}
                rows.append(row(f"{setting.title}: {arm}", consistency.__getitem__))
    title = "Consistency with labels only, orders only, and both permuted"
    return _table(title, ["setting: arm", *LAYOUTS], rows)


def _step_table(figures: Figures) -> list[str]:
    rows = [
        [
            f"{setting.title}: {arm}",
            *(
                spread(figures.values(setting, arm, metric, s))
                for metric in ("Con", "CA")
                for s in STEPS
            ),
        ]
        for setting in PARTS["main"]
        if setting.name in DECOMPOSED
        for arm in STEPPED
        if figures.runs(setting, arm)
    ]
    columns = ["setting: arm", *(f"{metric} {s}" for metric in ("Con", "CA") for s in STEPS)]
    return _table("By step", columns, rows)


def _robustness_table(figures: Figures) -> list[str]:
    """What is held out: against PA-GRPO, and against the free average."""
    rows = []
    for setting in PARTS["robustness"]:
        for arm in setting.arms:
            if not figures.runs(setting, arm):
                continue
            cells = [
                difference(metric, figures.paired([setting], metric, arm, rival))
                for rival in ("PA-GRPO", AVERAGED)
                for metric in ("Acc", "CA")
            ]
            rows.append([setting.title, arm, *cells])
    columns = [
        "setting",
        "arm",
        "Acc − PA-GRPO",
        "CA − PA-GRPO",
        "Acc − base averaged",
        "CA − base averaged",
    ]
    return _table("Held out, paired by seed", columns, rows)
