"""The report as one self-contained HTML file."""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING

from unswayed.errors import UsageError
from unswayed.metrics.table import METRICS
from unswayed.report.advice import gain_of, remedy_of, steadier_of
from unswayed.report.appendix import appendix
from unswayed.report.applying import application_of
from unswayed.report.data import RunData
from unswayed.report.explorer import embed
from unswayed.report.facts import command_text, date_text, facts
from unswayed.report.findings import Finding, State, find
from unswayed.report.keys import key_figures, key_tables
from unswayed.report.reading import model_name
from unswayed.report.sections import (
    Runs,
    TableSection,
    bias_section,
    cause_section,
    groups_section,
    items_section,
    remedies_section,
    table_section,
)
from unswayed.report.words import environment, joined, plain, say, sentence
from unswayed.visible import one_line, visible

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["render_report", "run_names"]


def render_report(runs: Sequence[RunData], *, embed_mb: float = 4.0) -> str:
    """One self-contained page for one run, or for several side by side.

    Args:
        runs: The runs, in the order they are shown.
        embed_mb: How much of the flipped items goes into the page, in megabytes.

    Returns:
        HTML without lone surrogates, so that it can be written as UTF-8.

    Raises:
        UsageError: If there is no run.
    """
    if not runs:
        raise UsageError("a report needs at least one run.")
    findings = [find(run) for run in runs]
    context = _context(Runs(findings, run_names(findings)), embed_mb=embed_mb)
    return visible(environment().get_template("page.html.j2").render(context))


def run_names(findings: Sequence[Finding]) -> list[str]:
    """What tells the runs apart: the names they were given, else what differs between them of
    model, prompt and data; a single run needs no name.
    """
    if len(findings) == 1:
        return [""]
    models = without_shared_folders([model_name(finding.metrics.model) for finding in findings])
    prompts = [_prompt_name(finding) for finding in findings]
    sets = [finding.metrics.data.name for finding in findings]
    if len(set(prompts)) > 1:
        models = [f"{model}, {prompt}" for model, prompt in zip(models, prompts, strict=True)]
    names = [f"{model} on {data}" for model, data in zip(models, sets, strict=True)]
    if len(set(sets)) == 1:
        names = models
    elif len(set(models)) == 1:
        names = without_shared_folders(sets)
    names = [finding.run.name or name for finding, name in zip(findings, names, strict=True)]
    counts: Counter[str] = Counter()
    numbered = []
    for name in names:
        counts[name] += 1
        numbered.append(f"{name} ({counts[name]})" if counts[name] > 1 else name)
    return numbered


def _prompt_name(finding: Finding) -> str:
    prompt = finding.run.run.prompt
    return "" if prompt is None else prompt.name


def without_shared_folders(names: Sequence[str]) -> list[str]:
    """Names without the leading path that all of them share: rows have little room."""
    parts = [name.split("/") for name in names]
    shared = 0
    while (
        all(len(part) > shared + 1 for part in parts) and len({part[shared] for part in parts}) == 1
    ):
        shared += 1
    return ["/".join(part[shared:]) for part in parts]


def _own(file: str) -> str:
    return (resources.files("unswayed.report") / "templates" / file).read_text("utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _context(runs: Runs, *, embed_mb: float) -> Mapping[str, object]:
    from markupsafe import Markup

    findings, names, alone = runs.findings, runs.names, len(runs.findings) == 1
    first = findings[0]
    style, script = _own("page.css"), _own("page.js")
    embedded = embed(findings, names, embed_mb=embed_mb)
    told = any(f.state not in {State.FAILED, State.ONE_ORDER} for f in findings)
    sections = {
        "bias": bias_section(runs),
        "cause": cause_section(runs),
        "remedies": remedies_section(runs),
        "groups": groups_section(runs),
        "table": (table := table_section(runs)),
        "items": items_section(runs, embedded) if told or embedded.first else None,
    }
    return {
        **sections,
        "figure": functools.partial(next, itertools.count(1)),  # numbered by what is shown
        "title": plain(sentence("runs.title", findings)),
        "version": one_line(first.run.metrics.unswayed),
        "date": date_text(findings[-1].run.run.created),
        "subjects": list(dict.fromkeys((f.model, f.metrics.data.name) for f in findings)),
        "headline": headline_of(runs),
        "warnings": [warning for finding, name in runs for warning in _warning(finding, name)],
        "each": [] if alone else [line for f, name in runs for line in _each(f, name, names[0])],
        "lede": lede_of(first) if alone else "",
        "keys": key_figures(first) if alone else [],
        "key_tables": [] if alone else key_tables(findings, names),
        "applications": [use for use in map(application_of, findings) if use is not None],
        "appendix": appendix(findings, names),
        "items_data": Markup(embedded.data),  # JSON in which every < is escaped
        "measured": _measured(runs, table),
        "style": Markup(style),
        "script": Markup(script),
        "style_hash": Markup(_hash(style)),
        "script_hash": Markup(_hash(script)),
    }


def headline_of(runs: Runs) -> Markup:
    """What the page says first."""
    first = runs.findings[0]
    if len(runs.findings) == 1:
        return sentence("lead.headline", first)
    comparable = all(f.n == first.n and f.rates and f.recommends for f in runs.findings)
    rates = [f.rates[first.position].value or 0.0 for f in runs.findings] if comparable else []
    return sentence("runs.headline", first, rates, runs.names)


def lede_of(finding: Finding) -> Markup:
    """The sentences below the headline."""
    return sentence("lead.lede", finding, remedy_of(finding), steadier_of(finding))


def _warning(finding: Finding, name: str) -> list[Markup]:
    """That calls are missing, under the run's name where there are several."""
    text = say("lead.missing", finding)
    return [sentence("runs.of_run", name, text[0])] if name and text else list(text)


def _each(finding: Finding, name: str, first: str) -> list[Markup]:
    """A run's own headline and what changed since the first one, where there are several."""
    remedy = sentence("lead.remedy_words", finding, remedy_of(finding), steadier_of(finding))
    words = joined((sentence("lead.headline", finding), remedy))
    return [
        sentence("runs.of_run", name, words),
        *say("runs.changes", *_changes(finding.run), first),
    ]


def _changes(run: RunData) -> tuple[list[tuple[str, object]], int]:
    """The paired differences of a run to the first one, and on how many items."""
    gains = [(METRICS.load(metric).title, gain_of(e)) for metric, e in run.changes.items()]
    items = max((e.n for e in run.changes.values() if e.value is not None), default=0)
    return [(title, gain) for title, gain in gains if gain is not None], items


def _measured(runs: Runs, table: TableSection) -> Mapping[str, object]:
    columns = dict.fromkeys(c for shown in (*table.tables, *table.more) for c in shown.columns)
    commands = [command_text(finding.run.run.command) for finding in runs.findings]
    alone = len(runs.names) == 1
    return {
        "lines": list(dict.fromkeys(sentence("facts.measured", f) for f in runs.findings)),
        "runs": [{"name": name, "facts": facts(finding)} for finding, name in runs],
        "commands": [command for command in dict.fromkeys(commands) if command],
        "columns": list(columns),
        "caveats": list(
            dict.fromkeys(t for f in runs.findings for t in say("facts.caveats", f, alone))
        ),
    }
