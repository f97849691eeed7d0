"""Every sentence of a report against what is true of the judge: planted effects, never own figures.

A row is the sentence's words, in which # stands for a number, @ for a name and … for anything, and
what must hold of the judge where they are found. The numbers are given to it. A row by chance may
be wrong in one of twenty places where it stands. A new sentence of a template needs its row.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pytest
from jinja2 import Environment, nodes
from rich.console import Console

from judges import STATES, TIE, UNREAD, Facts, Planted, Scored
from page_text import page_text
from unswayed.report.collect import run_data
from unswayed.report.page import render_report
from unswayed.report.terminal import terminal_report

SEEDS = (1, 2, 3, 4)
PACKAGE = resources.files("unswayed")
TEMPLATES = PACKAGE / "report" / "templates"
OTHERS = ("auditing/recommendation.py", "auditing/measurement.py")
"""Where words of sentences stand outside templates."""
BANNED = ("cannot be told", "never flip", "no bias: 0", "without a correction")
NUMBER, NAME, GAP = r"([+−-]?\d[\d,]*(?:\.\d+)?)", r"([\w:=.-]+)", r".{0,160}?"

Holds = Callable[..., bool]


def pairs(t: Facts) -> bool:
    return t.judge.n == 2


def joint(t: Facts) -> float:
    """What the first place gains where labels move with it, as a share of comparisons or choices."""
    law = t.law
    return 2 * law.wins - 1 if pairs(t) else law.shares[0] - 1 / t.judge.n


def biased(t: Facts) -> bool:
    return abs(joint(t)) > 0.02


def near(percent: float, share: float, slack: float = 0.6) -> bool:
    """Whether a printed percentage is this share, up to how it was rounded."""
    return abs(percent - 100 * share) <= slack


def within(low: float, share: float, high: float, slack: float = 0.6) -> bool:
    return low - slack <= 100 * share <= high + slack


def about(t: Facts, percent: float, share: float) -> bool:
    """Whether a printed share is four standard errors or fewer from the true one."""
    return near(percent, share, 0.6 + 400 * sqrt(max(share * (1 - share), 0.0025) / t.units))


def gain(t: Facts, method: str, over: str = "direct") -> float:
    """Of tie-fair accuracy; a correction is worth what the judge would be without its effects."""
    exact = t.law.accuracy
    return exact.get(method, t.unbiased) - exact[over]


def half_width(t: Facts) -> float:
    return 1.96 * t.law.spread / sqrt(t.units)


def place(name: str) -> int:
    words = ("first", "second", "third", "fourth")
    return len(words) - 1 if name == "last" else words.index(name)


def true(*_: Any) -> bool:
    """Names what it stands beside, or follows from how the figure is made."""
    return True


def unseen(*_: Any) -> bool:
    """No state here has it: tests of the report's parts look at it."""
    return False


def no_effect(t: Facts) -> bool:
    return t.judge.place == t.judge.label == 0


def called(t: Facts | Scored, *_: Any) -> bool:
    """Whether a model was called; the others are recorded."""
    return isinstance(t, Scored)


def recorded(t: Facts | Scored, *_: Any) -> bool:
    return not called(t)


def change(t: Facts) -> float:
    return 1 - t.law.kept["coupled"]


def again(t: Facts) -> bool:
    return t.judge.samples > 1


def counts(t: Facts) -> tuple[int, int]:
    """Items whose verdict changes, of those asked in every order."""
    return t.changed, t.whole


def steady(t: Facts) -> float:
    """Mean share of the orders that agree with an item's most frequent answer."""
    answers = [(t.said == candidate).mean(1) for candidate in range(t.judge.n)]
    return float(np.max(answers, axis=0).mean())


def first_wins(t: Facts, *_: Any) -> bool:
    return biased(t) and joint(t) > 0


def moved(what: str) -> Holds:
    """What changing this leaves unchanged."""
    return lambda t, share: about(t, share, t.law.kept[what])


def slots(t: Scored, name: str) -> float:
    """What a place is worth: ten points for a logit, falling evenly from the first to the last."""
    return 10 * t.slot * (0.5 - place(name) / (t.n - 1))


class Row(NamedTuple):
    words: str
    holds: Holds
    by_chance: bool = False


SHIFT = "#% of the choices; #% would be even (# points; # to #)"
SHOWN_AT = "The option shown @ takes " + SHIFT

ROWS: dict[str, tuple[Row, ...]] = {
    "lead": (
        Row("None of # call… was answered: nothing was measured", unseen),
        Row("answers could be read, so there is nothing to describe", unseen),
        Row("answers could not be read, so this report describes the other", unseen),
        Row("No item was judged, so there is nothing to tell", unseen),
        Row("do not show whether verdicts change with the order", unseen),
        Row("This item does not show whether verdicts change with the order", unseen),
        Row(
            "This judge calls a tie in #% of its answers. What it prefers otherwise cannot be measured",
            lambda t, ties: near(ties, t.law.ties, 3) and t.law.ties > 0.9,
        ),
        Row(
            "Shown first, an answer wins #% of its comparisons…; shown last, #% (# points; # to #)",
            lambda t, wins, loses, points, low, high: (
                biased(t) and within(low, joint(t), high) and abs(wins - loses - points) <= 2
            ),
            by_chance=True,
        ),
        Row("Shown last, an answer wins #% of its comparisons", unseen),
        Row("of its comparisons, a tie counted as half", lambda t: t.law.ties > 0),
        Row(
            SHOWN_AT,
            lambda t, name, share, even, points, low, high: (
                within(low, t.law.shares[place(name)] - 1 / t.judge.n, high)
                and near(even, 1 / t.judge.n)
            ),
            by_chance=True,
        ),
        Row(
            "With the labels balanced out, the @ position takes #% of the choices; #% would be even",
            unseen,
        ),
        Row(
            "With the positions balanced out, the label @ takes #% of the choices; #% would be even",
            unseen,
        ),
        Row(
            "Place and label moved together; they show no joint effect, yet #% of verdicts change",
            lambda t, share: (
                not t.judge.apart and not biased(t) and near(share, t.changed / t.whole)
            ),
        ),
        Row(
            "This judge favours no position, yet #% of verdicts change",
            lambda t, share: t.judge.apart and t.judge.place == 0,
        ),
        Row("Too few items to tell", lambda t: half_width(t) > 0.024 or t.units == 1),
        Row("distinct question: no interval", lambda t: t.units == 1 and unseen()),
        Row("there is no interval to rely on", unseen),
        Row(
            "too few items to tell whether a position is favoured: with # items",
            lambda t, items: half_width(t) > 0.024 and items == t.judge.items,
        ),
        Row(
            "the @-position rate lies anywhere between # and #%",
            lambda t, name, low, high: (
                within(low, t.law.shares[place(name)], high) and high - low < 90
            ),
            by_chance=True,
        ),
        Row("the share of the label @ lies anywhere between", unseen),
        Row(
            "About # items would settle ±3 points",
            lambda t, items: 0.6 < items / (1.96 * t.law.spread / 0.03) ** 2 / t.judge.copies < 1.8,
        ),
        Row(
            "No joint effect of place and label in # items… (moved together: opposed effects would "
            "not show",
            lambda t, items: not t.judge.apart and not biased(t) and items == t.judge.items,
        ),
        Row("--protocol all separates them", called),
        Row(
            "No position or label bias found in # items",
            lambda t, _: t.judge.apart and no_effect(t),
        ),
        Row(
            ": the answer shown first takes #% of the choices (# to #), and #% of verdicts change.",
            lambda t, _, low, high, share: (
                within(low, t.law.shares[0], high, 0.1) and near(share, t.changed / t.whole)
            ),
            by_chance=True,
        ),
        Row("missing; the same command continues", unseen),
        Row("that could not be read still await", unseen),
        Row("Items have @ to @ candidates; positions are described for those with", unseen),
        Row(
            "an item keeps its most frequent answer #% of the time; # of # items change the answer "
            "at least once",
            lambda t, kept, changed, items: near(kept, steady(t)) and (changed, items) == counts(t),
        ),
        Row(
            "An effect of # points or more on the share of choices would very likely have shown",
            lambda t, points: points / 100 > 1.7 * half_width(t) - 0.001,
        ),
        Row(
            "It is right #% of the time in both orders",
            lambda t, share: near(share, t.right),
        ),
        Row("There are no gold labels, so this report says how steady the verdicts are", unseen),
        Row("No method is recommended on so few items", lambda t: t.units < 20),
        Row("No method is recommended while so many answers are unread", unseen),
    ),
    "phrases": (
        Row(
            "# of # verdicts (#%) change with the order",
            lambda t, changed, items, share: (
                (changed, items) == counts(t) and near(share, changed / items)
            ),
        ),
        Row("None of # verdicts changes with the order", lambda t, items: counts(t) == (0, items)),
        Row("# stayed with the first place", lambda t, items: items == t.stayed(0)),
        Row("# stayed with the last", lambda t, items: items == t.stayed(1)),
        Row("# involve a tie", lambda t, items: items == t.touched(TIE)),
        Row("# have an unread answer", lambda t, items: items == t.touched(UNREAD)),
        Row(
            "Asked again…, #% of verdicts change in the same order and #% in another, so",
            lambda t, again, across: about(t, again, t.law.again) and about(t, across, change(t)),
        ),
        Row(
            "# points are due to the order (# to #)",
            lambda t, _, low, high: (
                change(t) > t.law.again + 0.005 and within(low, change(t) - t.law.again, high)
            ),
            by_chance=True,
        ),
        Row(
            "no change is shown to be due to the order (# points; # to #)",
            lambda t, _, low, high: within(low, change(t) - t.law.again, high),
            by_chance=True,
        ),
        Row(
            "Nothing was asked twice in the same order, so this includes verdicts that would change "
            "anyway",
            lambda t: t.judge.samples == 1 and t.law.again > 0,
        ),
        Row(
            "Noise that favours neither place cannot explain # of these # points",
            lambda t, points, _: (
                points
                < 100 * (change(t) - t.law.again + 2 * sqrt(change(t) * (1 - change(t)) / t.units))
                + 0.6
            ),
        ),
        Row("such intervals one can miss by chance: that is no finding", no_effect),
        Row("Without gold labels no method is shown to beat a single call", unseen),
        Row("No method is measurably closer to the human scores than a single call", unseen),
        Row(
            "# of # answers could not be read; they count as wrong and as disagreement",
            lambda t, unread, heard: (unread, heard) == t.unread,
        ),
        Row("of them refused); they count as wrong and as disagreement", unseen),
    ),
    "bias": (
        Row("No call was answered.", unseen),
        Row("No answer could be read.", unseen),
        Row("No shares by position were measured", lambda t: t.law.ties == 1),
        Row(
            "No position can be named",
            lambda t: half_width(t) > 0.024 or t.law.ties > 0.9,
        ),
        Row("The @ shown first wins.", first_wins),
        Row("The @ shown last wins.", unseen),
        Row("is avoided.", unseen),
        Row("No position wins", lambda t: not biased(t)),
        Row("Neither a position nor a label wins", no_effect),
        Row("The label @ wins, wherever it stands", unseen),
        Row("The first position wins", lambda t: t.judge.place > 0),
        Row("position wins; no label does", lambda t: t.judge.label == 0, by_chance=True),
        Row("position wins, and the label @ helps it", unseen),
        Row("position wins, and the label @ works against it", unseen),
        Row("position wins, and so do", unseen),
        Row(
            "With labels balanced out, the first position … of the choices. With positions balanced "
            "out, the label @ takes",
            lambda t, _: t.judge.apart,
        ),
        Row(
            "Both intervals exclude",
            lambda t: bool(t.judge.place and t.judge.label),
            by_chance=True,
        ),
        Row(
            "The first interval excludes #%, the second contains it",
            lambda t, _: t.judge.place != 0 == t.judge.label,
            by_chance=True,
        ),
        Row("The first interval contains #%, the second excludes it", unseen, by_chance=True),
        Row("Both intervals contain", no_effect, by_chance=True),
        Row(
            "The first position takes #% of the choices; the interval excludes #%",
            lambda t, share, even: biased(t) and about(t, share, t.law.shares[0]),
            by_chance=True,
        ),
        Row(
            "The first position takes #% of the choices; the interval contains #%",
            lambda t, share, even: not biased(t) and about(t, share, t.law.shares[0]),
            by_chance=True,
        ),
        Row(
            "Positions and labels were moved together, so this is their sum",
            lambda t: not t.judge.apart,
        ),
        Row("decisions recorded in other layouts would separate them", recorded),
        Row(": --protocol all separates them", called),
        Row("Most of what follows rests on the answers that could be read", unseen),
        Row("Too many answers could not be read", unseen),
        Row("#% of the answers could not be read", unseen),
        Row(
            "are unread for their finish reason, whatever they say: look for tools and filters",
            unseen,
        ),
        Row(
            "Look at them before anything else: a prompt that asks for the label alone, or room",
            unseen,
        ),
        Row(
            ", each candidate shown equally often in each place",
            lambda t: not t.judge.gaps,
        ),
        Row("Share of choices by position and by label", true),
        Row("dashed lines the share without bias. Blue: the whole interval lies above it", true),
        Row("What changing the order alone does", unseen),
        Row("What changing the labels alone does", unseen),
        Row(
            "Position matters more than the letter",
            lambda t: t.law.kept["order"] < t.law.kept["label"],
        ),
        Row("The letter matters more than the position", unseen),
        Row(
            "Position and label weigh about the same",
            lambda t: abs(t.law.kept["order"] - t.law.kept["label"]) < 0.06,
        ),
        Row(
            "Position and label are not statistically distinguishable",
            lambda t: abs(t.law.kept["order"] - t.law.kept["label"]) < 0.06,
        ),
        Row(
            "Moving the answers while each keeps its letter leaves #% of verdicts unchanged",
            moved("order"),
        ),
        Row("while each keeps its letter leaves #% of an item's verdicts the same", unseen),
        Row("Swapping only the letters leaves #%", moved("label")),
        Row("When both change together, as in everyday use, #% survive", moved("coupled")),
        Row(
            "mean share of an item's presentations that agree with its most frequent answer", unseen
        ),
        Row(
            "share of # items with the same verdict before and after the change",
            lambda t, items: items == t.judge.items,
        ),
        Row("A judge without order effects or noise would be at 100%", true),
    ),
    "facts": (
        Row(
            "Every item was asked in four layouts: both orders of the answers, with both assignments "
            "of the letters",
            lambda t: t.judge.apart and not t.judge.gaps,
        ),
        Row(
            "# of # items were asked in both orders",
            lambda t, whole, items: (whole, items) == (t.whole, t.judge.items) and t.judge.gaps,
        ),
        Row(
            "Every item was asked in both orders of its answers",
            lambda t: pairs(t) and not t.judge.gaps,
        ),
        Row("Every item was asked in four orders", lambda t: not pairs(t)),
        Row("Every item was asked in three orders", called),
        Row("Every item was asked in at most", called),
        Row("All methods were scored from this one pool of calls", true),
        Row(
            "# recorded decisions, no call made",
            lambda t, asked: asked == t.unread[1],
        ),
        Row("# planned, # made, # from cache, # failed", called),
        Row("of replies were asked again, and #% of these could then be read", unseen),
        Row(
            "Require a stricter form of reply (--prompt structured), or word the prompt more",
            unseen,
        ),
        Row("Word the prompt more clearly", unseen),
        Row("On the # items without such a reply", unseen),
        Row(
            "the text states a label other than the likeliest. The likeliest label decides", unseen
        ),
        Row("Newer reading rules changed", unseen),
        Row(
            "whose candidates refer to each other: asked in their own order only, left out", unseen
        ),
        Row("left out of what compares orders", unseen),
        Row(
            "whose gold label is a tie: left out of accuracy unless ties are scored as a class",
            unseen,
        ),
        Row("whose human score is no level: left out of accuracy", called),
        Row("# items without a gold label: left out of accuracy", unseen),
        Row(
            "# items with a missing presentation: left out of consistency and consistent accuracy",
            lambda t, items: items == t.judge.gaps,
        ),
        Row("# presentations of an item in each", true),
        Row("at most # presentations of an item", called),
        Row("Consistency is not correctness: a judge can be wrong in every order", true),
        Row(
            "#% of gold items are not judged right under",
            true,
        ),
        Row("Intervals speak about more items of this kind, not about other prompts, other", true),
        Row("Intervals between methods hold for all of them together", true),
        Row("percentile bootstrap over items", true),
    ),
    "groups": (
        Row("Worst on @, best on @.", unseen),
        Row("No group differs measurably from the others", lambda t: not t.judge.opposed),
        Row("Consistency is #% in every group", true),
        Row(
            "Consistency runs from #% (@, # items) to #% (@, # items)",
            lambda t, *_: t.judge.opposed,
        ),
        Row("Where it is lowest, the @ position takes more of the choices: one correction", unseen),
        Row(
            "The @ position does not take the same share of choices in every group: one correction "
            "for all groups will leave some of the bias in place",
            lambda t, _: t.judge.opposed,
        ),
        Row("Blue marks an interval that excludes the dashed line", true),
        Row("groups, chance alone marks one in about", true),
        Row("groups, chance alone marks about # in each column", unseen),
        Row("Groups sorted by consistency, method @, bands are 95% intervals", true),
        Row("Macro average of consistency over groups", true),
        Row("in the middle are left out; metrics.json has all", unseen),
    ),
    "items": (
        Row("No verdict changed with the order", lambda t: counts(t)[0] == 0),
        Row(
            "# of # items change their answer with the order",
            lambda t, changed, items: (changed, items) == counts(t),
        ),
        Row(
            "Pick an item to see what was shown in each order. Its prompt was not recorded",
            recorded,
        ),
        Row("Pick an item to see one prompt for each answer it gave, with every @ marked", called),
        Row("Pick an item to see the two prompts the judge was given, with both", unseen),
        Row("so that you can see each one move", unseen),
        Row("Depending on the order it chose", true),
        Row("It said @ both times, so its", true),
        Row("choice went from", true),
        Row("This item has no gold label", unseen),
        Row("The gold label is a tie", unseen),
        Row("The gold label is answer", true),
        Row("Right are", unseen),
        Row("The answer could not be read", lambda t: t.judge.unread > 0),
        Row("The judge called it a tie", lambda t: t.law.ties > 0),
        Row("The judge said @, which is", true),
        Row("orders say this", true),
        Row("all: unswayed export", unseen),
    ),
    "lists": (
        Row(
            "The @ place is worth # points (# to #)",
            lambda t, name, _, low, high: low - 0.1 <= slots(t, name) <= high + 0.1,
            by_chance=True,
        ),
        Row(
            "and the @ place is worth # points (# to #)",
            lambda t, name, _, low, high: low - 0.1 <= slots(t, name) <= high + 0.1,
            by_chance=True,
        ),
        Row("95% intervals that hold for all @ places together", called),
        Row(
            "Two orders rank the answers of a list alike at Kendall's τ # (1: always the same ranking)",
            lambda t, tau: 0 < tau < 1,
        ),
        Row("The @ place gains # points", lambda t, name, _: slots(t, name) > 0),
        Row("The @ place loses # points", unseen),
        Row("No place is shown to gain or lose points", lambda t: t.slot == 0),
        Row("How steady rankings are", unseen),
        Row(
            "An answer that is shown in the first place scores # points (# to #)",
            lambda t, _, low, high: low - 0.1 <= slots(t, "first") <= high + 0.1,
            by_chance=True,
        ),
        Row("Each is beside its own mean over all places", true),
        Row("Rankings of a list under two orders agree at τ #", lambda t, tau: 0 < tau < 1),
        Row("lists whatever answer came first won, in every order", true),
        Row(
            "Score of an answer at each place less its own mean over the places, mean over lists",
            true,
        ),
        Row("Accuracy and consistency with the first 1, 2, … orders of a set", unseen),
        Row(
            "Shaded: how often a set of orders shows each candidate at each place; what differs",
            unseen,
        ),
        Row("how often its # orders show each of", unseen),
        Row(
            "which put the candidates first … times: a liking for the first place does not", unseen
        ),
        Row("Right and wrong beside the single call", unseen),
        Row("Two of its rankings agree at τ", true),
        Row("points against its mean in other places", true),
    ),
    "scales": (
        Row(
            "Scores of one response lie # points apart over the orders (standard deviation)", called
        ),
        Row("Single scores rank the responses as people do at ρ #", lambda t, rho: 0 < rho < 1),
        Row("The rank correlation of single scores with human scores is", unseen),
        Row("no correlation shown", unseen),
        Row("There are no human scores, so this report says how steady the scores are", unseen),
        Row("It changes the rank correlation with human scores by", unseen),
        Row("It raises the rank correlation with human scores by # …interval # to #", called),
        Row("The scores of @ are closer to human scores", lambda t, _: t.slot != 0),
        Row("How close the scores are to human scores", true),
        Row("How steady the scores are", unseen),
        Row("Single scores and human scores: Spearman", called),
        Row("the order they are listed in adds # points to their mean", lambda t, _: t.slot != 0),
        Row("how far the choices of each level at its place lie from", called),
        Row("with the lowest level first, # with the highest first", called),
        Row("would be the least of all. It is above 0 without any bias, too", called),
        Row("Correlation of the scores with human scores, mean over the orders", called),
        Row(
            "of the single calls that chose a level, the share at each position, in %; every row is even without bias",
            called,
        ),
        Row("Where each level is chosen", called),
        Row("% of its choices, by position; levels counted from the lowest", called),
        Row("Depending on the order its score was", called),
        Row("It has no human score", unseen),
    ),
    "advice": (
        Row("What each method costs, and what it buys", true),
        Row(
            "Use @: # call… per item, +# points (# to #) over a single call",
            lambda t, name, calls, points, low, high: (
                within(low, gain(t, name), high) and gain(t, name) > 0 and name != "canonical"
            ),
            by_chance=True,
        ),
        Row("Use @: …closer to the human scores by # of rank correlation", called),
        Row(
            "A single call is enough: … gains at most # points (measured: #)",
            lambda t, most, measured: (
                measured <= most <= 1
                and all(100 * gain(t, name) <= most + 0.1 for name in ("average", "vote"))
            ),
            by_chance=True,
        ),
        Row(
            "A single call is enough: … gains nothing (measured: # points)",
            lambda t, measured: all(gain(t, name) <= 0.001 for name in ("average", "vote")),
            by_chance=True,
        ),
        Row(
            "Keep the single call: reading every order loses # points (# to #)",
            lambda t, _, low, high: within(low, -gain(t, "vote"), high),
            by_chance=True,
        ),
        Row(
            "Single verdicts are not reliable here: #% change with the order",
            lambda t, share: biased(t) and near(share, t.changed / t.whole),
        ),
        Row(
            "No remedy can be shown from one answer in each of two orders: taking a disagreement as a "
            "tie is exactly as accurate as a single call",
            lambda t: pairs(t) and not t.judge.probs and t.law.accuracy["vote"] == t.exact,
        ),
        Row(
            "Not decided on # items: @ measures # points (# to #)",
            lambda t, items, name, _, low, high: (
                items == t.whole and within(low, gain(t, name), high)
            ),
            by_chance=True,
        ),
        Row("No recommendation:", lambda t: t.law.ties > 0.9 or t.judge.coin),
        Row(
            "no method is shown to be better than guessing (#%, # to #)",
            lambda t, _, low, high: within(low, max(t.law.accuracy.values()), high),
            by_chance=True,
        ),
        Row("this judge calls a tie in #% of its answers", lambda t, ties: near(ties, t.law.ties)),
        Row("what it prefers otherwise cannot be measured", lambda t: t.law.ties > 0.9),
        Row("Cheaper: @, # call…points … it (# to #)", true),
        Row("not shown to be within # point", true),
        Row(
            "Ask both orders and report a disagreement as a tie. Both orders agree on #% of items; "
            "those verdicts are right #% of the time",
            lambda t, agree, right: (
                near(agree, 1 - t.changed / t.whole)
                and near(right, t.right * t.whole / (t.whole - t.changed))
            ),
        ),
        Row(
            "What could help: probabilities (--probs), several samples", lambda t: not t.judge.probs
        ),
        Row(
            "Cheapest: direct, 1 call per item. Most accurate: @",
            lambda t, name: name != "canonical",
        ),
        Row("more items would decide it", lambda t: t.law.ties < 0.9),
        Row(
            "The gain comes from a second answer where one could not be read",
            lambda t: t.judge.unread > 0,
        ),
        Row(
            "Compared on # of # items",
            lambda t, whole, items: (whole, items) == (t.whole, t.judge.items),
        ),
        Row(
            "Asking the same order three times (repeat) : no gain shown (# to # points)",
            lambda t, low, high: within(low, gain(t, "repeat"), high),
            by_chance=True,
        ),
        Row("Asking the same order @ times (repeat) gains", unseen),
        Row("Asking the same order again (repeat)", unseen),
        Row(
            "Asking once, sorted by content (canonical), is consistent by construction; compare "
            "accuracy (#%)",
            lambda t, share: about(t, share, t.exact),
        ),
        Row("is consistent by construction; compare its rank correlation", called),
        Row("is consistent by construction, which is no evidence", unseen),
        Row("Against it @ gains right in both orders", true),
        Row("Against it @ gains right most often", true),
        Row(
            "What each method buys per call. Filled dots lie on the frontier: nothing cheaper", true
        ),
        Row("measured higher. Vertical lines are 95% intervals", true),
        Row("; the ringed dot is the recommendation", true),
        Row(
            "† Asks the same whatever the order, so its consistency holds by construction and", true
        ),
        Row("is left off the frontier", true),
        Row("Methods that learn are scored on items they were not fitted on", true),
    ),
    "figures": (
        Row("more comparisons won when shown first than when shown last", pairs),
        Row("more choices for the option shown first than an even share", lambda t: not pairs(t)),
        Row("orders agree with its most frequent answer", true),
        Row("of verdicts change with the order beyond those that change when asked again", again),
        Row("of verdicts change when the answers change places", lambda t: not t.judge.unread),
        Row(
            "of verdicts change or cannot be read when the answers change places",
            lambda t: t.judge.unread > 0,
        ),
        Row("of items are judged right in both orders", pairs),
        Row("of items have the right answer as their most frequent one", lambda t: not pairs(t)),
        Row("rank correlation (ρ) of single scores with human scores", called),
        Row("accuracy of single verdicts, ties shared", true),
        Row("of choices fall on the @ position with the labels balanced out", unseen),
        Row("of choices fall on the label @ with the positions balanced out", unseen),
        Row("As the judge is normally asked", true),
        Row("labels stay with the positions", unseen),
        Row("first position carries the label A", true),
        Row("labels balanced over positions", lambda t: t.judge.apart),
        Row("positions balanced over labels", lambda t: t.judge.apart),
        Row("% of an item's orders that agree", lambda t: not pairs(t)),
        Row("% with the same verdict in both orders", lambda t: t.judge.opposed),
        Row("% of choices, same rows", lambda t: t.judge.opposed),
        Row("% right, mean of both orders", pairs),
        Row("% right, mean of every order", lambda t: not pairs(t)),
        Row("ties count as wrong", unseen),
        Row("rank correlation with human scores, mean of every order", called),
        Row("% of verdicts like those of the average over every order", unseen),
        Row("% of items with the same verdict in both orders", pairs),
        Row("that agree, mean over items", lambda t: not pairs(t)),
    ),
    "runs": (
        Row("@ on planted |", lambda t, _: not biased(t) or t.units < 20),
        Row("@ favours the answer shown first", lambda t, _: biased(t)),
        Row("runs side by side", unseen),
        Row("of the choices of @ and #% of those of @", unseen),
        Row("#% to #% of the choices in", unseen),
        Row("Compared item by item with", unseen),
        Row("; the intervals hold for all differences of this report together", unseen),
        Row("What position and label do", unseen),
        Row("What moves the verdict", unseen),
        Row("What a place is worth", unseen),
        Row("How close the scores are to human scores.", unseen),
        Row("What each method buys.", unseen),
        Row("How groups differ", unseen),
        Row("Where verdicts changed with the order", unseen),
    ),
    "tables": (
        Row(
            "share of items with the same verdict in both orders; unparsed never agrees, two ties do",
            true,
        ),
        Row(
            "orders that agree with its most frequent answer, mean over items; few orders push",
            true,
        ),
        Row("share of items judged right in every order (consistent accuracy)", true),
        Row("share of items whose one most frequent answer is right (consistent accuracy)", true),
        Row("share of parsed choices that fall on the first position; #% without bias", true),
        Row(
            "share of right answers, averaged over the presentations of each item; a tie between",
            true,
        ),
        Row("candidates, one of them right, earns 1/k, unparsed answers nothing", true),
        Row(
            "† Holds by construction, because the method asks the same whatever the order; not",
            true,
        ),
        Row("A tie between two candidates counts one half", true),
        Row("Left out:", true),
    ),
    "terminal": (
        Row("Same verdict after changing: order and labels #%", lambda t, _: t.judge.apart),
        Row("No room for …: see the report", true),
        Row("Values in %, except calls; 95% intervals below; bold: best measured", true),
        Row("† holds by construction; not compared", true),
    ),
    "page": (
        Row("Skip to the results unswayed audit of", true),
        Row("All methods, all metrics. Values in %, except calls", true),
        Row("Select a heading to sort", true),
        Row("Best measured value in the column", true),
        Row("Filter by id, group or text", true),
        Row(
            "Browsing the items needs JavaScript. The surest one is shown; `unswayed export`", true
        ),
        Row("How it was measured", true),
        Row("model calls a method reads, its fitting calls spread over the items", true),
        Row(
            "range made so that about 95 of 100 such ranges, from fresh items of this kind, hold",
            true,
        ),
        Row("What this does not show", true),
        Row(
            "One file, no network: everything on this page, its data and its code are inside it",
            true,
        ),
        Row("calls per item, log scale", true),
        Row("Fewer or more estimation items", unseen),
        Row("Methods that learn, fitted on so many items of the other folds", unseen),
        Row(
            "Lists in their own order, a tie is wrong; p of the exact sign test, each method by",
            called,
        ),
        Row("Right where it was wrong … Wrong where it was right", called),
    ),
}


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("\u202f%", "%"))


@cache
def pattern(words: str) -> re.Pattern[str]:
    parts = {"#": NUMBER, "@": NAME, "…": GAP}
    return re.compile(
        "".join(parts.get(part, re.escape(part)) for part in re.split("([#@…])", words))
    )


def given(groups: tuple[str, ...]) -> list[float | str]:
    """Numbers as numbers."""
    bare = (group.replace(",", "").replace("−", "-") for group in groups)
    return [
        float(value) if re.fullmatch(r"[+-]?\d+(\.\d+)?", value) else value.rstrip(".,;:")
        for value in bare
    ]


@cache
def report(state: str, seed: int) -> str:
    """What the terminal and the page say."""
    run = run_data(STATES[state].audited(seed))
    console = Console(file=io.StringIO(), width=120, color_system=None)
    console.print(terminal_report(run), crop=False)
    page = page_text(render_report([run]))
    return flat(f"{console.file.getvalue()} | {page}")  # type: ignore[attr-defined]


def stood(row: Row) -> Iterator[tuple[str, int, str, bool]]:
    """Where a sentence stood, and whether it was true there; scores have their own sentences."""
    own = row in ROWS["lists"] + ROWS["scales"] or row.holds in (true, unseen, called, recorded)
    for state, judge in STATES.items():
        if isinstance(judge, Scored) and not own:
            continue
        for seed in SEEDS:
            for found in pattern(row.words).finditer(report(state, seed)):
                facts = Facts(judge, seed) if isinstance(judge, Planted) else judge
                yield state, seed, found[0], bool(row.holds(facts, *given(found.groups())))


SENTENCES = [row for rows in ROWS.values() for row in rows]


def chance(false: int, cases: int) -> bool:
    """Whether intervals of 95% may miss so often."""
    return false <= 1 + cases // 20


@pytest.mark.parametrize("row", SENTENCES, ids=lambda row: row.words[:50])
def test_a_sentence_stands_only_where_it_is_true(row: Row) -> None:
    cases = set(stood(row))
    false = sorted(case[:3] for case in cases if not case[3])
    assert chance(len(false), len(cases)) if row.by_chance else not false, false
    assert (row.holds is unseen) == (not cases), "say whether a state has it: `unseen`"


def test_what_is_said_by_chance_is_false_in_one_of_twenty_at_most() -> None:
    cases = [case for row in SENTENCES if row.by_chance for case in set(stood(row))]
    assert len(cases) > 200
    assert 20 * sum(not case[3] for case in cases) <= len(cases)


def spoken(node: nodes.Node) -> Iterator[str]:
    """The texts of a template, without its elements and names."""
    for part in node.find_all((nodes.TemplateData, nodes.Const)):
        text = part.data if isinstance(part, nodes.TemplateData) else part.value
        if isinstance(text, str):
            yield flat(re.sub(r"<[^>]*>?|^[^<]*>|&#?\w+;", " ", text))


def runs_of_words(text: str, size: int) -> Iterator[tuple[str, ...]]:
    for run in re.findall(r"(?:[A-Za-z'’:;,()-]+ ){%d,}[A-Za-z'’]+" % (size - 1), text):
        yield tuple(re.findall(r"[A-Za-z'’-]+", run))


def windows(words: tuple[str, ...]) -> set[tuple[str, ...]]:
    return {words[start : start + 3] for start in range(len(words) - 2)}


@cache
def known() -> frozenset[tuple[str, ...]]:
    """Three words that follow each other in a row."""
    pieces = (piece for row in SENTENCES for piece in re.split("[#@…]", row.words))
    return frozenset(three for piece in pieces for three in windows(words_of(piece)))


def words_of(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[A-Za-z'’-]+", text))


def templates() -> Iterator[tuple[str, str]]:
    for folder in (TEMPLATES, TEMPLATES / "words"):
        for file in folder.iterdir():
            if file.name.endswith(".j2"):
                yield file.name, file.read_text("utf-8")


@pytest.mark.parametrize(("name", "source"), templates(), ids=lambda text: text[:20])
def test_every_sentence_of_a_template_has_its_truth(name: str, source: str) -> None:
    parsed = Environment(extensions=["jinja2.ext.do"]).parse(source)
    macros = [parsed] if name == "page.html.j2" else list(parsed.find_all(nodes.Macro))
    unknown = [
        (getattr(macro, "name", name), " ".join(words))
        for macro in macros
        for text in spoken(macro)
        for words in runs_of_words(text, 5)
        if not windows(words) & known()
    ]
    assert unknown == []


def test_no_row_is_left_over() -> None:
    sources = [source for name, source in templates()]
    sources += [(PACKAGE / name).read_text("utf-8") for name in OTHERS]
    written = {
        three
        for source in sources
        for three in windows(words_of(flat(re.sub(r"<[^>]*>|&#?\w+;|\"\n? *f?\"", " ", source))))
    }
    pieces = {row: [words_of(part) for part in re.split("[#@…]", row.words)] for row in SENTENCES}
    assert [
        row.words
        for row, parts in pieces.items()
        if any(len(part) > 2 for part in parts)
        and not any(windows(part) & written for part in parts)
    ] == []


@pytest.mark.parametrize("words", BANNED)
def test_no_template_claims_what_is_never_shown(words: str) -> None:
    assert [name for name, source in templates() if words in flat(source)] == []
