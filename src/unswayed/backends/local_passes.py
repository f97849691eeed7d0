"""A local model's forward passes: label probabilities of prompts that run together.

Rows are padded on the right: under a causal mask the padding cannot reach the last real token, so no
attention mask is needed. Trees bring their own mask and positions. Only the hidden state of each
prompt's last token goes through the output layer. The probabilities are over the full vocabulary,
so the mass on the labels is exact. Which prompts run together, and how: `local_plans`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from unswayed.backends.local_chats import Ids
from unswayed.backends.local_costs import LOGITS_AT_ONCE
from unswayed.backends.local_jobs import FloatArray, label_logprobs
from unswayed.backends.local_plans import Step
from unswayed.backends.local_trees import Tree

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

AGREEMENT: Final = 1e-3
"""How closely the direct path must agree with the model's own forward pass, in logits."""

HANDED_OVER: Final = 256
"""Tokens of a walk after which the prompts read to their ends are handed over: the output layer runs then."""

TREE_AGREEMENT: Final = 1e-4
HALF_AGREEMENT: Final = 5e-2
"""How closely trees must agree with rows when tried at load, in hidden states over their largest
value: in float32, and in the formats of 16 bits, whose own rounding is 4e-3 a step."""


@dataclass(frozen=True, slots=True)
class _DirectPath:
    """The body and the output layer of a model whose logits are output layer x hidden state."""

    body: torch.nn.Module
    head: torch.nn.Linear


class LabelScorer:
    """Scores prompts with one model in evaluation mode; `pad` is any token id, never attended to.

    Models that do something more to their logits (scaling, soft caps) are noticed by comparing
    with their own forward pass once, and are asked through that, one length at a time.
    """

    def __init__(self, model: PreTrainedModel, *, pad: int) -> None:
        self.model = model
        self._pad = pad
        self._other = pad - 1 if pad else 1
        self._takes_keep = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._direct = self._direct_path()
        self.takes_trees = self._takes_trees()

    @property
    def pads(self) -> bool:
        """True if prompts of different lengths may run together."""
        return self._direct is not None

    def score(
        self, prompts: Sequence[list[int]], labels: Sequence[Ids], *, steps: Sequence[Step] = ()
    ) -> Iterator[list[FloatArray]]:
        """Yield the log-probability of every label, an array of shape (labels,) for each of the next prompts.

        Prompts are of one length, unless `pads`; `steps` are the passes that make up a tree.
        """
        import torch

        ids = sorted({token for spellings in set(labels) for ids in spellings for token in ids})
        parts, done = self._rows(prompts, steps), 0
        while done < len(prompts):
            with torch.inference_mode():  # of a thread, so never while this waits
                logprobs = self._logprobs(next(parts), ids)
            own = labels[done : done + len(logprobs)]
            summed = {label: label_logprobs(label, ids, logprobs) for label in set(own)}
            yield [summed[label][row] for row, label in enumerate(own)]
            done += len(own)

    def _rows(self, prompts: Sequence[list[int]], steps: Sequence[Step]) -> Iterator[torch.Tensor]:
        """Yield what `_logprobs` takes, for all prompts in order."""
        if self._direct is None:
            yield self._logits(prompts)
        elif steps:
            yield from self._walked(self._direct.body, prompts, steps)
        else:
            yield self._hidden(self._direct.body, prompts)

    def _tokens(self, prompts: Sequence[list[int]]) -> torch.Tensor:
        import torch

        longest = max(map(len, prompts))
        rows = [prompt + [self._pad] * (longest - len(prompt)) for prompt in prompts]
        return torch.tensor(rows, device=self.model.device)

    def _hidden(self, body: torch.nn.Module, prompts: Sequence[list[int]]) -> torch.Tensor:
        """Hidden state at the last token of each prompt, shape (rows, width)."""
        import torch

        tokens = self._tokens(prompts)
        states = body(input_ids=tokens, use_cache=False).last_hidden_state
        last = torch.tensor([len(prompt) - 1 for prompt in prompts], device=states.device)
        hidden: torch.Tensor = states[torch.arange(len(prompts), device=states.device), last]
        return hidden

    def _walked(
        self, body: torch.nn.Module, prompts: Sequence[list[int]], steps: Sequence[Step]
    ) -> Iterator[torch.Tensor]:
        """Yield the same through trees: `prompts` are those of a `PromptBatch`, in its order."""
        import torch
        from transformers import DynamicCache

        rows: list[torch.Tensor] = []
        read = 0
        trunks: list[_Trunk] = []
        cache: Any = None
        for step in steps:
            while trunks and trunks[-1].tokens > step.kept:
                trunks.pop()
            if step.kept:
                trunks[-1].put_back(cache)
            else:
                cache = DynamicCache(config=self.model.config) if step.trunk else None
            trees = [
                Tree.of([prompt[: step.trunk or None] for prompt in prompts[begin:end]], step.kept)
                for begin, end in step.trees
            ]
            inputs = self._inputs(trees)
            states = body(
                **inputs, past_key_values=cache, use_cache=cache is not None
            ).last_hidden_state
            if step.trunk:
                trunks.append(_Trunk.of(cache, step.trunk))
                continue
            for row, tree in enumerate(trees):
                rows.append(states[row, torch.from_numpy(tree.last).to(states.device)])
                read += len(tree.ids)
            if read >= HANDED_OVER or step is steps[-1]:
                yield torch.cat(rows)
                rows, read = [], 0

    def _inputs(self, trees: Sequence[Tree]) -> dict[str, torch.Tensor]:
        """Build the body's arguments for a pass over trees; a chain of its own needs no mask."""
        import torch

        device, kept = self.model.device, trees[0].kept
        longest = max(len(tree.ids) for tree in trees)
        ids = np.full((len(trees), longest), self._pad)
        positions = np.full((len(trees), longest), kept)
        for row, tree in enumerate(trees):
            ids[row, : len(tree.ids)] = tree.ids
            positions[row, : len(tree.ids)] = tree.positions
        inputs = {"input_ids": torch.from_numpy(ids).to(device)}
        if len(trees) == 1 and trees[0].is_chain and not kept:
            return inputs
        dtype = self.model.dtype
        mask = torch.zeros(len(trees), 1, longest, kept + longest, dtype=dtype, device=device)
        hidden = torch.finfo(dtype).min
        for row, tree in enumerate(trees):
            # padding sees everything: no row without anything to see
            nodes = len(tree.ids)
            unseen = torch.from_numpy(~tree.sees()).to(device)
            mask[row, 0, :nodes, : kept + nodes].masked_fill_(unseen, hidden)
            mask[row, 0, :nodes, kept + nodes :] = hidden
        inputs["attention_mask"] = mask
        inputs["position_ids"] = torch.from_numpy(positions).to(device)
        return inputs

    def _logits(self, prompts: Sequence[list[int]]) -> torch.Tensor:
        """Logits behind prompts of one length from the model's own forward, (rows, vocabulary)."""
        keep = {"logits_to_keep": 1} if self._takes_keep else {}
        out = self.model(input_ids=self._tokens(prompts), use_cache=False, **keep)
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
        return torch.cat(parts).numpy()

    def _direct_path(self) -> _DirectPath | None:
        """Body and output layer, if together they are the model; None if it does more."""
        import torch

        head: object = self.model.get_output_embeddings()  # type: ignore[no-untyped-call]
        body = self.model.base_model
        if not isinstance(head, torch.nn.Linear) or body is self.model:
            return None
        tokens = torch.tensor([[self._pad, self._other, self._pad]], device=self.model.device)
        with torch.inference_mode():
            own = self.model(input_ids=tokens, use_cache=False).logits.float()
            states = body(input_ids=tokens, use_cache=False).last_hidden_state
            agrees = torch.allclose(head(states).float(), own, rtol=AGREEMENT, atol=AGREEMENT)
        return _DirectPath(body, head) if agrees else None

    def _takes_trees(self) -> bool:
        """Return True if trees give what rows give: tried once, on a small tree, whole and walked.

        Left out without a trial: kernels that take no mask, layers that keep a window or a state
        in place of all keys and values, bodies that take no positions of tokens.
        """
        import torch

        if self._direct is None or not attends_to_all(self.model):
            return False
        trunk = [self._pad, self._other] * 3
        ends = ([self._other, self._pad], [self._other, self._other, self._pad], [self._pad])
        prompts = sorted([*trunk, *end] for end in ends)
        two = sorted([*trunk[:3], *end] for end in ends)
        whole = (Step(((0, 3), (3, 6))),)
        walk = (
            Step(((0, 1),), 0, 4),
            Step(((0, 1),), 4),
            Step(((1, 2),), 4, 6),
            Step(((1, 3),), 6),
        )
        try:
            with torch.inference_mode():
                body = self._direct.body
                apart = self._hidden(body, [*prompts, *two])
                (together,) = self._walked(body, [*prompts, *two], whole)
                (walked,) = self._walked(body, prompts, walk)
        except (RuntimeError, TypeError, ValueError, LookupError, AttributeError):
            return False  # a body that takes no mask of this kind says so in its own way
        bound = TREE_AGREEMENT if self.model.dtype == torch.float32 else HALF_AGREEMENT
        largest = float(apart.abs().max())
        gaps = (together - apart, walked - apart[:3])
        return all(float(gap.abs().max()) <= bound * largest for gap in gaps)


def attends_to_all(model: PreTrainedModel) -> bool:
    """Return True if all tokens before one can be seen, and named by a mask: what trees need first."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    if model.config.get_text_config()._attn_implementation not in ("sdpa", "eager"):
        return False
    layers = DynamicCache(config=model.config).layers
    takes = inspect.signature(model.base_model.forward).parameters
    return all(type(layer) is DynamicLayer for layer in layers) and "position_ids" in takes


@dataclass(frozen=True, slots=True)
class _Trunk:
    """Keys and values of a beginning, as they were when it had been read."""

    tokens: int  # how many it is
    layers: list[tuple[torch.Tensor, torch.Tensor]]  # keys and values of each layer

    @classmethod
    def of(cls, cache: Any, tokens: int) -> _Trunk:
        """Return the present content of a cache; later passes replace its tensors and leave these as they are."""
        return cls(tokens, [(layer.keys, layer.values) for layer in cache.layers])

    def put_back(self, cache: Any) -> None:
        """Make a cache hold this beginning alone."""
        for layer, (keys, values) in zip(cache.layers, self.layers, strict=True):
            layer.keys, layer.values = keys, values


def _exact_logits(head: torch.nn.Linear, hidden: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Logits of a few tokens in float32, shape (rows, len(ids)).

    In bfloat16 logits near 20 lie 0.125 apart, so labels would tie exactly and often.
    """
    logits = hidden.float() @ head.weight[ids].float().T
    return logits if head.bias is None else logits + head.bias[ids].float()
