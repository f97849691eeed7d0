"""The three hooks that turn trl's GRPO trainer into one of permutation groups.

`GroupHooks` is mixed into `trl.GRPOTrainer` (see `trl_engine.trainer_class`). It overrides exactly
three methods, each calling `super()`, and copies none of trl's code:

- `_get_train_sampler`: shuffles whole groups and yields each presentation N times.
- `_calculate_rewards`: gathers what every process read, checks that each block of P * N samples is
  one whole group, and computes all rewards and advantages with `unswayed.rewards`.
- `_generate_and_score_completions`: puts this process's slice of the advantages in place.

`num_generations` stays N: with P * N, trl would sample everything from the first presentation
when responses come from a vLLM server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from unswayed.decisions import UNPARSED
from unswayed.errors import ShapeError, UsageError
from unswayed.rewards import (
    BoolArray,
    IntArray,
    Rewards,
    RewardSettings,
    Samples,
    consistency_reward,
    right_mask,
    score,
)
from unswayed.training.data import Groups
from unswayed.training.responses import Reader, completion_text

if TYPE_CHECKING:
    import torch

    _Base: Any  # trl.GRPOTrainer; trl is not typed, and imported only where it is used
else:
    _Base = object

__all__ = ["PARTS", "GroupHooks", "GroupSampler", "GroupScorer", "check_batch", "reward_parts"]

PARTS: Final = ("accuracy", "length", "format", "consistency")
"""The reward's parts, as trl logs them: `rewards/accuracy/mean`, ..."""


class GroupSampler:
    """Rows of a training epoch: whole groups, each presentation N times, each batch repeated.

    A group occupies P * N consecutive places. Groups that do not fill a last batch are left out of
    the epoch, which is a different draw in every epoch. The order depends on seed and epoch alone,
    so a resumed run sees what an uninterrupted one would (trl's own sampler starts over).

    Args:
        n_groups: Groups in the data.
        n_presentations: P.
        n_samples: N.
        groups_per_batch: Groups in one batch of responses.
        repeats: How often trl asks for the same batch.
        shuffle: Whether the groups are shuffled.
        seed: Seed of the shuffle.
    """

    def __init__(
        self,
        *,
        n_groups: int,
        n_presentations: int,
        n_samples: int,
        groups_per_batch: int,
        repeats: int,
        shuffle: bool,
        seed: int,
    ) -> None:
        if n_groups < groups_per_batch:
            raise UsageError(
                f"{n_groups} items do not fill one step of {groups_per_batch} items. "
                "Give more items, or set optimiser.items_per_step lower."
            )
        self.n_groups = n_groups
        self.n_presentations = n_presentations
        self.n_samples = n_samples
        self.groups_per_batch = groups_per_batch
        self.repeats = repeats
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch; the order of the groups follows from it."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        order = np.arange(self.n_groups)
        if self.shuffle:
            order = np.random.default_rng((self.seed, self.epoch)).permutation(self.n_groups)
        for start in range(0, self._used, self.groups_per_batch):
            batch = order[start : start + self.groups_per_batch].tolist()
            for _ in range(self.repeats):
                for group in batch:
                    for presentation in range(self.n_presentations):
                        for _ in range(self.n_samples):
                            yield group * self.n_presentations + presentation

    def __len__(self) -> int:
        return self._used * self.n_presentations * self.n_samples * self.repeats

    @property
    def _used(self) -> int:
        return self.n_groups // self.groups_per_batch * self.groups_per_batch


@dataclass(frozen=True, slots=True)
class GroupScorer:
    """From responses to rewards: everything numeric that the hooks do, without torch.

    Attributes:
        groups: The training data; a row's number in `groups.rows` identifies it everywhere.
        settings: Numbers of reward and advantage.
        n_samples: N.
        read: Reads a response.
        gold: Right candidates of each item, shape (items, n).
    """

    groups: Groups
    settings: RewardSettings
    n_samples: int
    read: Reader
    gold: BoolArray

    @classmethod
    def of(
        cls, groups: Groups, settings: RewardSettings, n_samples: int, read: Reader
    ) -> GroupScorer:
        """Prepare the gold of every item."""
        first_rows = groups.rows[:: groups.n_presentations]
        gold = np.stack([right_mask(row.gold, groups.n_candidates) for row in first_rows])
        return cls(groups, settings, n_samples, read, gold)

    def features(self, rows: Sequence[int], texts: Sequence[str]) -> IntArray:
        """What rewards need of each response: row, candidate, well formed, characters.

        Returns:
            Shape (responses, 4); small integers, so that processes can exchange them exactly.
        """
        found = np.empty((len(rows), 4), dtype=np.int64)
        symbols = self.groups.rows[0].symbols  # the same for every row
        readings = {text: self.read(text, symbols) for text in set(texts)}
        for at, (number, text) in enumerate(zip(rows, texts, strict=True)):
            row, reading = self.groups.rows[number], readings[text]
            candidate = (
                UNPARSED if reading.label is None else row.shown.candidate_of_label(reading.label)
            )
            found[at] = number, candidate, reading.well_formed, reading.reasoning_chars
        return found

    def rewards(self, features: IntArray) -> tuple[Rewards, IntArray]:
        """Rewards of whole groups.

        Args:
            features: Of all processes in their order, shape (G * P * N, 4).

        Returns:
            Rewards of shape (G, P, N), and the choices.

        Raises:
            ShapeError: If a block of P * N responses is not one whole group in order.
        """
        n_presentations = self.groups.n_presentations
        if len(features) % (n_presentations * self.n_samples):
            raise ShapeError(
                f"{len(features)} responses are not whole groups of {n_presentations} "
                f"presentations x {self.n_samples} samples"
            )
        blocks = features.reshape(-1, n_presentations, self.n_samples, 4)
        rows = blocks[..., 0]
        self._check_whole(rows)
        samples = Samples(
            choices=blocks[..., 1],
            right=self.gold[rows[:, 0, 0] // n_presentations],
            well_formed=blocks[..., 2] == 1,
            reasoning_chars=blocks[..., 3],
        )
        return score(samples, self.settings), samples.choices

    def _check_whole(self, rows: IntArray) -> None:
        """Check row numbers of shape (G, P, N): each block shows one item, in order."""
        n_presentations = self.groups.n_presentations
        first = rows[:, :1, :1]
        wanted = first + np.arange(n_presentations)[None, :, None]
        whole = (rows == wanted).all(axis=(1, 2)) & (first[:, 0, 0] % n_presentations == 0)
        if whole.all():
            return
        at = int(np.flatnonzero(~whole)[0])
        item = self.groups.rows[int(rows[at, 0, 0])].item_id
        raise ShapeError(
            f"{item}: its permutation group was split or reordered in the batch; rows "
            f"{rows[at].ravel().tolist()} are not {n_presentations} presentations of one item. "
            "A dataloader or launcher option must have reordered the batch."
        )

    def statistics(self, found: Rewards, choices: IntArray) -> dict[str, float]:
        """Group statistics of one batch, for the log.

        Shares of groups without any advantage, of samples that agree, are right, are unparsed;
        and the mean standard deviation of what samples are compared with.
        """
        agreement = consistency_reward(choices, self.groups.n_candidates)
        return {
            "group/zero_advantage": float((found.advantages == 0).all(axis=(1, 2)).mean()),
            "group/deviation": float(found.deviation.mean()),
            "group/agreement": float((agreement > 0).mean()),
            "group/accuracy": float((found.accuracy > 0).mean()),
            "group/unparsed": float((choices == UNPARSED).mean()),
        }


def check_batch(generation_batch: int, n_rows: int, n_presentations: int, n_samples: int) -> None:
    """Check that batches and data consist of whole groups.

    Raises:
        UsageError: Stating the numbers.
    """
    unit = n_presentations * n_samples
    if generation_batch % unit:
        raise UsageError(
            f"a batch of {generation_batch} responses is not a multiple of P x N = "
            f"{n_presentations} x {n_samples} = {unit}. Change items_per_step, micro_batch or the "
            "number of processes."
        )
    if n_rows % n_presentations:
        raise UsageError(
            f"{n_rows} rows are not a multiple of P = {n_presentations}: a permutation group is "
            "incomplete. Every item needs all its presentations."
        )


def reward_parts() -> list[Callable[..., list[float]]]:
    """One reward function per part, for trl to name and log; `_calculate_rewards` fills them in."""

    def named(name: str) -> Callable[..., list[float]]:
        def part(completions: Sequence[object], **_columns: object) -> list[float]:
            return [0.0] * len(completions)

        part.__name__ = name
        return part

    return [named(name) for name in PARTS]


class GroupHooks(_Base):  # type: ignore[misc]
    """Mixed into `trl.GRPOTrainer` in front of it.

    Args:
        scorer: Data, reward and reader.
        **trainer: Everything `GRPOTrainer` takes, `args` and `train_dataset` among it; the
            dataset has one row per row of the scorer's groups, with its number in column `row`.
    """

    def __init__(self, *, scorer: GroupScorer, **trainer: Any) -> None:
        self.scorer = scorer
        self._group_advantages: np.ndarray[tuple[int], np.dtype[np.float64]] | None = None
        check_batch(
            trainer["args"].generation_batch_size,
            len(trainer["train_dataset"]),
            scorer.groups.n_presentations,
            scorer.n_samples,
        )
        super().__init__(reward_funcs=reward_parts(), **trainer)

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
        )

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

        local = self.scorer.features(
            [example["row"] for example in inputs],
            [completion_text(completion) for completion in completions],
        )
        gathered = self.accelerator.gather(torch.from_numpy(local).to(per_part.device))
        found, choices = self.scorer.rewards(gathered.cpu().numpy())
        parts = np.stack([getattr(found, name).ravel() for name in PARTS], axis=1)
        per_part.copy_(torch.from_numpy(parts))
        self._group_advantages = found.advantages.ravel()
        for name, value in self.scorer.statistics(found, choices).items():
            self._metrics["train"][name].append(value)
        return per_part

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        scored: dict[str, Any] = super()._generate_and_score_completions(inputs)
        if self._group_advantages is None:
            return scored
        import torch

        everyone = self._group_advantages
        start = self.accelerator.process_index * len(inputs)
        own = torch.from_numpy(everyone[start : start + len(inputs)])
        scored["advantages"] = own.to(scored["advantages"])
        logged = self._logs["advantages"]  # the completions table shows what was trained with
        for at, value in enumerate(everyone.tolist(), start=len(logged) - len(everyone)):
            logged[at] = value
        return scored
