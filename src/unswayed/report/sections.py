"""The sections of the page with their figures and captions, in order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from unswayed.methods import METHODS
from unswayed.methods.names import parse_method
from unswayed.metrics.improvements import Improvements
from unswayed.report import claims
from unswayed.report.findings import CONSISTENCY, Finding, State
from unswayed.report.frontier import Frontier, panels
from unswayed.report.heat import Heat
from unswayed.report.parts import cut
from unswayed.report.plots import PlotTable, bias_tables, cause_table, group_tables
from unswayed.report.table import MetricsTable, main_table, marked, more_table
from unswayed.report.words import joined, say, sentence

RAW_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Claim:
    """A section's left column: the finding in one sentence, paragraphs, and a quieter one."""

    title: Markup
    lines: tuple[Markup, ...] = ()
    note: Markup | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A claim with its evidence and what that shows."""

    claim: Claim
    caption: Markup | str = ""
    tables: tuple[PlotTable, ...] = ()
    frontier: Frontier | None = None
    examples: tuple[str, ...] = ()
    heats: tuple[Heat, ...] = ()
    # by run, whose name is empty where it stands alone, and method: what that gets right that the
    # single call does not, and the reverse
    gains: tuple[tuple[str, Mapping[str, Improvements]], ...] = ()


@dataclass(frozen=True, slots=True)
class TableSection:
    """The metrics tables."""

    tables: tuple[MetricsTable, ...]
    more: tuple[MetricsTable, ...]
    caption: Markup
    more_caption: str


def claim(macro: str, *given: object) -> Claim:
    """Return the paragraphs of a macro, the first one as the title."""
    title, *lines = say(macro, *given)
    return Claim(title, tuple(lines))


def joint_claim(
    findings: Sequence[Finding], claim_of: Callable[[Finding], Claim | None], title: str
) -> Claim | None:
    """One claim for several runs: each run's own sentences under its name; None without any."""
    told = [(own, finding.name) for finding in findings if (own := claim_of(finding))]
    if not told or len(findings) == 1:
        return told[0][0] if told else None
    first = told[0][0]
    same = len({c.title for c, _ in told}) == 1 and len(told) == len(findings)
    words = [joined(c.lines if same else (c.title, *c.lines)) for c, _ in told]
    lines = (sentence("runs.of_run", name, own) for own, (_, name) in zip(words, told, strict=True))
    whole = first.title if same else sentence("runs.joint_title", title)
    return Claim(whole, tuple(lines), first.note)


def bias_claim(finding: Finding) -> Claim:
    """Return the claim on position and label."""
    return claim("bias.bias", finding, claims.bias_of(finding))


def bias_section(findings: Sequence[Finding]) -> Section:
    """Section 3: position and label."""
    if all(finding.state is State.UNPARSED for finding in findings):
        own = bias_claim(findings[0])
        if not findings[0].nothing_read:
            unread = claim("bias.unread", findings[0])
            own = Claim(unread.title, (*unread.lines, *own.lines))
        examples = [
            cut(text) for finding in findings for text in finding.run.flips.unparsed_examples
        ]
        raw = "Answers that could not be read, as they came."
        return Section(own, raw, examples=tuple(examples[:RAW_EXAMPLES]))
    joint = joint_claim(findings, bias_claim, "bias") or bias_claim(findings[0])
    caption = sentence("bias.bias_caption", all(map(claims.balanced, findings)))
    return Section(joint, caption, tuple(bias_tables(findings)))


def cause_claim(finding: Finding) -> Claim | None:
    """Return the claim on the cause of changed verdicts; None with fewer than two protocols."""
    cause = claims.cause_of(finding)
    return None if cause is None else claim("bias.cause", finding, *cause)


def cause_section(findings: Sequence[Finding]) -> Section | None:
    """Section 4: what moves the verdict; None with fewer than two protocols in every run."""
    joint = joint_claim(findings, cause_claim, "cause")
    if joint is None:
        return None
    caption = sentence("bias.cause_caption", findings[0])
    return Section(joint, caption, (cause_table(findings),))


def controls_of(finding: Finding) -> tuple[list[str], list[str]]:
    """Return the controls that ask the same order again, and those that ask once, sorted by content."""
    again: list[str] = []
    once: list[str] = []
    for name in finding.metrics.methods:
        if name.partition(":")[0] in METHODS and name != finding.base:  # of a package that is here
            own = parse_method(name)
            if own.about.control:
                (again if len(own.asks(finding.n)) > 1 else once).append(name)
    return again, once


def remedies_claim(finding: Finding) -> Claim | None:
    """Return the claim on remedies for a single call; None with fewer than two methods."""
    if len(finding.metrics.methods) < 2 or finding.state is State.FAILED:
        return None
    return claim("advice.remedies", finding, *controls_of(finding))


def remedies_section(findings: Sequence[Finding]) -> Section | None:
    """Section 5: what each method buys; None with fewer than two methods in every run."""
    joint = joint_claim(findings, remedies_claim, "remedies")
    if joint is None:
        return None
    rows = [row for finding in findings for row in finding.metrics.methods.values()]
    learning = any((row.calls or 0.0) > (row.beside.calls_per_item or 0.0) for row in rows)
    caption = sentence(
        "figures.frontier",
        any(finding.recommended for finding in findings),
        any(
            (e := marked(row, CONSISTENCY, row.get(CONSISTENCY))) and e.by_construction
            for row in rows
        ),
        learning,
    )
    return Section(joint, caption, frontier=panels(findings))


def groups_claim(finding: Finding) -> Claim | None:
    """Return the claim on differences between groups; None with fewer than two."""
    groups = claims.groups_of(finding)
    if len(groups.rows) < 2:
        return None
    told = claim("groups.groups", finding, groups)
    chance = None if groups.alone else sentence("groups.chance", len(groups.rows))
    return Claim(told.title, told.lines, chance)


def groups_section(findings: Sequence[Finding]) -> Section | None:
    """Section 6: groups; None with fewer than two in every run."""
    if len({finding.n for finding in findings}) > 1:  # their shares have no common scale
        findings = [finding for finding in findings if groups_claim(finding)][:1]
    joint = joint_claim(findings, groups_claim, "groups")
    if joint is None:
        return None
    tables, left_out = group_tables(findings)
    groups, alone = claims.groups_of(findings[0]), len(findings) == 1
    caption = sentence("groups.caption", findings[0], groups, alone, left_out)
    return Section(joint, caption, tuple(tables))


def table_section(findings: Sequence[Finding]) -> TableSection:
    """Section 7: every number."""
    tables = tuple(map(main_table, findings))
    more = tuple(table for finding in findings if (table := more_table(finding)) is not None)
    cautions = (texts for finding in findings for texts in finding.metrics.cautions.values())
    caption = sentence(
        "tables.caption",
        any(table.by_construction for table in tables),
        any(finding.has_gold and finding.ties for finding in findings),
        list(dict.fromkeys(table.notes for table in tables)),
        {name: why for finding in findings for name, why in finding.metrics.skipped.items()},
        list(dict.fromkeys(itertools.chain.from_iterable(cautions))),
    )
    return TableSection(tables, more, caption, " ".join(dict.fromkeys(t.notes for t in more)))


def items_claim(findings: Sequence[Finding]) -> Claim | None:
    """Section 8: flipped items."""
    return joint_claim(findings, lambda finding: claim("items.items", finding), "items")
