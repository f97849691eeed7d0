"""`unswayed gate`: fail a build by the figures of finished runs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final
from xml.etree import ElementTree

import typer

from unswayed.auditing.gates import (
    Condition,
    GateCheck,
    Rule,
    check,
    check_baseline,
    check_calls,
    failures,
)
from unswayed.auditing.records import read_metrics
from unswayed.auditing.run_directory import write_bytes
from unswayed.base.counts import plural
from unswayed.base.errors import GateError, UsageError
from unswayed.cli.output import note, write

MOST_ANNOTATIONS: Final = 10
"""GitHub shows no more of one step."""
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""

FailIf = Annotated[
    list[str] | None, typer.Option(help="Fail if this holds, such as 'flip_rate>0.1'; repeatable.")
]
RuleOption = Annotated[
    Rule,
    typer.Option(
        help="Fail if this is beyond the limit: the whole interval (shown), any of it (strict) or the value (point).",
    ),
]
FailedShare = Annotated[
    float, typer.Option(min=0, max=1, help="Largest share of failed calls that is allowed.")
]
Junit = Annotated[Path | None, typer.Option(help="JUnit XML file to write.")]


def gate(
    runs: Annotated[list[Path], typer.Argument(help="Run directories.", metavar="RUN")],
    fail_if: FailIf = None,
    baseline: Annotated[
        Path | None,
        typer.Option(help="Run whose single-call consistency must be kept, up to --margin."),
    ] = None,
    margin: Annotated[
        float, typer.Option(min=0, max=1, help="Loss of consistency that is allowed.")
    ] = 0.02,
    rule: RuleOption = "shown",
    max_failed_share: FailedShare = 0.0,
    junit: Junit = None,
) -> None:
    """Fail a build based on the figures of finished runs."""
    conditions = [Condition.of(text) for text in fail_if or ()]
    if not conditions and baseline is None:
        raise UsageError("nothing to check. Give --fail-if or --baseline.")
    by_run: dict[str, list[GateCheck]] = {}
    for run in runs:
        metrics = read_metrics(run)
        check_calls(metrics, max_failed_share)
        by_run[str(run)] = [check(metrics, condition, rule) for condition in conditions]
        if baseline is not None:
            by_run[str(run)].append(check_baseline(baseline, run, margin, rule))
    conclude(by_run, rule, junit)


def conclude(
    by_run: Mapping[str, Sequence[GateCheck]],
    rule: Rule,
    junit: Path | None,
    *,
    show: Callable[[str], object] = write,
) -> None:
    """Report the checks of each run, line by line and where CI reads them.

    Raises:
        GateError: If one fails.
    """
    if junit is not None:
        write_bytes(junit, junit_xml(by_run, rule))
    checks = [own for every in by_run.values() for own in every]
    for own in checks:
        show(f"{'FAIL' if own.fails(rule) else own.outcome}  {_one_line(own.said)}")
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in workflow_commands(checks, rule):
            show(line)
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(summary_table(checks, rule))
    failed = failures(checks, rule)
    if failed:
        raise GateError(
            f"{len(failed)} of {plural(len(checks), 'gate')} failed: {_one_line(failed[0])}"
        )
    if any(own.outcome == "unclear" for own in checks):
        note(
            "some gates are unclear: the interval includes the limit or is missing, so --rule shown lets them pass. "
            "To fail them, use --rule strict."
        )


def junit_xml(by_run: Mapping[str, Sequence[GateCheck]], rule: Rule) -> bytes:
    """Return a JUnit file: a suite for each run, a case for each check."""
    root = ElementTree.Element("testsuites")
    for run, checks in by_run.items():
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_legal(f"unswayed {run}"),
            tests=str(len(checks)),
            failures=str(len(failures(checks, rule))),
            errors="0",
            skipped="0",
        )
        for own in checks:
            case = ElementTree.SubElement(
                suite, "testcase", classname=_legal(f"unswayed.{run}"), name=_legal(own.title)
            )
            if own.fails(rule):
                ElementTree.SubElement(case, "failure", message=_legal(own.said), type=own.outcome)
            else:
                ElementTree.SubElement(case, "system-out").text = _legal(
                    f"{own.outcome}: {own.said}"
                )
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def workflow_commands(checks: Sequence[GateCheck], rule: Rule) -> list[str]:
    """Return workflow commands of GitHub, failures first; each is one line, whatever a name holds."""
    shown = [own for own in checks if own.fails(rule) or own.outcome == "unclear"]
    shown.sort(key=lambda own: not own.fails(rule))
    lines = []
    for own in shown[:MOST_ANNOTATIONS]:
        title = _data(f"unswayed: {own.title}").replace(":", "%3A").replace(",", "%2C")
        lines.append(
            f"::{'error' if own.fails(rule) else 'warning'} title={title}::{_data(own.said)}"
        )
    return lines


def summary_table(checks: Sequence[GateCheck], rule: Rule) -> str:
    """Return the checks as a table of GitHub Markdown."""
    lines = ["| gate | result | figure |", "|---|---|---|"]
    for own in checks:
        result = "**fail**" if own.fails(rule) else own.outcome
        lines.append(f"| {_cell(own.title)} | {result} | {_cell(own.said)} |")
    return "\n".join(lines) + "\n"


def _legal(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _one_line(text).replace("|", "\\|").replace("<", "&lt;")
