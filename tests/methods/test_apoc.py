"""Apoc: every case of the rule, when the key is asked for, and which prompts it leaves out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from simulated_judges import decision

import unswayed as us
from unswayed.backends.simulated import simulated_items
from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.methods.apoc import Apoc, asks_for_an_estimate
from unswayed.methods.names import parse_method, spec_name
from unswayed.model.decisions import MISSING, TIE, UNPARSED, Decision, DecisionTable, choice_of
from unswayed.model.items import Item, Message
from unswayed.model.presentation import X0, X2, Ask

# own and swapped verdict, then the verdict for the key 0, 1, tie (t), unparsed (u), missing (.),
# then the calls that are read where none is missing
CASES = """
    0 0  0 0 0 0 0  2
    0 1  0 1 0 0 .  3
    0 t  0 0 t 0 .  3
    0 u  0 0 0 0 0  2
    1 0  0 1 1 1 .  3
    1 1  1 1 1 1 1  2
    1 t  1 1 t 1 .  3
    1 u  1 1 1 1 1  2
    t 0  0 t t t .  3
    t 1  t 1 t t .  3
    t t  t t t t t  2
    t u  t t t t t  2
    u 0  0 u u u .  3
    u 1  u 1 u u .  3
    u t  u u t u .  3
    u u  u u u u u  2
"""
CODES = {"0": 0, "1": 1, "t": TIE, "u": UNPARSED, ".": MISSING}
KEYS = "01tu."
ROWS = [line.split() for line in CASES.strip().splitlines()]
ESTIMATE = "Roughly how many piano tuners work in Chicago?"


def item(row: int = 0, prompt: str = "Which?", *, permutable: bool = True) -> Item:
    return Item(
        id=f"q{row}",
        prompt=prompt,
        candidates=(f"estimate {row}", f"a ballpark {row}"),
        permutable=permutable,
    )


def table(
    choices: list[list[int]], *, prompt: str = "Which?", permutable: bool = True
) -> DecisionTable:
    asks = Apoc().asks(2)
    return DecisionTable(
        items=tuple(item(row, prompt, permutable=permutable) for row in range(len(choices))),
        asks=asks,
        shown=tuple(ask.presentation for ask in asks),
        label_set=("A", "B"),
        choices=np.array(choices, dtype=np.int16),
    )


def answered(ask: Ask, code: int, about: Item) -> Decision:
    return decision(about.id, ask, choice_of(code))


def test_the_table_names_every_case_once() -> None:
    assert {(own, swapped) for own, swapped, *_ in ROWS} == {(x, y) for x in "01tu" for y in "01tu"}
    assert {len(row) for row in ROWS} == {8}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "".join(row[:2]))
def test_each_case_has_its_verdict_ties_and_calls(row: list[str]) -> None:
    own, swapped, *verdicts, calls = row
    choices = [[CODES[own], CODES[swapped], CODES[key]] for key in KEYS]
    decided = Apoc().decide_table(table(choices))
    assert decided.choices.tolist() == [CODES[verdict] for verdict in verdicts]
    tied = [verdict == "t" for verdict in verdicts]
    assert decided.tied.tolist() == [[tie, tie] for tie in tied]
    assert decided.n_calls.tolist() == [*[int(calls)] * 4, 2]
    alike = int(own == swapped != "u")
    assert decided.consistent.tolist() == [alike] * 5
    # a skipped prompt keeps the verdict of its own order
    skipped = Apoc().decide_table(table(choices, prompt=ESTIMATE))
    assert (skipped.choices.tolist(), skipped.n_calls.tolist()) == ([CODES[own]] * 5, [2] * 5)
    heard = Apoc(skip="never").decide_table(table(choices, prompt=ESTIMATE))
    np.testing.assert_array_equal(heard.choices, decided.choices)
    np.testing.assert_array_equal(heard.n_calls, decided.n_calls)


@pytest.mark.parametrize("missing", [[MISSING, 0, 0], [0, MISSING, 0], [MISSING, UNPARSED, 1]])
def test_verdict_needs_both_orders(missing: list[int]) -> None:
    decided = Apoc().decide_table(table([missing]))
    assert decided.choices.tolist() == [MISSING]
    assert decided.n_calls.tolist() == [1]


def test_confidence_is_the_share_of_the_calls_read() -> None:
    decided = Apoc().decide_table(
        table(
            [[0, 0, MISSING], [0, 1, 1], [0, 1, 0], [0, 1, TIE], [0, UNPARSED, 1], [0, 1, UNPARSED]]
        )
    )
    np.testing.assert_allclose(decided.confidence, [1, 2 / 3, 2 / 3, 1 / 3, 1 / 2, 1 / 3])


def test_the_key_is_asked_in_own_order_under_its_prompt() -> None:
    assert Apoc().asks(2) == (Ask(X0), Ask(X2), Ask(X0, "keyed"))
    assert Apoc().stops_after(2) == (2,)
    with pytest.raises(UsageError, match="2 candidates, got 3"):
        Apoc().asks(3)


@pytest.mark.parametrize(
    ("own", "swapped", "prompt", "keyed"),
    [
        (0, 0, "Which?", False),
        (0, 1, "Which?", True),
        (TIE, 1, "Which?", True),
        (UNPARSED, 1, "Which?", True),
        (1, UNPARSED, "Which?", False),
        (UNPARSED, UNPARSED, "Which?", False),
        (0, 1, ESTIMATE, False),
    ],
)
def test_the_key_is_asked_only_where_it_can_matter(
    own: int, swapped: int, prompt: str, keyed: bool
) -> None:
    method, about = Apoc(), item(prompt=prompt)
    first, second, third = method.asks(2)
    assert method.plan(about) == [first, second]
    seen = [answered(first, own, about)]
    assert method.plan(about, seen) == [first, second]
    seen.append(answered(second, swapped, about))
    assert method.plan(about, seen) == [first, second, *([third] if keyed else [])]
    assert (method.decide(about, seen).choice is None) == (keyed or own == UNPARSED)


def test_an_item_that_keeps_its_order_is_asked_once() -> None:
    fixed = item(permutable=False)
    method = Apoc()
    assert method.plan(fixed) == [Ask(X0)]
    decided = method.decide_table(table([[0, MISSING, MISSING], [0, 1, 1]], permutable=False))
    assert decided.choices.tolist() == [0, 0]
    assert decided.n_calls.tolist() == [1, 1]


@pytest.mark.parametrize(
    "prompt",
    [
        "Estimate the height of the tower.",
        "ESTIMATE the mass of a penguin.",
        "Please give an estimate of the cost.",
        "Obtain an\nestimate, in metres.",
        "What is a ballpark figure for the rent?",
        "Give me a ball-park number.",
        "Approximately how many people live in Lima?",
        "Approximately what share of the sea is ice?",
        "How many roughly are left?",
        "How many jelly beans are, roughly, in the jar?",
        "How much money does it cost approximately?",
        "What is the approximate age of the Earth?",
        "roughly when was it built?",
        "Your best guesstimate, please.",
    ],
)
def test_prompts_that_ask_for_an_estimate(prompt: str) -> None:
    assert asks_for_an_estimate(item(prompt=prompt))


@pytest.mark.parametrize(
    "prompt",
    [
        "Which of these estimators is unbiased?",
        "Do not underestimate him. Who wins?",
        "The fortune was estimated at 700,000 pesos. Who is the speaker?",
        "Which estimation techniques are robust?",
        "The gears raise the speed approximately by 4 times. Find the pitch.",
        "A box weighs roughly 3 kg. Which force lifts it?",
        "How many are there? Answer briefly, not roughly.",
        "The surface is rough. How many grains are large?",
        "Use an approximation algorithm for set cover.",
        "What is the exact value? It was roughly known in 1900.",
        "Where is the park with the ball?",
        "He held her in high esteem. Why?",
        "",
    ],
)
def test_prompts_that_only_come_near(prompt: str) -> None:
    assert not asks_for_an_estimate(item(prompt=prompt))  # nor do the candidates count


def test_of_a_conversation_the_users_last_turn_is_read() -> None:
    first = Message("user", "Estimate the distance.")
    reply = Message("assistant", "My estimate is 4 km.")
    last = Message("user", "And which way is it?")
    for turns, wanted in (
        ((first,), True),
        ((first, reply), True),
        ((first, reply, last), False),
        ((last, reply, first), True),
        ((reply,), False),
        ((), False),
    ):
        about = msgspec.structs.replace(item(), prompt=turns)
        assert asks_for_an_estimate(about) is wanted


def test_an_unknown_name_of_what_to_skip_is_refused() -> None:
    assert spec_name(parse_method("apoc:skip=never")) == "apoc:skip=never"
    with pytest.raises(
        UnknownNameError, match=r"unknown skip 'estimatoin'\. Did you mean 'estimation'"
    ):
        parse_method("apoc:skip=estimatoin")


def test_an_audit_prices_disagreements_and_has_no_dagger() -> None:
    items = simulated_items(60, seed=3)
    judge = "simulated/judge?slot=1.5&label=0"
    found = us.audit(judge, items, methods="vote,apoc", resamples=100)
    apoc, vote = found.metrics["methods"]["apoc"], found.metrics["methods"]["vote"]
    assert vote["consistency"]["by_construction"] is True
    assert apoc["consistency"].get("by_construction", False) is False
    disagreements = 1 - found.metrics["methods"]["direct"]["consistency"]["value"]
    assert 0 < disagreements < 1
    assert apoc["calls_per_item"] == pytest.approx(2 + disagreements)


def test_an_impossible_key_is_skipped_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="apoc: its prompt has words that this judge does not know"
    ):
        us.audit(limit=8, methods="apoc,vote", resamples=100)
    judge = "simulated/judge"
    everything = us.audit(judge, simulated_items(20), methods="all", resamples=100)
    assert everything.metrics["skipped"]["apoc"] == "left out of --methods all unless named"
    with pytest.raises(UsageError, match="apoc: it needs 2 candidates, got 3"):
        us.audit(judge, simulated_items(20, 3), methods="apoc,vote", resamples=100)
    lines = [
        msgspec.json.encode(answered(ask, 0, item(row)))
        for row in range(12)
        for ask in (Ask(X0), Ask(X2))
    ]
    recorded = tmp_path / "decisions.jsonl"
    recorded.write_bytes(b"\n".join(lines))
    read = us.audit(decisions=recorded, methods="vote,apoc", resamples=100)
    assert read.metrics["skipped"]["apoc"] == "no item has all the calls it needs"
    assert "vote" in read.metrics["methods"]
