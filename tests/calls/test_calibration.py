"""Fitting on unlabelled items: what is asked, what is warned about, what is refused before any call."""

import asyncio

import msgspec
import pytest

from unswayed.backends import open_backend
from unswayed.backends.own_prompts import OwnPrompt
from unswayed.backends.simulated import simulated_items
from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.calls import Caller, RunSettings
from unswayed.calls.calibration import (
    Calibration,
    calibrate,
    check_calibration,
    evidence_of,
    prompts_for,
)
from unswayed.methods.names import parse_method
from unswayed.methods.pride import PriDe
from unswayed.model.decisions import Evidence
from unswayed.model.items import ItemSet, Task
from unswayed.prompts import PromptSettings
from unswayed.store import CallStore, Memory

BIASED = "simulated/judge?slot=1&label=0&content=1&noise=0.1"


def fit(
    method: str,
    items: ItemSet,
    *,
    model: str = BIASED,
    store: CallStore | None = None,
    prompts: PromptSettings | None = None,
) -> Calibration:
    pool = Memory() if store is None else store  # an empty store is falsy
    caller = Caller(open_backend(model), pool, RunSettings(prompts=prompts or PromptSettings()))
    return asyncio.run(calibrate(parse_method(method), items, caller))


@pytest.fixture(scope="module")
def pairs() -> ItemSet:
    return simulated_items(40, 2, seed=3)


def test_gold_makes_no_difference(pairs: ItemSet) -> None:
    blind = ItemSet.of([msgspec.structs.replace(item, gold=None) for item in pairs], name="blind")
    assert fit("pride", pairs).method == fit("pride", blind).method


def test_the_planted_bias_is_what_is_learned() -> None:
    made = fit("pride", simulated_items(60, 2, seed=3))
    assert isinstance(made.method, PriDe)
    prior = made.diagnostics["estimates"]["prior of label A under A B"]
    # Each item's prior is the mean over both orders of P(first), about sigmoid(1) for an item
    # whose answers are worth the same and nearer to 1/2 for others.
    assert 0.55 < prior["value"] < 0.74
    assert prior["low"] < prior["value"] < prior["high"]
    assert made.label_set == ("A", "B")
    assert made.counts.made == 120
    assert not made.warnings


def test_recorded_calls_are_used(pairs: ItemSet) -> None:
    store = Memory()
    first, second = fit("pride", pairs, store=store), fit("pride", pairs, store=store)
    assert (first.counts.made, second.counts.made) == (80, 0)
    assert first.method == second.method


def test_diagnostics_count_what_the_fit_rests_on(pairs: ItemSet) -> None:
    made = fit("pride", pairs, model=f"{BIASED}&unparsed=0.3")
    counted = made.diagnostics
    assert counted["estimation_items"] == 40
    assert counted["decisions"] == 80
    assert 0 < counted["unparsed"] == counted["without_probabilities"] < 80
    assert msgspec.json.decode(msgspec.json.encode(counted)) == counted  # ready for a file


@pytest.mark.parametrize(("n", "warned"), [(19, True), (20, False)])
def test_fewer_than_20_items_are_warned_about(n: int, warned: bool, pairs: ItemSet) -> None:
    few = ItemSet.of(pairs.items[:n], name="few")
    assert any("estimation questions" in line for line in fit("pride", few).warnings) == warned


def test_items_that_may_not_be_permuted_are_not_asked(pairs: ItemSet) -> None:
    fixed = [msgspec.structs.replace(item, permutable=False) for item in pairs.items[:30]]
    made = fit("pride", ItemSet.of([*fixed, *pairs.items[30:]], name="mixed"))
    assert made.counts.made == 20
    assert made.diagnostics["estimation_items"] == 10


@pytest.mark.parametrize("method", ["pride", "additive", "calibraeval", "cell-median"])
def test_a_judge_that_tells_nothing_apart_is_warned_about(method: str, pairs: ItemSet) -> None:
    made = fit(method, pairs, model="simulated/judge?slot=0&label=0&content=0&noise=0")
    assert sum("tie rule" in line for line in made.warnings) == 1


def test_a_group_named_equal_hides_no_ceiling(pairs: ItemSet) -> None:
    grouped = [msgspec.structs.replace(item, group="equal rights") for item in pairs.items[:15]]
    few = ItemSet.of([*grouped, *pairs.items[15:]], name="grouped")
    flat = "simulated/judge?slot=0&label=0&content=0&noise=0"
    made = fit("pride:prior=group", few, model=flat)
    assert any("equal rights (15)" in line for line in made.warnings)
    assert sum("tie rule" in line for line in made.warnings) == 1


def test_a_biased_judge_without_taste_is_not_called_equal(pairs: ItemSet) -> None:
    made = fit("pride", pairs, model="simulated/judge?slot=1&label=0&content=0&noise=0")
    assert not any("tie rule" in line for line in made.warnings)


@pytest.mark.parametrize(
    ("method", "model", "prompt", "said"),
    [
        ("vote", BIASED, "direct", "vote learns nothing"),
        ("pride", "simulated/judge?logprobs=0", "direct", "needs label probabilities"),
        ("pride", BIASED, "reasoning", "needs label probabilities"),
        ("pride", BIASED, "debias-reasoning", "needs label probabilities"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_any_call(
    method: str, model: str, prompt: str, said: str, pairs: ItemSet
) -> None:
    with pytest.raises(UsageError, match=said):
        check_calibration(
            parse_method(method), pairs, open_backend(model), PromptSettings(prompt=prompt)
        )
    store = Memory()
    with pytest.raises(UsageError, match=said):
        fit(method, pairs, model=model, store=store, prompts=PromptSettings(prompt=prompt))
    assert len(store) == 0


def test_a_method_for_two_candidates_refuses_more() -> None:
    four = simulated_items(5, 4, seed=1)
    assert four.task is Task.MCQ
    with pytest.raises(UsageError, match="needs 2 candidates, got 4"):
        check_calibration(parse_method("cell-median"), four, open_backend(BIASED), PromptSettings())


@pytest.mark.parametrize(
    ("prompt", "logprobs", "with_probs"),
    [
        ("direct", True, True),
        ("modified-direct", True, True),
        ("reasoning", True, False),
        ("direct", False, False),
    ],
)
def test_probabilities_follow_from_the_prompt_and_the_model(
    prompt: str, logprobs: bool, with_probs: bool, pairs: ItemSet
) -> None:
    gives = evidence_of(pairs[0], PromptSettings(prompt=prompt), logprobs=logprobs)
    assert Evidence.CHOICE in gives
    assert (Evidence.PROBS in gives) == with_probs


def test_evidence_of_an_unknown_prompt_is_refused(pairs: ItemSet) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'direct'"):
        evidence_of(pairs[0], PromptSettings(prompt="direkt"), logprobs=True)


def test_a_model_with_its_own_sentences_is_asked_in_them() -> None:
    backend = open_backend(BIASED)
    assert prompts_for(backend, PromptSettings()) == PromptSettings(prompt="direct")
    backend.own_prompt = OwnPrompt(template="own.txt", only_template=True)
    assert prompts_for(backend, PromptSettings()).template == "own.txt"
    mine = PromptSettings(template="mine.txt")
    assert prompts_for(backend, mine).template == "mine.txt"
