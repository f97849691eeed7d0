"""How it was measured: settings, the command without its secrets, definitions, caveats."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from unswayed.auditing.records import Prompt, Run
from unswayed.redaction import HIDDEN, without_keys, without_secrets
from unswayed.report.findings import UNPARSED_NOTE, Finding, State
from unswayed.report.lead import unparsed_note
from unswayed.report.numerals import NARROW, count, percent, plural, spelled
from unswayed.report.table import Column
from unswayed.visible import one_line, visible

__all__ = ["Fact", "caveats", "command_text", "date_text", "definitions", "facts", "measured"]

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


def facts(found: Finding) -> list[Fact]:
    """Everything a reader needs to repeat or to doubt the measurement."""
    audit, run = found.audit, found.run.run
    made = [
        Fact("Model", run.model or audit.model),
        Fact("Data", _data(found), short(run.data.fingerprint)),
        Fact("Protocol", _protocol(found)),
        _prompt(run.prompt),
        Fact("Calls", _calls(found)),
        Fact("Unparsed", _unparsed(found)),
        Fact("Tokens and cost", _cost(found)),
        Fact("Time", _time(run.time_s)),
        Fact("Intervals", _intervals(run)),
        Fact("Version", _version(run, found.run.metrics.unswayed)),
    ]
    return [
        Fact(fact.term, one_line(without_keys(fact.text)), one_line(fact.fingerprint))
        for fact in made
        if fact.text
    ]


def _prompt(prompt: Prompt | None) -> Fact:
    if prompt is None:
        return Fact("Prompt", "")
    words = ", ".join([prompt.name, f"temperature {prompt.temperature:g}"])
    return Fact("Prompt", words, short(prompt.fingerprint))


def _data(found: Finding) -> str:
    audit = found.audit
    parts = [audit.data, plural(audit.n_items, "item")]
    if audit.groups:
        parts[-1] += f" in {plural(len(audit.groups), 'group')}"
    if audit.counts.bad_lines:
        parts.append(f"{plural(audit.counts.bad_lines, 'bad line')} left out")
    return ", ".join(parts)


def _protocol(found: Finding) -> str:
    orders, shown = found.audit.orders, found.audit.orders_each
    parts = [_protocols_measured(found), f"orders {orders}" if orders else ""]
    if shown:
        parts.append(f"{plural(shown, 'presentation')} of an item in each")
    elif found.audit.n_presentations:
        parts.append(f"at most {plural(found.audit.n_presentations, 'presentation')} of an item")
    return ", ".join(part for part in parts if part)


def _protocols_measured(found: Finding) -> str:
    words = {"coupled": "coupled", "order": "order-only", "label": "label-only"}
    return ", ".join(words[p] for p in words if p in found.audit.protocols)


def _calls(found: Finding) -> str:
    audit = found.audit
    if not audit.planned and not audit.answered:
        return ""
    if found.run.run.recorded:
        return f"{plural(audit.answered, 'recorded decision')}, no call made"
    calls = audit.calls
    return (
        f"{count(calls.planned)} planned, {count(calls.made)} made, {count(calls.cached)} from "
        f"cache, {count(calls.failed)} failed"
    )


def _unparsed(found: Finding) -> str:
    calls = found.audit.calls
    if not calls.answered:
        return ""
    text = f"{count(calls.unparsed)} of {count(calls.answered)}"
    if calls.refused:
        text += f", {count(calls.refused)} of them refused"
    if calls.label_mass is not None:
        text += f"; mean label mass {calls.label_mass:.3f}"
    return text


def _cost(found: Finding) -> str:
    calls = found.audit.calls
    if found.run.run.recorded:
        return ""
    if not calls.input_tokens and not calls.output_tokens and calls.cost_usd is None:
        return ""
    price = "price unknown" if calls.cost_usd is None else f"${calls.cost_usd:,.2f}"
    return f"{count(calls.input_tokens)} in, {count(calls.output_tokens)} out, {price}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 120:
        return f"{seconds:.1f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _intervals(run: Run) -> str:
    text = run.intervals or "95 %, percentile bootstrap over items"
    return text.replace("95 %", f"95{NARROW}%")


def _version(run: Run, version: str) -> str:
    own = run.version or version
    others = (f"{k} {v}" for k, v in run.packages.items() if k != "unswayed")
    return ", ".join([*([f"unswayed {own}"] if own else []), *others])


def measured(found: Finding) -> str:
    """How every item was asked, in one or two sentences."""
    orders = found.audit.n_presentations
    protocols = set(found.audit.protocols)
    if found.n == 2 and {"coupled", "order", "label"} <= protocols:
        text = (
            "Every item was asked in four layouts: both orders of the answers, with both "
            "assignments of the letters."
        )
    elif found.n == 2 and protocols <= {"coupled"} and orders in {0, 2}:
        text = "Every item was asked in both orders of its answers."
    else:
        most = "at most " if orders > 1 and not found.audit.orders_each else ""
        many = f"{most}{spelled(orders or 1)} order{'s' if orders > 1 else ''}"
        text = f"Every item was asked in {many}"
        others = len(protocols) - 1
        text += f", under each of {spelled(others + 1)} protocols." if others > 0 else "."
    if len(found.audit.methods) > 1:
        text += " All methods were scored from this one pool of calls."
    return text


def definitions(columns: Sequence[Column]) -> list[tuple[str, str]]:
    """What the words on this page mean: the shown columns, calls and intervals."""
    made = [(column.title, column.meaning) for column in columns]
    made.append(
        ("Calls per item", "model calls a method reads, its fitting calls spread over the items")
    )
    made.append(
        (
            "Interval",
            "range made so that 95 of 100 such ranges, from fresh items of this kind, hold the "
            "true value",
        )
    )
    return made


def caveats(found: Finding, *, alone: bool = True) -> list[str]:
    """What this run does not show: its own caveats and the standing ones.

    Args:
        found: The run.
        alone: Whether it is the only run of the page; figures of one of several would confuse.
    """
    made = [visible(text) for text in found.run.caveats]
    if found.state is not State.UNPARSED and found.unparsed_share > UNPARSED_NOTE:
        made.append(unparsed_note(found))
    made += _left_out(found)
    incomplete = found.audit.base_row.incomplete
    if incomplete:
        made.append(
            f"{plural(incomplete, 'item')} with a missing presentation: left out of "
            "consistency and consistent accuracy."
        )
    if found.audit.has_gold:
        wrong = "Consistency is not correctness: a judge can be wrong in every order."
        made.append(wrong + (_wrong(found) if alone else ""))
    made.append(
        "Intervals speak about more items of this kind, not about other prompts, other versions of "
        "the model or other tasks."
    )
    if len(found.audit.methods) > 1:
        made.append(
            "Methods were compared on the same items without a correction for the number of methods."
        )
    return made


def _left_out(found: Finding) -> list[str]:
    """Items that some figures leave out, and why."""
    counts = found.audit.counts
    made = []
    if counts.not_permutable:
        made.append(
            f"{plural(counts.not_permutable, 'item')} whose candidates refer to each other: "
            "asked in their own order only, left out of what compares orders."
        )
    if counts.gold_ties:
        made.append(
            f"{plural(counts.gold_ties, 'item')} whose gold label is a tie: left out of "
            "accuracy unless ties are scored as a class."
        )
    if counts.no_gold and found.audit.has_gold:
        made.append(f"{plural(counts.no_gold, 'item')} without a gold label: left out of accuracy.")
    return made


def _wrong(found: Finding) -> str:
    method = found.recommended
    if method is None:
        return ""
    accuracy = found.audit.methods[method].get("accuracy")
    if accuracy is None or accuracy.value is None:
        return ""
    single = method == found.audit.base
    under = "single calls" if single else one_line(method)
    what = "verdicts" if single else "items"
    return f" Of the {what}, {percent(1 - accuracy.value)} are wrong under {under}."
