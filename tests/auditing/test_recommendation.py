"""Each rung of the ladder, and what keeps anything from being said."""

import re
from typing import Any

import numpy as np
import pytest

from unswayed.auditing.recommendation import Recommendation, recommend
from unswayed.auditing.recorded import audit_decisions
from unswayed.auditing.settings import AuditSettings
from unswayed.base.errors import UsageError
from unswayed.methods import METHODS
from unswayed.metrics.simultaneous import Contrasts
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, ItemSet, Task

CALLS = {"direct": 1.0, "pride": 1.2, "average": 2.0, "vote": 2.0, "sequential": 1.0}


AGREED = (0.43, 0.61)


def values(items: int, **moved: tuple[int, int]) -> Contrasts:
    """Methods that earn half a point more, and less, than a single call on so many items."""
    rng = np.random.default_rng(items)
    single = rng.choice([0.5, 0.5, 1.0, 0.0], items)
    columns = [single]
    for up, down in moved.values():
        own, rows = single.copy(), np.flatnonzero(single == 0.5)
        own[rows[:up]], own[rows[len(rows) - down :]] = 1.0, 0.0
        columns.append(own)
    return Contrasts(np.column_stack(columns), ("direct", *moved))


def advised(compared: Contrasts, **more: Any) -> Recommendation:
    return recommend(compared, CALLS, Recommendation(margin=0.01), **more)


SINGLE = {"cheapest": "direct", "method": None}


@pytest.mark.parametrize(
    ("items", "moved", "told"),
    [
        (300, {"average": (60, 10)}, {
            "state": "better", "method": "average", "most_accurate": "average",
            "items": 300, "units": 300, "cheapest": None, "needed": None, "reason": ""}),
        # what is cheaper is used only if it is shown to be as good
        (1000, {"average": (200, 10), "pride": (199, 10)}, {
            "state": "better", "method": "pride", "most_accurate": "average"}),
        (1000, {"average": (200, 10), "pride": (150, 10)}, {
            "method": "average", "cheapest": "pride"}),
        # what is shown above all orders takes their place
        (1000, {"average": (60, 10), "pride": (200, 0)}, {
            "state": "better", "method": "pride", "most_accurate": "pride"}),
        # at one price the first name
        (300, {"average": (60, 0), "vote": (60, 0)}, {"state": "better", "method": "average"}),
        # within the margin, and shown to lose
        (3000, {"average": (6, 5)}, {"state": "enough", "method": "direct"}),
        (300, {"average": (10, 60)}, {"state": "worse", "method": "direct"}),
        (300, {"average": (20, 12)}, {"state": "open", **SINGLE, "most_accurate": "average"}),
        (100, {"average": (14, 17)}, {
            "state": "open", **SINGLE, "most_accurate": "direct", "top": "average"}),
        # where nothing reads every order, what asks most
        (100, {"pride": (14, 17)}, {"state": "open", "most_accurate": "direct", "top": "pride"}),
        (300, {"sequential": (20, 12)}, {"state": "open", "most_accurate": "sequential"}),
    ],
)  # fmt: skip
def test_each_rung_names_its_methods(
    items: int, moved: dict[str, tuple[int, int]], told: dict[str, Any]
) -> None:
    found = advised(values(items, **moved))
    assert {name: getattr(found, name) for name in told} == told
    up, down = moved[found.method if found.method in moved else found.top or ""]
    assert found.gain is not None
    assert found.gain.value == pytest.approx((up - down) / 2 / items)


def test_the_plain_average_stands_for_all_orders() -> None:
    compared = values(1000, average=(60, 10), more=(60, 10))
    names = ("direct", "average", "average:layouts=all")
    calls = {**CALLS, "average:layouts=all": 4.0}
    found = recommend(Contrasts(compared.values, names), calls, Recommendation(margin=0.01))
    assert (found.method, found.most_accurate) == ("average", "average")


def test_items_needed_follow_from_spread_and_distance() -> None:
    found = advised(values(300, average=(20, 12)))
    gain, spread = 8 / 600, np.std([0.5] * 20 + [-0.5] * 12 + [0.0] * 268)
    assert found.needed == int(np.ceil(((1.959964 + 0.84) * spread / gain) ** 2 - 300))
    # never without bound: at a gain of half the margin neither question is nearer than the other
    half = advised(values(100, average=(10, 9)))
    assert half.gain is not None
    assert half.gain.value == pytest.approx(0.005)
    assert 0 < (half.needed or 0) < (2.8 * 0.22 / 0.005) ** 2


def test_a_vote_over_two_orders_is_the_same_sum() -> None:
    alike = values(300, vote=(0, 0))
    found = advised(alike, agreed=AGREED)
    assert (found.state, found.method, found.gain) == ("same", None, None)
    told = (
        "both orders agree on 43% of the compared items; those verdicts are right 61% of the time"
    )
    assert found.reason == told
    assert advised(alike, agreed=(0.0, 0.0)).reason == "both orders agree on no compared item"
    assert advised(alike).state != "same"  # by the data alone nothing is the same
    assert advised(values(300, vote=(30, 0)), agreed=AGREED).state == "better"


def test_a_gain_from_unread_answers_is_told_as_such() -> None:
    found = advised(values(300, vote=(30, 0)), agreed=AGREED, unread=0.1)
    assert "second answer" in found.reason
    assert not advised(values(300, average=(30, 0)), agreed=AGREED, unread=0.1).reason


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"unread": 0.21}, "21% of the answers could not be read"),
        ({"missing": 0.5}, "50% of the calls are missing"),
        ({"tied": 0.97}, "calls a tie in 97% of its answers"),
        ({"chance": 0.95}, "better than guessing"),
    ],
)
def test_no_method_is_named_where_nothing_can_be_said(given: Any, reason: str) -> None:
    found = advised(values(300, average=(60, 10)), **given)
    assert (found.state, found.method, found.needed) == ("none", None, None)
    assert reason in found.reason


def test_of_equal_cheaper_methods_the_cheapest_is_told() -> None:
    compared = values(300, average=(60, 10), early=(30, 10), late=(30, 10))
    calls = {"direct": 1.0, "average": 2.0, "early": 1.01, "late": 1.04}
    found = recommend(compared, calls, Recommendation(margin=0.01))
    assert (found.method, found.cheapest) == ("average", "early")


@pytest.mark.parametrize(("late", "told"), [(1.6, "early"), (1.5, "late")])
def test_of_methods_equal_in_every_verdict_the_cheapest_is_used(late: float, told: str) -> None:
    compared = values(183, average=(20, 10), early=(60, 0), late=(60, 0))
    calls = {"direct": 1.0, "average": 4.0, "early": 1.6, "late": late}
    assert recommend(compared, calls, Recommendation(margin=0.01)).method == told


@pytest.mark.parametrize(("better", "told"), [("early", "early"), ("late", "late")])
def test_of_methods_of_one_price_the_better_is_used(better: str, told: str) -> None:
    moved = {"early": (60, 4), "late": (60, 4), better: (60, 2)}
    compared = values(183, average=(20, 10), **moved)
    calls = {"direct": 1.0, "average": 4.0, "early": 1.6, "late": 1.6}
    assert recommend(compared, calls, Recommendation(margin=0.05)).method == told


def test_interval_beside_guessing_stays_within_the_scale() -> None:
    found = advised(values(40, average=(1, 0)), chance=0.9)
    value, low, high = map(
        int, re.findall(r"average: (\d+)%, (\d+) to (\d+); guessing: 90%", found.reason)[0]
    )
    assert 0 <= low <= value <= high <= 100


def test_near_chance_the_most_accurate_method_is_still_told() -> None:
    found = advised(values(300, average=(60, 10)), chance=0.95)
    assert (found.state, found.method) == ("none", None)
    assert (found.cheapest, found.most_accurate) == ("direct", "average")
    lower = advised(values(300, average=(10, 60)), chance=0.95)
    assert lower.most_accurate == "direct"


def test_a_single_call_above_chance_is_better_than_guessing() -> None:
    falls = advised(values(300, average=(0, 120)), chance=0.35)
    assert (falls.state, falls.method) == ("worse", "direct")


@pytest.mark.parametrize("items", [1, 19])
def test_too_few_questions_carry_nothing(items: int) -> None:
    found = advised(values(items, average=(0, 0)))
    assert found.state == "none"
    assert found.reason == f"too few distinct questions to compare methods on ({items})"


def test_one_method_alone_is_compared_with_nothing() -> None:
    assert advised(values(300)).state == "none"
    assert advised(Contrasts(np.zeros((0, 2)), ("direct", "average"))).state == "none"


@pytest.mark.parametrize("margin", [0, 0.09, 20.1, float("nan"), float("inf"), -1])
def test_a_margin_is_some_points(margin: float) -> None:
    with pytest.raises(UsageError, match=f"margin {margin:g}: give points of accuracy from 0.1"):
        AuditSettings.of({"methods": "all", "margin": margin})
    assert AuditSettings.of({"methods": "all", "margin": 0.1}).margin == 0.1


def recorded(items: int, draw: Any, *, gold: Any = True, **kept: Any) -> Recommendation:
    """The recommendation of recorded answers, `draw(item, order)` with a choice and P(first)."""
    rng = np.random.default_rng(1)
    asked, given = [], []
    for number in range(items):
        right = int(rng.integers(2)) if gold is True else gold
        texts, task = (f"a{number}", f"b{number}"), kept.get("task", Task.PAIRWISE)
        asked.append(Item(id=f"i{number}", task=task, prompt="?", candidates=texts, gold=right))
        for order in kept.get("orders", lambda number: ((0, 1), (1, 0)))(number):
            choice, p = draw(number, order)
            probs = None if p is None else (p, 1 - p)
            given.append(
                Decision(
                    item_id=f"i{number}", order=order, labels=("A", "B"), label_set=("A", "B"),
                    choice=choice, probs=probs, model="own",
                )
            )  # fmt: skip
    settings = AuditSettings(
        methods=("all",), resamples=100, gold_ties=kept.get("gold_ties", "exclude")
    )
    record = audit_decisions(given, ItemSet.of(asked, name="own"), settings, command="x")
    found = record.metrics.recommendation
    assert found is not None
    return found


def first(number: int, order: Any) -> Any:
    return order[0], None


def leaning(number: int, order: Any) -> Any:
    p = 0.5 + 0.3 * np.sin(number * 7.0) + (0.15 if order[0] == 0 else -0.15)
    return int(p < 0.5), float(np.clip(p, 0.01, 0.99))


def test_forced_choices_in_two_orders_are_the_same() -> None:
    assert recorded(60, first).state == "same"


def test_orders_that_name_two_right_answers_do_not_agree() -> None:
    found = recorded(60, first, gold=(0, 1), task=Task.MCQ)
    assert (found.state, found.reason) == ("same", "both orders agree on no compared item")


def test_agreement_of_two_orders_is_counted_by_verdicts() -> None:
    # 45 items named alike; a quarter of all follow the place
    found = recorded(60, lambda n, o: (o[0] if n % 4 == 0 else 0, None), gold=0)
    told = (
        "both orders agree on 75% of the compared items; those verdicts are right 100% of the time"
    )
    assert (found.state, found.reason) == ("same", told)


def test_unread_answers_do_not_make_single_calls_enough() -> None:
    def partly(number: int, order: Any) -> Any:
        followed = order[0] if number % 3 else 0
        return (None if number in (5, 50) and order[0] == 1 else followed), None

    found = recorded(120, partly, gold=0)
    assert (found.state, found.method) == ("same", None)


def test_vote_is_not_the_same_sum_where_a_tie_may_be_right() -> None:
    def steady(number: int, order: Any) -> Any:
        return number % 2, None

    assert recorded(60, steady).state == "same"
    assert recorded(60, steady, gold_ties="class").state != "same"


def test_without_gold_no_method_is_named() -> None:
    for draw in (first, leaning):
        found = recorded(60, draw, gold=None)
        assert (found.state, found.criterion) == ("none", "")
        assert "without gold" in found.reason


def test_answers_that_are_all_ties_or_unread_carry_nothing() -> None:
    assert "calls a tie in 100%" in recorded(40, lambda *_: ("tie", None)).reason
    assert "could not be read" in recorded(40, lambda *_: (None, None)).reason


def test_one_item_or_one_order_carries_nothing() -> None:
    assert "too few" in recorded(1, leaning).reason
    assert recorded(40, leaning, orders=lambda number: ((0, 1),)).state == "none"


def test_an_order_that_a_third_of_items_lack_leaves_fewer_items() -> None:
    found = recorded(
        90, leaning, orders=lambda number: ((0, 1), (1, 0)) if number % 3 else ((0, 1),)
    )
    assert (found.items, found.units) == (60, 60)


def test_controls_are_never_named() -> None:
    controls = {name for name in METHODS if METHODS.load(name).about.control}
    assert controls == {"canonical", "repeat", "repeat-mean", "repeat-score"}
    found = recorded(200, lambda n, o: (0 if o == (0, 1) else (n % 2), None))
    assert not controls & {found.method, found.cheapest, found.most_accurate}
