"""Speed of local models on the CPU: start, the tiny judge, and what batching and sharing bring.

    python benchmarks/local.py              # about two minutes on one thread
    python benchmarks/local.py --threads 4

Times are CPU seconds of this process (wall seconds for the start, which is a process of its own),
so they hold on a busy machine. The larger model has random weights: speed does not depend on them.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unswayed.backends import Backend, BackendSettings, open_backend
from unswayed.backends.local_passes import Batch, LabelScorer, plan
from unswayed.calls import Query, Request, Response
from unswayed.items import ItemSet
from unswayed.presentation import Ask, Presentation, presentations
from unswayed.prompts import PromptSettings, render
from unswayed.tiny.items import judge_items, mcq_items

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM

CAP, CPU_CAP = 8192, 2048
VOCABULARY = 8192
LABELS = ((5,), (6,))
PAIR = tuple(
    dict.fromkeys(
        shown
        for protocol in ("coupled", "label", "order")
        for shown in presentations("swap", 2, protocol=protocol)
    )
)


def start() -> None:
    """A process of its own, from nothing to the first answer of the tiny judge."""
    code = (
        "import asyncio, time; t = time.perf_counter()\n"
        "import sys; sys.path.insert(0, 'benchmarks')\n"
        "from local import answer_all, queries_of\n"
        "from unswayed.backends import open_backend\n"
        "from unswayed.tiny.items import judge_items\n"
        "backend = open_backend('tiny/judge'); light = time.perf_counter() - t\n"
        "import torch; torch_s = time.perf_counter() - t - light\n"
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
        "both = time.perf_counter() - t - light\n"
        "asyncio.run(answer_all(backend, queries_of(backend, judge_items(1), ())))\n"
        "print(f'{light:.2f} {torch_s:.2f} {both - torch_s:.2f} '"
        "f'{time.perf_counter() - t - light - both:.2f}')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    light, torch_s, transformers_s, load_s = done.stdout.split()[-4:]
    print("start of the tiny judge, wall seconds in a fresh process")
    print(f"  unswayed {light}  torch {torch_s}  transformers {transformers_s}  load {load_s}\n")


def queries_of(backend: Backend, items: ItemSet, shown: Sequence[Presentation]) -> Iterator[Query]:
    settings = backend.own_prompt.settings(PromptSettings())
    for item in items:
        for presentation in shown or presentations("identity", item.n):
            ask = Ask(presentation)
            rendered = render(item, ask, settings)
            request = Request(
                model=backend.model,
                messages=rendered.messages,
                labels=rendered.labels,
                max_tokens=rendered.max_tokens,
                top_logprobs=rendered.top_logprobs,
            )
            yield Query(item, ask, request)


async def answer_all(backend: Backend, queries: Iterator[Query]) -> int:
    count = 0
    async for _, response in backend.answer(queries):
        assert isinstance(response, Response)
        count += 1
    return count


def tiny(settings: BackendSettings) -> None:
    backend = open_backend("tiny/judge", settings)
    asyncio.run(answer_all(backend, queries_of(backend, judge_items(10), PAIR)))
    print("the tiny judge, prompts rendered and answered")
    for items, shown in ((judge_items(), PAIR), (mcq_items(), presentations("full", 4))):
        begin = time.process_time()
        count = asyncio.run(answer_all(backend, queries_of(backend, items, shown)))
        spent = time.process_time() - begin
        print(f"  {items.name:10s} {len(items):4d} x {len(shown):2d}  "
              f"{spent:5.2f} CPU-s  {count / spent:6.0f} answers/s")  # fmt: skip
    asyncio.run(backend.close())
    print()


class Work(NamedTuple):
    """Prompts of some items: a question, then the candidates in every order."""

    name: str
    question: int
    candidate: int
    orders: Sequence[tuple[int, ...]]
    items: int

    def prompts(self, chance: random.Random) -> tuple[list[list[int]], list[int]]:
        def text(mean: int) -> list[int]:
            length = chance.randint(mean // 2, mean * 3 // 2)
            return [chance.randrange(3, VOCABULARY) for _ in range(length)]

        prompts, groups = [], []
        for item in range(self.items):
            question = text(self.question)
            candidates = [text(self.candidate) for _ in self.orders[0]]
            for order in self.orders:
                shown = itertools.chain.from_iterable(candidates[c] for c in order)
                prompts.append([*question, *shown, 1, 2, 1])
                groups.append(item)
        return prompts, groups


FULL = tuple(itertools.permutations(range(4)))
CYCLIC = ((0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2))
SWAP = ((0, 1), (1, 0))
WORKS = (
    Work("4 options, 24 orders", 200, 15, FULL, 3),
    Work("4 options, 24 orders, long question", 500, 15, FULL, 2),
    Work("4 options, 4 orders", 200, 15, CYCLIC, 12),
    Work("pairs of 250 tokens, 2 orders", 300, 250, SWAP, 10),
    Work("short pairs, 2 orders", 60, 20, SWAP, 60),
)


def llama(width: int, layers: int) -> LlamaForCausalLM:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        num_key_value_heads=width // 64,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config).eval()


def batching(width: int, layers: int) -> None:
    scorer = LabelScorer(llama(width, layers), pad=0)
    print(f"label probabilities, Llama of width {width} with {layers} layers: CPU-s by batching")
    print(f"  {'':38s} one by one   as given     sorted    smaller     shared   largest difference")
    for work in WORKS:
        prompts, groups = work.prompts(random.Random(0))
        ways: dict[str, Callable[[], Iterator[Batch]]] = {
            "one by one": lambda p=prompts: (Batch([row], 0) for row in range(len(p))),
            "as given": lambda p=prompts: as_given(p),
            "sorted": lambda p=prompts, g=groups: planned(p, g, CAP, shares=False),
            "smaller": lambda p=prompts, g=groups: planned(p, g, CPU_CAP, shares=False),
            "shared": lambda p=prompts, g=groups: planned(p, g, CPU_CAP, shares=True),
        }
        times, found = [], []
        for batches in ways.values():
            begin = time.process_time()
            found.append(score_all(scorer, prompts, batches()))
            times.append(time.process_time() - begin)
        gap = max(float(np.abs(one - found[0]).max()) for one in found[1:])
        row = "  ".join(f"{spent:9.2f}" for spent in times)
        print(f"  {work.name:38s} {row}   {gap:.1e}")


def planned(
    prompts: Sequence[list[int]], groups: Sequence[int], cap: int, *, shares: bool
) -> Iterator[Batch]:
    return plan(prompts, groups, cap=CAP, cap_apart=cap, pads=True, shares=shares)


def as_given(prompts: Sequence[list[int]]) -> Iterator[Batch]:
    """Batches in the order given: padding is wasted on short prompts."""
    rows: list[int] = []
    longest = 0
    for row, prompt in enumerate(prompts):
        longest = max(longest, len(prompt))
        if rows and (len(rows) + 1) * longest > CAP:
            yield Batch(rows, 0)
            rows, longest = [], len(prompt)
        rows.append(row)
    yield Batch(rows, 0)


def score_all(
    scorer: LabelScorer, prompts: Sequence[list[int]], batches: Iterator[Batch]
) -> np.ndarray:
    found = np.zeros((len(prompts), 2))
    for rows, shared in batches:
        scored = scorer.score([prompts[row] for row in rows], [LABELS] * len(rows), shared=shared)
        found[rows] = scored
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    given = parser.parse_args()
    start()
    import torch

    torch.set_num_threads(given.threads)
    tiny(BackendSettings(device="cpu", threads=given.threads))
    batching(given.width, given.layers)


if __name__ == "__main__":
    main()
