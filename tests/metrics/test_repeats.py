"""What changes when the same presentation is asked again: pairs by hand, and whole audits."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from metric_builders import M, T, U

import unswayed as us
from unswayed.backends.simulated import simulated_items
from unswayed.metrics.repeats import Repeats, repeats, unequal_pairs
from unswayed.model.decisions import Decision
from unswayed.model.decisions.clusters import Clusters

PAIRS = np.array(
    [
        [[0, 0, 1], [1, 1, 1]],  # within 2 + 0 of 6; across: 0 1 meet 1 1 1: 2 x 3 of 9
        [[T, T, M], [U, U, 0]],  # within: 0 of 1 and 3 of 3; across 6 of 6
        [[0, M, M], [1, M, M]],  # nothing twice
        [[0, 0, 0], [M, M, M]],  # nothing in another order
    ]
)


def made(choices: np.ndarray, clusters: Clusters | None = None) -> Repeats:
    found = repeats([(choices, clusters)], 1.0)
    assert isinstance(found, Repeats)
    return found


def test_unequal_pairs_by_hand() -> None:
    within, across = unequal_pairs(PAIRS)
    np.testing.assert_allclose(within, [2 / 6, 3 / 4, np.nan, 0])
    np.testing.assert_allclose(across, [6 / 9, 1, 1, np.nan])


def test_repeats_are_of_the_items_with_both_kinds_of_pairs() -> None:
    found = made(PAIRS)
    assert found.changed.value == pytest.approx((1 / 3 + 3 / 4) / 2)
    assert found.across.value == pytest.approx(5 / 6)
    assert found.beyond.value == pytest.approx(5 / 6 - 13 / 24)
    assert (found.changed.n, found.beyond.n, found.temperature) == (2, 2, 1.0)


def test_repeats_are_absent_where_nothing_was_asked_twice() -> None:
    assert repeats([(PAIRS[2:], None)], None) is msgspec.UNSET


def test_repeats_of_a_judge_who_only_wavers_show_no_order() -> None:
    draw = np.random.default_rng(1)
    first = draw.uniform(size=(2_000, 1, 1))
    found = made((draw.uniform(size=(2_000, 2, 3)) < first).astype(int))
    # two draws with chance p differ with 2 p (1 - p), 1/3 over uniform p
    assert found.changed.low < 1 / 3 < found.changed.high  # type: ignore[operator]
    assert found.beyond.low < 0 < found.beyond.high  # type: ignore[operator]


def test_repeats_count_duplicates_once() -> None:
    draw = np.random.default_rng(2)
    single = draw.integers(0, 2, (40, 2, 3))
    copied = np.repeat(single, 3, axis=0)
    once, together = made(single), made(copied, Clusters.of(np.repeat(range(40), 3).tolist()))
    for name in ("changed", "across", "beyond"):
        a, b = getattr(once, name), getattr(together, name)
        assert (b.low, b.high) == pytest.approx((a.low, a.high), abs=1e-9)
        assert getattr(made(copied), name).high < b.high


def test_an_audit_with_repeats_keeps_change_without_cause() -> None:
    items = simulated_items(60, 2, seed=1)
    judge = "simulated/judge?slot=0.6&noise=0.3"
    with_repeats = us.audit(judge, items, methods=("direct", "repeat"), resamples=100)
    found = with_repeats.record.metrics.repeats
    assert isinstance(found, Repeats)
    assert (found.temperature, found.changed.n) == (1.0, 60)
    greedy = us.audit(judge, items, methods=("direct", "repeat:samples=1"), resamples=100)
    assert greedy.record.metrics.repeats is msgspec.UNSET  # greedy and sampled: two laws


def recorded(tmp_path: Path, *answers: tuple[int, tuple[int, int], int, int]) -> Repeats:
    """What an audit says of the answers: item, order, sample and choice of each."""
    decisions = [
        Decision(item_id=f"q{item}", order=order, labels=("A", "B"), sample=sample, choice=choice)
        for item, order, sample, choice in answers
    ]
    file = tmp_path / "decisions.jsonl"
    file.write_bytes(msgspec.json.Encoder().encode_lines(decisions))
    found = us.audit(decisions=file, resamples=100).record.metrics.repeats
    assert isinstance(found, Repeats)
    return found


TWICE = [(item, order, k) for item in range(30) for order in ((0, 1), (1, 0)) for k in (0, 1)]


def test_recorded_answers_of_the_same_order_are_repeats(tmp_path: Path) -> None:
    found = recorded(tmp_path, *((*asked, (asked[0] + asked[2]) % 2) for asked in TWICE))
    assert (found.changed.value, found.across.value) == (1.0, 0.5)
    assert found.temperature is msgspec.UNSET


def test_one_more_sample_takes_no_other_from_the_repeats(tmp_path: Path) -> None:
    found = recorded(tmp_path, *((*asked, asked[0] % 2) for asked in (*TWICE, (0, (0, 1), 2))))
    assert (found.changed.n, found.beyond.n) == (30, 30)


def test_first_of_three_recorded_repetitions_counts(tmp_path: Path) -> None:
    asked = [(item, order, k) for item, order, _ in TWICE[::2] for k in range(3)]
    found = recorded(tmp_path, *((*call, int(call[2] > 0)) for call in asked))
    assert found.changed.value == pytest.approx(2 / 3)  # 0 1 1: two of three pairs differ
    assert found.across.value == pytest.approx(4 / 9)
