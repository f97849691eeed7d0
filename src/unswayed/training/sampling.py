"""Choose the rows of a training step: whole permutation groups, in an order that can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unswayed.base.errors import UsageError
from unswayed.training.recipe_parts import Recipe


class Split(NamedTuple):
    """Division of an optimiser step's responses (of PIF, its examples)."""

    micro: int  # of them per process and backward pass
    passes: int  # backward passes per step


@dataclass(kw_only=True, eq=False)
class GroupSampler:
    """Rows of a training epoch: whole groups, each presentation N times, each batch repeated.

    A group occupies P * N consecutive places. Groups that do not fill a last batch are left out of
    the epoch, which is a different draw in every epoch. The order depends on seed and epoch alone,
    so a resumed run sees what an uninterrupted one would (trl's own sampler starts over).
    """

    n_groups: int  # groups in the data
    n_presentations: int = 1  # P
    n_samples: int = 1  # N
    groups_per_batch: int  # groups in one batch of responses
    repeats: int = 1  # how often trl asks for the same batch
    shuffle: bool  # whether the groups are shuffled
    seed: int  # seed of the shuffle
    epoch: int = 0  # the epoch that `__iter__` yields
    # The whole epochs that the run has behind it. Several processes that resume in the middle of an
    # epoch are not told its number: accelerate's samplers do not pass it on.
    behind: Callable[[], int] = lambda: 0
    # tokens of each group: those of a batch come by length, so that a backward pass pads little;
    # None leaves them as drawn
    lengths: Sequence[int] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch; the order of the groups follows from it."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        order = np.arange(self.n_groups)
        if self.shuffle:
            epoch = max(self.epoch, self.behind())
            order = np.random.default_rng((self.seed, epoch)).permutation(self.n_groups)
        for start in range(0, self._used, self.groups_per_batch):
            batch = order[start : start + self.groups_per_batch].tolist()
            if self.lengths is not None:
                batch.sort(key=self.lengths.__getitem__)
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


def check_step(n_groups: int, groups_per_step: int) -> None:
    """Check that the data fill one step."""
    if n_groups < groups_per_step:
        raise UsageError(
            f"{n_groups} items do not fill one step of {groups_per_step} items. "
            "Give more items, or set optimiser.items_per_step or data.held_out lower."
        )


def split_step(recipe: Recipe, n_presentations: int, world: int) -> Split:
    """Divide the responses of a step into equal micro batches over the processes."""
    items, samples = recipe.optimiser.items_per_step, recipe.rollout.samples
    total = items * n_presentations * samples
    micro = min(recipe.run.micro_batch, total // world)
    if micro == 0 or total % (micro * world):
        raise UsageError(
            f"a step of {items} items x P {n_presentations} x N {samples} = {total} responses "
            f"cannot be split into {world} processes x micro batches of "
            f"{recipe.run.micro_batch}. Change run.micro_batch or optimiser.items_per_step."
        )
    return Split(micro, total // (micro * world))
