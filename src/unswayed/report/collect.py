"""Collect the data of a report from a finished audit or its run directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from unswayed.auditing.audit import AuditRecord
from unswayed.auditing.comparison import changes, load_answers
from unswayed.auditing.flips import FLIPS_FILE, Flips, flips_of
from unswayed.auditing.records import Metrics, RunRecord, read_metrics, read_run
from unswayed.auditing.run_directory import belongs, read_bytes, write_bytes, write_text
from unswayed.base.errors import RunDirectoryError
from unswayed.methods import METHODS
from unswayed.report.data import RunData

BUILT_IN = ("tiny/", "simulated/")
"""Recorded decisions, and runs of earlier versions, tell by their model's name alone."""
PLANTED = (
    "The bias of this model was planted, as a shift of the logits. That favours corrections that "
    "assume such a shift; other judges may need others."
)


def run_data(record: AuditRecord) -> RunData:
    """Return the data for the report of an audit."""
    return _data(record.metrics, record.run, flips_of(record))


def without_items(metrics: Metrics, run: RunRecord) -> RunData:
    """Return the data for a summary, which shows no single item."""
    return _data(metrics, run, Flips(metrics.flips.get("total", 0)))


def load_run(directory: str | Path) -> RunData:
    """Return the data for the report of a finished run."""
    path = Path(directory)
    run, metrics = read_run(path), read_metrics(path)
    flips = path / FLIPS_FILE
    if not belongs(flips):
        return without_items(metrics, run)
    try:
        return _data(metrics, run, msgspec.json.decode(read_bytes(flips), type=Flips))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RunDirectoryError(f"cannot read {flips}: {error}. Run the audit again.") from None


def write_report(directory: Path, record: AuditRecord) -> RunData:
    """Write `report.html` and what `unswayed report` needs to write it again."""
    from unswayed.report.page import render_report

    flips = flips_of(record)
    data = _data(record.metrics, record.run, flips)
    write_bytes(directory / FLIPS_FILE, msgspec.json.encode(flips))
    write_text(directory / "report.html", render_report([data]))
    return data


def load_runs(directories: Sequence[str | Path], *, names: Sequence[str] = ()) -> list[RunData]:
    """Finished runs side by side, each with its paired differences to the first; without `names`
    they are called by what tells them apart.
    """
    runs = [load_run(directory) for directory in directories]
    if names:
        runs = [replace(run, name=name) for run, name in zip(runs, names, strict=True)]
    if len(runs) < 2:
        return runs
    first, *others = (load_answers(Path(directory)) for directory in directories)
    compared = []
    for r, o in zip(runs[1:], others, strict=True):
        old, new = (
            {name: unit for a in run for name, unit in zip(a.item_ids, a.units, strict=False)}
            for run in (first, o)
        )
        both = {(old[name], new[name]) for name in old.keys() & new.keys()}
        told: tuple[str, ...] = (
            ()
            if old or new
            else ("The run did not count distinct questions, so each item counts as one.",)
        )
        if both and len(both) > min(len(set(units)) for units in zip(*both, strict=True)):
            told = ("The runs group items into questions differently; the first run decides.",)
        if len({run.run.settings.get("gold_ties") for run in (runs[0], r)}) > 1:
            told += (
                "The runs count ties in the gold differently (--gold-ties), so compare only the differences, not "
                "the accuracies of each run.",
            )
        asked = [run.run.prompt for run in (runs[0], r) if run.run.prompt]
        if len(asked) < 2:
            told += (
                "Not every run has its prompts recorded, so differences may include the effect of a prompt.",
            )
        if len({prompt.fingerprint for prompt in asked}) > 1:
            names = " and ".join(prompt.name for prompt in asked)
            told += (
                f"The runs asked with different prompts ({names}), so differences include the effect of the prompt.",
            )
        gains = changes(first, o, seed=runs[0].run.seed)
        compared.append(replace(r, changes=gains, caveats=(*r.caveats, *told)))
    return [runs[0], *compared]


def _data(metrics: Metrics, run: RunRecord, flips: Flips) -> RunData:
    bases = {name: name.partition(":")[0] for name in metrics.methods}
    return RunData(
        metrics=metrics,
        run=run,
        flips=flips,
        caveats=(PLANTED,) if run.planted or metrics.model.startswith(BUILT_IN) else (),
        about={n: METHODS.load(base).about.idea for n, base in bases.items() if base in METHODS},
    )
