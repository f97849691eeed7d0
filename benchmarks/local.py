"""Speed of local models on the CPU: start, the tiny judge, and label probabilities over every order.

    python benchmarks/local.py                            # some minutes on one thread
    python benchmarks/local.py --parts orders --rounds 5
    python benchmarks/local.py --parts orders --peer PEER/bin/python

With `--peer`, the Python of an environment that holds lm-evaluation-harness (`pip install lm_eval`, with
the same torch and transformers), its `HFLM.loglikelihood` is asked the same prompts of the same model.
Every way must give the same label log-probabilities, or it stops.

Times are CPU seconds of the process that works (wall seconds for the start), in turn, one round
after the other; what is shown are medians, and of ratios the medians over rounds. The model has random
weights: speed does not depend on them.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from evidence_table import Table, add_write
from local_parts.peer import Peer
from local_parts.works import WORKS, Work, make_model
from unswayed.backends import Backend, BackendSettings, open_backend
from unswayed.backends.huggingface import HuggingFaceBackend
from unswayed.backends.local_jobs import CPU_TOKENS
from unswayed.backends.local_models import LoadedModel
from unswayed.backends.local_plans import plan
from unswayed.model.calls import Query, Request, Response
from unswayed.model.items import ItemSet
from unswayed.model.presentation import Ask, Presentation, presentations
from unswayed.prompts import PromptSettings, render
from unswayed.tiny.items import judge_items, mcq_items

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


def queries_of(
    backend: Backend,
    items: ItemSet,
    shown: Sequence[Presentation],
    given: PromptSettings | None = None,
) -> Iterator[Query]:
    settings = backend.own_prompt.settings(given or PromptSettings())
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


WAYS = ("Unswayed", "one row per prompt", "lm-eval")


@dataclass
class Ours:
    """Our backend, queries to responses, with trees or by rows alone."""

    backend: HuggingFaceBackend
    loaded: LoadedModel
    trees: bool

    def seconds(self, queries: Sequence[Query]) -> float:
        plan = replace(self.loaded.plan, trees=self.trees)
        self.backend._loaded = replace(self.loaded, plan=plan)
        begin = time.process_time()
        count = asyncio.run(answer_all(self.backend, iter(queries)))
        spent = time.process_time() - begin
        assert count == len(queries)
        return spent

    def logprobs(self, queries: Sequence[Query], label_ids: Sequence[int]) -> np.ndarray:
        """Log-probability of some tokens after each prompt, through the same batches."""
        written = self.loaded.plan.reader.writer.write(
            [one.request.messages for one in queries], thinking=False
        )
        prompts = [one.tokens for one in written]
        result = np.zeros((len(prompts), len(label_ids)))
        labels = tuple((token,) for token in label_ids)
        for batch in plan(
            prompts,
            [one.item.id for one in queries],
            costs=self.loaded.plan.costs,
            cap=8192,
            cap_apart=CPU_TOKENS,
            pads=True,
            trees=self.trees,
        ):
            rows = [prompts[row] for row in batch.rows]
            parts = self.loaded.scorer.score(rows, [labels] * len(rows), steps=batch.steps)
            result[batch.rows] = [row for part in parts for row in part]
        return result


def orders(given: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_model(folder, given.width, given.layers)
        settings = BackendSettings(device="cpu", threads=given.threads)
        backend = open_backend(f"hf/{folder}", settings)
        assert isinstance(backend, HuggingFaceBackend)
        asyncio.run(answer_all(backend, queries_of(backend, WORKS[0].item_set(0), ())))
        loaded = backend._load()
        peer = Peer(given.peer, folder, given.threads) if given.peer else None
        print(
            f"label probabilities, Llama of width {given.width} with {given.layers} layers, "
            f"CPU-s, medians of {given.rounds} rounds"
        )
        table = Table(
            (
                "items",
                "prompts",
                "tokens each",
                *(f"{way}, CPU s" for way in WAYS),
                *(f"{way} / {WAYS[0]}" for way in WAYS[1:]),
                "largest difference of a log-probability",
            )
        )
        for work in WORKS:
            table.add(work.name, *measured(work, backend, loaded, peer, given))
        if given.write:
            table.keep("performance", "orders")
        if peer is not None:
            peer.close()
        asyncio.run(backend.close())


def measured(
    work: Work,
    backend: HuggingFaceBackend,
    loaded: LoadedModel,
    peer: Peer | None,
    given: argparse.Namespace,
) -> list[str]:
    shown = presentations("full", work.n)
    queries = list(queries_of(backend, work.item_set(given.share), shown, work.settings()))
    labels = queries[0].request.labels
    ours, plain = Ours(backend, loaded, True), Ours(backend, loaded, False)
    written = loaded.plan.reader.writer.write(
        [one.request.messages for one in queries], thinking=False
    )
    tokens = statistics.mean(len(one.tokens) for one in written)
    ids = [loaded.tokenizer.convert_tokens_to_ids(label) for label in labels]
    expected = plain.logprobs(queries, ids)
    gap = float(np.abs(ours.logprobs(queries, ids) - expected).max())
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(given.rounds):
        times["Unswayed"].append(ours.seconds(queries))
        times["one row per prompt"].append(plain.seconds(queries))
        if peer is not None:
            batch = max(1, round(CPU_TOKENS / tokens))
            spent, answers = peer.scored([one.text for one in written], labels, batch)
            times["lm-eval"].append(spent)
            gap = max(gap, float(np.abs(answers - expected).max()))
    if gap > 1e-4:
        raise SystemExit(f"{work.name}: label log-probabilities differ by {gap:.1e}")

    def middle(values: Sequence[float]) -> str:
        return f"{statistics.median(values):.2f}" if values else "–"

    def ratio(way: str) -> list[float]:
        return [other / own for other, own in zip(times[way], times["Unswayed"], strict=False)]

    return [
        str(len(queries)),
        f"{tokens:,.0f}",
        *(middle(times[way]) for way in WAYS),
        *(middle(ratio(way)) for way in WAYS[1:]),
        f"{gap:.0e}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--parts", nargs="+", default=["start", "tiny", "orders"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the items of each work")
    parser.add_argument("--peer", help="Python of an environment with lm-evaluation-harness")
    add_write(parser, "performance")
    given = parser.parse_args()
    if "start" in given.parts:
        start()
    import torch

    torch.set_num_threads(given.threads)
    if "tiny" in given.parts:
        tiny(BackendSettings(device="cpu", threads=given.threads))
    if "orders" in given.parts:
        orders(given)


if __name__ == "__main__":
    main()
