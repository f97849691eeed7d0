"""Every sentence of a report against what is true of the judge: planted effects, never own figures.

A row holds a sentence's words, in which # stands for a number, @ for a name and … for anything, and
what must be true of the judge where they stand, to which these are given. What says an interval may
miss in one of twenty. A new sentence of a template needs its row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

import pytest
from jinja2 import Environment, nodes
from truths import (
    Facts,
    Holds,
    about,
    again,
    biased,
    change,
    counts,
    first_wins,
    gain,
    half_width,
    joint,
    moved,
    near,
    no_effect,
    pairs,
    place,
    slots,
    steady,
    within,
)

from judges import STATES, TIE, UNREAD, Planted, Scored
from page_text import page_text, printed
from unswayed.report.collect import run_data
from unswayed.report.page import render_report

SEEDS = (2, 4)  # in which every row below has a state
PACKAGE = resources.files("unswayed")
TEMPLATES = PACKAGE / "report" / "templates"
OTHERS = ("auditing/recommendation.py", "auditing/measurement.py")
"""Where words of sentences stand outside templates."""
BANNED = ("cannot be told", "never flip", "no bias: 0", "without a correction")
NUMBER, NAME, GAP = r"([+−-]?\d[\d,]*(?:\.\d+)?)", r"([\w:=.-]+)", r".{0,160}?"

ODDS = True


class Row(NamedTuple):
    words: str
    holds: Holds
    by_chance: bool = False


class Case(NamedTuple):
    state: str
    seed: int
    said: str
    true: bool


# fmt: off
ROWS: tuple[Row, ...] = (
    Row("Use @: …over a single call. Cheaper: @, # calls per item… It measures # points … the recommended method (# to #)",
        lambda t, method, name, calls, _, low, high:
        within(low, gain(t, name) - gain(t, method), high), ODDS),
    Row("#% of verdicts on items with gold are not right under @", lambda t, share, name:
        t.law.ties > 0 or name == "vote" or about(t, share, 1 - t.exact - gain(t, name))),
    Row("This judge calls a tie in #% of its answers. Its other preferences cannot be measured",
        lambda t, ties: near(ties, t.law.ties, 3) and t.law.ties > 0.9),
    Row("An answer wins #% of its comparisons when shown first and #% when shown last… (# points, # to #)",
        lambda t, wins, loses, points, low, high: biased(t) and within(low, joint(t), high) and
        (abs(wins - loses - points) <= 2), ODDS),
    Row("when shown last, a tie counted as half", lambda t: t.law.ties > 0),
    Row("The option shown @ takes #% of the choices instead of an even #% (# points, # to #)",
        lambda t, name, share, even, points, low, high: within(low, t.law.shares[place(name)] - 1 /
        t.judge.n, high) and near(even, 1 / t.judge.n), ODDS),
    Row("Position and label moved together and show no joint effect, yet #% of verdicts change",
        lambda t, share: not t.judge.apart and (not biased(t)) and near(share, t.changed /
        t.whole)),
    Row("There are too few items to see whether a position is favoured: with # items",
        lambda t, items: half_width(t) > 0.024 and items == t.judge.items),
    Row("the @-position rate may be anything from #% to #%",
        lambda t, name, low, high: within(low, t.law.shares[place(name)], high) and high - low < 90,
        ODDS),
    Row("About #… narrow it to 3 points either way",
        lambda t, items: 0.6 < items / (1.96 * t.law.spread / 0.03) ** 2 < 1.8),
    Row("No joint effect of position and label in # items…. They moved together, so opposed "
        "effects would not show",
        lambda t, items: not t.judge.apart and (not biased(t)) and (items == t.judge.items)),
    Row("No position or label bias found in # items", lambda t, _: t.judge.apart and no_effect(t)),
    Row(". The answer shown first takes #% of the choices (#–#), and #% of verdicts change.",
        lambda t, _, low, high, share: within(low, t.law.shares[0], high, 0.1) and near(share,
        t.changed / t.whole), ODDS),
    Row("on average #% of an item's answers equal its most frequent one. The answer changes at least "
        "once on # of # items",
        lambda t, kept, changed, items: near(kept, steady(t)) and (changed, items) == counts(t)),
    Row("An effect of # points or more on the share of choices would very likely show",
        lambda t, points: points / 100 > 1.7 * half_width(t) - 0.001),
    Row("The judge is right in both orders on #% of", lambda t, share: near(share, t.right)),
    Row("# items, # distinct questions. ",
        lambda t, items, units: (items, units) == (t.judge.items, t.units)),
    Row("# of # verdicts (#%) change with the order",
        lambda t, changed, items, share: (changed, items) == counts(t) and near(share, changed /
        items)),
    Row("None of # verdicts changes with the order", lambda t, items: counts(t) == (0, items)),
    Row("# stayed with the first position", lambda t, items: items == t.stayed(0)),
    Row("# stayed with the last", lambda t, items: items == t.stayed(1)),
    Row("# involve a tie", lambda t, items: items == t.touched(TIE)),
    Row("# have an unparsed answer", lambda t, items: items == t.touched(UNREAD)),
    Row("On a repeated call…, #% of verdicts change in the same order and #% in another, so",
        lambda t, again, across: about(t, again, t.law.again) and about(t, across, change(t))),
    Row("# points come from the order (# to #)",
        lambda t, _, low, high: change(t) > t.law.again + 0.005 and within(low, change(t) -
        t.law.again, high), ODDS),
    Row("another order shows no further change (# points, # to #)",
        lambda t, _, low, high: within(low, change(t) - t.law.again, high), ODDS),
    Row("No item was asked twice in the same order, so this includes verdicts that would change"
        " anyway",
        lambda t: t.judge.samples == 1),
    Row("Noise alone would leave as many with the last position as with the first", biased, ODDS),
    Row("# of # answers could not be read. They count as wrong and as inconsistent",
        lambda t, unread, heard: (unread, heard) == t.unread),
    Row("No shares by position were measured", lambda t: t.law.ties == 1),
    Row("No favoured position can be named", lambda t: half_width(t) > 0.024 or t.law.ties > 0.9),
    Row("The @ shown first wins.", first_wins, ODDS),
    Row("No position wins", lambda t: not biased(t)),
    Row("Neither a position nor a label wins", no_effect),
    Row("The first position wins", lambda t: t.judge.place > 0),
    Row("position wins, and no label does", lambda t: t.judge.label == 0, ODDS),
    Row("With labels balanced out, the first position … of the choices. With positions balanced"
        " out, the label @ takes",
        lambda t, _: t.judge.apart),
    Row("The first interval excludes #%, the second contains it",
        lambda t, _: t.judge.place != 0 == t.judge.label, ODDS),
    Row("Both intervals contain", no_effect, ODDS),
    Row("The first position takes #% of the choices, and the interval excludes #%",
        lambda t, share, even: biased(t) and about(t, share, t.law.shares[0]), ODDS),
    Row("The first position takes #% of the choices, and the interval contains #%",
        lambda t, share, even: not biased(t) and about(t, share, t.law.shares[0]), ODDS),
    Row("Positions and labels moved together, so this is their sum",
        lambda t: not t.judge.apart),
    Row("Position matters more than the label",
        lambda t: t.law.kept['order'] < t.law.kept['label']),
    Row("Position and label weigh about the same",
        lambda t: abs(t.law.kept['order'] - t.law.kept['label']) < 0.06),
    Row("Moving the answers while each keeps its label leaves #% of verdicts unchanged",
        moved('order')),
    Row("Swapping only the labels leaves #%", moved('label')),
    Row("When both change together, as in everyday use, #% survive", moved('coupled')),
    Row("share of # items with the same verdict before and after the change",
        lambda t, items: items == t.judge.items),
    Row("Every item was asked in four presentations: both orders of the answers with both "
        "assignments of the labels",
        lambda t: t.judge.apart and (not t.judge.gaps)),
    Row("# of # items were asked in both orders",
        lambda t, whole, items: (whole, items) == (t.whole, t.judge.items) and t.judge.gaps),
    Row("Every item was asked in both orders of its answers",
        lambda t: pairs(t) and (not t.judge.gaps)),
    Row("Every item was asked in four orders", lambda t: not pairs(t)),
    Row("# recorded decisions, no call made", lambda t, asked: asked == t.unread[1]),
    Row("# items lack a presentation: excluded from consistency and consistent accuracy",
        lambda t, items: items == t.judge.gaps),
    Row("No group differs measurably from the others in consistency",
        lambda t: t.judge.opposed),
    Row("The @ position does not take the same share of choices in every group",
        lambda t, _: t.judge.opposed),
    Row("To compare a correction for each group, add pride:prior=group to --methods",
        lambda t: t.judge.opposed),
    Row("Consistency runs from #% (@, # items) to #% (@, # items)", lambda t, *_: t.judge.opposed),
    Row("No verdict changed with the order", lambda t: counts(t)[0] == 0),
    Row("# of # items change their answer with the order",
        lambda t, changed, items: (changed, items) == counts(t)),
    Row("Use @: # call… per item, +# points (# to #) over a single call",
        lambda t, name, calls, points, low, high: within(low, gain(t, name), high) and gain(t, name)
        > 0 and (name != 'canonical'), ODDS),
    Row("A single call is enough…: … gains at most # points (#% bound; measured: #)",
        lambda t, most, _, measured: measured <= most <= 1 and all(100 * gain(t, name) <= most + 0.1
        for name in ('average', 'vote')), ODDS),
    Row("Keep the single call: reading every order loses # points (# to #)",
        lambda t, _, low, high: within(low, -gain(t, 'vote'), high), ODDS),
    Row("Single verdicts are not reliable here: #% change with the order",
        lambda t, share: biased(t) and near(share, t.changed / t.whole), ODDS),
    Row("One answer in each of two orders cannot show a better method: counting a disagreement as"
        " a tie is exactly as accurate as a single call",
        lambda t: pairs(t) and (not t.judge.probs) and (t.law.accuracy['vote'] == t.exact)),
    Row("Undecided after # items: @ measures # points (# to #)",
        lambda t, items, name, _, low, high: items == t.whole and within(low, gain(t, name), high),
        ODDS),
    Row("No recommendation:", lambda t: t.law.ties > 0.9 or t.judge.coin),
    Row("no method is shown to be better than guessing (@: #%, # to #; guessing: #%)",
        lambda t, name, _, low, high, chance: within(low, t.law.accuracy[name], high), ODDS),
    Row("this judge calls a tie in #% of its answers", lambda t, ties: near(ties, t.law.ties)),
    Row("its other preferences cannot be measured", lambda t: t.law.ties > 0.9),
    Row("Ask both orders and report a disagreement as a tie (--method vote). Both orders agree on #% of "
        "the compared items; those verdicts are right #% of the time",
        lambda t, agree, right: near(agree, 1 - t.changed / t.whole) and near(right, t.right *
        t.whole / (t.whole - t.changed))),
    Row("Probabilities or several samples could help",
        lambda t: not t.judge.probs),
    Row("Cheapest: direct, 1 call per item. Most accurate: @", lambda t, name: name != 'canonical'),
    Row("About # more items would decide it",  # gains are of half points, where orders disagree
        lambda t, more: 0 < more <= (2.8 * 0.5 / 0.005) ** 2 * change(t)),
    Row("The gain comes from second answers where the first is unparsed",
        lambda t: t.judge.unread > 0),
    Row("Compared on # of # items",
        lambda t, whole, items: (whole, items) == (t.whole, t.judge.items)),
    Row("Asking once, sorted by content (canonical), is consistent by construction. Compare "
        "its accuracy instead (#%)",
        lambda t, share: about(t, share, t.exact)),
    Row("points more comparisons won when shown first than when shown last", pairs),
    Row("points more choices for the option shown first than an even share", lambda t: not pairs(t)),
    Row("of verdicts change with the order beyond those that change when asked again", again),
    Row("of verdicts change when the answers change places", lambda t: not t.judge.unread),
    Row("of verdicts change or cannot be read when the answers change places",
        lambda t: t.judge.unread > 0),
    Row("of items are judged right in both orders", pairs),
    Row("of items have the right answer as their most frequent one", lambda t: not pairs(t)),
    Row("labels balanced over positions", lambda t: t.judge.apart),
    Row("positions balanced over labels", lambda t: t.judge.apart),
    Row("% of an item's orders that agree", lambda t: not pairs(t)),
    Row("% with the same verdict in both orders", lambda t: t.judge.opposed),
    Row("% of choices, same rows", lambda t: t.judge.opposed),
    Row("% right, mean over both orders", pairs),
    Row("% right, mean over all orders", lambda t: not pairs(t)),
    Row("% of items with the same verdict in both orders", pairs),
    Row("that agree, mean over items", lambda t: not pairs(t)),
    Row(" @ on @ |", lambda t, *_: not biased(t) or t.units < 20),
    Row("@ favours the answer shown first", lambda t, _: biased(t), ODDS),
    Row("Unchanged verdicts: #% (#–#) if order and labels change", lambda t, *_: t.judge.apart),
)

SCORES: tuple[Row, ...] = (
    Row("The @ position is worth # points (# to #)",
        lambda t, name, _, low, high: low - 0.1 <= slots(t, name) <= high + 0.1, ODDS),
    Row("and the @ position is worth # points (# to #)",
        lambda t, name, _, low, high: low - 0.1 <= slots(t, name) <= high + 0.1, ODDS),
    Row("Rankings of a list under two orders agree at Kendall's τ # (1: always the same ranking)",
        lambda t, tau: 0 < tau < 1),
    Row("The @ position gains # points", lambda t, name, _: slots(t, name) > 0),
    Row("An answer shown in the first position scores # points (# to #)",
        lambda t, _, low, high: low - 0.1 <= slots(t, 'first') <= high + 0.1, ODDS),
    Row("Rankings of a list under two orders agree at τ #", lambda t, tau: 0 < tau < 1),
    Row("The rank correlation of single scores with human scores is #", lambda t, rho: 0 < rho < 1),
    Row("The scores of @ are closer to human scores", lambda t, _: t.slot != 0),
    Row("The listed order adds # points to their mean", lambda t, _: t.slot != 0),
)
# fmt: on

NAMING = """
Share of choices by position and by label
dashed lines the share without bias. Blue: the whole interval lies above that share
A judge without order effects or noise would be at 100%
All methods were scored on the same calls
# presentations of an item in each
Consistency is not correctness: a judge can be wrong in every order
Intervals apply to more items of this kind, not to other prompts, model versions
Intervals of differences between methods hold for all differences together, except
the planned comparison of every order with a single call and differences of consistent accuracy
percentile bootstrap over items
Consistency is #% in every group
Blue marks an interval that excludes the dashed line
The heading holds for all groups together, a mark for one alone
An unparsed answer counts as a change
groups, chance alone marks one group in about
Groups sorted by consistency of @. Bands are 95% intervals
A group of one question has no band
Macro average of consistency over groups
Depending on the order, the judge chose
The judge said @ both times, so its
choice went from
The gold is answer
The judge said @, which is
; same answer in
Each is compared with its own mean over all positions
lists the answer shown first won in every order
Score of an answer at each position minus its own mean over the positions, averaged over lists
Blue: an interval for all positions together excludes 0
Two of its rankings agree at τ
points compared with its mean in other positions
Agreement with human scores
Cost and gain of each method
which does not show that it is within # point
@ gets more items right in both orders than @
@ gets more items right most often than @
Results of each method against its calls per item. Filled dots lie on the frontier:
no cheaper method measured higher. Vertical lines are 95% intervals
. The ringed dot is the recommendation
† Asks the same questions for any given order, so its consistency holds by construction and
is left off the frontier
Methods that learn are scored on items they were not fitted on
orders agree with its most frequent answer
accuracy of single verdicts, ties shared
Normal use
first position carries the label A
share of items with the same verdict in both orders; unparsed never agrees, two ties do
orders that agree with its most frequent answer, mean over items; few orders raise
share of items judged right in every order (consistent accuracy)
share of items whose only most frequent answer is right (consistent accuracy)
share of parsed choices that fall on the first position; #% without bias
share of right answers, averaged over the presentations of each item; a tie between
candidates, one of them right, earns 1/k, unparsed answers nothing
† Holds by construction: the method asks the same questions for any given order
A tie between two candidates counts one half
Skipped:
Not shown here: …. See the report
Values are percentages, except calls. The second line gives 95% intervals. Bold: best measured value
† Holds by construction, so not compared
Skip to the results unswayed audit of
All methods, all metrics. Values are percentages, except calls
Select a heading to sort
Best measured value in the column
Filter by id, group or text
Browsing the items needs JavaScript. The surest one is shown; `unswayed export`
Single calls (@), in %, with 95% intervals on the second line
model calls a method reads, its fitting calls spread over the items
range built so that about 95 of 100 such ranges, each from new items of this kind, hold
One file, no network: everything on this page, its data and its code are inside it
calls per item, log scale
""".strip().split("\n")
"""Name what they stand beside, or follow from how a figure is made."""

CALLED = """
Right where it was wrong
Wrong where it was right
, each candidate shown equally often in each position
To measure them separately, use --protocol all
Every item was asked in three orders
# planned, # made, # reused, # failed
a human score that is not a level: excluded from accuracy
Pick an item to see one prompt for each answer it got, with every @ marked
These 95% intervals hold for all @ positions together
The scores of one response vary by # points over the orders (standard deviation)
Single scores and human scores: Spearman
the distance of each level's choices at its position from
with the lowest level first, # with the highest first
The lowest of all orders is #. An unbiased judge has a bias cost above 0, too
Correlation of the scores with human scores, mean over the orders
of the single calls that chose a level, the share at each position, in %. Without bias, every row is even
Positions at which each level is chosen
Depending on the order, its score was
Use @: # calls per item, +# in rank correlation (# to #) over a single call
rank correlation (ρ) of single scores with human scores
rank correlation with human scores, mean over all orders
Lists in their own order; a tie counts as wrong. p: exact sign test of each method by
""".strip().split("\n")
"""Only where a model was called."""

RECORDED = """
Decisions recorded in other presentations would separate them
Pick an item to see its presentation in each order. Its prompt was not recorded
""".strip().split("\n")
"""Only of recorded decisions."""

UNSEEN = """
Examples are in flipped.json, under unparsed_examples
One answer in each of two orders cannot show a better method: counting a disagreement as a tie is as accurate as a single call, apart from unparsed answers
Less consistent on @ than on @.
The function sees no labels
The intervals do not include the variation of the fit with the items
The judge does not follow the printed labels, so position and label cannot be separated
It is right in #% of its answers, but only as often as by chance if the order (#%) or the labels (#%) change alone
(--protocol all separates them)
This judge favours no position, yet #% of verdicts change
Too few items. 1 distinct question
No cheaper method comes close: @, # calls per item, measures # points below the recommended method
distinct question: no interval
because of the position, of the @s shown there, or both
such intervals can miss by chance, so @ is not a finding
Both intervals exclude
Position and label are not statistically distinguishable
The answer could not be read
The judge called it a tie
No position is shown to gain or lose points
shows no gain (
in at most
levels counted from the lowest
Compare its rank correlation
None of # call… was answered: nothing was measured
answers could be read, so there is nothing to describe
They count as wrong and as inconsistent; shares by position describe only the other
No item was judged; nothing to report
do not show whether verdicts change with the order
This item does not show whether verdicts change with the order
of its comparisons when shown last and #% when shown first
The @ position takes #% of the choices instead of an even #%
The label @ takes #% of the choices instead of an even #%
there is no interval to rely on
the share of the label @ may be anything from
missing. Run the same command again to make
unreadable replies still await
Items have @ to @ candidates. Positions are described for items with
There is no gold, so this report shows how steady the verdicts are
Every gold answer is a tie, so this report shows whether the verdicts are consistent
Without gold no method is shown to beat a single call
No method is measurably closer to the human scores than a single call
were refusals). They count as wrong and as inconsistent
No call was answered.
No answer could be read.
The @ shown last wins.
is avoided.
The label @ wins in every position
position wins, and the label @ helps it
position wins, and the label @ works against it
position wins, and so do
The first interval contains #%, the second excludes it
Most figures below cover only the answers that could be read
Too many answers could not be read
#% of the answers could not be read
are unparsed because of the finish reason, whatever the text. Check tools and filters
Look at them first. A prompt that asks for the label alone, or a higher token limit
Effect of changing only the order
Effect of changing only the labels
The letter matters more than the position
while each keeps its label leaves #% of an item's verdicts the same
mean share of an item's presentations that agree with its most frequent answer
of replies led to a second call, and #% of these could then be read
Require a stricter form of reply (--prompt structured), or word the prompt more
Word the prompt more clearly
Without these replies, direct has
the text states a label other than the likeliest. The likeliest label decides
Newer reading rules changed
candidates that refer to each other: asked in
excluded from comparisons of orders
a tie as gold: excluded from accuracy. To score ties as a class, use --gold-ties class
with a tie as gold left out
no gold: excluded from accuracy
Every group has one item, so groups are not compared
Least consistent on @, most consistent on @.
The @ position takes more of the choices in the least consistent groups
groups, chance alone marks about # in each column
in the middle are left out; metrics.json has all
Pick an item to see the two prompts that the judge read, with both
This item has no gold
No gold names a single answer
The gold is a tie
Right answers:
all: unswayed export
The @ position loses # points
Steadiness of the rankings
Accuracy and consistency with the first 1, 2, … orders of a set
Shaded: how often a set of orders shows each candidate at each position. Differences
how often its # orders show each of
which put them first … times, so part of a first-place preference stays
Right and wrong compared with the single call
which shows no correlation
Without human scores, this report shows how steady the scores are
It changes the rank correlation with human scores by
Steadiness of the scores
It has no human score
Asking @ times in the same order (repeat) gains
Asking again in the same order (repeat)
is consistent by construction, which is not evidence
of choices fall on the @ position with the labels balanced out
of choices fall on the label @ with the positions balanced out
labels stay with the positions
ties count as wrong
% of verdicts equal to the verdict of the average over all orders
runs side by side
of the choices in @ and #% in @
#% to #% of the choices in
Compared item by item with
; intervals hold for all differences of this report together
Position and label bias
Effects of order and labels
Points for each position.
Differences between groups
Verdicts that changed with the order
Fewer or more estimation items
Fitted methods, by the number of items of the other folds that they were fitted on
Methods that abstain: share of wrong verdicts among the surest, withheld ones included
Methods that stop early, at several gaps between the two likeliest answers
""".strip().split("\n")
"""No state here has it: tests of the parts of the report look at it."""


SENTENCES = [*(row.words for row in ROWS + SCORES), *NAMING, *CALLED, *RECORDED, *UNSEEN]


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
    return flat(f"{printed(run)} | {page_text(render_report([run]))}")


def stood(
    words: str, holds: Holds | None = None, of: type = object, seeds: Sequence[int] = SEEDS
) -> list[Case]:
    """Where a sentence stood among judges of a kind, and whether it was true there."""
    cases = set()
    for state, judge in STATES.items():
        for seed in seeds if isinstance(judge, of) else ():
            facts = Facts(judge, seed) if isinstance(judge, Planted) else judge
            for found in pattern(words).finditer(report(state, seed)):
                true = holds is None or bool(holds(facts, *given(found.groups())))
                cases.add(Case(state, seed, found[0], true))
    return sorted(cases)


def kind(row: Row) -> type:
    return Scored if row in SCORES else Planted


@pytest.mark.parametrize("row", ROWS + SCORES, ids=lambda row: row.words[:50])
def test_a_sentence_stands_only_where_it_is_true(row: Row) -> None:
    cases = stood(row.words, row.holds, kind(row))
    false = [case for case in cases if not case.true]
    assert cases, "no state has it: put it with the others"
    assert len(false) <= row.by_chance * (1 + len(cases) // 20), false


def test_intervals_that_miss_are_one_of_twenty_at_most() -> None:
    cases = [
        case
        for row in ROWS + SCORES
        if row.by_chance
        for case in stood(row.words, row.holds, kind(row))
    ]
    assert len(cases) > 75
    assert 20 * sum(not case.true for case in cases) <= len(cases)


@pytest.mark.parametrize("words", CALLED)
def test_what_a_call_brings_stands_where_one_was_made(words: str) -> None:
    assert {case.state for case in stood(words)} <= {"lists", "scale"}
    assert stood(words)


@pytest.mark.parametrize("words", RECORDED)
def test_missing_data_is_reported_only_for_recordings(words: str) -> None:
    assert stood(words)
    assert stood(words, of=Scored) == []


@pytest.mark.parametrize("words", UNSEEN)
def test_what_no_state_has_is_not_said(words: str) -> None:
    assert stood(words) == []


def spoken(node: nodes.Node) -> Iterator[str]:
    """The texts of a template, without its elements and names."""
    for part in node.find_all((nodes.TemplateData, nodes.Const)):
        text = part.data if isinstance(part, nodes.TemplateData) else part.value
        if isinstance(text, str):
            yield flat(re.sub(r"<[^>]*>?|^[^<]*>|&#?\w+;", " ", text))


def runs_of_words(text: str, size: int) -> Iterator[tuple[str, ...]]:
    for run in re.findall(r"[A-Za-z'’:;,()-]+(?: [A-Za-z'’:;,()-]+)*", text):
        if len(words_of(run)) >= size:
            yield words_of(run)


def windows(words: tuple[str, ...], size: int = 3) -> set[tuple[str, ...]]:
    return {words[start : start + size] for start in range(len(words) - size + 1)}


def windows_of(words: str, size: int) -> set[tuple[str, ...]]:
    """Words that follow each other in a row."""
    pieces = re.split("[#@…]", words)
    return {window for piece in pieces for window in windows(words_of(piece), size)}


@cache
def known() -> frozenset[tuple[str, ...]]:
    return frozenset(three for words in SENTENCES for three in windows_of(words, 3))


def words_of(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[A-Za-z'’]+(?:-[A-Za-z]+)*", text))


def templates() -> Iterator[tuple[str, str]]:
    for folder in (TEMPLATES, TEMPLATES / "words"):
        for file in folder.iterdir():
            if file.name.endswith(".j2"):
                yield file.name, file.read_text("utf-8")


@pytest.mark.parametrize(("name", "source"), list(templates()), ids=lambda text: text[:20])
def test_every_sentence_of_a_template_has_its_truth(name: str, source: str) -> None:
    parsed = Environment().parse(source)
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
    texts = [text for _, source in templates() for text in spoken(Environment().parse(source))]
    texts += [(PACKAGE / name).read_text("utf-8") for name in OTHERS]
    written = {two for text in texts for two in windows(words_of(text), 2)}
    own = {words: windows_of(words, 2) for words in SENTENCES}
    assert [words for words, twos in own.items() if twos and not twos & written] == []


@pytest.mark.parametrize("words", BANNED)
def test_no_template_claims_what_is_never_shown(words: str) -> None:
    assert [name for name, source in templates() if words in flat(source)] == []
