"""The claim of each section: its finding as a heading, and the sentences that carry it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unswayed.decisions import Estimate
from unswayed.report.findings import (
    Finding,
    State,
    above,
    apart,
    below,
    disjoint,
    favoured_of,
    half_width,
)
from unswayed.report.lead import expected_text
from unswayed.report.numerals import count, ordinal, percent, plural, spelled
from unswayed.report.reading import Rates, Row
from unswayed.report.wording import Line, line, listed, name

__all__ = ["Claim", "bias_claim", "cause_claim", "groups_claim", "items_claim"]

ABOUT_THE_SAME = 0.03
"""Two consistencies this close, each settled to 3 points, weigh about the same."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A section's left column.

    Attributes:
        title: The finding in one sentence; names inside it are isolated.
        lines: Paragraphs.
        note: A quieter paragraph.
    """

    title: Line
    lines: tuple[Line, ...] = ()
    note: Line | None = None


def bias_claim(found: Finding) -> Claim:
    """What position and label do."""
    if found.state is State.FAILED:
        return Claim(line("No call was answered."))
    if found.state is State.UNPARSED and found.audit.unparsed >= found.audit.answered:
        return Claim(line("No answer could be read."))
    alone = found.audit.rates("order", "position")
    named = found.audit.rates("label", "label")
    if not found.rates and not alone:
        return Claim(line("No shares by position were measured."))
    lines: list[Line] = []
    if alone and named:
        lines.append(line(_alone_sentence(found, alone, named)))
    elif found.rates:
        lines.append(line(_together_sentence(found)))
    return Claim(line(_bias_title(found, alone, named)), tuple(lines))


def _where(index: int, n: int) -> str:
    return ("first", "last")[index] if n == 2 else ordinal(index)


def _bias_title(found: Finding, alone: Rates, named: Rates) -> str:
    n = found.n
    if found.state is State.FEW:
        return "No position can be named."
    if not alone or not named:
        if found.favoured is not None:
            return f"The {_where(found.favoured, n)} {'answer' if n == 2 else 'option'} wins."
        if found.avoided is not None:
            return f"The {_where(found.avoided, n)} option is avoided."
        return "No position wins."
    position, label = favoured_of(alone, found.looks), favoured_of(named, found.looks)
    if position is None and label is None:
        return "Neither a position nor a label wins."
    symbol = "" if label is None else found.labels[label]
    if position is None:
        return f"The label {symbol} wins, wherever it stands."
    winner = f"The {_where(position, n)} position wins"
    if label is None:
        return f"{winner}; no label does."
    if n == 2:
        against = "helps it" if label == position else "works against it"
        return f"{winner}, and the label {symbol} {against}."
    winning = [i for i, rate in enumerate(named) if above(found.jointly(rate), found.expected)]
    if winning == [position]:
        return f"{winner}, and the label {symbol} helps it."
    symbols = listed([found.labels[i] for i in winning])
    return f"{winner}, and so {_do(winning)} {symbols}."


def _do(labels: Sequence[int]) -> str:
    return "does the label" if len(labels) == 1 else "do the labels"


def _alone_sentence(found: Finding, alone: Rates, named: Rates) -> str:
    position = favoured_of(alone, found.looks)
    label = favoured_of(named, found.looks)
    p = alone[found.position if position is None else position]
    q = named[0 if label is None else label]
    where = ordinal(found.position if position is None else position)
    symbol = found.labels[0 if label is None else label]
    out = [not _holds(p, found.expected), not _holds(q, found.expected)]
    expected = expected_text(found.n)
    verdict = {
        (True, True): f"Both intervals exclude {expected}.",
        (True, False): f"The first interval excludes {expected}, the second contains it.",
        (False, True): f"The first interval contains {expected}, the second excludes it.",
        (False, False): f"Both intervals contain {expected}.",
    }[out[0], out[1]]
    if any(out) and position is None and label is None:
        verdict += _by_chance(found)
    return (
        f"With labels balanced out, the {where} position is {'still ' if out[0] else ''}chosen "
        f"{percent(p.value or 0.0)} of the time. With positions balanced out, the label {symbol} "
        f"is chosen {percent(q.value or 0.0)} of the time. {verdict}"
    )


def _holds(rate: Estimate, expected: float) -> bool:
    return not above(rate, expected) and not below(rate, expected)


def _by_chance(found: Finding) -> str:
    """Why an interval beside 1/n is no finding yet."""
    return f" Of {spelled(found.looks)} such shares one may by chance: that is no finding."


def _together_sentence(found: Finding) -> str:
    rate = found.rates[found.position]
    apart = "--protocol all separates them"
    if found.run.run.recorded:
        apart = "decisions recorded in other layouts would separate them"
    holds = _holds(rate, found.expected)
    named = found.favoured is not None or found.avoided is not None
    chance = "" if holds or named else _by_chance(found)
    held = "contains" if holds else "excludes"
    return (
        f"The {ordinal(found.position)} position is chosen {percent(rate.value or 0.0)} of the "
        f"time; the interval {held} {expected_text(found.n)}.{chance} Positions and labels moved together "
        f"here, so their shares cannot be told apart: {apart}."
    )


def cause_claim(found: Finding) -> Claim | None:
    """What moves the verdict, order or labels; None with fewer than two protocols."""
    rows = {
        protocol: estimate
        for protocol in ("coupled", "order", "label")
        if (row := found.audit.protocols.get(protocol)) is not None
        and (estimate := row.get("consistency")) is not None
    }
    if len(rows) < 2:
        return None
    return Claim(line(_cause_title(rows)), (line(_cause_sentence(found, rows)),))


def _cause_title(rows: Mapping[str, Estimate]) -> str:
    order, label = rows.get("order"), rows.get("label")
    if order is None or label is None:
        alone = "the order" if order is not None else "the labels"
        return f"What changing {alone} alone does."
    if disjoint(order, label):
        if (order.value or 0.0) < (label.value or 0.0):
            return "Position matters more than the letter."
        return "The letter matters more than the position."
    near = abs((order.value or 0.0) - (label.value or 0.0)) <= ABOUT_THE_SAME
    settled = all((half_width(e) or 1.0) <= ABOUT_THE_SAME for e in (order, label))
    if near and settled:
        return "Position and label weigh about the same."
    return "Position and label cannot be told apart."


def _cause_sentence(found: Finding, rows: Mapping[str, Estimate]) -> str:
    things = "answers" if found.n == 2 else "options"
    kept = "of verdicts unchanged" if found.n == 2 else "of an item's verdicts the same"
    made = []
    if "order" in rows:
        made.append(
            f"Moving the {things} while each keeps its letter leaves "
            f"{percent(rows['order'].value or 0.0)} {kept}."
        )
    if "label" in rows:
        made.append(
            f"{'Swapping' if found.n == 2 else 'Moving'} only the letters leaves "
            f"{percent(rows['label'].value or 0.0)}{'' if made else ' ' + kept}."
        )
    if "coupled" in rows:
        made.append(
            "When both change together, as in everyday use, "
            f"{percent(rows['coupled'].value or 0.0)} survive."
        )
    return " ".join(made)


def groups_of(found: Finding) -> list[tuple[str, Row]]:
    """The groups with a consistency under the base method, the least consistent first."""
    base = found.audit.base or ""
    rows = [
        (group, methods[base])
        for group, methods in found.audit.groups.items()
        if base in methods and methods[base].get("consistency") is not None
    ]
    return sorted(rows, key=lambda one: one[1].estimates["consistency"].value or 0.0)


def groups_claim(found: Finding) -> Claim | None:
    """Whether groups differ; None with fewer than two groups."""
    rows = groups_of(found)
    if len(rows) < 2:
        return None
    (worst, low), (best, high) = rows[0], rows[-1]
    a, b = low.estimates["consistency"], high.estimates["consistency"]
    differ = apart(a, b, len(rows))
    title = (
        line("Worst on ", name(worst), ", best on ", name(best), ".")
        if differ
        else line("No group differs measurably from the others.")
    )
    lines = [
        line(
            f"Consistency runs from {percent(a.value or 0.0)} (",
            name(worst),
            f", {plural(a.n, 'item')}) to {percent(b.value or 0.0)} (",
            name(best),
            f", {plural(b.n, 'item')}).",
        )
    ]
    if percent(a.value or 0.0) == percent(b.value or 0.0):
        lines = [line(f"Consistency is {percent(a.value or 0.0)} in every group.")]
    trend = _trend(found, rows)
    if differ and trend:
        lines.append(line(trend))
    return Claim(title, tuple(lines), line(_chance(len(rows))))


def _trend(found: Finding, rows: Sequence[tuple[str, Row]]) -> str:
    """What the position rate does from the worst to the best group, where the intervals allow."""
    if len(rows) < 2 or any(len(row.position_rate) <= found.position for _, row in rows):
        return ""
    rates = [row.position_rate[found.position] for _, row in rows]
    where = ordinal(found.position)
    lowest = min(rates, key=lambda rate: rate.value or 0.0)
    highest = max(rates, key=lambda rate: rate.value or 0.0)
    if not apart(lowest, highest, len(rates)):
        return ""
    tail = "one correction for all groups will leave some of the bias in place."
    if disjoint(rates[0], rates[-1]) and (rates[0].value or 0.0) > (rates[-1].value or 0.0):
        return f"Where it is lowest, the {where} position is chosen more often: {tail}"
    return f"The {where} position is not chosen equally often in every group: {tail}"


def _chance(groups: int) -> str:
    """How many marks chance alone would give: 5 % of the groups."""
    marks = 0.05 * groups
    start = "Blue marks an interval that excludes the dashed line."
    if marks < 0.95:
        reports = round(1 / marks)
        often = "every report" if reports == 1 else f"every {spelled(reports)} reports"
        return f"{start} With {spelled(groups)} groups, chance alone marks one in about {often}."
    about = f"{marks:.1f}".removesuffix(".0")
    return f"{start} With {groups} groups, chance alone marks about {about} in each column."


def items_claim(found: Finding) -> Claim:
    """Where the judge stayed when the verdict changed."""
    k = found.run.n_flipped
    if k == 0:
        return Claim(line("No verdict changed with the order."))
    if found.run.run.recorded:
        # recorded decisions say what was shown, not in which words
        shown = "Pick an item to see what was shown in each order. Its prompt was not recorded."
    elif found.n > 2:
        shown = "Pick an item to see one prompt for each answer it gave, with every option marked."
    else:
        shown = "Pick an item to see the two prompts the judge was given, with both answers marked "
        shown += "so that you can see each one move."
    if found.n > 2:
        title = f"{count(k)} of {plural(found.items, 'item')} change their answer with the order."
        if k == 1:
            title = f"1 of {plural(found.items, 'item')} changes its answer with the order."
        return Claim(line(title), (line(shown),) if found.run.flipped else ())
    title, text = _where_it_stayed(found)
    return Claim(line(title), (line(text + shown),) if found.run.flipped else ())


def _where_it_stayed(found: Finding) -> tuple[str, str]:
    """Of two answers, the place that the judge kept choosing; with a sentence on the rest."""
    k = found.run.n_flipped
    total, first, last = _stays(found)
    if total == 0:
        return f"{plural(k, 'verdict')} changed with the order.", ""
    surest = "surest " if total < k else ""
    of = f"{count(total)} {surest}flipped items"
    side, most, other = ("first", first, last) if first >= last else ("last", last, first)
    opposite = "last" if side == "first" else "first"
    ties = total - most - other
    unread, tied = found.audit.flips.get("unread", 0), found.audit.flips.get("ties", ties)
    what = "is a tie or could not be read" if tied else "could not be read"
    what = what if unread else "is a tie"
    if most == total:
        every = f"In all {of}" if total > 1 else "In the one flipped item"
        none = "None of them went the other way. " if total > 1 else ""
        return f"{every} the judge stayed with the {side} position.", none
    if ties > most:
        return (
            f"In {count(ties)} of {of} one of the two verdicts {what}.",
            f"In {count(most)} the judge stayed with the {side} position, in {count(other)} with "
            f"the {opposite} one. ",
        )
    rest = f", and in {count(ties)} one of the two verdicts {what}" if ties else ""
    return (
        f"In {count(most)} of {of} the judge stayed with the {side} position.",
        f"In {count(other)} it stayed with the {opposite} one{rest}. ",
    )


def _stays(found: Finding) -> tuple[int, int, int]:
    """Flipped items counted, and those that chose the first or the last position every time."""
    given = found.audit.flips
    if given.get("total") and "first" in given:
        return given["total"], given["first"], given.get("last", 0)
    first = last = 0
    for item in found.run.flipped:
        positions = {
            view.order.index(view.choice) if isinstance(view.choice, int) else -1
            for view in item.shown
        }
        first += positions == {0}
        last += positions == {1}
    return len(found.run.flipped), first, last
