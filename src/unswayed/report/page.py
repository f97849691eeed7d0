"""The report as one self-contained HTML file."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from unswayed.errors import UsageError
from unswayed.report.appendix import appendix
from unswayed.report.applying import application_of
from unswayed.report.changes import changes_of
from unswayed.report.data import RunData
from unswayed.report.explorer import embed
from unswayed.report.facts import (
    caveats,
    command_text,
    date_text,
    definitions,
    facts,
    measured,
)
from unswayed.report.findings import Finding, State, find
from unswayed.report.keys import key_figures, key_tables
from unswayed.report.lead import headline_of, lede_of, missing_calls, remedy_of
from unswayed.report.numerals import ordinal, percent, spelled
from unswayed.report.reading import model_name
from unswayed.report.sections import (
    Figures,
    TableSection,
    bias_section,
    cause_section,
    groups_section,
    items_section,
    remedies_section,
    table_section,
)
from unswayed.report.wording import Line, Span, joined, line, strong
from unswayed.visible import one_line, visible

if TYPE_CHECKING:
    from jinja2 import Template

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
    context = _context(findings, run_names(findings), embed_mb=embed_mb)
    return visible(_template().render(context))


def run_names(findings: Sequence[Finding]) -> list[str]:
    """What tells the runs apart: the names they were given, else what differs between them of
    model, prompt and data; a single run needs no name.
    """
    if len(findings) == 1:
        return [""]
    models = without_shared_folders([model_name(found.audit.model) for found in findings])
    prompts = [_prompt_name(found) for found in findings]
    sets = [found.audit.data for found in findings]
    if len(set(prompts)) > 1:
        models = [f"{model}, {prompt}" for model, prompt in zip(models, prompts, strict=True)]
    names = [f"{model} on {data}" for model, data in zip(models, sets, strict=True)]
    if len(set(sets)) == 1:
        names = models
    elif len(set(models)) == 1:
        names = without_shared_folders(sets)
    names = [found.run.name or name for found, name in zip(findings, names, strict=True)]
    seen: dict[str, int] = {}
    made = []
    for run_name in names:
        seen[run_name] = seen.get(run_name, 0) + 1
        again = f" ({seen[run_name]})" if seen[run_name] > 1 else ""
        made.append(f"{run_name}{again}")
    return made


def _prompt_name(found: Finding) -> str:
    prompt = found.run.run.prompt
    return "" if prompt is None else prompt.name


def without_shared_folders(names: Sequence[str]) -> list[str]:
    """Names without the leading path that all of them share: rows have little room."""
    parts = [run_name.split("/") for run_name in names]
    shared = 0
    while all(len(some) > shared + 1 for some in parts) and len({p[shared] for p in parts}) == 1:
        shared += 1
    return ["/".join(some[shared:]) for some in parts]


@functools.cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("unswayed.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["px"] = lambda value: f"{value:.1f}"
    return environment.get_template("page.html.j2")


def _own(file: str) -> str:
    return (resources.files("unswayed.report") / "templates" / file).read_text("utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@dataclass(frozen=True, slots=True)
class _Subject:
    model: str
    data: str


def _context(
    findings: Sequence[Finding], names: Sequence[str], *, embed_mb: float
) -> Mapping[str, object]:
    from markupsafe import Markup

    figures = Figures()
    style, script = _own("page.css"), _own("page.js")
    bias = bias_section(findings, names, figures)
    cause = cause_section(findings, names, figures)
    remedies = remedies_section(findings, names, figures)
    groups = groups_section(findings, names, figures)
    embedded = embed(findings, names, embed_mb=embed_mb)
    told = [f for f in findings if f.state not in {State.FAILED, State.ONE_ORDER}]
    items = items_section(findings, names, embedded) if told or embedded.first else None
    table = table_section(findings, names)
    version = one_line(findings[0].run.metrics.unswayed)
    return {
        "title": f"{one_line(_title(findings))} | unswayed audit",
        "version": version,
        "date": date_text(findings[-1].run.run.created),
        "subjects": list(
            dict.fromkeys(_Subject(model_name(f.audit.model), f.audit.data) for f in findings)
        ),
        "anchors": [
            (anchor, word)
            for anchor, word, section in (
                ("bias", "Bias", bias),
                ("cause", "Cause", cause),
                ("methods", "Remedies", remedies),
                ("groups", "Groups", groups),
                ("table", "Table", table),
                ("items", "Flipped items", items),
                ("how", "Method", findings),
            )
            if section is not None
        ],
        "headline": visible(_headline(findings, names)),
        "warnings": _warnings(findings, names),
        "each": _each(findings, names),
        "lede": joined(lede_of(findings[0])) if len(findings) == 1 else (),
        "keys": key_figures(findings[0]) if len(findings) == 1 else [],
        "key_tables": key_tables(findings, names) if len(findings) > 1 else [],
        "bias": bias,
        "cause": cause,
        "remedies": remedies,
        "applications": [use for use in map(application_of, findings) if use is not None],
        "groups": groups,
        "table": table,
        "appendix": appendix(findings, names),
        "items": items,
        "items_data": Markup(embedded.data),  # JSON in which every < is escaped
        "how": _how(findings, names, table),
        "style": Markup(style),
        "script": Markup(script),
        "style_hash": Markup(_hash(style)),
        "script_hash": Markup(_hash(script)),
    }


def _title(findings: Sequence[Finding]) -> str:
    if len(findings) > 1:
        return f"{len(findings)} runs side by side"
    found = findings[0]
    if found.rates and found.favoured is not None and found.recommends:
        where = "last" if found.n == 2 and found.favoured == 1 else ordinal(found.favoured)
        word = "answer" if found.n == 2 else "option"
        rate = percent(found.rates[found.favoured].value or 0.0, 0)
        return f"{model_name(found.audit.model)} picks the {where} {word} {rate} of the time"
    return f"{model_name(found.audit.model)} on {found.audit.data}"


def _headline(findings: Sequence[Finding], names: Sequence[str]) -> str:
    if len(findings) == 1:
        return headline_of(findings[0])
    comparable = len({found.n for found in findings}) == 1 and all(
        found.rates and found.recommends for found in findings
    )
    if not comparable:
        return f"{spelled(len(findings)).capitalize()} runs side by side."
    position = findings[0].position
    word = "answer" if findings[0].n == 2 else "option"
    rates = [percent(found.rates[position].value or 0.0, 0) for found in findings]
    if len(findings) == 2:
        a, b = (one_line(run_name) for run_name in names)
        return (
            f"The {ordinal(position)} {word} is picked {rates[0]} of the time by {a} "
            f"and {rates[1]} by {b}."
        )
    low = min(findings, key=lambda found: found.rates[position].value or 0.0)
    high = max(findings, key=lambda found: found.rates[position].value or 0.0)
    return (
        f"The {ordinal(position)} {word} is picked between "
        f"{percent(low.rates[position].value or 0.0, 0)} and "
        f"{percent(high.rates[position].value or 0.0, 0)} of the time in {spelled(len(findings))} runs."
    )


def _warnings(findings: Sequence[Finding], names: Sequence[str]) -> list[Line]:
    made = []
    for found, run_name in zip(findings, names, strict=True):
        text = missing_calls(found)
        if text:
            made.append(line(strong(run_name), f": {text}") if run_name else line(text))
    return made


def _each(findings: Sequence[Finding], names: Sequence[str]) -> list[Line]:
    """Each run's own headline, where there are several."""
    if len(findings) == 1:
        return []
    made = []
    for found, run_name in zip(findings, names, strict=True):
        rest = joined(remedy_of(found))
        space = (Span(" "),) if rest else ()
        made.append((*line(strong(run_name), f": {headline_of(found)}"), *space, *rest))
        change = changes_of(found.run, names[0])
        if change:
            made.append(change)
    return made


def _how(
    findings: Sequence[Finding], names: Sequence[str], table: TableSection
) -> Mapping[str, object]:
    shown = [column for one in (*table.tables, *table.more) for column in one.columns]
    commands = [command_text(found.run.run.command) for found in findings]
    return {
        "lines": list(dict.fromkeys(measured(found) for found in findings)),
        "runs": [
            {"name": run_name, "facts": facts(found)}
            for found, run_name in zip(findings, names, strict=True)
        ],
        "commands": [command for command in dict.fromkeys(commands) if command],
        "definitions": definitions(list(dict.fromkeys(shown))),
        "caveats": list(
            dict.fromkeys(t for found in findings for t in caveats(found, alone=len(names) == 1))
        ),
    }
