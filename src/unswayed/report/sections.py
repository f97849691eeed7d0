"""The sections of the page with their figures and captions, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from unswayed.report.claims import (
    Claim,
    bias_claim,
    cause_claim,
    groups_claim,
    groups_of,
    items_claim,
)
from unswayed.report.explorer import Embedded
from unswayed.report.findings import Finding, State
from unswayed.report.frontier import Frontier, panels
from unswayed.report.numerals import count, percent, plural
from unswayed.report.parts import cut
from unswayed.report.plots import PlotTable, bias_tables, cause_table, group_tables
from unswayed.report.remedies import remedies_claim
from unswayed.report.table import MetricsTable, main_table, more_table
from unswayed.report.wording import joined, line, plain_text, strong
from unswayed.visible import one_line, visible

__all__ = ["Figures", "Section", "TableSection", "joint_claim"]

NARROW = "\u202f"
RAW_EXAMPLES = 3


@dataclass(slots=True)
class Figures:
    """Numbers figures by what is shown."""

    last: int = 0

    def next(self) -> int:
        """The next figure's number."""
        self.last += 1
        return self.last


@dataclass(frozen=True, slots=True)
class Section:
    """A claim with its evidence."""

    claim: Claim
    figure: int = 0
    caption: str = ""
    tables: tuple[PlotTable, ...] = ()
    frontier: Frontier | None = None
    examples: tuple[str, ...] = ()
    same: bool = False


@dataclass(frozen=True, slots=True)
class TableSection:
    """The metrics tables."""

    title: str
    intro: str
    tables: tuple[MetricsTable, ...]
    more: tuple[MetricsTable, ...]
    caption: str
    more_caption: str

    @property
    def sortable(self) -> bool:
        """Whether there is more than one row to sort."""
        return any(len(table.rows) > 1 for table in self.tables)


@dataclass(frozen=True, slots=True)
class ItemsSection:
    """The flipped items."""

    claim: Claim
    embedded: Embedded
    runs: tuple[str, ...] = field(default=())


def joint_claim(claims: Sequence[Claim | None], names: Sequence[str], title: str) -> Claim | None:
    """One claim for several runs: each run's own sentences under its name."""
    known = [(c, run_name) for c, run_name in zip(claims, names, strict=True) if c is not None]
    if not known:
        return None
    if len(claims) == 1:
        return known[0][0]
    titles = {plain_text(c.title) for c, _ in known}
    if len(titles) == 1 and len(known) == len(claims):
        head = known[0][0].title
        lines = [line(strong(r), ": ", *joined(c.lines)) for c, r in known]
    else:
        head = line(title)
        lines = [line(strong(r), ": ", *joined((c.title, *c.lines))) for c, r in known]
    return Claim(head, tuple(lines), known[0][0].note)


def bias_section(findings: Sequence[Finding], names: Sequence[str], figures: Figures) -> Section:
    """Section 3: position and label."""
    claim = joint_claim([bias_claim(f) for f in findings], names, "What position and label do.")
    claim = claim or Claim(line("What position and label do."))
    unread = [found for found in findings if found.state is State.UNPARSED]
    if unread and len(unread) == len(findings):
        examples = [cut(text) for found in unread for text in found.run.unparsed_examples]
        return Section(
            _unread_claim(unread[0]),
            examples=tuple(examples[:RAW_EXAMPLES]),
            caption="Answers that could not be read, as they came.",
        )
    tables = bias_tables(findings, names)
    if not tables:
        return Section(claim)
    return Section(
        claim,
        figures.next(),
        "Share of choices by position and by label, each candidate shown equally often in each "
        f"place. Thin lines are 95{NARROW}% intervals, dashed lines the share without bias. Blue: "
        "the whole interval lies above it.",
        tuple(tables),
    )


def _unread_claim(found: Finding) -> Claim:
    own = bias_claim(found)
    if found.audit.unparsed >= found.audit.answered:
        return own
    share = line(
        f"{percent(found.unparsed_share)} of the answers could not be read. Look at them before "
        "anything else: a prompt that asks for the label alone, or room for a longer answer, often "
        "mends this."
    )
    return Claim(
        line("Most of what follows rests on the answers that could be read.")
        if found.unparsed_share > 0.5
        else line("Too many answers could not be read."),
        (share, *own.lines),
    )


def cause_section(
    findings: Sequence[Finding], names: Sequence[str], figures: Figures
) -> Section | None:
    """Section 4: what moves the verdict."""
    claim = joint_claim([cause_claim(f) for f in findings], names, "What moves the verdict.")
    if claim is None:
        return None
    first = findings[0]
    what = (
        f"share of {plural(first.items, 'item')} with the same verdict before and after the change"
    )
    if first.n > 2:
        what = "mean share of an item's presentations that agree with its most frequent answer"
    return Section(
        claim,
        figures.next(),
        f"Consistency by protocol: {what}. Bands are 95{NARROW}% intervals. A judge without bias "
        f"would be at 100{NARROW}%.",
        (cause_table(findings, names),),
    )


def remedies_section(
    findings: Sequence[Finding], names: Sequence[str], figures: Figures
) -> Section | None:
    """Section 5: what each method buys."""
    claim = joint_claim([remedies_claim(f) for f in findings], names, "What each method buys.")
    if claim is None:
        return None
    shown = panels(findings, names)
    if not shown.panels:
        return Section(claim)
    constructed = any(
        (e := row.get("consistency")) is not None and e.by_construction
        for found in findings
        for row in found.audit.methods.values()
    )
    caption = (
        "What each method buys per call. Filled dots lie on the frontier: nothing cheaper is "
        f"better. Vertical lines are 95{NARROW}% intervals"
    )
    if any(found.recommended for found in findings):
        caption += "; the ringed dot is the recommendation"
    caption += "."
    if constructed:
        caption += (
            " † Asks the same whatever the order, so its consistency holds by construction and is "
            "left off the frontier."
        )
    if any(
        (calls := row.get("estimation_calls")) is not None and calls.value
        for found in findings
        for row in found.audit.methods.values()
    ):
        caption += " Methods that learn are scored on items they were not fitted on."
    return Section(claim, figures.next(), caption, frontier=shown)


def groups_section(
    findings: Sequence[Finding], names: Sequence[str], figures: Figures
) -> Section | None:
    """Section 6: groups."""
    if len({found.n for found in findings}) > 1:
        keep = [i for i, found in enumerate(findings) if groups_claim(found) is not None][:1]
        findings, names = [findings[i] for i in keep], [names[i] for i in keep]
    if not findings:
        return None
    claim = joint_claim([groups_claim(f) for f in findings], names, "How groups differ.")
    if claim is None:
        return None
    tables, left_out = group_tables(findings, names)
    first = findings[0]
    sizes = [row.estimates["consistency"].n for _, row in groups_of(first)]
    caption = f"Groups sorted by consistency, method {one_line(first.audit.base or '')}, bands are "
    caption += f"95{NARROW}% intervals"
    if sizes:
        low, high = min(sizes), max(sizes)
        items = f"{count(low)} to {count(high)}" if low < high else count(low)
        caption += f" ({items} items each)."
    macro = first.audit.macro.get(first.audit.base or "")
    average = macro.get("consistency") if macro is not None else None
    if average is not None and average.value is not None and len(findings) == 1:
        caption += f" Macro average of consistency over groups: {percent(average.value)}."
    if left_out:
        caption += f" {plural(left_out, 'group')} in the middle are left out; metrics.json has all."
    return Section(
        claim, figures.next(), caption, tuple(tables), same=len(tables) == 2 and len(findings) == 1
    )


def table_section(findings: Sequence[Finding], names: Sequence[str]) -> TableSection:
    """Section 7: every number."""
    tables = tuple(main_table(f, run_name) for f, run_name in zip(findings, names, strict=True))
    more = tuple(
        table
        for f, run_name in zip(findings, names, strict=True)
        if (table := more_table(f, run_name)) is not None
    )
    single = all(len(table.rows) <= 1 for table in tables)
    notes: list[str] = []
    if any(cell.by_construction for t in tables for row in t.rows for cell in row.cells):
        notes.append(
            "† Holds by construction, because the method asks the same whatever the order; not "
            "compared."
        )
    if any(found.audit.has_gold for found in findings):
        notes.append("Ties count as wrong in accuracy.")
    notes.extend(dict.fromkeys(note for table in tables for note in table.notes))
    skipped = {k: v for found in findings for k, v in found.audit.skipped.items()}
    if skipped:
        left = ", ".join(f"{one_line(k)} ({one_line(v).rstrip('.')})" for k, v in skipped.items())
        notes.append(f"Left out: {left}.")
    notes.extend(
        dict.fromkeys(one_line(t) for f in findings for v in f.audit.cautions.values() for t in v)
    )
    return TableSection(
        title="All metrics." if single else "All methods, all metrics.",
        intro=f"Values in %, except calls; 95{NARROW}% intervals below.",
        tables=tables,
        more=more,
        caption=visible(" ".join(notes)),
        more_caption=visible(
            " ".join(dict.fromkeys(note for table in more for note in table.notes))
        ),
    )


def items_section(
    findings: Sequence[Finding], names: Sequence[str], embedded: Embedded
) -> ItemsSection:
    """Section 8: flipped items."""
    claims = [items_claim(found) for found in findings]
    claim = joint_claim(claims, names, "Where verdicts changed with the order.")
    runs = tuple(one_line(run_name) for run_name in names)
    return ItemsSection(claim or claims[0], embedded, runs if len(findings) > 1 else ())
