"""A local model's forward passes: which prompts run together, label probabilities.

Prompts are padded on the right: under a causal mask the padding cannot reach
the last real token, so no attention mask is needed and only that token's hidden state goes through
the output layer. The probabilities are over the full vocabulary, so the mass on the labels is exact.
What all prompts of a batch begin with may be read once (2 to 4 times faster for 24 orders of one item).
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

__all__ = [
    "Batch",
    "LabelScorer",
    "by_length",
    "common_length",
    "plan",
]

FloatArray = NDArray[np.float64]
Ids = tuple[tuple[int, ...], ...]
"""Token ids that stand for each label."""

SAVED_TOKENS: Final = 256
"""Sharing costs a second pass; below this many tokens saved it is not worth it."""
SAVED_SHARE: Final = 0.1
"""The same, as a share of all tokens of the group."""

LOGITS_AT_ONCE: Final = 2**25
"""Most logits (rows x vocabulary) held at once: 128 MiB in float32."""

AGREEMENT: Final = 1e-3
"""How closely the direct path must agree with the model's own forward pass, in logits."""


class Batch(NamedTuple):
    """Prompts that run together.

    Attributes:
        rows: Their indices.
        shared: Leading tokens that all of them begin with and that are read once; 0 for none.
    """

    rows: list[int]
    shared: int


def plan(
    prompts: Sequence[list[int]],
    groups: Sequence[Hashable],
    *,
    cap: int,
    cap_apart: int,
    pads: bool,
    shares: bool,
) -> Iterator[Batch]:
    """Every prompt in one batch.

    Args:
        prompts: Token ids.
        groups: Prompts of one group are likely to begin alike (presentations of one item).
        cap: Most padded tokens of a batch (a longer prompt runs alone).
        cap_apart: The same for the batches that share nothing.
        pads: Whether prompts of different lengths may run together.
        shares: Whether a common beginning may be read once.
    """
    alone: list[int] = []
    members: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    for rows in members.values():
        shared = common_length([prompts[row] for row in rows]) if shares and pads else 0
        saved = shared * (len(rows) - 1)
        total = sum(len(prompts[row]) for row in rows)
        if saved < max(SAVED_TOKENS, SAVED_SHARE * total):
            alone += rows
            continue
        for part in by_length([len(prompts[row]) for row in rows], cap=cap):
            yield Batch([rows[index] for index in part], shared if len(part) > 1 else 0)
    for part in by_length([len(prompts[row]) for row in alone], cap=cap_apart, same=not pads):
        yield Batch([alone[index] for index in part], 0)


def by_length(lengths: Sequence[int], *, cap: int, same: bool = False) -> Iterator[list[int]]:
    """Indices in batches of at most `cap` padded tokens (at least one each), longest first.

    Args:
        lengths: Tokens of each prompt.
        cap: Rows x longest row of a batch.
        same: Only equal lengths together.
    """
    batch: list[int] = []
    longest = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        full = (len(batch) + 1) * longest > cap
        if batch and (full or (same and lengths[index] != longest)):
            yield batch
            batch = []
        if not batch:
            longest = lengths[index]
        batch.append(index)
    if batch:
        yield batch


def common_length(prompts: Sequence[list[int]]) -> int:
    """Tokens that all prompts begin with, leaving each at least one of its own."""
    first, last = min(prompts), max(prompts)  # what these two share, all share
    limit = min(map(len, prompts)) - 1
    pairs = enumerate(zip(first, last, strict=False))
    differing = next((place for place, (left, right) in pairs if left != right), limit)
    return max(min(differing, limit), 0)


@dataclass(frozen=True, slots=True)
class _DirectPath:
    """The body and the output layer of a model whose logits are output layer x hidden state."""

    body: torch.nn.Module
    head: torch.nn.Linear


class LabelScorer:
    """Scores prompts with one model.

    Models that do something more to their logits (scaling, soft caps) are noticed by comparing
    with their own forward pass once, and are asked through that, one length at a time.

    Args:
        model: In evaluation mode.
        pad: Any token id; it is never attended to.
    """

    def __init__(self, model: PreTrainedModel, *, pad: int) -> None:
        self._model = model
        self._pad = pad
        self._other = pad - 1 if pad else 1
        self._takes_keep = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._direct = self._direct_path()
        self.shares = self._can_share()

    @property
    def pads(self) -> bool:
        """Whether prompts of different lengths may run together."""
        return self._direct is not None

    def score(
        self, prompts: Sequence[list[int]], labels: Sequence[Ids], *, shared: int = 0
    ) -> list[FloatArray]:
        """Log-probability of every label of every prompt.

        Args:
            prompts: Token ids; of one length, unless `pads`.
            labels: Token ids of the labels of each.
            shared: Leading tokens that all prompts have in common; 0 unless `shares`.

        Returns:
            One array per prompt, shape (labels,).
        """
        import torch

        ids = sorted({token for spellings in set(labels) for ids in spellings for token in ids})
        with torch.inference_mode():
            if self._direct is None:
                rows = self._logits(prompts)
            else:
                rows = self._hidden(self._direct.body, prompts, shared)
            logprobs = self._logprobs(rows, ids)
        summed = {}
        with np.errstate(invalid="ignore"):  # not-a-number stays, for the caller to refuse
            for spellings in set(labels):
                columns = [logprobs[:, np.searchsorted(ids, label)] for label in spellings]
                sums = [np.logaddexp.reduce(column, axis=1) for column in columns]
                summed[spellings] = np.stack(sums, axis=1)
        return [summed[spellings][row] for row, spellings in enumerate(labels)]

    def _tokens(self, prompts: Sequence[list[int]]) -> torch.Tensor:
        import torch

        longest = max(map(len, prompts))
        rows = [prompt + [self._pad] * (longest - len(prompt)) for prompt in prompts]
        return torch.tensor(rows, device=self._model.device)

    def _hidden(
        self, body: torch.nn.Module, prompts: Sequence[list[int]], shared: int
    ) -> torch.Tensor:
        """Hidden state at the last token of each prompt, shape (rows, width)."""
        import torch
        from transformers import DynamicCache

        own = self._tokens([prompt[shared:] for prompt in prompts])
        if shared:
            cache = DynamicCache(config=self._model.config)
            body(input_ids=self._tokens([prompts[0][:shared]]), past_key_values=cache)
            cache.batch_repeat_interleave(len(prompts))
            states = body(input_ids=own, past_key_values=cache).last_hidden_state
        else:
            states = body(input_ids=own, use_cache=False).last_hidden_state
        last = torch.tensor([len(prompt) - shared - 1 for prompt in prompts], device=own.device)
        hidden: torch.Tensor = states[torch.arange(len(prompts), device=own.device), last]
        return hidden

    def _logits(self, prompts: Sequence[list[int]]) -> torch.Tensor:
        """Logits behind prompts of one length from the model's own forward, (rows, vocabulary)."""
        keep = {"logits_to_keep": 1} if self._takes_keep else {}
        out = self._model(input_ids=self._tokens(prompts), use_cache=False, **keep)
        logits: torch.Tensor = out.logits[:, -1]
        return logits

    def _logprobs(self, rows: torch.Tensor, ids: list[int]) -> FloatArray:
        """Log-probability of some tokens, shape (rows, len(ids))."""
        import torch

        direct = self._direct
        width = rows.shape[1] if direct is None else direct.head.out_features
        at_once = max(1, LOGITS_AT_ONCE // width)
        wanted = torch.tensor(ids, device=rows.device)
        parts = []
        for part in torch.split(rows, at_once):
            logits = (part if direct is None else direct.head(part)).float()
            chosen = (
                logits[:, wanted] if direct is None else _exact_logits(direct.head, part, wanted)
            )
            parts.append((chosen - logits.logsumexp(dim=-1, keepdim=True)).double().cpu())
        logprobs: FloatArray = torch.cat(parts).numpy()
        return logprobs

    def _direct_path(self) -> _DirectPath | None:
        """Body and output layer, if together they are the model; None if it does more."""
        import torch

        head: object = self._model.get_output_embeddings()  # type: ignore[no-untyped-call]
        body = self._model.base_model
        if not isinstance(head, torch.nn.Linear) or body is self._model:
            return None
        tokens = torch.tensor([[self._pad, self._other, self._pad]], device=self._model.device)
        with torch.inference_mode():
            own = self._model(input_ids=tokens, use_cache=False).logits.float()
            states = body(input_ids=tokens, use_cache=False).last_hidden_state
            agrees = torch.allclose(head(states).float(), own, rtol=AGREEMENT, atol=AGREEMENT)
        return _DirectPath(body, head) if agrees else None

    def _can_share(self) -> bool:
        """Whether a common beginning read once gives the same: tried once, on the CPU only.

        There it was measured to pay (benchmarks/local.py); accelerators prefer larger batches.
        """
        import torch

        if self._direct is None or self._model.device.type != "cpu":
            return False
        config = self._model.config.get_text_config()
        kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
        if kinds != {"full_attention"} or getattr(config, "sliding_window", None):
            return False
        begin = [self._pad, self._other, self._pad]
        prompts = [[*begin, self._other], [*begin, self._pad, self._other]]
        with torch.inference_mode():
            apart = self._hidden(self._direct.body, prompts, 0)
            together = self._hidden(self._direct.body, prompts, len(begin))
        return torch.allclose(apart, together, rtol=AGREEMENT, atol=AGREEMENT)


def _exact_logits(head: torch.nn.Linear, hidden: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Logits of a few tokens in float32, shape (rows, len(ids)).

    In bfloat16 logits near 20 lie 0.125 apart, so labels would tie exactly and often.
    """
    logits = hidden.float() @ head.weight[ids].float().T
    return logits if head.bias is None else logits + head.bias[ids].float()
