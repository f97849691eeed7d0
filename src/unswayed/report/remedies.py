"""The recommendation in words, from paired differences."""

from __future__ import annotations

from unswayed.decisions import Estimate
from unswayed.methods import CONTROL
from unswayed.report.claims import Claim
from unswayed.report.data import RunData
from unswayed.report.findings import Finding, State, find
from unswayed.report.lead import nothing_better, orders_phrase
from unswayed.report.numerals import calls_phrase, percent, points, signed, spelled
from unswayed.report.reading import Recommendation
from unswayed.report.wording import Line, line, name, plain_text, strong
from unswayed.visible import one_line

__all__ = ["recommendation", "remedies_claim"]

GERUNDS = {
    "average": "Averaging {orders} pays best.",
    "vote": "Voting over {orders} pays best.",
    "repeat": "Asking the same order again pays best.",
}


def recommendation(run: RunData) -> str:
    """The recommendation in one or two sentences; empty where none can be given."""
    found = find(run)
    return " ".join(plain_text(sentence) for sentence in recommendation_of(found))


def remedies_claim(found: Finding) -> Claim | None:
    """What to use instead of a single call; None with fewer than two methods."""
    if len(found.audit.methods) < 2 or found.state is State.FAILED:
        return None
    return Claim(_title(found), (*recommendation_of(found), *_repeat(found), *_control(found)))


def _title(found: Finding) -> Line:
    method = found.recommended
    if method is None:
        if found.state is State.UNPARSED:
            return line("No method can be recommended while answers go unread.")
        if found.state is State.FEW and not found.recommends:
            return line("These items are too few to recommend a method.")
        return line("What each method costs, and what it buys.")
    if method == found.audit.base:
        return line(nothing_better(found))
    if method in GERUNDS:
        return line(GERUNDS[method].format(orders=orders_phrase(found, method)))
    return line("The method ", name(method), " pays best.")


def recommendation_of(found: Finding) -> list[Line]:
    """The recommendation, then the best method below its price."""
    given = found.audit.recommendation
    method = found.recommended
    if method is None or given is None:
        reason = given.reason if given is not None and found.recommends else ""
        return [line(f"No recommendation: {one_line(reason).rstrip('.')}.")] if reason else []
    made = [(*line(strong(f"Recommended: {method}."), " "), *_why(found, method, given))]
    if given.alternative in found.audit.methods:
        made.append(_cheaper(found, given.alternative or ""))
    return made


def _sentence_case(text: str) -> str:
    text = one_line(text).rstrip(".")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _price(found: Finding, method: str) -> float:
    calls = found.audit.methods[method].calls
    return float("inf") if calls is None else calls


def _why(found: Finding, method: str, given: Recommendation) -> Line:
    criterion = given.metric
    what = one_line(given.criterion.replace("_", " "))
    rows = found.audit.methods
    scored = {k: e.value for k, row in rows.items() if (e := row.get(criterion)) and e.value}
    if not scored:
        reason = _sentence_case(given.reason)
        return line(reason or "It is the cheapest method that the data allow to name.")
    best = given.best or max(scored, key=lambda k: (scored[k], -_price(found, k)))
    gap = found.audit.difference(method, best, criterion)
    tail = f": difference {points(gap)})" if gap is not None else ")"
    if method == found.audit.base:
        if best == method:
            tail = "" if criterion == "accuracy" else ". That average itself is not ranked"
            return line(f"No other method has a higher {what}{tail}.")
        higher = "more accurate than" if criterion == "accuracy" else "above"
        return line(
            f"No method is measurably {higher} a single call (the highest {what} is that of ",
            name(best),
            tail if gap is None else f": difference of a single call {points(gap)})",
            ".",
        )
    if best == method:
        top = max(scored, key=lambda k: scored[k] or 0.0) == method
        among = "" if top else " of the methods that measurably beat a single call"
        lower = "less accurate" if criterion == "accuracy" else "lower"
        why = "it measurably beats a single call"
        others = rows.keys() - {found.audit.base}
        if any(_price(found, k) < _price(found, method) for k in others):
            why = "no cheaper method measurably beats a single call"
        if given.alternative is not None:
            why = f"every cheaper method that beats a single call is measurably {lower}"
        return line(f"It has the highest {what}{among}, and {why}.")
    return line(
        f"Of the methods that measurably beat a single call it is the cheapest whose {what} cannot "
        "be told from the highest (",
        name(best),
        tail,
        ".",
    )


def _cheaper(found: Finding, method: str) -> Line:
    row = found.audit.methods[method]
    accuracy, consistency = row.get("accuracy"), row.get("consistency")
    reached = []
    if accuracy is not None:
        reached.append(f"{percent(accuracy.value or 0.0)} accuracy")
    if consistency is not None and not consistency.by_construction:
        reached.append(f"{percent(consistency.value or 0.0)} consistency")
    price = f" at {calls_phrase(row.calls)}" if row.calls is not None else ""
    return line("With fewer calls, ", strong(method), f" reaches {' and '.join(reached)}{price}.")


def _repeat(found: Finding) -> list[Line]:
    """What asking again without changing the order does: the control for every gain."""
    base = found.audit.base or ""
    if "repeat" not in found.audit.methods or base == "repeat":
        return []
    gain = found.audit.difference("repeat", base, "accuracy")
    if gain is None or gain.low is None or gain.high is None:
        return []
    times = found.audit.methods["repeat"].calls_next
    often = f" {spelled(round(times))} times" if times else " again"
    return [line(f"Asking the same order{often} (repeat) {_change(gain)}.")]


def _control(found: Finding) -> list[Line]:
    """What an order that the content decides does: the control for every gain in consistency."""
    row = found.audit.methods.get(CONTROL)
    if row is None or found.audit.base == CONTROL:
        return []
    accuracy = row.get("accuracy")
    compare = (
        f"; compare accuracy ({percent(accuracy.value or 0.0)})"
        if accuracy is not None
        else ", which is no evidence"
    )
    made = [
        line(f"Asking once, sorted by content ({CONTROL}), is consistent by construction{compare}.")
    ]
    method = found.recommended
    if method is None or method in {found.audit.base, CONTROL}:
        return made
    gain = found.audit.difference(method, CONTROL, "consistent_accuracy")
    if gain is not None and gain.low is not None and gain.low > 0:
        right = "right in both orders" if found.n == 2 else "right most often"
        made.append(line(f"Against it {one_line(method)} gains {right}: {points(gain)}."))
    return made


def _change(gain: Estimate) -> str:
    value = gain.value or 0.0
    low, high = gain.joint or (gain.low, gain.high)
    if low is not None and low > 0:
        return f"gains {signed(value).removeprefix('+')} points of accuracy"
    if high is not None and high < 0:
        return f"loses {signed(-value).removeprefix('+')} points of accuracy"
    return "gains nothing that can be told from chance"
