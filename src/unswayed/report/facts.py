"""Report section on settings and command, without secrets."""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import NamedTuple

from unswayed.base.redaction import HIDDEN, without_keys, without_secrets
from unswayed.base.visible import one_line, visible
from unswayed.report.findings import Finding
from unswayed.report.words import plain, say

WIDTH = 72
CALLS = ("us.audit(", "unswayed.audit(")


class Fact(NamedTuple):
    """A line of the facts list; a fingerprint is shown shortened, in mono."""

    term: str
    text: str
    fingerprint: str


def command_text(command: str) -> str:
    """Return the command to run again, broken before options where it is long; Python as it is."""
    try:
        arguments = [] if command.startswith(CALLS) else shlex.split(command)
    except ValueError:
        arguments = []
    if not arguments:
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
    """Return an ISO date or time as "20 November 2026"; empty if it is neither."""
    try:
        day = datetime.fromisoformat(created.replace("Z", "+00:00"))
    except ValueError:
        return ""
    return f"{day.day} {day:%B %Y}"


def short(fingerprint: str) -> str:
    """Return a fingerprint short enough to read: the first 12 digits."""
    kind, colon, digits = fingerprint.rpartition(":")
    return f"{kind}{colon}{digits[:12]}…" if len(digits) > 12 else fingerprint


def facts(finding: Finding) -> list[Fact]:
    """Everything a reader needs to repeat or to doubt the measurement."""
    run = finding.run.run
    prompt = "" if run.prompt is None else run.prompt.fingerprint
    fingerprints = {"Data": short(run.data.fingerprint), "Prompt": short(prompt)}
    lines = (plain(line).partition(":") for line in say("facts.facts", finding))
    return [
        Fact(term, one_line(without_keys(text.strip())), one_line(fingerprints.get(term, "")))
        for term, _, text in lines
        if text
    ]
