"""The top of the page: headline, lede and the warnings below them."""

from __future__ import annotations

from unswayed.decisions import Estimate
from unswayed.report.data import RunData
from unswayed.report.findings import (
    FEWEST_ITEMS,
    FLIPS_MATTER,
    UNPARSED_NOTE,
    Finding,
    State,
    find,
)
from unswayed.report.numerals import (
    NARROW,
    calls_phrase,
    count,
    interval,
    ordinal,
    percent,
    plural,
    share,
    signed,
    spelled,
    whole,
)
from unswayed.report.wording import Line, line, listed, plain_text, strong
from unswayed.visible import one_line

__all__ = [
    "headline",
    "headline_of",
    "lede",
    "lede_of",
    "missing_calls",
    "nothing_better",
    "phrase_of",
    "remedy_of",
    "steadiest_of",
]

COUNTED_UP_TO = 10_000
"""Flips are given as a count up to this many items, above as a share."""

PHRASES = {
    "average": "ask in {orders} and average the probabilities",
    "vote": "ask in {orders} and let the answers vote",
    "repeat": "ask the same order again and let the answers vote",
}


def headline(run: RunData) -> str:
    """What the run shows, in one sentence."""
    return headline_of(find(run))


def lede(run: RunData) -> str:
    """The two or three sentences below the headline."""
    return " ".join(plain_text(sentence) for sentence in lede_of(find(run)))


def headline_of(found: Finding) -> str:
    """The headline of a finding."""
    match found.state:
        case State.FAILED:
            return (
                f"None of {plural(found.audit.planned, 'call')} was answered: nothing was measured."
            )
        case State.UNPARSED:
            return _unparsed(found)
        case State.ONE_ORDER:
            return _one_order(found)
        case State.FEW:
            return _few(found)
        case State.POSITION:
            return _two_positions(found) if found.n == 2 else _many_positions(found)
        case State.HIDDEN:
            return _hidden(found)
        case State.FLIPS:
            return f"This judge favours no position, yet {flips_of(found)}."
        case State.CLEAN:
            return _clean(found)


def flips_of(found: Finding, tail: str = "") -> str:
    """ "565 of 1,000 verdicts flip"; above 10,000 items as a share."""
    k, items = found.run.n_flipped, found.items
    if items > COUNTED_UP_TO:
        return f"{percent(k / items, 0)} of verdicts flip{tail}"
    some = "none" if k == 0 else count(k)
    verb = "flips" if k == 1 else "flip"
    return f"{some} of {count(items)} verdicts {verb}{tail}{_not_plain(found)}"


def _not_plain(found: Finding) -> str:
    """How many of the flips are no change from one winner to another."""
    told = [
        f"{count(number)} with {what}"
        for key, what in (("unread", "an answer that could not be read"), ("ties", "a tie"))
        if (number := found.audit.flips.get(key, 0))
    ]
    return f" ({listed(told)})" if told else ""


def _unparsed(found: Finding) -> str:
    unread, answers = found.audit.unparsed, found.audit.answered
    if unread >= answers:
        return f"None of {count(answers)} answers could be read, so there is nothing to describe."
    return (
        f"{count(unread)} of {count(answers)} answers could not be read, "
        f"so this report describes the other {count(answers - unread)} only."
    )


def _one_order(found: Finding) -> str:
    if not found.audit.n_items:
        return "No item was judged, so there is nothing to tell."
    reason = found.audit.plain.reason("consistency") or found.audit.base_row.reason("consistency")
    tail = f" ({one_line(reason).rstrip('.')})" if reason else ""
    return (
        f"Whether verdicts change with the order cannot be told from these "
        f"{plural(found.audit.n_items, 'item')}{tail}."
    )


def _few(found: Finding) -> str:
    start = f"Too few items to tell: with {plural(found.items, 'item')} "
    if _flips_are_plain(found):
        start = (
            f"{flips_of(found, ' when the two answers change places').capitalize()}; too few items "
            f"to tell whether a position is favoured: with {plural(found.items, 'item')} "
        )
    about = f"About {count(found.settling or 0)} items would settle ±3 points."
    if found.widest is None or not found.width:
        return f"{start}there is no interval to rely on. {about}"
    what, rate = found.widest
    low, high = share(rate.low or 0.0, 0), percent(rate.high or 0.0, 0)
    return f"{start}{what} lies anywhere between {low} and {high}. {about}"


def _flips_are_plain(found: Finding) -> bool:
    """Whether pairs flip beyond doubt, although no position can be named."""
    consistency = found.audit.plain.get("consistency") or found.audit.base_row.get("consistency")
    if found.n != 2 or found.items < FEWEST_ITEMS or consistency is None or not found.run.n_flipped:
        return False
    return consistency.high is not None and 1 - consistency.high > FLIPS_MATTER


def _two_positions(found: Finding) -> str:
    last = found.favoured == 1 or (found.favoured is None and found.avoided == 0)
    rate = found.rates[1 if last else 0].value or 0.0
    if found.items > COUNTED_UP_TO:
        flips = f"{percent(found.run.n_flipped / found.items, 0)} of its verdicts flip"
    else:
        some = "none" if found.run.n_flipped == 0 else count(found.run.n_flipped)
        verb = "flips" if found.run.n_flipped == 1 else "flip"
        flips = f"{some} of its {count(found.items)} verdicts {verb}"
    return (
        f"This judge picks whichever answer comes {'last' if last else 'first'} "
        f"{whole(rate, beside=0.5)}{NARROW}% of the time; "
        f"{flips} when the two answers change places{_not_plain(found)}."
    )


def _many_positions(found: Finding) -> str:
    favoured = found.favoured is not None
    index = found.favoured if found.favoured is not None else found.avoided or 0
    rate = found.rates[index].value or 0.0
    return (
        f"This judge {'prefers' if favoured else 'avoids'} the {ordinal(index)} option: "
        f"{whole(rate, beside=found.expected)}{NARROW}% where "
        f"{expected_text(found.n)} is expected."
    )


def expected_text(n: int) -> str:
    """1/n in percent: 50 %, 25 %, 33.3 %."""
    return percent(1 / n, 0 if 100 % n == 0 else 1)


def _hidden(found: Finding) -> str:
    kind, index, rate = found.hidden or ("position", 0, Estimate(value=0.0))
    share_text = f"{whole(rate.value or 0.0, beside=found.expected)}{NARROW}%"
    expected = expected_text(found.n)
    if kind == "label":
        return (
            f"With the positions balanced out, this judge picks the label "
            f"{found.labels[index]} {share_text} of the time, where {expected} is expected."
        )
    return (
        f"With the labels balanced out, this judge picks the {ordinal(index)} position "
        f"{share_text} of the time, where {expected} is expected."
    )


def _clean(found: Finding) -> str:
    rate = found.rates[0] if found.rates else Estimate(value=0.5)
    k = found.run.n_flipped
    flips = f"{count(k) if k else 'no'} verdict{' flips' if k == 1 else 's flip'}"
    if found.items > COUNTED_UP_TO:
        flips = f"{percent(k / found.items)} of verdicts flip"
    answer = "answer" if found.n == 2 else "option"
    range_ = interval(found.jointly(rate))
    return (
        f"No position or label bias found in {plural(found.items, 'item')}: the first {answer} is "
        f"picked {percent(rate.value or 0.0)} of the time{f' ({range_})' if range_ else ''}, "
        f"and {flips}."
    )


def missing_calls(found: Finding) -> str | None:
    """The warning that stands first under the headline when calls are missing."""
    missing, planned = found.audit.missing, found.audit.planned
    if not missing:
        return None
    reasons = found.run.run.failures
    if reasons:
        text = " ".join(map(one_line, reasons))
        return text[:1].upper() + text[1:]
    verb = "is" if missing == 1 else "are"
    return (
        f"{count(missing)} of {plural(planned, 'call')} {verb} missing; the same command continues."
    )


def lede_of(found: Finding) -> list[Line]:
    """The sentences below the headline."""
    made: list[Line] = []
    if found.state is State.POSITION:
        made.append(line(_ideal(found)))
    if len(found.audit.sizes) > 1 and found.rates:
        made.append(line(_sizes(found)))
    if found.n > 2 and found.state in {State.POSITION, State.HIDDEN, State.FLIPS, State.CLEAN}:
        made.extend(_kept(found))
    if found.state is State.CLEAN and found.width:
        made.append(
            line(
                f"A bias smaller than {share(found.width)} points would not show in this many items."
            )
        )
    if found.state is not State.UNPARSED and found.unparsed_share > UNPARSED_NOTE:
        made.append(line(unparsed_note(found)))
    if not found.audit.has_gold and found.audit.methods and found.audit.answered:
        made.append(
            line(
                "There are no gold labels, so this report says how steady the verdicts are, "
                "not how right."
            )
        )
    made.extend(remedy_of(found))
    if found.state is State.FEW and not found.recommends and len(found.audit.methods) > 1:
        made.append(line("No method is recommended on so few items."))
    if found.state is State.UNPARSED and len(found.audit.methods) > 1:
        made.append(line("No method is recommended while so many answers are unread."))
    return made


def _sizes(found: Finding) -> str:
    sizes = found.audit.sizes
    return (
        f"Items have {spelled(sizes[0])} to {spelled(sizes[-1])} candidates; positions are "
        f"described for those with {spelled(found.n)}."
    )


def unparsed_note(found: Finding) -> str:
    """How many answers could not be read, and what that does to the figures."""
    refused = (
        f" ({count(found.audit.calls.refused)} of them refused)"
        if found.audit.calls.refused
        else ""
    )
    return (
        f"{count(found.audit.unparsed)} of {count(found.audit.answered)} answers could not be read"
        f"{refused}; they count as wrong and as disagreement."
    )


def _ideal(found: Finding) -> str:
    if found.n == 2:
        where = "last" if found.favoured == 1 else "first"
        return (
            f"A judge that read only the content would pick {where} half the time and never flip."
        )
    return (
        f"A judge that read only the content would pick every position {expected_text(found.n)} "
        "of the time, whatever the order."
    )


def _kept(found: Finding) -> list[Line]:
    consistency = found.audit.plain.get("consistency")
    if consistency is None or consistency.value is None:
        return []
    orders = found.audit.orders_each
    over = f"Over {spelled(orders)} orders" if orders else "Over its orders"
    k = found.run.n_flipped
    return [
        line(
            f"{over} an item keeps its most frequent answer {percent(consistency.value)} of the "
            f"time; {count(k)} of {plural(found.items, 'item')} "
            f"{'changes' if k == 1 else 'change'} the answer at least once."
        )
    ]


def orders_phrase(found: Finding, method: str) -> str:
    """ "both orders", "all 24 orders": what a method that reads several orders reads."""
    calls = found.audit.methods[method].calls_next or 2
    if found.n == 2 and round(calls) <= 2:
        return "both orders"
    what = "presentations" if found.n == 2 else "orders"
    return f"{spelled(round(calls))} {what}"


def phrase_of(found: Finding, method: str) -> str:
    """What a method does, in the imperative; empty where nobody said."""
    given = found.run.about.get(method)
    if given is not None:
        return one_line(given)
    return PHRASES.get(method, "").format(orders=orders_phrase(found, method))


def nothing_better(found: Finding) -> str:
    """That nothing beats a single call; without gold labels, that nothing was shown to."""
    given = found.audit.recommendation
    if given is None or given.metric != "agreement":
        return "No method is measurably more accurate than a single call."
    return "Without gold labels no method is shown to beat a single call."


def remedy_of(found: Finding) -> list[Line]:
    """What to do about it, and what that gains; empty where nothing is recommended."""
    method, base = found.recommended, found.audit.base
    if method is None:
        return []
    if method == base:
        made = [line(nothing_better(found)), *steadiest_of(found)]
        if found.run.n_flipped and not found.audit.has_gold:
            made.append(line("Reading every order, as average and vote do, would end the flips."))
        return made
    phrase = phrase_of(found, method)
    made = [
        line(
            "The remedy that pays best here is ", strong(method), f": {phrase}." if phrase else "."
        )
    ]
    row = found.audit.methods[method]
    price = f" for {calls_phrase(row.calls)}" if row.calls is not None else ""
    gain = found.audit.difference(method, base or "", "accuracy")
    accuracy = row.get("accuracy")
    if gain is not None and gain.value is not None:
        made.append(line(f"{_gain(gain)}{price}."))
    elif accuracy is not None and accuracy.value is not None:
        made.append(line(f"Its accuracy is {percent(accuracy.value)}{price}."))
    elif price:
        made.append(line(f"It takes {price.removeprefix(' for ')}."))
    return [*made, *steadiest_of(found)]


def steadiest_of(found: Finding) -> list[Line]:
    """The method for those who want steady verdicts, where it is another one."""
    given = found.audit.recommendation
    method = None if given is None else given.steadiest
    if method is None or method == found.recommended or method not in found.audit.methods:
        return []
    base = found.audit.base_row.get("consistency")
    row = found.audit.methods[method]
    reached = row.get("consistency")
    if base is None or reached is None or base.value is None or reached.value is None:
        return []
    price = f" at {calls_phrase(row.calls)}" if row.calls is not None else ""
    now = found.audit.methods[found.recommended or method].get("consistency")
    if found.recommended != found.audit.base and now is not None and not now.by_construction:
        if (now.value or 0.0) < reached.value:
            change = f"consistency {percent(now.value or 0.0)} to {percent(reached.value)}"
            return [line(strong(method), f" is steadier still{price}: {change}.")]
        return []
    gone = (reached.value - base.value) / max(1.0 - base.value, 1e-9)
    what = "most flips" if gone > 0.5 else "some flips"
    return [
        line(
            strong(method),
            f" removes {what}{price}: consistency {percent(base.value)} to "
            f"{percent(reached.value)}.",
        )
    ]


def _gain(gain: Estimate) -> str:
    value = gain.value or 0.0
    low, high = gain.joint or (gain.low, gain.high)
    if low is None or high is None:
        return f"It changes accuracy by {signed(value)} points"
    if low > 0:
        return (
            f"It raises accuracy by {share(value)} points "
            f"(95{NARROW}% interval {share(low)} to {share(high)})"
        )
    return (
        f"It changes accuracy by {signed(value)} points "
        f"(95{NARROW}% interval {signed(low)} to {signed(high)})"
    )
