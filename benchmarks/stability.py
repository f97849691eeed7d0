"""Tabulate how stable judges are: flips, repeat noise and first-place points of recorded and built-in judges.

    python benchmarks/stability.py [--data DATA] [--runs RUNS] [--only EXPRESSION] [--write]

DATA is a folder of published recordings in the layout of `FAMILIES`; every file that matches is a judge.
RUNS is a folder of run directories of `unswayed audit`; each becomes a row in place of the committed
summaries of real models. `--only` keeps the judges whose name and data match. `--write` keeps the tables,
the plot and the SHA-256 of every file read for docs/evidence/stability.md.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist

import numpy as np

from evidence_table import ROOT, Table, add_write, evidence
from stability_plot import drawn
from stability_sources import LEFT_OUT, Recording, audited, recordings
from unswayed.api import audit
from unswayed.auditing.records import Metrics, read_metrics
from unswayed.base.counts import plural
from unswayed.data.importers import Imported
from unswayed.metrics import outcomes_from_decisions
from unswayed.metrics.repeats import FEWEST, Repeats, mean_share, repeats, unequal_pairs
from unswayed.metrics.simultaneous import contrasts
from unswayed.model.decisions import MISSING, Clusters, DecisionTable, Estimate
from unswayed.model.items import units_of

PAGE = "stability"
FLIPS = "flips, order and label together"
COLUMNS = ("judge", "data", "items", "units", FLIPS, "flips, order alone",
           "flips, labels alone", "first position, points", "repeat noise", "calls", "ties",
           "unparsed")  # fmt: skip
NOISE = ("judge", "data", "items", "units", "samples", "same order", "other order",
         "other minus same order")  # fmt: skip
CONTRASTS = ("data", "first", "second", "items", "units", "difference in flips, points",
             "separated")  # fmt: skip
DECISIONS = ("decision model", "asked through", "questions", "changed by reversing",
             "first position, points")  # fmt: skip
NAMED = {  # cells that the text of the page names
    "steadiest": ["pairs", r"^Skywork", FLIPS],
    "chatgpt": ["pairs", r"^ChatGPT_Vanilla_NoRules \| LLMBar FairEval", FLIPS],
    "same": ["noise", r"^claude-3-haiku", "same order"],
    "beyond": ["noise", r"^claude-3-haiku", "other minus same order"],
    "order": ["pairs", r"^tiny/judge", "flips, order alone"],
    "label": ["pairs", r"^tiny/judge", "flips, labels alone"],
}
BUILT_IN = ROOT / "src" / "unswayed" / "tiny" / "weights" / "model.safetensors"


@dataclass(frozen=True)
class Stability:
    """A row: figures that are not measurable are None.

    Attributes:
        n: Candidates of an item.
        flips, order, label: 1 minus consistency, where order and labels change together, the order
            changes alone and the labels change alone.
        first: Share of choices at the first position minus 1/n.
        noise: Share of unequal pairs of samples of one presentation.
        counts: Calls, ties and unparsed replies.
    """

    judge: str
    data: str
    items: int
    units: str = "–"
    n: int = 2
    flips: Estimate | None = None
    order: Estimate | None = None
    label: Estimate | None = None
    first: Estimate | None = None
    noise: Estimate | None = None
    counts: tuple[str, ...] = ("–",) * 3

    def cells(self) -> list[object]:
        """Return the cells under `COLUMNS`."""
        shares = (shown(own) for own in (self.flips, self.order, self.label))
        points = shown(self.first, signed=True)
        known = (self.judge, self.data, f"{self.items:,}", self.units)
        return [*known, *shares, points, shown(self.noise), *self.counts]


@dataclass(frozen=True)
class Measured:
    """All rows of the page, and the files behind them."""

    rows: list[Stability] = field(default_factory=list)
    noise: list[list[object]] = field(default_factory=list)
    recordings: list[Recording] = field(default_factory=list)


def shown(own: Estimate | None, *, signed: bool = False) -> str:
    """Format a share with its interval in percent, whole if its items are unknown; a dash without a value."""
    if own is None or own.value is None:
        return "–"
    sign, digits = "+" if signed else "", 0 if own.n == 0 else 1
    value, low, high = (
        None if end is None else f"{round(100 * end, 1) + 0.0:{sign}.{digits}f}".replace("-", "−")
        for end in (own.value, own.low, own.high)
    )
    return f"{value}" if low is None else f"{value} ({low} to {high})"


def moved(own: Estimate | None, by: float, *, turned: bool = False) -> Estimate | None:
    """Return `by` plus a figure, or `by` minus it if `turned`."""
    if own is None or own.value is None:
        return None
    sign = -1 if turned else 1
    value, *ends = (
        None if end is None else by + sign * end for end in (own.value, own.low, own.high)
    )
    low, high = reversed(ends) if turned else ends
    return Estimate(value=value, low=low, high=high, n=own.n)


def row_of(judge: str, data: str, metrics: Metrics, noise: Estimate | None = None) -> Stability:
    """Return the row of an audit."""
    single = metrics.protocols["coupled"]
    alone = {
        name: moved(metrics.protocols[name].get("consistency"), 1.0, turned=True)
        if name in metrics.protocols
        else None
        for name in ("order", "label")
    }
    rates, counts = single.values["position_rate"], single.beside.counts or {}
    told = (counts["calls"], counts["ties"], counts["unparsed"])
    return Stability(
        judge,
        data,
        metrics.data.n_items,
        f"{metrics.data.n_units:,}",
        len(rates),
        moved(single.get("consistency"), 1.0, turned=True),
        alone["order"],
        alone["label"],
        moved(rates[0], -1.0 / len(rates)),
        noise,
        tuple(f"{number:,}" for number in told),
    )


def samples_of(made: Imported) -> tuple[Repeats | None, Estimate | None, int]:
    """Return repeat noise beside the other order and by itself, and the samples per presentation."""
    table = DecisionTable.of(made.items, made.decisions)
    numbers = sorted({ask.sample for ask in table.asks})
    if len(numbers) < FEWEST:
        return None, None, len(numbers)
    views = list(dict.fromkeys(ask.presentation for ask in table.asks))
    first = {ask.presentation: ask for ask in reversed(table.asks)}
    asks = [first[view]._replace(sample=number) for view in views for number in numbers]
    seen = table.select(asks)
    choices = np.where(seen.allowed, seen.choices, np.int16(MISSING))
    choices = choices.reshape(len(seen), len(views), -1)
    clusters = Clusters.of(list(units_of(made.items)[0]))
    within, _ = unequal_pairs(choices)
    kept = np.flatnonzero(~np.isnan(within))
    own = clusters and clusters.rows(kept)
    same = mean_share(within[kept], own)
    both = repeats([(choices, clusters)], None)
    return (both if isinstance(both, Repeats) else None), same, len(numbers)


def noise_cells(row: Stability, samples: int, both: Repeats | None) -> list[object]:
    """Return the cells under `NOISE`."""
    across = both and shown(both.across)
    beyond = both and shown(both.beyond, signed=True)
    known = (row.judge, row.data, f"{row.items:,}", row.units)
    return [*known, samples, shown(row.noise), across or "–", beyond or "–"]


def measured(given: argparse.Namespace) -> Measured:
    """Measure recordings, the built-in judge and real models."""
    made = Measured()
    for own in recordings(given.data, given.only):
        made.recordings.append(own)
        both, same, samples = samples_of(own.made)
        if own.made.items[0].n == 2:
            row = row_of(own.judge, own.data, audited(own.made, methods="direct"), same)
            made.rows.append(row)
        else:
            units = f"{len(set(units_of(own.made.items)[0])):,}"
            row = Stability(own.judge, own.data, len(own.made.items), units, noise=same)
        if same is not None:
            made.noise.append(noise_cells(row, samples, both))
    if re.search(given.only, "tiny/judge, tiny-judge"):
        methods = ("direct", "repeat")
        metrics = audit("tiny/judge", "tiny-judge", methods=methods, protocol="all").record.metrics
        both = metrics.repeats if isinstance(metrics.repeats, Repeats) else None
        row = row_of("tiny/judge (built in)", "tiny-judge", metrics, both and both.changed)
        made.rows.append(row)
        made.noise.append(noise_cells(row, 3, both))
    real = runs(given.runs) if given.runs else committed()
    made.rows.extend(row for row in real if re.search(given.only, f"{row.judge}, {row.data}"))
    return made


def runs(folder: Path) -> Iterator[Stability]:
    """Rows of the run directories in a folder."""
    for path in sorted(folder.glob("*/metrics.json")):
        metrics = read_metrics(path.parent)
        both = metrics.repeats if isinstance(metrics.repeats, Repeats) else None
        yield row_of(path.parent.name, metrics.data.name, metrics, both and both.changed)


def committed() -> Iterator[Stability]:
    """Rows of the summaries of real models in docs/evidence/data: places have no interval there."""
    tables = evidence.load("real-models")["tables"]
    for name, data in (("llmbar", "LLMBar Natural"), ("arc", "ARC-Challenge"), ("mmlu", "MMLU")):
        for cells in tables[name]["rows"]:
            told = dict(zip(tables[name]["columns"], cells, strict=True))
            if told["method"] != "direct":
                continue
            share, *ends = (
                float(part) / 100 for part in re.findall(r"[\d.]+", told["consistency"])
            )
            places = [float(part) / 100 for part in told["choices by position, %"].split(" · ")]
            items, n = int(told["items"]), len(places)
            kept = Estimate(value=share, low=ends[0], high=ends[1], n=items)
            flips = moved(kept, 1.0, turned=True)
            first = Estimate(value=places[0] - 1 / n)
            yield Stability(told["model"], data, items, n=n, flips=flips, first=first)


def decision_rows() -> Iterator[list[object]]:
    """Cells of decision models, from the same summaries: four options, named by their texts."""
    table = evidence.load("real-models")["tables"]["decisions"]
    for cells in table["rows"]:
        told = dict(zip(table["columns"], cells, strict=True))
        first = Estimate(value=float(told["first"].rstrip("%")) / 100 - 0.25, n=1)
        changed = told["changed"].replace("%", "")
        known = (told["model"], told["asked through"], told["questions"])
        yield [*known, changed, shown(first, signed=True)]


def on_same_items(made: Sequence[Recording]) -> list[list[Recording]]:
    """Group recordings of pairs by the items that they share."""
    groups: dict[tuple[str, ...], list[Recording]] = {}
    for own in made:
        if own.made.items[0].n == 2 and {d.order for d in own.made.decisions} == {(0, 1), (1, 0)}:
            groups.setdefault(tuple(sorted(item.id for item in own.made.items)), []).append(own)
    return [group for group in groups.values() if len(group) > 1]


def critical_value(comparisons: int) -> float:
    """Return the errors to each side at which all differences of a page hold together (Bonferroni)."""
    return NormalDist().inv_cdf(1 - 0.025 / max(comparisons, 1))


def apart(own: Estimate) -> bool:
    """Return True if an interval leaves out 0."""
    return (own.low is not None and own.low > 0) or (own.high is not None and own.high < 0)


def separated(groups: Sequence[Sequence[Recording]]) -> Iterator[list[object]]:
    """Cells under `CONTRASTS`: flips of the first judge minus flips of the second, paired by item."""
    critical = critical_value(sum(math.comb(len(group), 2) for group in groups))
    for group in groups:
        values = contrasts(
            {
                own.judge: outcomes_from_decisions(
                    sorted(own.made.items, key=lambda item: item.id),
                    [one for one in own.made.decisions if one.sample == 0],
                )
                for own in group
            },
            "consistency",
        )
        for first, second in itertools.combinations(group, 2):
            gap = values.difference(second.judge, first.judge, critical)  # of consistency
            known = (first.data, first.judge, second.judge, values.items, values.units)
            yield [*known, shown(gap, signed=True), "yes" if apart(gap) else "no"]


def table_of(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Print a table."""
    table = Table(columns)
    for row in rows:
        table.add(*row)
    print()
    return table


def by_flips(rows: Iterable[Stability], *, pairs: bool) -> list[Stability]:
    """Rows about pairs, or about more candidates, most flips first and unknown ones last."""
    kept = [row for row in rows if (row.n == 2) is pairs]
    return sorted(
        kept, key=lambda row: (row.flips is None, -(row.flips.value or 0) if row.flips else 0)
    )


def digests(files: Iterable[tuple[str, Path]]) -> Mapping[str, str]:
    """Return the SHA-256 of files by name."""
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files}


def main() -> None:
    """Print the tables and, with --write, keep them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--only", default="", metavar="EXPRESSION")
    add_write(parser, PAGE)
    given = parser.parse_args()
    if given.write and given.only:
        parser.error("--write keeps whole tables. Leave out --only.")
    made = measured(given)
    pairs = by_flips(made.rows, pairs=True)
    contrasted = list(separated(on_same_items(made.recordings)))
    tables = {
        "pairs": table_of(COLUMNS, (row.cells() for row in pairs)),
        "options": table_of(COLUMNS, (r.cells() for r in by_flips(made.rows, pairs=False))),
        "noise": table_of(NOISE, made.noise),
        "separated": table_of(CONTRASTS, contrasted),
        "decisions": table_of(DECISIONS, decision_rows()),
        "left-out": table_of(("files", "reason"), LEFT_OUT),
    }
    if given.write:
        keep(given.data, made, tables, pairs)


def keep(
    data: Path, made: Measured, tables: Mapping[str, Table], pairs: Sequence[Stability]
) -> None:
    """Keep the tables, their figures, the plot and the digests of the files."""
    for name, table in tables.items():
        table.keep(PAGE, name)
    known = evidence.load(PAGE)
    told = [row[-1] for row in tables["separated"].rows]
    rubrics = sum(own.made.items[0].n != 2 for own in made.recordings)
    known["figures"] = {
        "recordings": plural(len(made.recordings), "recording"),
        "rows": str(len(made.rows) + rubrics),
        "yes": f"{told.count('yes')} of {len(told)}",
        **NAMED,
    }
    files = [(str(p.relative_to(data)), p) for own in made.recordings for p in own.files]
    known["inputs"] = digests([*sorted(files), (str(BUILT_IN.relative_to(ROOT)), BUILT_IN)])
    evidence.save(PAGE, known)
    picture = drawn([row for row in pairs if row.flips is not None])
    (ROOT / "docs" / "evidence" / f"{PAGE}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
