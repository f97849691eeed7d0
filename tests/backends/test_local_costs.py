"""What passes are predicted to take, against what they take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from local_asking import CPU, ask, chat, logprobs, opened, query
from random_llama import HEADS, INNER, LAYERS, WIDTH

from unswayed.backends import local_costs
from unswayed.backends.huggingface import HuggingFaceBackend
from unswayed.backends.local_costs import MIXING, READ, START, PassCosts
from unswayed.base.errors import UsageError
from unswayed.model.calls import Failure, Response

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def costs(folder: Path) -> PassCosts:
    return replace(opened(folder)._load().plan.costs, budget=1e9)


def test_costs_are_those_of_the_models_sizes(costs: PassCosts) -> None:
    layer = 4 * WIDTH * WIDTH + 3 * WIDTH * INNER + 2 * WIDTH
    weights = LAYERS * layer + WIDTH  # embeddings are looked up, the output layer is counted apart
    assert costs.token == 2 * weights + MIXING * LAYERS
    assert costs.pair == 4 * WIDTH * LAYERS
    assert costs.call == START["cpu"] * LAYERS + READ["cpu"] * weights
    assert costs.cached == 4 * 2 * WIDTH * LAYERS
    assert costs.scores == 0


def test_eager_attention_holds_the_scores_of_all_heads(folder: Path) -> None:
    eager = opened(folder, replace(CPU, attn_implementation="eager"))._load()
    assert eager.model.config._attn_implementation == "eager"
    assert eager.plan.costs.scores == HEADS * 12
    assert eager.scorer.takes_trees


def test_a_pass_costs_what_its_parts_cost(costs: PassCosts) -> None:
    by_hand = PassCosts(
        token=100, pair=1, call=7, hidden=10, cached=3, repeated=2, scores=0, logits=50, budget=900
    )
    assert by_hand.work(4) == 4 * 100 + 0.9 * 16 + 7
    assert by_hand.work(4, 6, masked=True, rows=2) == 2 * (4 * 100 + 1.6 * 40) + 7
    assert by_hand.memory(4) == 4 * 10 + 4 * 2
    assert by_hand.memory(4, 6, masked=True, caches=True, held=6) == 40 + 20 + 200 + 30 + 18
    assert by_hand.memory(1, scored=5) == 250


MEASURE = """
import itertools, json, os, pathlib, random, sys
from dataclasses import replace
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from unswayed.backends.local_costs import PassCosts
from unswayed.backends.local_passes import LabelScorer
from unswayed.backends.local_plans import plan

torch.set_num_threads(1)
config = LlamaConfig(
    vocab_size=300, hidden_size=64, intermediate_size=192, num_hidden_layers=2,
    num_attention_heads=1, num_key_value_heads=1, max_position_embeddings=8192,
)
model = LlamaForCausalLM(config).eval()
chance = random.Random(0)
text = lambda length: [chance.randrange(3, 300) for _ in range(length)]
question, texts = text(2800), [text(400) for _ in range(3)]
prompts = [
    [*question, *itertools.chain.from_iterable(texts[k] for k in order)]
    for order in itertools.permutations(range(3))
]
def peak():  # of this program alone; ru_maxrss begins with the parent's
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])

def measure(asked, budget, trees):
    before = peak()
    scorer = LabelScorer(model, pad=0)
    costs = replace(PassCosts.of(model, memory_gb=None, device=model.device), budget=budget)
    batches = list(plan(
        asked, [0] * len(asked), costs=costs, cap=8192, cap_apart=8192, pads=True,
        trees=trees and scorer.takes_trees,
    ))
    for batch in batches:
        rows = [asked[row] for row in batch.rows]
        list(scorer.score(rows, [((5,), (6,))] * len(rows), steps=batch.steps))
    forms = sorted({batch.form for batch in batches})
    print(json.dumps([peak() - before, budget, forms, len(asked[0])]), flush=True)

for asked, budget, trees in ((prompts, 1.2e8, True), (prompts[:3], 8e7, False)):
    if not (child := os.fork()):  # each begins with the memory of torch alone
        measure(asked, budget, trees)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_orders_of_4000_tokens_stay_within_the_budget() -> None:
    # glibc raises its threshold as blocks are freed and then keeps freed memory: 80 to 190 MB for one pass
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], env=environment, capture_output=True, text=True, check=True
    )
    trees, plain = map(json.loads, done.stdout.splitlines())
    for (peak, budget, forms, length), expected in ((trees, "trie"), (plain, "plain")):
        assert (forms, length) == ([expected], 4000)
        assert 1e7 < peak <= budget


def test_a_prompt_over_the_budget_is_a_failure_that_names_it(folder: Path) -> None:
    backend = opened(folder, replace(CPU, memory_gb=0.002))
    short, long = ask(backend, [query(chat(3)), query(chat(300))])
    assert isinstance(short, Response)
    assert isinstance(long, Failure)
    assert "over the 0.002 GB" in long.message
    assert "memory_gb" in long.message
    (written,) = ask(backend, [query(chat(300), top_logprobs=0)])
    assert isinstance(written, Failure)


def test_a_smaller_budget_divides_and_does_not_change_answers(folder: Path) -> None:
    asked = [query(chat(60, start=start)) for start in range(9)]
    roomy = ask(opened(folder), asked)
    narrow = opened(folder, replace(CPU, memory_gb=0.002))
    for one, other in zip(roomy, ask(narrow, asked), strict=True):
        assert logprobs(one) == pytest.approx(logprobs(other), abs=1e-4)


def test_a_budget_that_is_not_there_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_costs, "_free", lambda device: 2e9)
    with pytest.raises(UsageError, match=r"memory_gb=3 is more than the 2\.0 GB .* free on cpu"):
        ask(opened(folder, replace(CPU, memory_gb=3)), [query(chat(3))])
    backend: HuggingFaceBackend = opened(folder)
    assert backend._load().plan.costs.budget == 1e9
