"""The report as one self-contained HTML file."""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from importlib import resources

from markupsafe import Markup

from unswayed.base.errors import UsageError
from unswayed.base.visible import one_line, visible
from unswayed.metrics.table import METRICS
from unswayed.report.applying import applications_of
from unswayed.report.claims import changes_of, groups_of, unfollowed
from unswayed.report.data import RunData
from unswayed.report.explorer import embed
from unswayed.report.facts import command_text, date_text, facts
from unswayed.report.findings import Finding, State
from unswayed.report.keys import key_figures, key_tables
from unswayed.report.plots import call_tables, curve_tables, risk_tables
from unswayed.report.scores import lede_of, score_sections
from unswayed.report.sections import (
    TableSection,
    bias_section,
    cause_section,
    groups_section,
    items_claim,
    remedies_section,
    table_section,
)
from unswayed.report.table import main_table
from unswayed.report.words import environment, joined, plain, say, sentence


def render_report(runs: Sequence[RunData], *, embed_mb: float = 4.0) -> str:
    """One self-contained page for one run, or for several side by side, with at most `embed_mb`
    megabytes of flipped items: HTML without lone surrogates, so that it can be written as UTF-8.
    """
    if not runs:
        raise UsageError("a report needs at least one run.")
    context = _context(named(runs), embed_mb=embed_mb)
    return visible(environment().get_template("page.html.j2").render(context))


def render_summary(run: RunData) -> str:
    """Headline, table of methods and advice as a fragment of HTML, for notebooks."""
    finding = Finding(run)
    table = main_table(finding)
    shown = {
        "headline": sentence("lead.headline", finding),
        "warning": sentence("lead.missing", finding),
        "lede": lede_of(finding),
        "notes": sentence(
            "terminal.terminal_notes", table.by_construction, table.notes, table.others
        ),
        "advice": sentence("advice.advice", finding),
    }
    return visible(environment().get_template("summary.html.j2").render(shown, table=table))


def named(runs: Sequence[RunData]) -> list[Finding]:
    """Return the findings of each run, under the name that it was given, else under what differs between them
    of model, prompt and data; a single run needs no name.
    """
    findings = [Finding(run) for run in runs]
    if len(findings) == 1:
        return findings
    models = without_shared_folders([finding.model for finding in findings])
    prompts = [
        "" if run.run.prompt is None or run.is_function else f", {run.run.prompt.name}"
        for run in runs
    ]
    sets = [run.metrics.data.name for run in runs]
    if len({prompt for prompt in prompts if prompt}) > 1:
        models = [f"{model}{prompt}" for model, prompt in zip(models, prompts, strict=True)]
    names = [f"{model} on {data}" for model, data in zip(models, sets, strict=True)]
    if len(set(sets)) == 1:
        names = models
    elif len(set(models)) == 1:
        names = without_shared_folders(sets)
    names = [run.name or name for run, name in zip(runs, names, strict=True)]
    numbers = [names[: place + 1].count(name) for place, name in enumerate(names)]
    return [
        Finding(run, name if number == 1 else f"{name} ({number})")
        for run, name, number in zip(runs, names, numbers, strict=True)
    ]


def without_shared_folders(names: Sequence[str]) -> list[str]:
    """Names without the leading path that all of them share: rows have little room."""
    parts = [name.split("/") for name in names]
    folders = zip(*(part[:-1] for part in parts), strict=False)
    shared = len(list(itertools.takewhile(lambda own: len(set(own)) == 1, folders)))
    return ["/".join(part[shared:]) for part in parts]


def _own(file: str) -> str:
    return (resources.files("unswayed.report") / "templates" / file).read_text("utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _context(findings: Sequence[Finding], *, embed_mb: float) -> Mapping[str, object]:
    first, alone = findings[0], len(findings) == 1
    style, script = _own("page.css"), _own("page.js")
    embedded = embed(findings, embed_mb=embed_mb)
    told = any(f.state not in {State.FAILED, State.ONE_ORDER} for f in findings)
    sections = {
        "bias": bias_section(findings),
        "cause": cause_section(findings),
        "scores": score_sections(findings),
        "remedies": remedies_section(findings),
        "groups": groups_section(findings),
        "table": (table := table_section(findings)),
        "items": items_claim(findings) if told or embedded.first else None,
    }
    return {
        **sections,
        "alone": alone,
        "figure": functools.partial(next, itertools.count(1)),  # numbered by what is shown
        "title": plain(sentence("runs.title", findings)),
        "version": one_line(first.metrics.unswayed),
        "date": date_text(findings[-1].run.run.created),
        "subjects": list(dict.fromkeys((f.model, f.metrics.data.name) for f in findings)),
        "headline": headline_of(findings),
        "warnings": [warning for finding in findings for warning in _warning(finding)],
        "each": [] if alone else [line for f in findings for line in _each(f, findings)],
        "lede": lede_of(first) if alone else "",
        "keys": key_figures(first) if alone else [],
        "key_tables": [] if alone else key_tables(findings),
        "applications": [use for finding in findings for use in applications_of(finding)],
        "appendix": [
            (
                f,
                groups_of(f).rows,
                f.metrics.thresholds if not unfollowed(f) else None,  # which mix in other letters
                curve_tables(f),
                call_tables(f),
                risk_tables(f),
            )
            for f in findings
        ],
        "embedded": embedded,
        "runs": [] if alone else [one_line(finding.name) for finding in findings],
        "items_data": Markup(embedded.data),  # JSON in which every < is escaped
        "measured": _measured(findings, table),
        "style": Markup(style),
        "script": Markup(script),
        "style_hash": Markup(_hash(style)),
        "script_hash": Markup(_hash(script)),
    }


def headline_of(findings: Sequence[Finding]) -> Markup:
    """Return the first sentence of the page."""
    first = findings[0]
    if len(findings) == 1:
        return sentence("lead.headline", first)
    comparable = all(f.n == first.n and f.rates and f.recommends for f in findings)
    rates = [f.rates[first.position].value or 0.0 for f in findings] if comparable else []
    return sentence("runs.headline", first, rates, [finding.name for finding in findings])


def _warning(finding: Finding) -> list[Markup]:
    """Warn about missing calls, under the run's name where there are several."""
    text = say("lead.missing", finding)
    return [sentence("runs.of_run", finding.name, text[0])] if finding.name and text else list(text)


def _each(finding: Finding, findings: Sequence[Finding]) -> list[Markup]:
    """Return a run's own headline and what changed since the first one, where there are several."""
    remedy = sentence("advice.decision", finding)
    return [
        sentence("runs.of_run", finding.name, joined((sentence("lead.headline", finding), remedy))),
        *_changes(finding, findings),
    ]


def _changes(finding: Finding, findings: Sequence[Finding]) -> tuple[Markup, ...]:
    changes = changes_of(finding.run.changes, len(findings) - 1)
    gains = {METRICS.load(name).title: gain for name, gain in changes.items()}
    apart = finding is not findings[0] and not finding.run.changes
    return say("runs.changes", gains, findings[0].name, len(findings) - 1, apart)


def changes_text(runs: Sequence[RunData]) -> list[str]:
    """Return a paragraph for each run but the first: what changed since the first one."""
    findings = named(runs)
    return [
        visible(plain(sentence("runs.of_run", own.name, joined(_changes(own, findings)))))
        for own in findings[1:]
    ]


def _measured(findings: Sequence[Finding], table: TableSection) -> Mapping[str, object]:
    columns = dict.fromkeys(c for shown in (*table.tables, *table.more) for c in shown.columns)
    commands = dict.fromkeys(command_text(finding.run.run.command) for finding in findings)
    alone = len(findings) == 1
    return {
        "lines": list(dict.fromkeys(sentence("facts.measured", f) for f in findings)),
        "runs": [{"name": finding.name, "facts": facts(finding)} for finding in findings],
        "commands": [command for command in commands if command],
        "columns": list(columns),
        "caveats": list(dict.fromkeys(t for f in findings for t in say("facts.caveats", f, alone))),
    }
