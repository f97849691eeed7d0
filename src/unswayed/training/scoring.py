"""Turn sampled responses into rewards, in numpy: everything numeric that an engine's hooks do."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from unswayed.base.errors import ShapeError
from unswayed.model.decisions import UNPARSED
from unswayed.training.groups import Groups
from unswayed.training.recipe_parts import Recipe
from unswayed.training.responses import Reader, Reading, reader
from unswayed.training.reward_settings import RewardSettings
from unswayed.training.rewards import (
    BoolArray,
    FloatArray,
    IntArray,
    Rewards,
    Samples,
    consistency_reward,
    right_mask,
    score,
)

PARTS: Final = ("accuracy", "length", "format", "consistency")
"""The reward's parts, as they are logged: `rewards/accuracy/mean`, ..."""


@dataclass(frozen=True, slots=True)
class GroupScorer:
    """Scores the responses to whole permutation groups."""

    groups: Groups  # the training data; a row's number in `groups.rows` identifies it everywhere
    settings: RewardSettings  # numbers of reward and advantage
    n_samples: int  # N
    read: Reader  # reads a response
    numbers: IntArray  # candidates of each item, shape (items,)
    gold: BoolArray  # right candidates of each item, shape (items, largest n)

    @classmethod
    def of(cls, groups: Groups, settings: RewardSettings, recipe: Recipe) -> GroupScorer:
        """Return the scorer of a run, with the gold of every item."""
        read = reader(recipe.prompt, answer_only=groups.answer_only, task=recipe.task)
        rows = groups.first_rows
        numbers = np.array([row.n for row in rows])
        gold = np.zeros((len(rows), groups.numbers[-1]), dtype=np.bool_)
        for at, row in enumerate(rows):
            gold[at, : row.n] = right_mask(row.gold, row.n)
        return cls(groups, settings, recipe.rollout.samples, read, numbers, gold)

    def features(self, rows: Sequence[int], texts: Sequence[str]) -> IntArray:
        """Row, candidate, well formed, characters of each response, shape (responses, 4).

        Small integers, so that processes can exchange them exactly.
        """
        features = np.empty((len(rows), 4), dtype=np.int64)
        readings: dict[tuple[str, tuple[str, ...]], Reading] = {}
        for at, (number, text) in enumerate(zip(rows, texts, strict=True)):
            row = self.groups.rows[number]
            key = text, row.symbols
            if key not in readings:
                readings[key] = self.read(*key)
            reading = readings[key]
            candidate = (
                UNPARSED if reading.label is None else row.shown.candidate_of_label(reading.label)
            )
            features[at] = number, candidate, reading.well_formed, reading.reasoning_chars
        return features

    def rewards(self, features: IntArray) -> tuple[Rewards, IntArray]:
        """Rewards of whole groups, shape (G, P, N), and the choices.

        The features are those of all processes in their order; `ShapeError` if a block of P * N responses
        is not one whole group in order.
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
        items = rows[:, 0, 0] // n_presentations
        parts: dict[str, FloatArray] = {
            field.name: np.empty(rows.shape) for field in dataclasses.fields(Rewards)
        }
        for n in np.unique(self.numbers[items]):  # a reward may depend on how many there are
            here = self.numbers[items] == n
            samples = Samples(
                choices=blocks[here, ..., 1],
                right=self.gold[items[here], :n],
                well_formed=blocks[here, ..., 2] == 1,
                reasoning_chars=blocks[here, ..., 3],
            )
            scored = score(samples, self.settings)
            for name, values in parts.items():
                values[here] = getattr(scored, name)
        return Rewards(**parts), blocks[..., 1]

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
        agreement = consistency_reward(choices, self.groups.numbers[-1])
        return {
            "group/zero_advantage": float((rewards.advantages == 0).all(axis=(1, 2)).mean()),
            "group/deviation": float(rewards.deviation.mean()),
            "group/agreement": float((agreement > 0).mean()),
            "group/accuracy": float((rewards.accuracy > 0).mean()),
            "group/unparsed": float((choices == UNPARSED).mean()),
        }
