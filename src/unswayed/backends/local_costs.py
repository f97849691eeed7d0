"""Costs of a local model's forward pass: floating-point operations and memory, from sizes.

With n tokens of B rows, c of them in the cache before, width h, feed-forward width f, q and k the widths
of queries and of keys, L layers and e bytes a number:

    operations   B x n x T                   T = 2 x weights of the layers + MIXING x L
                 + B x pairs x 4 x q x L     pairs = CAUSAL x n^2 without a mask of its own, and
                                             MASKED x n x (c + n) with one
                 + START x L + READ x weights   what a pass costs however short it is
    memory       e x B x n x (12h + 4f + 8q) what a layer holds while it computes
                 + e x B x (c + n) x 2k x L  keys and values, where they are kept
                 + e x B x (c + n) x 2q      the same repeated for every query head
                 + 5 x B x n x (c + n)       who sees whom: 1 byte, and 4 as a number
                 + heads x B x n x (c + n) x (2e + 4)   scores, where attention is `eager`
                 + logits of the rows that are scored, at most LOGITS_AT_ONCE, in e, 4 and 4 bytes

The constants were measured (docs/evidence/performance.md); they decide between forms and never change an answer.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from unswayed.base.errors import UsageError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

LOGITS_AT_ONCE: Final = 2**25
"""Most logits (rows x vocabulary) held at once: 128 MiB in float32."""

CAUSAL: Final = 0.9
MASKED: Final = 1.6
"""Cost of a pair of tokens in attention over that of as many operations in a linear layer."""

MIXING: Final = 1e6
"""Operations that norms, rotations and activations of a token are worth in a layer."""

START: Final = {"cpu": 6e7}
START_ELSEWHERE: Final = 5e10
"""Operations that starting a layer is worth: 0.5 ms of a CPU core; 0.1 ms of an accelerator."""

READ: Final = {"cpu": 70.0}
READ_ELSEWHERE: Final = 360.0
"""Operations that reading a weight from memory is worth. Figures of accelerators are not measured:
they follow from 5e14 operations and 3e12 bytes a second."""

FREE_SHARE: Final = 0.5
"""Share of the free memory that passes take where no budget is given."""


@dataclass(frozen=True, slots=True)
class PassCosts:
    """Costs of one model's forward passes, and the memory that they may take."""

    token: float  # operations of a token outside attention
    pair: float  # operations of a query and a key in all layers
    call: float  # operations that starting a pass is worth
    hidden: int  # bytes of a token in the layer that computes
    cached: int  # bytes of a token's keys and values in all layers
    repeated: int  # bytes of a token's keys and values in one layer, for every query head
    scores: int  # bytes of a pair of tokens in one layer; 0 where attention works in tiles
    logits: int  # bytes of a row's logits while it is scored
    budget: float  # bytes that a pass may take beside the weights

    @classmethod
    def of(
        cls, model: PreTrainedModel, *, memory_gb: float | None, device: torch.device
    ) -> PassCosts:
        """Return the costs of a model on a device, from its configuration and the sizes of its weights.

        The weights need not be there (torch's device "meta"). Passes may take `memory_gb` beside
        them, or half of what is free.
        """
        budget = _budget(device, memory_gb)
        config = model.config.get_text_config()
        # tokens that the model knows, and the numbers that stand for each
        rows, columns = map(int, model.get_input_embeddings().weight.shape)  # type: ignore[arg-type]
        width = int(getattr(config, "hidden_size", None) or columns)
        layers = int(getattr(config, "num_hidden_layers", None) or 1)
        heads = int(getattr(config, "num_attention_heads", None) or 1)
        kv_heads = int(getattr(config, "num_key_value_heads", None) or heads)
        head = int(getattr(config, "head_dim", None) or width // heads)
        inner = int(getattr(config, "intermediate_size", None) or 4 * width)
        size, kind = model.dtype.itemsize, device.type
        ends = {id(part) for part in (model.get_input_embeddings(), model.get_output_embeddings())}  # type: ignore[no-untyped-call]
        weights = sum(
            weight.numel()
            for part in model.modules()
            if id(part) not in ends
            for weight in part.parameters(recurse=False)
        )
        tiled = getattr(config, "_attn_implementation", None) not in (None, "eager")
        return cls(
            token=2.0 * weights + MIXING * layers,
            pair=4.0 * heads * head * layers,
            call=START.get(kind, START_ELSEWHERE) * layers
            + READ.get(kind, READ_ELSEWHERE) * weights,
            hidden=size * (12 * width + 4 * inner + 8 * heads * head),
            cached=size * 2 * kv_heads * head * layers,
            repeated=size * 2 * heads * head,
            scores=0 if tiled else heads * (2 * size + 4),
            logits=rows * (size + 8),
            budget=budget,
        )

    def work(self, tokens: int, kept: int = 0, *, masked: bool = False, rows: int = 1) -> float:
        """Operations of one pass; its arguments are those of `memory`."""
        pairs = MASKED * tokens * (kept + tokens) if masked else CAUSAL * tokens**2
        return rows * (tokens * self.token + pairs * self.pair) + self.call

    def memory(
        self,
        tokens: int,
        kept: int = 0,
        *,
        masked: bool = False,
        rows: int = 1,
        caches: bool = False,
        scored: int = 0,
        held: int = 0,
    ) -> float:
        """Most bytes of one pass at a time, over `rows` rows of `tokens` tokens with `kept` before them.

        Tokens that are kept are in the cache. `masked` says that who sees whom is given, as in a tree,
        `caches` that keys and values are stored; `scored` rows go through the output layer at the end,
        and the keys and values of `held` tokens stay in memory beside it.
        """
        seen = kept + tokens
        pairs = rows * tokens * seen
        logits = min(scored * self.logits, LOGITS_AT_ONCE * 12)
        passes = rows * (tokens * self.hidden + seen * self.repeated) + pairs * self.scores
        if masked:
            passes += 5 * pairs
        if caches:
            passes += rows * seen * self.cached
        return max(passes, logits) + held * self.cached


def _budget(device: torch.device, given_gb: float | None) -> float:
    free = _free(device)
    if given_gb is None:
        return FREE_SHARE * free
    if given_gb * 1e9 > free:
        raise UsageError(
            f"memory_gb={given_gb:g} is more than the {free / 1e9:.1f} GB that are free on "
            f"{device}. Give less, or leave it out to use half of the free memory."
        )
    return given_gb * 1e9


def _free(device: torch.device) -> float:
    import torch

    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    lines = _lines(Path("/proc/meminfo"))
    available = [float(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    free = [float(pages), *(1024 * kilobytes for kilobytes in available)]
    group = Path("/sys/fs/cgroup")
    limit, used = _lines(group / "memory.max"), _lines(group / "memory.current")
    if limit and used and limit[0].isdigit():
        free.append(float(limit[0]) - float(used[0]))
    return max(0.0, min(free))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
