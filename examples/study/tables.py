"""From the runs' files to the study's tables, plots and reading."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path

from arms import ARMS, DECOMPOSED, LAYOUTS, SETTINGS, SWEEPS, Setting, jobs
from inference import AVERAGED

from unswayed.items import Task

__all__ = ["write_tables"]

Run = dict
TITLES = {
    "Acc": "Accuracy (Acc)",
    "Con": "Consistency (Con)",
    "CA": "Consistent accuracy (CA)",
    "RStd": "Spread of the recalls by position (RStd, less is better)",
}
METRICS = tuple(TITLES)
RIVALS = ("GRPO", "permuted SFT", "PIF")
STEPS = ("10", "25", "50", "100")
LAST = STEPS[-1]


def write_tables(out: Path, *, seeds: int, command: str) -> str:
    """Write `study.md`, `study.json` and a plot; returns the Markdown."""
    files = sorted((out / "runs").glob("*.json"))
    runs = [(path.stem, json.loads(path.read_text())) for path in files]
    planned = {job.name for job in jobs(seeds)}
    runs = [run for name, run in runs if name in planned]
    base = json.loads((out / "base.json").read_text())
    text = "\n".join(
        [
            f"Command: `{command}`. Percent, mean ± sd over {seeds} training seeds; held-out items, "
            "true gold, all orders (2 for the judge, 24 for MCQ).",
            "",
            *_base_table(base),
            *_arms_tables(runs, base),
            *_rivals_table(runs, base),
            *_pairs_table(runs),
            *_cost_table(runs),
            *_sweep_tables(runs),
            *_protocol_table(runs, base),
            *_speed_table(runs),
        ]
    )
    (out / "study.md").write_text(text + "\n")
    (out / "study.json").write_text(json.dumps({"base": base, "runs": runs}, indent=1))
    _plot(runs, out / "study.svg")
    return text


def _base_table(base: Run) -> list[str]:
    lines = ["## Without training", ""]
    for task in (Task.PAIRWISE, Task.MCQ):
        lines += [
            f"{'Judge' if task is Task.PAIRWISE else 'MCQ'}:",
            "",
            "| method | calls per item | Acc | Con | CA | RStd |",
            "|---|---|---|---|---|---|",
        ]
        for method, row in base["methods"][task.value].items():
            name = "base (direct)" if method == "direct" else method
            cells = [_number(row[metric]) for metric in METRICS]
            lines.append(f"| {name} | {row['calls']:.2f} | {' | '.join(cells)} |")
        lines.append("")
    return lines


def _arms_tables(runs: Sequence[Run], base: Run) -> list[str]:
    lines = []
    for metric, title in TITLES.items():
        lines += [
            f"## {title} after 100 steps",
            "",
            f"| setting (wrong gold) | base | base averaged | {' | '.join(ARMS)} |",
            f"|---|{'---|' * (2 + len(ARMS))}",
        ]
        for setting in SETTINGS:
            cells = [
                _number(base[setting.task.value]["coupled"][metric]),
                _number(_averaged(base, setting, metric)),
                *(_spread(_values(runs, setting, arm, metric)) for arm in ARMS),
            ]
            wrong = _mean([run["wrong_gold"] for run in _of(runs, setting)])
            lines.append(f"| {setting.title} ({100 * wrong:.0f} %) | {' | '.join(cells)} |")
        lines.append("")
    return lines


def _rivals_table(runs: Sequence[Run], base: Run) -> list[str]:
    """Everything that could be used in place of PA-GRPO, against it, by setting and over all."""
    lines = [
        "## Against PA-GRPO, paired by seed: difference of means (runs in which the rival is higher)",
        "",
        "| setting | rival | Acc | Con | CA | RStd |",
        "|---|---|---|---|---|---|",
    ]
    groups = [(setting.title, [setting]) for setting in SETTINGS]
    for task, name in ((Task.PAIRWISE, "all of the judge"), (Task.MCQ, "all of MCQ, lambda 1")):
        groups.append((name, _main(task)))
    for title, settings in groups:
        for rival in RIVALS:
            cells = [_paired(runs, settings, rival, "PA-GRPO", metric) for metric in METRICS]
            lines.append(f"| {title} | {rival} | {' | '.join(cells)} |")
        cells = [_above_average(runs, base, settings, metric) for metric in METRICS]
        lines.append(f"| {title} | base averaged | {' | '.join(cells)} |")
    return [*lines, ""]


def _cost_table(runs: Sequence[Run]) -> list[str]:
    lines = [
        "## CPU seconds of 100 steps",
        "",
        f"| setting | {' | '.join(ARMS)} |",
        f"|---|{'---|' * len(ARMS)}",
    ]
    for setting in SETTINGS:
        cells = [_spread([run["seconds"] for run in _of(runs, setting, arm)]) for arm in ARMS]
        lines.append(f"| {setting.title} | {' | '.join(cells)} |")
    return [*lines, ""]


def _main(task: Task) -> list[Setting]:
    """The settings of a task that differ in gold and in what is trained."""
    return [setting for setting in SETTINGS if setting.task is task and setting.lam == 1.0]


def _averaged(base: Run, setting: Setting, metric: str) -> float:
    """The untrained model's average over all orders: 2 calls per item for the judge, 24 for MCQ."""
    return float(base["methods"][setting.task.value][AVERAGED[setting.task]][metric])


def _above_average(runs: Sequence[Run], base: Run, settings: Sequence[Setting], metric: str) -> str:
    return _differences(
        [
            _averaged(base, setting, metric) - value
            for setting in settings
            for value in _values(runs, setting, "PA-GRPO", metric)
        ]
    )


def _pairs_table(runs: Sequence[Run]) -> list[str]:
    comparisons = (
        ("PA-GRPO", "GRPO"),
        ("+r_con", "GRPO"),
        ("+A_PA", "GRPO"),
        ("PA-GRPO", "+r_con"),
    )
    lines = [
        "## Paired by seed: difference of means (runs in which the first is higher)",
        "",
        "| tasks | comparison | Con | CA | Acc |",
        "|---|---|---|---|---|",
    ]
    for task, name in ((Task.PAIRWISE, "judge"), (Task.MCQ, "MCQ, lambda 1")):
        for first, second in comparisons:
            cells = [
                _paired(runs, _main(task), first, second, metric) for metric in ("Con", "CA", "Acc")
            ]
            lines.append(f"| {name} | {first} − {second} | {' | '.join(cells)} |")
    return [*lines, ""]


def _sweep_tables(runs: Sequence[Run]) -> list[str]:
    lines = []
    for title, settings in SWEEPS.items():
        lines += [
            f"## PA-GRPO, sweep over {title}",
            "",
            "| | Acc | Con | CA | RStd | CPU s |",
            "|---|---|---|---|---|---|",
        ]
        for setting in settings:
            cells = [_spread(_values(runs, setting, "PA-GRPO", metric)) for metric in METRICS]
            seconds = [run["seconds"] for run in _of(runs, setting, "PA-GRPO")]
            lines.append(f"| {setting.title} | {' | '.join(cells)} | {_mean(seconds):.1f} |")
        lines.append("")
    return lines


def _protocol_table(runs: Sequence[Run], base: Run) -> list[str]:
    lines = [
        "## Consistency with labels only, orders only, and both permuted",
        "",
        f"| | {' | '.join(LAYOUTS)} |",
        f"|---|{'---|' * len(LAYOUTS)}",
    ]
    for setting in (s for s in SETTINGS if s.name in DECOMPOSED):
        before = base[setting.task.value]
        cells = [f"{before[protocol]['Con']:.1f}" for protocol in LAYOUTS]
        lines.append(f"| {setting.title}: base | {' | '.join(cells)} |")
        for arm in ARMS:
            found = _of(runs, setting, arm)
            cells = [
                _spread([run["protocols"][protocol]["Con"] for run in found])
                for protocol in LAYOUTS
            ]
            lines.append(f"| {setting.title}: {arm} | {' | '.join(cells)} |")
    return [*lines, ""]


def _speed_table(runs: Sequence[Run]) -> list[str]:
    lines = [
        "## Consistency by step",
        "",
        f"| setting, arm | {' | '.join(STEPS)} |",
        f"|---|{'---|' * len(STEPS)}",
    ]
    for setting in (s for s in SETTINGS if s.name in DECOMPOSED):
        for arm in ARMS:
            cells = [_spread(_values(runs, setting, arm, "Con", step)) for step in STEPS]
            lines.append(f"| {setting.title}: {arm} | {' | '.join(cells)} |")
    return [*lines, ""]


def _of(runs: Sequence[Run], setting: Setting, arm: str | None = None) -> list[Run]:
    found = [r for r in runs if r["setting"] == setting.name and arm in (None, r["arm"])]
    return sorted(found, key=lambda run: run["seed"])


def _values(
    runs: Sequence[Run], setting: Setting, arm: str, metric: str, step: str | None = None
) -> list[float]:
    return [run["steps"][step or LAST][metric] for run in _of(runs, setting, arm)]


def _paired(
    runs: Sequence[Run], settings: Sequence[Setting], first: str, second: str, metric: str
) -> str:
    differences = [
        a - b
        for setting in settings
        for a, b in zip(
            _values(runs, setting, first, metric),
            _values(runs, setting, second, metric),
            strict=True,
        )
    ]
    return _differences(differences)


def _differences(differences: Sequence[float]) -> str:
    wins = sum(difference > 0 for difference in differences)
    return f"{_mean(differences):+.1f} ({wins} of {len(differences)})"


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else float("nan")


def _spread(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{_mean(values):.1f}"
    return f"{_mean(values):.1f}±{statistics.stdev(values):.1f}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _plot(runs: Sequence[Run], path: Path) -> None:
    """Consistency and consistent accuracy by step with their spread, if matplotlib is there."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(11, 4), layout="constrained")
    shown = [s for s in SETTINGS if s.name in DECOMPOSED]
    axes = figure.subplots(1, 2 * len(shown), squeeze=False, sharey=True)[0]
    for at, (setting, metric) in enumerate((s, m) for s in shown for m in ("Con", "CA")):
        for place, (arm, marker) in enumerate(zip(ARMS, "osD^vP", strict=True)):
            values = [_values(runs, setting, arm, metric, step) for step in STEPS]
            axes[at].errorbar(
                [int(step) + 1.2 * place for step in STEPS],  # side by side, so spreads can be told
                [_mean(some) for some in values],
                [statistics.stdev(some) if len(some) > 1 else 0.0 for some in values],
                marker=marker,
                markersize=4,
                capsize=2,
                linewidth=1,
                label=arm,
            )
        axes[at].set_title(f"{setting.title}: {metric}", fontsize=9)
        axes[at].set_xlabel("step")
    axes[0].set_ylabel("%, mean ± sd over seeds")
    axes[0].legend(fontsize=7, loc="lower right")
    figure.savefig(path)
