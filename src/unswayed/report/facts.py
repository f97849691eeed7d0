"""How it was measured: settings and the command, without their secrets."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime

from unswayed.auditing.records import Prompt, Run
from unswayed.redaction import HIDDEN, without_keys, without_secrets
from unswayed.report.findings import Finding
from unswayed.report.numerals import NARROW
from unswayed.report.words import plain, sentence
from unswayed.visible import one_line, visible

__all__ = ["Fact", "command_text", "date_text", "facts"]

WIDTH = 72


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of the facts list; a fingerprint is shown shortened, in mono."""

    term: str
    text: str
    fingerprint: str = ""


def command_text(command: str) -> str:
    """The command to run again, broken before options where it is long."""
    try:
        arguments = shlex.split(command)
    except ValueError:
        return visible(without_keys(command))
    lines: list[str] = []
    current = ""
    for argument in without_secrets(arguments):
        word = argument if argument.endswith(HIDDEN) else shlex.quote(argument)
        full = len(current) + len(word) + 1 > WIDTH
        if current and full and (argument.startswith("-") or len(word) > WIDTH // 2):
            lines.append(current)
            current = f"    {word}"
        else:
            current = f"{current} {word}" if current else word
    return visible(" \\\n".join([*lines, current]) if current else "")


def date_text(created: str) -> str:
    """An ISO date or time as "20 November 2026"; empty if it is neither."""
    try:
        day = datetime.fromisoformat(created.replace("Z", "+00:00"))
    except ValueError:
        return ""
    return f"{day.day} {day:%B %Y}"


def short(fingerprint: str) -> str:
    """A fingerprint short enough to read: the first 12 digits."""
    kind, colon, digits = fingerprint.rpartition(":")
    return f"{kind}{colon}{digits[:12]}…" if len(digits) > 12 else fingerprint


def facts(finding: Finding) -> list[Fact]:
    """Everything a reader needs to repeat or to doubt the measurement."""
    run = finding.run.run
    lines = [
        Fact("Model", run.model or finding.metrics.model),
        Fact("Data", _said("facts.data", finding), short(run.data.fingerprint)),
        Fact("Protocol", _said("facts.protocol", finding)),
        _prompt(run.prompt),
        Fact("Calls", _said("facts.calls", finding)),
        Fact("Unparsed", _said("facts.unparsed", finding)),
        Fact("Tokens and cost", _said("facts.cost", finding)),
        Fact("Time", "" if run.time_s is None else _said("facts.time", run.time_s)),
        Fact("Intervals", _intervals(run)),
        Fact("Version", _version(run, finding.run.metrics.unswayed)),
    ]
    return [
        Fact(line.term, one_line(without_keys(line.text)), one_line(line.fingerprint))
        for line in lines
        if line.text
    ]


def _said(macro: str, value: object) -> str:
    return plain(sentence(macro, value))


def _prompt(prompt: Prompt | None) -> Fact:
    if prompt is None:
        return Fact("Prompt", "")
    words = ", ".join([prompt.name, f"temperature {prompt.temperature:g}"])
    return Fact("Prompt", words, short(prompt.fingerprint))


def _intervals(run: Run) -> str:
    text = run.intervals or "95 %, percentile bootstrap over items"
    return text.replace("95 %", f"95{NARROW}%")


def _version(run: Run, version: str) -> str:
    own = run.version or version
    others = (f"{k} {v}" for k, v in run.packages.items() if k != "unswayed")
    return ", ".join([*([f"unswayed {own}"] if own else []), *others])
