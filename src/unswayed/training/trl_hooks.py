"""The four hooks that turn trl's GRPO trainer into one of permutation groups.

`GroupHooks` is mixed into `trl.GRPOTrainer` (see `pa_grpo.trainer_class`). It overrides exactly
four methods, each but the second calling `super()`, and copies none of trl's code:

- `_get_train_sampler`: shuffles whole groups and yields each presentation N times.
- `_tokenize_prompts`: the token ids of prompts as an audit of the model would send them; the
  dataset holds them rendered.
- `_calculate_rewards`: gathers what every process read, checks that each block of P * N samples is
  one whole group, and computes all rewards and advantages with `unswayed.training.rewards`.
- `_generate_and_score_completions`: puts this process's slice of the advantages in place.

`num_generations` stays N: with P * N, trl would sample everything from the first presentation
when responses come from a vLLM server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unswayed.training.chats import ChatTokens
from unswayed.training.processes import everyone
from unswayed.training.rewards import weights
from unswayed.training.sampling import GroupSampler
from unswayed.training.scoring import GroupScorer

if TYPE_CHECKING:
    import torch

_Base: Any = object  # trl.GRPOTrainer; trl is not typed, and imported only where it is used


def reward_part(name: str) -> Callable[..., list[float]]:
    """Return the reward function of a part, for trl to name and log; `_calculate_rewards` fills it in."""

    def part(completions: Sequence[object], **_columns: object) -> list[float]:
        return [0.0] * len(completions)

    part.__name__ = name
    return part


class GroupHooks(_Base):  # type: ignore[misc]
    """Mixed into `trl.GRPOTrainer` in front of it.

    The dataset has one row per row of the scorer's groups, with its number in column `row` and its
    chat, rendered, in column `prompt`.
    """

    def __init__(self, *, scorer: GroupScorer, chat: ChatTokens, **trainer: Any) -> None:
        self.scorer = scorer
        self.chat = chat
        self._group_advantages: np.ndarray[tuple[int], np.dtype[np.float64]] | None = None
        super().__init__(reward_funcs=list(map(reward_part, weights(scorer.settings))), **trainer)
        if self.use_vllm and trainer["peft_config"] is not None and not self._dist.is_zero3:
            merge_without_trace(self.model)  # ZeRO-3 throws the merged weights away by itself

    def _get_train_sampler(self, dataset: Any = None) -> GroupSampler:
        stock = super()._get_train_sampler(dataset)
        n_presentations = self.scorer.groups.n_presentations
        return GroupSampler(
            n_groups=len(stock.data_source) // n_presentations,
            n_presentations=n_presentations,
            n_samples=stock.mini_repeat_count,
            groups_per_batch=stock.batch_size // n_presentations,
            repeats=stock.repeat_count,
            shuffle=stock.shuffle,
            seed=stock.seed,
            behind=lambda: int(self.state.epoch or 0),
        )

    def _tokenize_prompts(self, prompts: Any) -> tuple[list[list[int]], None, dict[str, Any]]:
        distinct = list(dict.fromkeys(prompts))  # each is there N times
        ids = dict(zip(distinct, self.chat.writer.encode(distinct), strict=True))
        return [list(ids[prompt]) for prompt in prompts], None, {}

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> torch.Tensor:
        per_part: torch.Tensor = super()._calculate_rewards(
            inputs, prompts, completions, completion_ids_list
        )
        self._group_advantages = None
        if not self.model.training:
            return per_part
        import torch

        rows = [example["row"] for example in inputs]
        own = self.scorer.features(rows, completions)  # texts, as the prompts are
        samples = [sample for part in everyone(own) for sample in part]
        rewards, choices = self.scorer.rewards(samples)
        names = weights(self.scorer.settings)
        parts = np.stack([getattr(rewards, name).ravel() for name in names], axis=1)
        per_part.copy_(torch.from_numpy(parts))
        self._group_advantages = rewards.advantages.ravel()
        for name, value in self.scorer.statistics(rewards, choices).items():
            self._metrics["train"][name].append(value)
        self._metrics["train"]["rollout/shared_prompts"].append(float(self._shares))
        return per_part

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        scored: dict[str, Any] = super()._generate_and_score_completions(inputs)
        if self._group_advantages is None:
            return scored
        import torch

        advantages = self._group_advantages
        start = self.accelerator.process_index * len(inputs)
        own = torch.from_numpy(advantages[start : start + len(inputs)])
        scored["advantages"] = own.to(scored["advantages"])
        logged = self._logs["advantages"]  # the completions table shows what was trained with
        for at, value in enumerate(advantages.tolist(), start=len(logged) - len(advantages)):
            logged[at] = value
        return scored


def merge_without_trace(model: Any) -> None:
    """Make a `PeftModel` restore its base weights, bit for bit, when the adapter is taken out.

    With vLLM rollouts trl merges the adapter into the base before each batch, sends the sum, and
    subtracts the adapter again. In bfloat16 that does not undo the addition: after 1 000 such steps a
    512 x 512 matrix had moved by 2.7% of its norm, a quarter of what its adapter had learned.

    The copy lies beside the weights, on the same device and sharded alike, while the adapter is
    merged: during the transfer to vLLM, when there are no activations.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer

    tuner: Any = model.base_model
    merge, unmerge = tuner.merge_adapter, tuner.unmerge_adapter
    copies: list[tuple[Any, Any]] = []

    def merge_adapter(*arguments: Any, **keywords: Any) -> None:
        layers: Any = (layer for layer in tuner.modules() if isinstance(layer, BaseTunerLayer))
        weights = [weight for layer in layers for weight in layer.get_base_layer().parameters()]
        copies.extend((weight, weight.detach().clone()) for weight in weights)
        merge(*arguments, **keywords)

    def unmerge_adapter() -> None:
        unmerge()
        for weight, copy in copies:
            weight.data.copy_(copy)
        copies.clear()

    tuner.merge_adapter, tuner.unmerge_adapter = merge_adapter, unmerge_adapter
