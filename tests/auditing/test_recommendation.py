"""Each rung of the ladder, and what keeps anything from being said."""

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


def test_all_orders_are_used_where_the_gain_is_shown() -> None:
    found = advised(values(300, average=(60, 10)))
    assert (found.state, found.method, found.most_accurate) == ("better", "average", "average")
    assert found.gain is not None
    assert found.gain.value == pytest.approx(50 / 600)
    assert found.gain.low is not None
    assert found.gain.low > 0
    assert (found.items, found.units, found.cheapest, found.needed) == (300, 300, None, None)
    assert not found.reason


def test_a_cheaper_method_is_used_only_if_shown_to_be_as_good() -> None:
    same = advised(values(1000, average=(200, 10), pride=(199, 10)))
    assert (same.state, same.method, same.most_accurate) == ("better", "pride", "average")
    below = advised(values(1000, average=(200, 10), pride=(150, 10)))
    assert (below.method, below.cheapest) == ("average", "pride")


def test_a_method_shown_above_all_orders_takes_their_place() -> None:
    found = advised(values(1000, average=(60, 10), pride=(200, 0)))
    assert (found.state, found.method, found.most_accurate) == ("better", "pride", "pride")


def test_the_plain_average_stands_for_all_orders() -> None:
    compared = values(1000, average=(60, 10), more=(60, 10))
    names = ("direct", "average", "average:layouts=all")
    calls = {**CALLS, "average:layouts=all": 4.0}
    found = recommend(Contrasts(compared.values, names), calls, Recommendation(margin=0.01))
    assert (found.method, found.most_accurate) == ("average", "average")


def test_a_single_call_within_the_margin_is_enough() -> None:
    found = advised(values(3000, average=(6, 5)))
    assert (found.state, found.method) == ("enough", "direct")
    assert found.gain is not None
    assert 0 < (found.gain.high or 0) <= 0.01
    assert found.gain.value == pytest.approx(1 / 6000)


def test_a_loss_that_is_shown_keeps_the_single_call() -> None:
    found = advised(values(300, average=(10, 60)))
    assert (found.state, found.method) == ("worse", "direct")
    assert found.gain is not None
    assert (found.gain.high or 0) < 0


def test_an_open_question_names_both_ends_and_the_items_needed() -> None:
    found = advised(values(300, average=(20, 12)))
    assert (found.state, found.method) == ("open", None)
    assert (found.cheapest, found.most_accurate) == ("direct", "average")
    assert found.needed is not None
    gain = 8 / 600
    spread = np.std([0.5] * 20 + [-0.5] * 12 + [0.0] * 268)
    assert found.needed == int(np.ceil(((1.959964 + 0.84) * spread / gain) ** 2 - 300))
    low = advised(values(100, average=(14, 17)))
    assert (low.state, low.most_accurate, low.top) == ("open", "direct", "average")
    assert low.gain is not None
    assert low.gain.value == pytest.approx(-3 / 200)


def test_gain_names_its_method_where_nothing_reads_every_order() -> None:
    found = advised(values(100, pride=(14, 17)))
    assert (found.state, found.most_accurate, found.top) == ("open", "direct", "pride")


def test_items_needed_never_run_away() -> None:
    """At a gain of half the margin, where neither question is nearer than the other."""
    found = advised(values(100, average=(10, 9)))
    assert (found.state, found.needed is not None) == ("open", True)
    assert found.gain is not None
    assert found.gain.value == pytest.approx(0.005)
    assert (found.needed or 0) < (2.8 * 0.22 / 0.005) ** 2


def test_a_vote_over_two_orders_is_the_same_sum() -> None:
    alike = values(300, vote=(0, 0))
    found = advised(alike, agreed=AGREED)
    assert (found.state, found.method, found.gain) == ("same", None, None)
    told = "both orders agree on 43% of items; those verdicts are right 61% of the time"
    assert found.reason == told
    assert advised(alike, agreed=(0.0, 0.0)).reason == "both orders agree on no item"
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


def test_near_chance_the_most_accurate_method_is_still_told() -> None:
    found = advised(values(300, average=(60, 10)), chance=0.95)
    assert (found.state, found.method) == ("none", None)
    assert (found.cheapest, found.most_accurate) == ("direct", "average")
    lower = advised(values(300, average=(10, 60)), chance=0.95)
    assert lower.most_accurate == "direct"


def test_a_single_call_above_chance_is_better_than_guessing() -> None:
    falls = advised(values(300, average=(0, 120)), chance=0.35)
    assert (falls.state, falls.method) == ("worse", "direct")


def test_without_all_orders_the_largest_method_is_compared() -> None:
    found = advised(values(300, sequential=(20, 12)))
    assert (found.state, found.most_accurate) == ("open", "sequential")


@pytest.mark.parametrize("items", [1, 19])
def test_too_few_questions_carry_nothing(items: int) -> None:
    found = advised(values(items, average=(0, 0)))
    assert (found.state, found.reason) == (
        "none",
        f"too few distinct questions to compare methods on ({items})",
    )


def test_one_method_alone_is_compared_with_nothing() -> None:
    assert advised(values(300)).state == "none"
    assert advised(Contrasts(np.zeros((0, 2)), ("direct", "average"))).state == "none"


def test_at_one_price_the_first_name_is_taken() -> None:
    found = advised(values(300, average=(60, 0), vote=(60, 0)))
    assert found.method == "average"


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
        texts = (f"a{number}", f"b{number}")
        asked.append(
            Item(
                id=f"i{number}",
                task=kept.get("task", Task.PAIRWISE),
                prompt="?",
                candidates=texts,
                gold=right,
            )
        )
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
    assert (found.state, found.reason) == ("same", "both orders agree on no item")


def test_agreement_of_two_orders_is_counted_by_verdicts() -> None:
    # 45 items named alike; a quarter of all follow the place
    found = recorded(60, lambda n, o: (o[0] if n % 4 == 0 else 0, None), gold=0)
    told = "both orders agree on 75% of items; those verdicts are right 100% of the time"
    assert (found.state, found.reason) == ("same", told)


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
