"""The program's recommendation against a plain re-implementation of its written rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from naive_audit import MISSING, Answered, Case, answered, average, direct, rotations, vote
from plain_ladder import Ladder
from test_oracle import decisions_of, items_of

from unswayed.auditing.recommendation import Recommendation, recommend
from unswayed.auditing.recorded import audit_decisions
from unswayed.auditing.settings import AuditSettings
from unswayed.metrics.simultaneous import Contrasts
from unswayed.model.decisions.clusters import Clusters

SLACK = 0.06
"""How far critical values move with their draws, in standard errors."""

FURTHER = ("pride", "cell-median", "batch")


def compare(found: Recommendation | None, ladder: Ladder) -> str:
    """The state found; "edge" where it hangs on the draws. Fails where both differ."""
    assert found is not None
    wants = []
    for slack in (-SLACK, 0.0, SLACK):
        ladder.slack = slack
        wants.append(ladder.advice())
    less, want, more = wants
    keys = ("state", "method", "most_accurate")
    if len({tuple(one.get(key) for key in keys) for one in wants}) > 1:
        return "edge"
    assert (found.state, found.method) == (want["state"], want["method"])
    assert (found.items, found.units) == (want["items"], want["units"])
    if want["state"] == "open":
        assert (found.cheapest, found.most_accurate) == (want["cheapest"], want["most_accurate"])
        ends = [max(0, one["needed"]) for one in (less, more)]
        assert ends[0] <= (found.needed or 0) <= ends[1] + 1
    if "gain" in want:
        assert found.gain is not None
        assert found.gain.value == pytest.approx(want["gain"][0], abs=1e-9)
        lows, highs = ([one["gain"][end] for one in wants] for end in (1, 2))
        assert min(lows) - 1e-9 <= (found.gain.low or 0) <= max(lows) + 1e-9
        assert min(highs) - 1e-9 <= (found.gain.high or 0) <= max(highs) + 1e-9
    return str(want["state"])


def drawn_table(rng: np.random.Generator) -> Ladder:
    """Methods that differ from a single call on some items, in questions of one or more items."""
    items = int(rng.choice([15, 60, 200, 400]))
    names = ["direct", str(rng.choice(["average", "vote"]))]
    names += rng.permutation(FURTHER)[: rng.integers(0, 4)].tolist()
    asked = items if rng.random() < 0.5 else int(items / rng.choice([1.2, 2, 4]))
    unit = rng.integers(0, asked, items) if asked < items else np.arange(items)
    single = rng.choice([0, 0.5, 1], items, p=[0.2, 0.3, 0.5])
    every = _moved(single, unit, rng)
    columns = [single, every, *(_moved(every, unit, rng) for _ in names[2:])]
    prices = [(1.0, 1.0), (2.0, 2.0), *((float(rng.choice([1, 1.2, 2])), 1.0) for _ in names[2:])]
    return Ladder(
        np.column_stack(columns), names, prices, unit.tolist(),
        margin=float(rng.choice([0.005, 0.01, 0.03])), alike=names[1] == "vote" and bool(rng.random() < 0.5),
        chance=0.5 if rng.random() < 0.3 else None,
    )  # fmt: skip


def _moved(values: Any, unit: Any, rng: np.random.Generator) -> Any:
    """The values with some questions answered better or worse."""
    share, up = rng.choice([0, 0.02, 0.1, 0.4]), rng.choice([0, 0.3, 0.5, 0.7, 1])
    count = int(unit.max()) + 1
    step = np.where(rng.random(count) < up, 0.5, -0.5) * (rng.random(count) < share)
    return np.clip(values + step[unit], 0, 1)


def test_recommendation_matches_plain_ladder_on_random_values() -> None:
    rng = np.random.default_rng(23)
    seen: Counter[str] = Counter()
    for number in range(60):
        table = drawn_table(rng)
        found = recommend(
            Contrasts(
                table.values, tuple(table.names), seed=number, clusters=Clusters.of(table.units)
            ),
            {name: price for name, (price, _) in zip(table.names, table.prices, strict=True)},
            Recommendation(margin=table.margin),
            chance=table.chance,
            agreed=(0.4, 0.6) if table.alike else None,
        )
        seen[compare(found, table)] += 1
    assert seen["edge"] <= 4, seen
    assert min(seen[state] for state in ("better", "enough", "worse", "open", "none")) >= 2, seen
    assert seen["same"], seen


def drawn_cases(rng: np.random.Generator) -> list[Case]:
    """Recorded calls with a pull of the place, repeated questions, gaps and items without gold."""
    n, copies = int(rng.choice([2, 2, 3])), int(rng.choice([1, 1, 3]))
    probs, ties = bool(rng.random() < 0.5), float(rng.choice([0, 0.15]))
    place, gaps, unread = rng.choice([0, 1, 2.5]), rng.choice([0, 0.05]), rng.choice([0, 0, 0.1])
    noise, certain = rng.choice([0.1, 1]), rng.choice([1, 6])
    cases = []
    for number in range(int(rng.choice([15, 60, 150, 400]))):
        worth = rng.normal(0, 1.5, n)
        texts = tuple(f"answer {c} to question {number // copies}" for c in range(n))
        gold = None if rng.random() < 0.05 else int((certain * worth + rng.gumbel(size=n)).argmax())
        case = Case(f"i{number}", texts, gold, prompt=f"question {number // copies}")
        for order in rotations(n):
            seen = worth + rng.normal(0, noise, n)
            seen[order[0]] += place
            shares = np.exp(seen) / np.exp(seen).sum()
            lot = rng.random()
            choice: Any = int(shares.argmax())
            if lot < unread:
                choice = None
            elif not probs and lot < unread + ties:
                choice = "tie"
            known = tuple(shares.tolist()) if probs and choice is not None else None
            if rng.random() >= gaps or order == rotations(n)[0]:
                case.calls[order, tuple(range(n))] = choice, known
        cases.append(case)
    return cases


def earned(row: Answered) -> float:
    """What a method earns on an item, ties shared; NaN where an answer is missing."""
    right = row.case.right()
    if not right or MISSING in row.verdicts:
        return float("nan")
    shares = [
        len(tied & right) / len(tied) if verdict == "tie" else float(verdict in right)
        for verdict, tied in zip(row.verdicts, row.tied, strict=True)
    ]
    return sum(shares) / len(shares)


def plain(cases: Sequence[Case], margin: float) -> Ladder:
    """The ladder of the naive verdicts."""
    n = cases[0].n
    views = [(order, tuple(range(n))) for order in rotations(n)]
    told = any(probs is not None for case in cases for _, probs in case.calls.values())
    judges = {"direct": direct, "vote": vote, **({"average": average} if told else {})}
    columns = [[earned(row) for row in answered(cases, views, judge)] for judge in judges.values()]
    values = np.array(columns).T
    kept = ~np.isnan(values).any(axis=1)  # what direct lacks, all of them lack
    units = [case.texts for case, is_kept in zip(cases, kept, strict=True) if is_kept]
    prices = [(float(n), float(n)) if name != "direct" else (1.0, 1.0) for name in judges]
    return Ladder(
        values[kept], list(judges), prices, units,
        margin=margin, alike=n == 2 and not told, chance=1 / n,
    )  # fmt: skip


def test_audit_recommends_as_plain_ladder_on_recorded_calls() -> None:
    rng = np.random.default_rng(5)
    seen: Counter[str] = Counter()
    for seed in range(28):
        cases, margin = drawn_cases(rng), float(rng.choice([1, 3]))
        settings = AuditSettings(
            methods=("direct", "vote", "average"), resamples=1, seed=seed, margin=margin
        )
        record = audit_decisions(decisions_of(cases), items_of(cases), settings, command="test")
        seen[compare(record.metrics.recommendation, plain(cases, margin / 100))] += 1
    assert seen["edge"] <= 3, seen
    assert min(seen[state] for state in ("better", "none", "open", "same")) >= 2, seen
