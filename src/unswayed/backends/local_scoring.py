"""Next-token label probabilities of many prompts.

Prompts are padded on the right: under a causal mask the padding cannot reach the last real token,
so no attention mask is needed and only that token's hidden state goes through the output layer.
The probabilities are over the full vocabulary, so the mass on the labels is exact. What all
prompts of a batch begin with may be read once (2 to 4 times faster for 24 orders of one item).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

__all__ = ["LabelScorer", "Scored"]

FloatArray = NDArray[np.float64]

LOGITS_AT_ONCE: Final = 2**25
"""Most logits (rows x vocabulary) held at once: 128 MiB in float32."""

AGREEMENT: Final = 1e-3
"""How closely the direct path must agree with the model's own forward pass, in logits."""


class Scored(NamedTuple):
    """One prompt to score.

    Attributes:
        tokens: The prompt.
        label_ids: Token ids that stand for each label.
    """

    tokens: list[int]
    label_ids: tuple[tuple[int, ...], ...]


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

    def score(self, batch: Sequence[Scored], *, shared: int = 0) -> list[FloatArray]:
        """Log-probability of every label of every prompt.

        Args:
            batch: Of one length, unless `pads`.
            shared: Leading tokens that all prompts have in common; 0 unless `shares`.

        Returns:
            One array per prompt, shape (labels,).
        """
        import torch

        prompts = [scored.tokens for scored in batch]
        with torch.inference_mode():
            if self._direct is None:
                rows = self._logits(prompts)
            else:
                rows = self._hidden(self._direct.body, prompts, shared)
            ids = sorted({i for scored in batch for ids in scored.label_ids for i in ids})
            logprobs = self._logprobs(rows, ids)
        column = {token: number for number, token in enumerate(ids)}
        columns = {
            label_ids: [[column[token] for token in label] for label in label_ids]
            for label_ids in {scored.label_ids for scored in batch}
        }
        with np.errstate(invalid="ignore"):  # not-a-number stays, for the caller to refuse
            summed = {
                label_ids: np.stack(
                    [np.logaddexp.reduce(logprobs[:, spellings], axis=1) for spellings in labels],
                    axis=1,
                )
                for label_ids, labels in columns.items()
            }
        return [summed[scored.label_ids][row] for row, scored in enumerate(batch)]

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
        found: FloatArray = torch.cat(parts).numpy()
        return found

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
