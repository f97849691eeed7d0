"""Which objective is advised, and that nothing is said that was not estimated."""

import re

import msgspec
import numpy as np
import pytest
from scipy.stats import binom, binomtest

from unswayed.model.items import Item, Task
from unswayed.training.advice import CLEAN, FEWEST, advise, surest_contradicted
from unswayed.training.base_answers import balanced
from unswayed.training.recipe import load_recipe, with_changes
from unswayed.training.table import OBJECTIVES
from unswayed.training.targets import (
    ENOUGH_GOLD,
    compared,
    estimated_noise,
    own_temperature,
    shared_temperature,
    wrong_gold,
)


def items_of(golds, n=2, task=None):
    return [
        Item(
            id=f"i{number}",
            task=task or (Task.PAIRWISE if n == 2 else Task.MCQ),
            prompt=f"question {number}",
            candidates=tuple(f"{number} {k}" for k in range(n)),
            gold=gold,
        )
        for number, gold in enumerate(golds)
    ]


def answers_of(items, logits, *, bias=1.0, mass=1.0):
    """Log-probabilities over the balanced presentations, the first place favoured by `bias`."""
    answers = {}
    for item, own in zip(items, logits, strict=True):
        rows = np.array([own] * len(balanced(item.n)), dtype=float)
        for row, view in zip(rows, balanced(item.n), strict=True):
            row[view.order[0]] += bias
        answers[item.id] = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True)) + np.log(mass)
    return answers


def world(size, *, n=2, wrong=0.0, spread=2.0, limit=None, seed=0, **shown):
    """Items whose truth is drawn from the average, with this share of wrong gold.

    The average's logits stay below a limit, where there is one.
    """
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(size, n)) * spread
    truth = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    other = (truth + rng.integers(1, n, size)) % n
    items = items_of(np.where(rng.random(size) < wrong, other, truth).tolist(), n)
    if limit:
        logits = limit * np.tanh((logits - logits.mean(axis=1, keepdims=True)) / limit)
    return items, answers_of(items, logits, **shown)


def with_gold(items, golds):
    return [
        msgspec.structs.replace(item, gold=gold) for item, gold in zip(items, golds, strict=True)
    ]


# --- the rule ---------------------------------------------------------------------------------

WORLDS = {
    "clean": (world(800), "sft"),
    "clean, four": (world(800, n=4), "sft"),
    "wrong in part": (world(1600, n=4, wrong=0.3), "rl-exact"),
    "is unknown": (world(200, wrong=0.15, spread=0.7), "rl-exact"),
    "by lot": (world(800, wrong=0.5), "distill"),
    "by lot, four": (world(800, n=4, wrong=0.75), "distill"),
    "worse than lot": (world(800, wrong=0.9), "distill"),
    "too few": (world(FEWEST - 1), "distill"),
    "never sure, wrong in part": (world(1600, wrong=0.15, spread=5.0, limit=0.6), "rl-exact"),
    "never sure": (world(1600, spread=5.0, limit=0.6), "sft"),
    "enough": (world(FEWEST, spread=6.0), "sft"),
    "low mass": (world(800, mass=0.2), "sft"),
    "steady": (world(800, bias=0.0), "sft"),
}


@pytest.mark.parametrize("name", WORLDS)
def test_the_objective_follows_the_gold(name):
    given, objective = WORLDS[name]
    advice = advise(*given)
    assert advice.objective == objective
    assert any(reason.startswith(f"{objective}: ") for reason in advice.reasons)
    assert objective in OBJECTIVES
    with_changes(load_recipe("tiny-judge"), advice.changes)  # it can be trained


def test_missing_and_tied_gold_do_not_count():
    items, answers = world(400)
    for golds in ([None] * 400, ["tie"] * 400):
        advice = advise(with_gold(items, golds), answers)
        assert (advice.objective, advice.figures["gold"]) == ("distill", 0)
        assert "no item has gold" in advice.reasons[0]
        assert not {"gold_preferred", "wrong_gold"} & advice.figures.keys()


def test_items_without_needed_gold_are_dropped_and_counted():
    items, answers = world(800)
    some = [*items[:400], *with_gold(items[400:], ["tie"] * 400)]
    advice = advise(some, answers)
    assert advice.changes == {"target.invariance": "1", "data.without_gold": "drop"}
    assert (advice.figures["asked"], advice.figures["gold"]) == (800, 400)
    few = advise([*items[:100], *with_gold(items[100:], [None] * 700)], answers)
    assert (few.objective, few.changes) == ("distill", {})
    assert "only 100 of 800 questions" in few.reasons[0]


def test_several_right_candidates_do_not_measure_wrong_gold():
    items, answers = world(800, n=4)
    both = with_gold(items, [(item.gold, (item.gold + 1) % 4) for item in items])
    advice = advise(both, answers)
    assert advice.objective == "rl-exact"
    assert "not estimated" in advice.reasons[0]
    assert advice.figures["gold_of_several"] == 800
    assert advice.figures["gold_preferred_by_lot"] == 0.5
    assert "wrong_gold" not in advice.figures


def test_levels_of_a_scale_do_not_say_how_much_gold_is_wrong():
    items, answers = world(400, n=4)
    scaled = [
        msgspec.structs.replace(
            item, task=Task.RUBRIC, values=(1.0, 2.0, 3.0, 4.0), response="r", gold=item.gold + 1.0
        )
        for item in items
    ]
    advice = advise(scaled, answers)
    assert advice.objective == "rl-exact"
    assert "wrong_gold" not in advice.figures
    assert estimated_noise(scaled, answers) == (1.0, 0.0)


def test_reasoned_answers_are_sampled_or_the_prompt_changes():
    items, _ = world(FEWEST)
    advice = advise(items, None)
    assert (advice.objective, advice.changes) == ("rl", {"reward.consistency": "inv"})
    some = advise([*items, *items_of([None])], None)
    assert some.changes == {"reward.consistency": "inv", "data.without_gold": "drop"}
    few = advise(items[1:], None)
    assert (few.objective, few.changes) == ("distill", {"prompt.style": "direct"})
    for case in (advice, some, few):
        assert not any("%" in reason for reason in case.reasons)


def test_a_prompt_that_is_not_answered_with_a_label_comes_first():
    advice = advise(*WORLDS["low mass"][0])
    assert advice.reasons[0].startswith("First fix the prompt: ")
    assert "20.0%" in advice.reasons[0]


def test_little_to_gain_holds_for_steady_judges_and_not_ties():
    items, answers = WORLDS["steady"][0]
    assert "little consistency to gain" in advise(items, answers).reasons[0]
    swayed = advise(*WORLDS["clean"][0])
    assert not any("little" in reason for reason in swayed.reasons)
    flat = {item.id: np.full((2, 2), np.log(0.5)) for item in items}
    advice = advise(items, flat)
    assert (advice.figures["steady"], advice.figures["gold_preferred"]) == (0.0, 0.0)
    assert advice.objective == "distill"


def test_a_question_asked_twice_counts_once():
    items, answers = world(400)
    again = [msgspec.structs.replace(item, id=f"{item.id}b") for item in items]
    twice = answers | {f"{name}b": rows for name, rows in answers.items()}
    single = advise(items, answers).figures
    double = advise([*items, *again], twice).figures
    estimates = ("gold_preferred", "wrong_gold", "steady")
    for name in (f"{name}_{part}" for name in estimates for part in ("low", "high", "of")):
        assert double[name] == single[name]


def test_a_question_asked_twice_does_not_make_little_gold_enough():
    items, answers = world(FEWEST - 1, spread=6.0)
    again = [msgspec.structs.replace(item, id=f"{item.id}b") for item in items]
    twice = answers | {f"{name}b": rows for name, rows in answers.items()}
    for given in (twice, None):
        advice = advise([*items, *again], given)
        assert advice.objective == "distill"
        assert f"only {FEWEST - 1} of {FEWEST - 1} questions" in advice.reasons[0]


# --- nothing is said that was not estimated ---------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_every_share_and_state_of_a_reason_has_its_figure(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([2, 4]))
    items, answers = world(
        int(rng.choice([100, 250, 1000])),
        n=n,
        wrong=float(rng.choice([0, 0.1, 0.3, (n - 1) / n])),
        spread=float(rng.choice([0.5, 2, 5])),
        bias=float(rng.choice([0, 2])),
        mass=float(rng.choice([0.3, 1])),
        seed=seed,
    )
    advice = advise(items, answers)
    figures, text = advice.figures, " ".join(advice.reasons)
    known = {f"{value:.1%}" for value in figures.values()} | {f"{CLEAN:.0%}"}
    assert set(re.findall(r"\d[\d.]*%", text)) <= known
    assert ("First fix" in text) == (figures["mass"] < 0.5)
    assert ("little consistency" in text) == (figures["steady_low"] > 0.95)
    if advice.objective == "sft":
        assert figures["wrong_gold_high"] < CLEAN
        assert figures["surest_contradicted"] < CLEAN
    if "is wrong at random, unless" in text:
        assert figures["wrong_gold_low"] > 0
        assert figures["wrong_gold_high"] >= CLEAN
    if "is unknown: even" in text:
        assert figures["wrong_gold_high"] < CLEAN
        assert figures["surest_contradicted"] >= CLEAN
    elif "is unknown" in text:
        assert figures["wrong_gold_low"] == 0
        assert figures["wrong_gold_high"] >= CLEAN
    if advice.objective != "distill":
        assert "This holds if gold is about the judge's later task" in text
        questions, share = figures["gold_preferred_of"], figures["gold_preferred"]
        hits = round(questions * share)
        assert binom.sf(hits - 1, questions, figures["gold_preferred_by_lot"]) < 0.01


def test_agreement_and_its_interval_by_hand():
    # 250 items, the average prefers the first; gold names it in 200
    items = items_of([0] * 200 + [1] * 50)
    answers = answers_of(items, [(0.4, 0.0)] * 250)
    figures = advise(items, answers).figures
    interval = binomtest(200, 250).proportion_ci(method="exact")
    assert figures["gold_preferred"] == 0.8
    assert figures["gold_preferred_low"] == pytest.approx(interval.low)
    assert figures["gold_preferred_high"] == pytest.approx(interval.high)
    assert figures["steady"] == 0.0  # a bias of 1 outweighs .4
    assert figures["mass"] == pytest.approx(1.0)


def test_an_average_that_is_never_sure_cleans_no_gold():
    advice = advise(*WORLDS["never sure, wrong in part"][0])
    assert advice.figures["wrong_gold_high"] < CLEAN  # the interval alone would call it clean
    assert advice.figures["surest_contradicted"] >= CLEAN
    assert "160 questions where the model's average is surest" in advice.reasons[0]


def test_the_surest_question_has_the_largest_lead():
    logits = np.zeros((21, 3))
    logits[[4, 9, 17]] = [(5.0, 4.9, 0.0), (0.0, 3.0, 1.0), (1.0, 0.0, 4.0)]  # leads .1, 2 and 3
    logits[0, 0] = 1.5
    gold = [1] * 21
    share = surest_contradicted(logits, gold)  # a tenth of 21, rounded up: items 17, 9 and 0
    assert (share.value, share.n) == (pytest.approx(2 / 3), 3)
    assert surest_contradicted(logits * 7, gold) == share


# --- how much gold is wrong, and the temperature ----------------------------------------------


def test_the_interval_of_a_share_is_its_profile_likelihoods():
    # all items alike and surer than any temperature undoes: a share of 30 of 100 contradicted
    logits = np.array([[6000.0, 0.0]] * 100)
    share = wrong_gold(logits, [0] * 70 + [1] * 30)
    assert share.value == pytest.approx(0.3)

    def likelihood(epsilon):
        return 70 * np.log(1 - epsilon) + 30 * np.log(epsilon)

    for end in (share.low, share.high):  # chi-square of one degree of freedom, 95%
        assert 2 * (likelihood(0.3) - likelihood(end)) == pytest.approx(3.841, abs=0.05)
    assert share.low < 0.3 < share.high


def test_close_items_teach_nothing_about_the_share():
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(400, 2)) * 0.3
    gold = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    share = wrong_gold(logits, gold.tolist())
    assert (share.low, share.high > 0.4) == (0.0, True)


def calibrated_at(temperature, *, size=1600, wrong=0.0, n=2, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(size, n)) * 2
    truth = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    other = (truth + rng.integers(1, n, size)) % n
    gold = np.where(rng.random(size) < wrong, other, truth)
    return logits * temperature, gold.tolist()


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("temperature", [0.03, 0.3, 1.0, 30.0])
def test_the_share_does_not_depend_on_how_sure_the_average_is(temperature, n):
    right = wrong_gold(*calibrated_at(temperature, n=n))
    assert (right.low, right.high < CLEAN) == (0.0, True)
    wrong = wrong_gold(*calibrated_at(temperature, n=n, wrong=0.2))
    assert 0.1 < wrong.low < 0.2 < wrong.high < 0.3


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_a_temperature_moves_towards_the_right_one_only(temperature):
    chosen = shared_temperature(*calibrated_at(temperature))
    nearer, further = sorted((chosen, temperature), key=lambda tau: abs(np.log(tau)))
    assert (nearer, further) == (chosen, temperature)
    assert abs(np.log(chosen)) > 0.5 * abs(np.log(temperature))


def test_a_temperature_stays_where_gold_and_average_conflict():
    # right at .5: gold taken as right asks for a flatter average, taken as wrong for a sharper one
    assert shared_temperature(*calibrated_at(0.6, wrong=0.35)) == 1.0
    assert shared_temperature(*calibrated_at(1.0)) == 1.0


def test_few_items_leave_the_temperature_alone():
    logits, gold = calibrated_at(0.3, size=ENOUGH_GOLD, n=4)
    items = items_of(gold, 4)
    answers = answers_of(items, logits * 1.0)
    assert own_temperature(items, answers) < 1.0
    assert own_temperature(items[1:], answers) == 1.0


def test_gold_is_compared_once_per_question_of_one_answer():
    choices = [0, 1] * (ENOUGH_GOLD // 2)
    pairs, fours = items_of(choices), items_of([2, (0, 1)], 4)
    fours = [msgspec.structs.replace(item, id=f"four-{item.id}") for item in fours]
    again = msgspec.structs.replace(pairs[0], id="again", gold=1)
    untold = msgspec.structs.replace(pairs[3], id="untold", prompt="another", gold="tie")
    items = [*pairs, *fours, again, untold]
    answers = answers_of(items, [np.arange(item.n) + number for number, item in enumerate(items)])
    mean_logits, gold = compared(items, answers)
    assert gold == choices
    assert mean_logits.shape == (ENOUGH_GOLD, 2)
    np.testing.assert_allclose(mean_logits[2], answers["i2"].mean(axis=0))
    assert compared([untold], answers) is None
    assert compared(pairs[1:], answers) is None  # one too few
