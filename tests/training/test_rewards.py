"""The pure core against hand-computed numbers, a plain-Python oracle and its invariances."""

import json
from pathlib import Path

import numpy as np
import plain_pa_grpo as plain
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from unswayed.base.errors import ShapeError, UsageError
from unswayed.training import rewards
from unswayed.training.reward_settings import ADVANTAGES, REWARDS, RewardSettings
from unswayed.training.rewards import SampleKey, Samples
from unswayed.training.rewards.score import standardise
from unswayed.training.scoring import Features, as_bits, score_rows

TRAINING = Path(__file__).parent


def prompt_advantage(total, *, epsilon=1e-6, delta=1e-6, ddof=1):
    return standardise(np.asarray(total), epsilon, delta, ddof)[0]


def group_advantage(total, **numbers):
    return prompt_advantage(np.ravel(total), **numbers).reshape(np.shape(total))


GOLDEN = json.loads((TRAINING / "golden.json").read_text())
CASES = GOLDEN["cases"]


def samples_of(case):
    return Samples(
        choices=np.array(case["choices"]),
        right=rewards.right_mask(case["gold"], case["n"]),
        well_formed=np.array(case["well_formed"]),
        reasoning_chars=np.array(case["reasoning_chars"]),
    )


def settings_of(case):
    given_settings = dict(case["settings"])
    band = given_settings.get("length_band")
    return RewardSettings(**{**given_settings, "length_band": tuple(band) if band else None})


# --- the worked example of PA-GRPO's equations ------------------------------------------------
# P=2, N=2, gold 1, z=[[1,1],[0,1]], format + length worth .4 to every sample.
# Pairs: first samples 1 vs 0 disagree -> -1, second 1 vs 1 agree -> +1.
# r = [[1+.4-1, 1+.4+1], [-1+.4-1, 1+.4+1]] = [[.4, 2.4], [-1.6, 2.4]], mean .9,
# squares .25, 2.25, 6.25, 2.25 = 11; sd sqrt(11/4) = 1.658 (ddof 0), sqrt(11/3) = 1.915 (ddof 1).
WORKED = np.array([[0.4, 2.4], [-1.6, 2.4]])


def test_worked_example_with_sample_standard_deviation():
    expected = [[-0.261, 0.783], [-1.306, 0.783]]
    np.testing.assert_allclose(group_advantage(WORKED), expected, atol=5e-4)


def test_worked_example_with_population_standard_deviation():
    expected = [[-0.302, 0.905], [-1.508, 0.905]]
    np.testing.assert_allclose(group_advantage(WORKED, ddof=0), expected, atol=5e-4)


@pytest.mark.parametrize(("ddof", "size"), [(0, 1.0), (1, 0.7071)])
def test_worked_example_under_plain_grpo(ddof, size):
    # No r_con: the first presentation's rewards are equal (0), the second's are -.6 and 1.4.
    grpo = prompt_advantage(np.array([[1.4, 1.4], [-0.6, 1.4]]), ddof=ddof)
    np.testing.assert_allclose(grpo, [[0, 0], [-size, size]], atol=5e-5)


def test_the_worked_example_end_to_end():
    band = RewardSettings(length_band=(500, 5000))
    found = rewards.score(
        Samples(
            choices=np.array([[1, 1], [0, 1]]),
            right=rewards.right_mask([1], 2),
            well_formed=np.ones((2, 2), dtype=bool),
            reasoning_chars=np.full((2, 2), 800),
        ),
        band,
    )
    np.testing.assert_allclose(found.total, WORKED)
    np.testing.assert_allclose(found.advantages, group_advantage(WORKED))
    assert found.consistency.tolist() == [[-1, 1], [-1, 1]]
    np.testing.assert_allclose(found.deviation, np.sqrt(11 / 3))


# --- parts of the reward ----------------------------------------------------------------------


def test_accuracy_takes_any_right_candidate_and_no_unparsed_one():
    right = rewards.right_mask([0, 2], 3)
    assert rewards.accuracy_reward([[0, 1], [2, -1]], right).tolist() == [[1, -1], [1, -1]]


def test_two_presentations_are_compared_sample_by_sample():
    # Pairs (0,0) (1,0) (-1,-1) (1,1): two unparsed answers are not equal.
    found = rewards.consistency_reward([[0, 1, -1, 1], [0, 0, -1, 1]], 2)
    assert found.tolist() == [[1, -1, -1, 1]] * 2


def test_many_presentations_compare_with_the_unique_mode():
    # Counts over all ten: candidate 2 six times, 0, 1, 3 once, one unparsed.
    found = rewards.consistency_reward([[2, 2], [2, 0], [2, 3], [-1, 2], [1, 2]], 4)
    assert found.tolist() == [[1, 1], [1, -1], [1, -1], [-1, 1], [-1, 1]]


def test_two_highest_counts_make_nobody_consistent():
    # 0 and 1 three times each, 2 and 3 twice.
    found = rewards.consistency_reward([[0, 0], [1, 1], [0, 1], [2, 3], [3, 2]], 4)
    assert (found == -1).all()


def test_unparsed_answers_never_form_the_mode():
    # Four unparsed, one candidate 3: the mode is 3, though -1 is more frequent.
    found = rewards.consistency_reward([[-1], [-1], [3], [-1], [-1]], 4)
    assert found.ravel().tolist() == [-1, -1, 1, -1, -1]


def test_columnwise_needs_more_than_half_of_the_presentations():
    # Column 0: 2,2,2,-1,1 -> three of five name 2. Column 1: 2,0,3,2,0 -> nobody has three.
    found = rewards.columnwise_reward([[2, 2], [2, 0], [2, 3], [-1, 2], [1, 0]], 4)
    assert found.tolist() == [[1, -1], [1, -1], [1, -1], [-1, -1], [-1, -1]]


def test_the_length_band_is_inclusive_for_parsed_answers():
    z = [[0, 0, 0, 0, -1]]
    found = rewards.length_reward(z, [[499, 500, 5000, 5001, 900]], band=(500, 5000))
    np.testing.assert_allclose(found, [[-0.1, 0.1, 0.1, -0.1, -0.1]])
    np.testing.assert_allclose(rewards.length_reward(z, [[0] * 5]), [[0, 0, 0, 0, -0.1]])


def test_format_needs_a_parsed_answer_of_the_right_form():
    found = rewards.format_reward([[0, 0, -1]], [[True, False, True]])
    np.testing.assert_allclose(found, [[0.3, -0.3, -0.3]])


def test_invariance_reward_by_hand():
    # z = [[0,0],[0,1]], n=2. Sample (0,0): the other presentation names 0 in 1 of 2, the other
    # sample here names 0 in 1 of 1 -> 2(.5-1) = -1. Sample (1,0), candidate 0: elsewhere 2 of 2,
    # here the other names 1 -> 2(1-0) = 2. Sample (1,1), candidate 1: elsewhere 0, here 0 -> 0.
    found = rewards.invariance_reward([[0, 0], [0, 1]], 2)
    np.testing.assert_allclose(found, [[-1, -1], [2, 0]])


def test_the_invariance_reward_of_equal_answers_is_zero():
    assert not rewards.invariance_reward(np.ones((5, 2), int), 4).any()


# --- the standard deviation, the gate, precision ----------------------------------------------


def test_a_group_below_delta_gets_advantage_zero():
    nearly = 1.0 + np.array([[0.0, 1e-7], [0.0, 0.0]])
    assert not group_advantage(nearly).any()
    assert group_advantage(nearly, delta=0.0).any()


def test_rewards_equal_in_decimal_give_zero_in_float32():
    # The same four parts added in two orders differ in the last bit.
    one, other = 1 + 0.1 + 0.3 + 1, 1 + (0.3 + (0.1 + 1))
    block = np.array([[one, other], [one, other]])
    assert not group_advantage(block).any()


def test_one_sample_has_no_sample_standard_deviation():
    with pytest.raises(ShapeError, match="ddof 1 needs 2"):
        prompt_advantage([[1.0], [2.0]])
    assert prompt_advantage([[1.0], [2.0]], ddof=0).tolist() == [[0], [0]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden_fixture(case):
    found = rewards.score(samples_of(case), settings_of(case))
    np.testing.assert_allclose(found.total, case["total"], atol=1e-12)
    np.testing.assert_allclose(found.advantages, case["advantages"], atol=1e-9)


@pytest.mark.parametrize("case", GOLDEN["incomplete"], ids=lambda case: case["name"])
def test_rows_of_incomplete_groups_match_golden_in_any_order(case):
    whole = next(made for made in CASES if made["name"] == case["case"])
    keys, features = rows_of(whole, case["rows"])
    # another item, with another number of candidates and all its samples, changes nothing
    other = [
        SampleKey("other", t, i) for t, row in enumerate(whole["choices"]) for i in range(len(row))
    ]
    mixed = [*other[1:], *keys, *other[:1]]
    fives = [Features(4, 1, 0, 5, 1 << 4)] * len(other)
    shape = len(whole["choices"]), len(whole["choices"][0])
    found = score_rows(mixed, [*fives[1:], *features, *fives[:1]], settings_of(whole), shape)
    own = slice(len(other) - 1, len(mixed) - 1)
    np.testing.assert_allclose(found.total[own], case["total"], atol=1e-12)
    np.testing.assert_allclose(found.advantages[own], case["advantages"], atol=1e-9)
    if len(keys) < len(other):
        with pytest.raises(ShapeError, match="must stay whole"):
            score_rows(keys, features, settings_of(whole), shape, whole=True)
    else:
        scored = score_rows(keys, features, settings_of(whole), shape, whole=True)
        assert (scored.advantages == found.advantages[own]).all()
    with pytest.raises(ShapeError, match="in the batch twice"):
        score_rows([*keys, keys[0]], [*features, features[0]], settings_of(whole), shape)


def rows_of(case, rows):
    """Keys and features of some samples of a golden case."""
    keys = [SampleKey("item", t, i) for t, i in rows]
    features = [
        Features(
            case["choices"][t][i],
            int(case["well_formed"][t][i]),
            case["reasoning_chars"][t][i],
            case["n"],
            as_bits(case["gold"]),
        )
        for t, i in rows
    ]
    return keys, features


def test_golden_fixture_is_what_the_plain_oracle_says():
    assert plain.cases() == CASES
    assert list(plain.incomplete_cases()) == GOLDEN["incomplete"]


# --- invariances ------------------------------------------------------------------------------

some = settings(max_examples=40)
SHAPES = st.sampled_from([(2, 4), (2, 8), (5, 2), (4, 3), (24, 2)])


@st.composite
def blocks(draw):
    presentations, n_samples = draw(SHAPES)
    n = 2 if presentations == 2 else 4
    shape = (presentations, n_samples)
    choices = draw(hnp.arrays(np.int64, shape, elements=st.integers(-1, n - 1)))
    well_formed = draw(hnp.arrays(np.bool_, shape))
    chars = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 6000)))
    gold = draw(st.integers(0, n - 1))
    return Samples(
        choices=choices,
        right=rewards.right_mask([gold], n),
        well_formed=well_formed,
        reasoning_chars=chars,
    )


@st.composite
def reward_settings(draw):
    return RewardSettings(
        consistency=draw(st.sampled_from(list(REWARDS))),
        advantage=draw(st.sampled_from(ADVANTAGES)),
        lam=draw(st.sampled_from([0.0, 0.25, 1.0, 2.0])),
        ddof=draw(st.sampled_from([0, 1])),
        length_band=draw(st.sampled_from([None, (500, 5000)])),
    )


@some
@given(blocks(), st.sampled_from(["none", "con", "columnwise"]), reward_settings())
def test_the_core_agrees_with_the_plain_oracle(block, consistency, drawn):
    chosen = {
        "consistency": consistency,
        "advantage": drawn.advantage,
        "lam": drawn.lam,
        "epsilon": drawn.epsilon,
        "delta": drawn.delta,
        "ddof": drawn.ddof,
        "length_band": drawn.length_band,
    }
    case = {
        "choices": block.choices.tolist(),
        "gold": np.flatnonzero(block.right).tolist(),
        "well_formed": block.well_formed.tolist(),
        "reasoning_chars": block.reasoning_chars.tolist(),
        "settings": chosen,
    }
    total = plain.plain_total(case)
    found = rewards.score(block, RewardSettings(**chosen))
    np.testing.assert_allclose(found.total, total, atol=1e-12)
    np.testing.assert_allclose(found.advantages, plain.plain_advantages(total, chosen), atol=1e-9)


@some
@given(st.lists(blocks(), min_size=2, max_size=4), reward_settings())
def test_a_batch_of_items_gives_the_bits_of_its_items(drawn, chosen):
    same = [block for block in drawn if block.choices.shape == drawn[0].choices.shape]
    fields = ("choices", "right", "well_formed", "reasoning_chars")
    batch = Samples(**{f: np.stack([getattr(block, f) for block in same]) for f in fields})
    together = rewards.score(batch, chosen)
    for index, block in enumerate(same):
        alone = rewards.score(block, chosen)
        assert (together.advantages[index] == alone.advantages).all()
        assert (together.total[index] == alone.total).all()


@some
@given(st.lists(blocks(), min_size=1, max_size=3), reward_settings(), st.randoms())
def test_any_order_of_the_batch_leaves_every_advantage_unchanged(drawn, chosen, shuffler):
    same = [block for block in drawn if block.choices.shape == drawn[0].choices.shape]
    n_presentations, n_samples = same[0].choices.shape
    rows, expected = [], {}
    for number, block in enumerate(same):
        alone = rewards.score(block, chosen).advantages
        for t in range(n_presentations):
            for i in range(n_samples):
                key = SampleKey(f"item{number}", t, i)
                expected[key] = alone[t, i]
                rows.append((key, block, t, i))
    shuffler.shuffle(rows)
    at = rewards.block_rows(
        [row[0] for row in rows], n_presentations=n_presentations, n_samples=n_samples
    )
    flat = {
        f: np.array([getattr(block, f)[t, i] for _, block, t, i in rows])[at]
        for f in ("choices", "well_formed", "reasoning_chars")
    }
    right = np.stack([rows[first][1].right for first in at[:, 0, 0]])
    out = np.empty(len(rows))
    out[at] = rewards.score(Samples(right=right, **flat), chosen).advantages
    assert {row[0]: value for row, value in zip(rows, out, strict=True)} == expected


@some
@given(blocks(), st.permutations(range(4)))
def test_renaming_the_candidates_changes_nothing(block, order):
    n = block.right.shape[-1]
    renamed = np.array([c for c in order if c < n])
    choices = np.where(block.choices >= 0, renamed[np.maximum(block.choices, 0)], -1)
    right = np.empty_like(block.right)
    right[renamed] = block.right
    moved = Samples(
        choices=choices,
        right=right,
        well_formed=block.well_formed,
        reasoning_chars=block.reasoning_chars,
    )
    for consistency in list(REWARDS):
        chosen = RewardSettings(consistency=consistency)
        found, before = rewards.score(moved, chosen), rewards.score(block, chosen)
        np.testing.assert_allclose(found.advantages, before.advantages, atol=1e-12)


@some
@given(blocks(), reward_settings())
def test_lengths_matter_to_the_length_reward_only(block, chosen):
    # Padding or lengthening responses changes nothing where no band is set.
    longer = Samples(
        choices=block.choices,
        right=block.right,
        well_formed=block.well_formed,
        reasoning_chars=block.reasoning_chars + 10_000,
    )
    direct = RewardSettings(
        consistency=chosen.consistency, advantage=chosen.advantage, lam=chosen.lam
    )
    before, after = rewards.score(block, direct), rewards.score(longer, direct)
    assert (before.advantages == after.advantages).all()


def test_lengths_that_mislead_the_authors_code_change_nothing():
    # Rewards +1, +1, -1, -1: their token average over lengths 2, 8, 4, 10 gives
    # .45, 1.34, -.45, -1.34; Eq. 12 gives +-1 (ddof 0) or +-.866 (ddof 1).
    r = np.array([[1.0, 1.0], [-1.0, -1.0]])
    np.testing.assert_allclose(group_advantage(r, ddof=0), [[1, 1], [-1, -1]], atol=2e-6)
    np.testing.assert_allclose(group_advantage(r), [[0.866, 0.866], [-0.866, -0.866]], atol=5e-4)


@given(blocks())
def test_group_advantages_are_standardised_or_zero(block):
    found = rewards.score(block, RewardSettings()).advantages
    assert abs(found.mean()) < 1e-9
    assert not found.any() or abs(found.std(ddof=1) - 1) < 1e-4  # epsilon over a small sd


def test_columnwise_equals_the_paper_for_two_presentations():
    z = np.array([[0, 1, -1, 1], [0, 0, -1, 1]])
    assert (rewards.columnwise_reward(z, 2) == rewards.consistency_reward(z, 2)).all()


def test_the_invariance_reward_is_unbiased():
    # mean over samples of c tends to 2 E[p_other(z) - p_own(z)], exactly: for two presentations
    # with p = (.9, .1) and (.2, .8) it is 2 (p0.p1 - (|p0|^2 + |p1|^2) / 2) = -|p0 - p1|^2 = -.98.
    generator = np.random.default_rng(0)
    p = np.array([0.9, 0.2])
    z = (generator.random((40_000, 2, 2)) > p[None, :, None]).astype(int)
    assert rewards.invariance_reward(z, 2).mean() == pytest.approx(-0.98, abs=0.02)


# --- refusals ---------------------------------------------------------------------------------


def test_an_incomplete_group_is_named():
    keys = [SampleKey("q1", 0, 0), SampleKey("q1", 1, 0), SampleKey("q2", 0, 0)]
    with pytest.raises(ShapeError, match="q2: presentation 1, sample 0 is not in the batch"):
        rewards.block_rows(keys, n_presentations=2, n_samples=1)


def test_a_sample_that_occurs_twice_is_named():
    with pytest.raises(ShapeError, match="q1: presentation 0, sample 0 is in the batch twice"):
        rewards.block_rows([SampleKey("q1", 0, 0)] * 2, n_presentations=1, n_samples=2)


def test_a_choice_beyond_the_candidates_is_refused():
    with pytest.raises(ShapeError, match="with 2 candidates they are 0 to 1"):
        rewards.consistency_reward([[0, 2], [1, 1]], 2)


@pytest.mark.parametrize(
    "bad",
    [
        {"consistency": "modal"},
        {"advantage": "batch"},
        {"ddof": 2},
        {"lam": -1.0},
        {"delta": float("nan")},
        {"length_band": (5000, 500)},
    ],
)
def test_settings_that_mean_nothing_are_refused(bad):
    with pytest.raises(UsageError):
        RewardSettings(**bad)


def test_gold_out_of_range_or_missing_is_refused():
    with pytest.raises(ShapeError, match="out of range"):
        rewards.right_mask([2], 2)
    with pytest.raises(ShapeError, match="no candidate"):
        rewards.right_mask([], 2)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("con", [[-1, 1], [-1, 1]]),
        ("pair", [[-1, 1], [-1, 1]]),
        ("probability-weighted", [[0, 0], [-1, 1]]),
        ("inv", [[-1, -1], [0, 2]]),
        ("mode", [[1, 1], [-1, 1]]),
        ("columnwise", [[-1, 1], [-1, 1]]),
        ("joint", [[-1, 1], [-1, 1]]),
        ("none", [[0, 0], [0, 0]]),
    ],
)
def test_every_reward_of_the_worked_example_by_hand(name, expected):
    # z = [[1, 1], [0, 1]], gold 1
    found = REWARDS.load(name).sampled(np.array([[1, 1], [0, 1]]), np.array([False, True]))
    np.testing.assert_allclose(found, expected)


def test_rewards_of_three_presentations_by_hand():
    # First samples 0 0 1, second 1 unparsed 1; gold 1. Five answers: 0 0 1 1 1.
    z, right = np.array([[0, 1], [0, -1], [1, 1]]), np.array([False, True])
    sampled = {name: REWARDS.load(name).sampled(z, right) for name in REWARDS}
    np.testing.assert_allclose(sampled["pair"], [[0, 0], [0, -1], [-1, 0]])
    np.testing.assert_allclose(sampled["mode"], [[-1, 1], [-1, -1], [1, 1]])
    np.testing.assert_allclose(sampled["joint"], -np.ones((3, 2)))
    # of the four samples of the others: z[0,0] = 0 meets one, z[0,1] = 1 two, z[2,0] = 1 one
    np.testing.assert_allclose(
        sampled["probability-weighted"], [[-0.5, 0], [-0.5, -1], [-0.5, -0.5]]
    )


@given(blocks())
def test_all_pairs_are_the_mean_over_ways_to_pair(block):
    z, right = block.choices, block.right
    if z.shape[0] < 2:
        return
    pair, all_pairs = REWARDS.load("pair").sampled, REWARDS.load("probability-weighted").sampled
    # shifting the samples of one presentation at a time reaches each partner equally often
    shifts = range(z.shape[1])
    for own in range(z.shape[0]):
        drawn = []
        for shift in shifts:
            moved = np.roll(z, shift, axis=1)
            moved[own] = z[own]
            drawn.append(pair(moved, right)[own])
        np.testing.assert_allclose(np.mean(drawn, axis=0), all_pairs(z, right)[own], atol=1e-12)


@pytest.mark.parametrize("name", ["pair", "probability-weighted", "inv"])
def test_a_reward_that_compares_presentations_needs_two(name):
    with pytest.raises(ShapeError, match=f"reward {name} needs at least 2 presentations, got 1"):
        REWARDS.load(name).sampled(np.zeros((1, 3), dtype=np.int64), np.array([True, False]))
