"""From sampled responses to rewards, in numpy: everything numeric that an engine's hooks do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from unswayed.decisions import UNPARSED
from unswayed.errors import ShapeError
from unswayed.reward_settings import RewardSettings
from unswayed.rewards import (
    BoolArray,
    IntArray,
    Rewards,
    Samples,
    consistency_reward,
    right_mask,
    score,
)
from unswayed.training.data import Groups
from unswayed.training.recipe_parts import Recipe
from unswayed.training.responses import Reader, reader

__all__ = ["PARTS", "GroupScorer"]

PARTS: Final = ("accuracy", "length", "format", "consistency")
"""The reward's parts, as they are logged: `rewards/accuracy/mean`, ..."""


@dataclass(frozen=True, slots=True)
class GroupScorer:
    """Scores the responses to whole permutation groups.

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
    def of(cls, groups: Groups, settings: RewardSettings, recipe: Recipe) -> GroupScorer:
        """The scorer of a run, with the gold of every item."""
        read = reader(recipe.prompt, answer_only=groups.answer_only, task=recipe.task)
        first_rows = groups.rows[:: groups.n_presentations]
        gold = np.stack([right_mask(row.gold, groups.n_candidates) for row in first_rows])
        return cls(groups, settings, recipe.rollout.samples, read, gold)

    def features(self, rows: Sequence[int], texts: Sequence[str]) -> IntArray:
        """What rewards need of each response: row, candidate, well formed, characters.

        Returns:
            Shape (responses, 4); small integers, so that processes can exchange them exactly.
        """
        features = np.empty((len(rows), 4), dtype=np.int64)
        readings = {text: self.read(text, self.groups.symbols) for text in set(texts)}
        for at, (number, text) in enumerate(zip(rows, texts, strict=True)):
            row, reading = self.groups.rows[number], readings[text]
            candidate = (
                UNPARSED if reading.label is None else row.shown.candidate_of_label(reading.label)
            )
            features[at] = number, candidate, reading.well_formed, reading.reasoning_chars
        return features

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

    def statistics(self, rewards: Rewards, choices: IntArray) -> dict[str, float]:
        """Group statistics of one batch, for the log.

        Shares of groups without any advantage, of samples that agree, are right, are unparsed;
        and the mean standard deviation of what samples are compared with.
        """
        agreement = consistency_reward(choices, self.groups.n_candidates)
        return {
            "group/zero_advantage": float((rewards.advantages == 0).all(axis=(1, 2)).mean()),
            "group/deviation": float(rewards.deviation.mean()),
            "group/agreement": float((agreement > 0).mean()),
            "group/accuracy": float((rewards.accuracy > 0).mean()),
            "group/unparsed": float((choices == UNPARSED).mean()),
        }
