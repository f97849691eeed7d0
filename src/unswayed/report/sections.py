"""The sections of the page with their figures and captions, in order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
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
from unswayed.report.table import MetricsTable, main_table, more_table
from unswayed.report.words import joined, say, sentence

RAW_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Claim:
    """A section's left column: the finding in one sentence, paragraphs, and a quieter one."""

    title: Markup
    lines: tuple[Markup, ...] = ()
    note: Markup | None = None


@dataclass(frozen=True, slots=True)
class Gains:
    """What a method gets right that the single call does not, and the reverse."""

    method: str
    counts: Improvements


@dataclass(frozen=True, slots=True)
class Section:
    """A claim with its evidence and what that shows."""

    claim: Claim
    caption: Markup | str = ""
    tables: tuple[PlotTable, ...] = ()
    frontier: Frontier | None = None
    examples: tuple[str, ...] = ()
    heats: tuple[Heat, ...] = ()
    # by run; its name is empty where it stands alone
    gains: tuple[tuple[str, tuple[Gains, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class TableSection:
    """The metrics tables."""

    tables: tuple[MetricsTable, ...]
    more: tuple[MetricsTable, ...]
    caption: Markup
    more_caption: str


def claim(macro: str, *given: object) -> Claim:
    """The paragraphs of a macro, the first one as the title."""
    title, *lines = say(macro, *given)
    return Claim(title, tuple(lines))


def joint_claim(
    findings: Sequence[Finding], claims: Sequence[Claim | None], title: str
) -> Claim | None:
    """One claim for several runs: each run's own sentences under its name."""
    told = [(c, f.name) for c, f in zip(claims, findings, strict=True) if c]
    if not told or len(claims) == 1:
        return told[0][0] if told else None
    first = told[0][0]
    same = len({c.title for c, _ in told}) == 1 and len(told) == len(claims)
    words = [joined(c.lines if same else (c.title, *c.lines)) for c, _ in told]
    lines = (sentence("runs.of_run", name, own) for own, (_, name) in zip(words, told, strict=True))
    whole = first.title if same else sentence("runs.joint_title", title)
    return Claim(whole, tuple(lines), first.note)


def bias_section(findings: Sequence[Finding]) -> Section:
    """Section 3: position and label."""
    told = [claim("bias.bias", finding, claims.bias_of(finding)) for finding in findings]
    if all(finding.state is State.UNPARSED for finding in findings):
        own = told[0]
        if not findings[0].nothing_read:
            unread = claim("bias.unread", findings[0])
            own = Claim(unread.title, (*unread.lines, *own.lines))
        examples = [
            cut(text) for finding in findings for text in finding.run.flips.unparsed_examples
        ]
        raw = "Answers that could not be read, as they came."
        return Section(own, raw, examples=tuple(examples[:RAW_EXAMPLES]))
    joint = joint_claim(findings, told, "bias") or told[0]
    caption = sentence("bias.bias_caption", all(map(claims.balanced, findings)))
    return Section(joint, caption, tuple(bias_tables(findings)))


def cause_section(findings: Sequence[Finding]) -> Section | None:
    """Section 4: what moves the verdict; None with fewer than two protocols in every run."""
    told = [
        None if (cause := claims.cause_of(f)) is None else claim("bias.cause", f, *cause)
        for f in findings
    ]
    joint = joint_claim(findings, told, "cause")
    if joint is None:
        return None
    caption = sentence("bias.cause_caption", findings[0])
    return Section(joint, caption, (cause_table(findings),))


def controls_of(finding: Finding) -> tuple[list[str], list[str]]:
    """The controls that ask the same order again, and those that ask once, sorted by content."""
    again: list[str] = []
    once: list[str] = []
    for name in finding.metrics.methods:
        if name.partition(":")[0] in METHODS and name != finding.base:  # of a package that is here
            own = parse_method(name)
            if own.about.control:
                (again if len(own.asks(finding.n)) > 1 else once).append(name)
    return again, once


def remedies_claim(finding: Finding) -> Claim | None:
    """What to use instead of a single call; None with fewer than two methods."""
    if len(finding.metrics.methods) < 2 or finding.state is State.FAILED:
        return None
    return claim("advice.remedies", finding, *controls_of(finding))


def remedies_section(findings: Sequence[Finding]) -> Section | None:
    """Section 5: what each method buys; None with fewer than two methods in every run."""
    joint = joint_claim(findings, [remedies_claim(f) for f in findings], "remedies")
    if joint is None:
        return None
    rows = [row for finding in findings for row in finding.metrics.methods.values()]
    learning = any((row.calls or 0.0) > (row.calls_next or 0.0) for row in rows)
    caption = sentence(
        "figures.frontier",
        any(finding.recommended for finding in findings),
        any((e := row.get(CONSISTENCY)) is not None and e.by_construction for row in rows),
        learning,
    )
    return Section(joint, caption, frontier=panels(findings))


def groups_claim(finding: Finding) -> Claim | None:
    """Whether groups differ; None with fewer than two."""
    groups = claims.groups_of(finding)
    if len(groups.rows) < 2:
        return None
    told = claim("groups.groups", finding, groups)
    chance = None if groups.alone else sentence("groups.chance", len(groups.rows))
    return Claim(told.title, told.lines, chance)


def groups_section(findings: Sequence[Finding]) -> Section | None:
    """Section 6: groups; None with fewer than two in every run."""
    told = [groups_claim(finding) for finding in findings]
    if len({finding.n for finding in findings}) > 1:  # their shares have no common scale
        keep = [i for i, own in enumerate(told) if own is not None][:1]
        told = [told[i] for i in keep]
        findings = [findings[i] for i in keep]
    joint = joint_claim(findings, told, "groups")
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


def items_claim(findings: Sequence[Finding]) -> Claim:
    """Section 8: flipped items."""
    told = [claim("items.items", finding) for finding in findings]
    return joint_claim(findings, told, "items") or told[0]
