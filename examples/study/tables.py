"""Turn the runs' files into one record per measurement, the tables of two pages and a plot."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from arms import PAPER, STEPPED
from figures import AVERAGED, BASE, METRICS, Figures, Run, difference, mean, spread
from page_tables import APART, PAIRS, TASKS, Record, page_data
from plot import plot
from settings import DECOMPOSED, PARTS, SETTINGS, SWEEPS, Setting, jobs

DOCS: Final = Path(__file__).parents[2] / "docs"
STEPS = (10, 25, 50)
"""Steps before the last one after which the arms of `STEPPED` are also recorded."""
EARLY = (10, 25)
"""Steps of PA-GRPO that cost as much as 100 exact ones where responses are not shared."""
FIELDS: Final = (
    "setting",
    "wrong gold",
    "arm",
    "step",
    "against",
    "calls",
    *METRICS,
    *APART.values(),
    "CPU steps",
    "CPU before",
    "seeds",
)


def write_tables(out: Path, *, seeds: int) -> list[Record]:
    """Write `study.csv`, `study.json` and a plot of the runs that are there.

    Returns:
        The records of `study.csv`.
    """
    planned = {job.name for job in jobs(seeds)}
    files = [path for path in sorted((out / "runs").glob("*.json")) if path.stem in planned]
    runs = [json.loads(path.read_text()) for path in files]
    base = json.loads((out / "base.json").read_text())
    figures = Figures(runs)
    records = [*_untrained(base), *_trained(figures, base), *_differences(figures)]
    write_records(records, out / "study.csv")
    (out / "study.json").write_text(json.dumps({"base": base, "runs": runs}, indent=1))
    shown = [setting for setting in PARTS["main"] if setting.name in DECOMPOSED]
    plot(figures, shown, (*STEPS, shown[0].steps), out / "study.svg")
    return records


def write_records(records: Sequence[Record], path: Path) -> None:
    """Write one line per arm, setting and step, and per difference of two arms."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


def keep_pages(records: Sequence[Record], folder: Path, *, command: str, measured: str) -> None:
    """Keep the records and the tables of the pages in `folder/data`.

    Args:
        records: All records.
        folder: Folder of the evidence pages.
        command: How they were measured.
        measured: Day of the measurement.
    """
    sys.path.append(str(DOCS))
    import evidence

    origin = {"command": command, "measured": measured}
    for page, made in page_data(records).items():
        data = evidence.load(page, folder)
        data["tables"] |= {name: origin | table for name, table in made["tables"].items()}
        data["figures"] |= made["figures"]
        evidence.save(page, data, folder)
    write_records(records, folder / "data" / "study.csv")


def _untrained(base: Run) -> Iterator[Record]:
    for task, name in TASKS.items():
        for method, row in base["methods"][task.value].items():
            cells = {m: "–" if row[m] is None else f"{row[m]:.1f}" for m in METRICS[:4]}
            record = {"setting": f"{name}, untrained", "arm": method}
            yield record | {"calls": f"{row['calls']:.2f}"} | cells


def _trained(figures: Figures, base: Run) -> Iterator[Record]:
    """Every arm of every setting and sweep, with all metrics and its cost."""
    for setting in SETTINGS:
        for arm in (BASE, AVERAGED, *setting.arms):
            for step in STEPS if arm in STEPPED else ():
                yield from _measured(figures, setting, arm, step)
            for record in _measured(figures, setting, arm):
                if setting.name in DECOMPOSED and arm == BASE:
                    apart = base[setting.task.value]
                    record |= {APART[p]: f"{apart[p]['Con']:.1f}" for p in APART}
                yield record
    for title, settings in SWEEPS.items():
        for setting in settings:
            for record in _measured(figures, setting, "PA-GRPO"):
                yield record | {"setting": title, "arm": setting.title}


def _measured(
    figures: Figures, setting: Setting, arm: str, step: int | None = None
) -> Iterator[Record]:
    runs = figures.runs(setting, "PA-GRPO" if arm in (BASE, AVERAGED) else arm)
    values = {metric: figures.values(setting, arm, metric, step) for metric in METRICS}
    if not values["CA"]:
        return
    record = {
        "setting": setting.title,
        "wrong gold": f"{100 * mean([run['wrong_gold'] for run in runs]):.0f}",
        "arm": arm,
    } | {metric: spread(some) for metric, some in values.items()}
    if arm not in (BASE, AVERAGED):
        record |= {"step": str(step or setting.steps), "seeds": str(len(runs))}
        if step is None:
            # other work on the machine only adds to CPU seconds, so the least counts
            record["CPU steps"] = f"{min(run['seconds'] for run in runs):.1f}"
            record["CPU before"] = f"{min(run['seconds_before'] for run in runs):.1f}"
            apart = [run["protocols"] for run in runs if run["protocols"]]
            if apart:
                record |= {APART[p]: spread([of[p]["Con"] for of in apart]) for p in APART}
    yield record


def _differences(figures: Figures) -> Iterator[Record]:
    """Pairs of arms by setting, pooled by task, on what is held out, and at unequal steps."""

    def paired(
        title: str,
        settings: Sequence[Setting],
        arm: str,
        rival: str = "PA-GRPO",
        steps: tuple[int | None, int | None] = (None, None),
    ) -> Iterator[Record]:
        values = {m: figures.paired(settings, m, arm, rival, steps=steps) for m in METRICS}
        if values["CA"]:
            after = "" if steps[1] is None else f" after {steps[1]}"
            record = {"setting": title, "arm": arm, "against": rival + after}
            record["step"] = str(steps[0] or settings[0].steps)
            yield record | {metric: difference(metric, some) for metric, some in values.items()}

    for setting in (*PARTS["main"], *PARTS["secondary"], *PARTS["robustness"]):
        for arm in _rivals([setting]):
            yield from paired(setting.title, [setting], arm)
    for setting in PARTS["robustness"]:
        for arm in setting.arms:
            yield from paired(setting.title, [setting], arm, AVERAGED)
    for task, name in TASKS.items():
        for part, title in (("main", name), ("confirmation", f"second base: {name}")):
            settings = [setting for setting in PARTS[part] if setting.task is task]
            for arm in _rivals(settings):
                yield from paired(title, settings, arm)
        settings = [setting for setting in PARTS["main"] if setting.task is task]
        for first, second in PAIRS:
            if second != "PA-GRPO":
                yield from paired(name, settings, first, second)
        for arm in (arm for arm in STEPPED if arm not in (*PAPER, "inv", "PIF")):
            for early in EARLY:
                for step in (None, early):
                    yield from paired(name, settings, arm, steps=(step, early))


def _rivals(settings: Sequence[Setting]) -> list[str]:
    arms = dict.fromkeys(arm for setting in settings for arm in setting.arms)
    return [*(arm for arm in arms if arm != "PA-GRPO"), AVERAGED]
