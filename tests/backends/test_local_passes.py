"""Trees against rows, on tiny random models of every family that is named."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from unswayed.backends import local_plans
from unswayed.backends.local_costs import PassCosts
from unswayed.backends.local_jobs import FloatArray
from unswayed.backends.local_passes import LabelScorer
from unswayed.backends.local_plans import PromptBatch, Step, plan
from unswayed.backends.local_trees import shared_lengths

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

VOCABULARY = 200
LABELS = ((5,), (6, 7))
EXACT = 1e-4
"""Most that a label's log-probability may differ from plain scoring, in float32."""

SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "initializer_range": 0.3, "max_position_embeddings": 512,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
GROUPED = {**SIZES, "num_key_value_heads": 2}
GPT2 = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3}

TREES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", GROUPED),
    "qwen2": ("Qwen2", GROUPED),
    "qwen3": ("Qwen3", {**GROUPED, "head_dim": 8}),
    "mistral": ("Mistral", {**GROUPED, "sliding_window": None}),
    "gemma": ("Gemma", {**GROUPED, "head_dim": 8}),
    "gpt-neox": ("GPTNeoX", SIZES),
    "phi": ("Phi", SIZES),
    "phi3": ("Phi3", GROUPED),
}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "mistral with a window": ("Mistral", {**GROUPED, "sliding_window": 8}),
    "gemma2, soft caps": ("Gemma2", {**GROUPED, "head_dim": 8, "sliding_window": 8}),
    "bloom, no positions": ("Bloom", {**GPT2, "hidden_size": 32}),
    "falcon with alibi": (
        "Falcon",
        {**{name: SIZES[name] for name in ("vocab_size", "hidden_size", "num_hidden_layers",
         "num_attention_heads", "initializer_range")}, "alibi": True},
    ),
}  # fmt: skip


def model_of(family: str, sizes: dict[str, Any], attention: str | None = None) -> Any:
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**sizes)
    classes = transformers.AutoModelForCausalLM
    named = {} if attention is None else {"attn_implementation": attention}
    return classes.from_config(config, **named).float().eval()


def orders(question: int, candidate: int, *, n: int = 4, items: int = 2) -> tuple[Any, list[int]]:
    """Prompts of items in every order, and which item each is of."""
    chance = random.Random(0)
    prompts, groups = [], []
    for item in range(items):
        asked = [chance.randrange(3, VOCABULARY) for _ in range(question + 3 * item)]
        texts = [[chance.randrange(3, VOCABULARY) for _ in range(candidate + k)] for k in range(n)]
        for order in itertools.permutations(range(n)):
            prompts.append([*asked, *itertools.chain.from_iterable(texts[k] for k in order), 1])
            groups.append(item)
    return prompts, groups


def scored(
    scorer: LabelScorer, prompts: Sequence[list[int]], batches: Sequence[PromptBatch]
) -> FloatArray:
    result = np.full((len(prompts), 2), np.nan)
    for batch in batches:
        rows = [prompts[row] for row in batch.rows]
        parts = scorer.score(rows, [LABELS] * len(rows), steps=batch.steps)
        result[batch.rows] = [row for part in parts for row in part]
    return result


def alone(scorer: LabelScorer, prompts: Sequence[list[int]]) -> FloatArray:
    rows = [PromptBatch([row], len(prompts[row]), 0) for row in range(len(prompts))]
    return scored(scorer, prompts, rows)


def planned(
    scorer: LabelScorer, prompts: Sequence[list[int]], groups: Sequence[int], **changed: float
) -> list[PromptBatch]:
    """Batches within 1 GB, some of the model's costs changed."""
    costs = PassCosts.of(scorer.model, memory_gb=None, device=scorer.model.device)
    costs = replace(costs, budget=1e9, **changed)
    can = {"pads": scorer.pads, "trees": scorer.takes_trees}
    return list(plan(prompts, groups, costs=costs, cap=4096, cap_apart=4096, **can))


WAYS: dict[str, dict[str, float]] = {
    "several trees in a pass": {"call": 1e15},
    "walked": {"call": 0.0, "pair": 1e9},
    "as chosen": {},
}


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("family", TREES)
def test_trees_give_the_label_probabilities_of_rows(
    family: str, attention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = LabelScorer(model_of(*TREES[family], attention), pad=0)
    assert scorer.takes_trees
    prompts, groups = orders(30, 5, n=3)
    expected = alone(scorer, prompts)
    assert float(expected.std()) > 0.1, "equal figures would show nothing"
    monkeypatch.setattr(local_plans, "GAIN", 1e9)
    for name, changed in WAYS.items():
        batches = planned(scorer, prompts, groups, **changed)
        assert {batch.form for batch in batches} <= {"trie", "prefix"}
        passes = [len(batch.steps) for batch in batches]
        assert name != "walked" or max(passes) > 5
        assert name != "several trees in a pass" or passes == [1]
        np.testing.assert_allclose(
            scored(scorer, prompts, batches), expected, rtol=0, atol=EXACT, err_msg=name
        )


@pytest.mark.parametrize("family", ROWS)
def test_a_model_that_trees_would_change_is_scored_by_rows(family: str) -> None:
    scorer = LabelScorer(model_of(*ROWS[family]), pad=0)
    assert not scorer.takes_trees
    prompts, groups = orders(40, 5, n=3)
    batches = planned(scorer, prompts, groups)
    assert {batch.form for batch in batches} == {"plain"}
    own = [
        scorer.model(torch.tensor([prompt])).logits[0, -1].detach().double().log_softmax(-1)
        for prompt in prompts
    ]
    expected = [[float(row[5]), float(row[[6, 7]].logsumexp(0))] for row in own]
    np.testing.assert_allclose(scored(scorer, prompts, batches), expected, rtol=0, atol=EXACT)


@pytest.mark.parametrize("ignored", ["position_ids", "attention_mask"])
def test_what_a_body_ignores_is_noticed_at_load(
    ignored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(*TREES["llama"])
    stock = model.base_model.forward

    def forward(input_ids: Any = None, position_ids: Any = None, **rest: Any) -> Any:
        given = {"position_ids": position_ids, **rest, ignored: None}
        return stock(input_ids=input_ids, **given)

    assert LabelScorer(model, pad=0).takes_trees
    monkeypatch.setattr(model.base_model, "forward", forward)
    assert not LabelScorer(model, pad=0).takes_trees


def test_half_precision_takes_trees_within_its_own_rounding() -> None:
    model = model_of(*TREES["llama"]).to(torch.bfloat16)
    scorer = LabelScorer(model, pad=0)
    assert scorer.takes_trees
    prompts, groups = orders(30, 5)
    batches = planned(scorer, prompts, groups)
    assert "trie" in {batch.form for batch in batches}
    gaps = np.abs(scored(scorer, prompts, batches) - alone(scorer, prompts))
    assert float(gaps.max()) < 0.5
    assert float(np.median(gaps)) < 0.05


def test_a_pass_that_returns_to_a_beginning_finds_it_unchanged() -> None:
    scorer = LabelScorer(model_of(*TREES["qwen3"]), pad=0)
    prompts, _ = orders(10, 3, n=3, items=1)
    prompts.sort()
    assert min(shared_lengths(prompts)[1:]) == 10
    steps = [Step(((0, 1),), 0, 10)]
    steps += [Step(((row, row + 1),), 10) for row in range(6)]
    steps.append(Step(((0, 1),), 10))
    batch = PromptBatch([*range(6), 0], 0, 0, tuple(steps))
    rows = [prompts[row] for row in batch.rows]
    (found,) = map(np.array, scorer.score(rows, [LABELS] * 7, steps=batch.steps))
    np.testing.assert_allclose(found, alone(scorer, rows), rtol=0, atol=EXACT)
    np.testing.assert_array_equal(found[0], found[6])
