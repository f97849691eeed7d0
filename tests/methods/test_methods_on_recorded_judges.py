"""Methods on recorded judges: a GPT-4 judge with label logprobs, one order per item."""

from __future__ import annotations

import gzip
import json
import math
import warnings

import numpy as np
import pytest

import needs
from unswayed.methods.batch import Batch
from unswayed.methods.estimation import MethodWarning
from unswayed.methods.sets import canonical_ask
from unswayed.methods.single_call import Direct
from unswayed.model.decisions import Decision, DecisionTable
from unswayed.model.items import Item

pytestmark = needs.recorded
RECORDED = needs.DATA / "alpaca_eval" / "weighted_gpt4_turbo_vicuna-7b.jsonl.gz"
EXPECTED = needs.DATA / "expected" / "alpaca_eval_logprob_judge.json"


@pytest.fixture(scope="module")
def recorded() -> tuple[list[Item], list[Decision]]:
    """Items in the order shown: "m" labels the first output, "M" the second."""
    items, decisions = [], []
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            row = json.loads(line)
            logs = row["first_token_logprobs"] or {}
            item = Item(id=f"a{number}", prompt=row["instruction"], candidates=("first", "second"))
            items.append(item)
            probs = None
            if "m" in logs or "M" in logs:
                floor = min(logs.values())  # a label outside the returned top-k
                mass = [math.exp(logs.get(label, floor)) for label in ("m", "M")]
                probs = (mass[0] / sum(mass), mass[1] / sum(mass))
            decisions.append(
                Decision(
                    item_id=item.id,
                    order=(0, 1),
                    labels=("m", "M"),
                    label_set=("m", "M"),
                    choice=None if probs is None else int(probs[1] >= probs[0]),
                    probs=probs,
                )
            )
    return items, decisions


def test_direct_reproduces_the_recorded_position_rate(
    recorded: tuple[list[Item], list[Decision]],
) -> None:
    expected = json.loads(EXPECTED.read_text())["models"]["vicuna-7b"]
    items, decisions = recorded
    table = DecisionTable.of(items, decisions, asks=[canonical_ask(2)])
    verdicts = Direct().decide_table(table)
    parsed = verdicts.choices >= 0
    assert parsed.sum() == expected["n_with_logprobs"]
    assert (verdicts.choices[parsed] == 0).mean() == pytest.approx(expected["first_position_rate"])


def test_batch_calibration_moves_a_recorded_threshold(
    recorded: tuple[list[Item], list[Decision]],
) -> None:
    # the order was drawn at random, so gold is spread evenly over the positions and batch applies
    items, decisions = recorded
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        fitted = Batch().fit(items, decisions)
    table = DecisionTable.of(items, decisions, asks=[canonical_ask(2)])
    raw, corrected = Direct().decide_table(table), fitted.decide_table(table)
    changed = (raw.choices != corrected.choices).sum()
    assert 0 < changed < 40  # a confident judge: few answers are near the threshold
    known = corrected.choices >= 0
    share = (corrected.choices[known] == 0).mean()
    assert abs(share - 0.5) < abs((raw.choices[known] == 0).mean() - 0.5) + 0.03
    assert np.array_equal(known, raw.choices >= 0)
