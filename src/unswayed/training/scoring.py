"""Turn sampled responses into rewards, in numpy: everything numeric that an engine's hooks do."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from unswayed.base.errors import ShapeError, UnswayedError, UsageError, first_line
from unswayed.model.decisions import UNPARSED
from unswayed.model.items import Item, Task
from unswayed.model.presentation import Presentation
from unswayed.training.groups import Groups
from unswayed.training.recipe_parts import PromptTable, Recipe
from unswayed.training.responses import Reader, reader
from unswayed.training.reward_settings import RESPONSES, RewardSettings
from unswayed.training.rewards import (
    IntArray,
    Rewards,
    SampleKey,
    Samples,
    block_rows,
    consistency_reward,
    score,
)

LARGEST: Final = 1e6  # reward of a file; the deviation of a group squares it


class Features(NamedTuple):
    """Features of a response and its item that the reward needs, as plain numbers."""

    candidate: int  # the candidate that the response names, or UNPARSED
    well_formed: int  # 1 if the response has the form that was asked for, else 0
    chars: int  # characters of reasoning
    n: int  # candidates of the item
    gold: int  # the right candidates, as bits
    response: float = math.nan  # value of the response's own reward; not a number without one


@dataclass(frozen=True, slots=True)
class SampleReader:
    """Reads one response, without the others of its group: the part of scoring that workers do."""

    read: Reader  # reads a response
    response: str | None = None  # the response's own reward, `FILE.py:NAME`

    @classmethod
    def of(
        cls, prompt: PromptTable, *, answer_only: bool, task: Task, response: str | None = None
    ) -> SampleReader:
        """Return the reader of the responses to a task's prompt."""
        return cls(reader(prompt, answer_only=answer_only, task=task), response)

    def features(
        self,
        shown: Presentation,
        symbols: Sequence[str],
        gold: Sequence[int],
        text: str,
        item: Item | None = None,
    ) -> Features:
        """Return the features of a response.

        Args:
            shown: Order and labels of the presentation.
            symbols: The answer symbols, in label order.
            gold: The right candidates.
            text: The response.
            item: The item, for the response's own reward.

        Raises:
            UsageError: If that reward raises an exception or is no number of at most 1e6.
        """
        label, well_formed, chars = self.read(text, symbols)
        candidate = UNPARSED if label is None else shown.candidate_of_label(label)
        read = Features(candidate, int(well_formed), chars, shown.n, as_bits(gold))
        if self.response is None or item is None:
            return read
        named = None if label is None else candidate
        return read._replace(response=_own_reward(self.response, item, text, named))


def _own_reward(place: str, item: Item, text: str, candidate: int | None) -> float:
    try:
        given = RESPONSES.load(place)(item, text, candidate)
        value = math.nan if isinstance(given, str) else float(given)
        fault = (
            None if abs(value) <= LARGEST else f"{given!r} is not a number of at most {LARGEST:g}"
        )
    except UnswayedError:
        raise
    except (Exception, SystemExit) as error:  # whatever a function of somebody else raises
        value, fault = math.nan, f"{type(error).__name__}: {first_line(error)}"
    if fault is not None:
        raise UsageError(f"{place}: {fault}, for item {item.id} and the response {text!r:.200}.")
    return value


def as_bits(candidates: Iterable[int]) -> int:
    """Return a set of candidates as the bits of a number."""
    return sum(1 << candidate for candidate in candidates)


def score_rows(
    keys: Sequence[SampleKey],
    features: Sequence[Features],
    settings: RewardSettings,
    shape: tuple[int, int],
    *,
    whole: bool = False,
) -> Rewards:
    """Score the rows of a batch, in any order: the part of scoring that needs a whole group.

    A sample that is missing counts as UNPARSED for the others of its group. An advantage compares the
    rows that exist, and is 0 where these are no more than `ddof`.

    Args:
        keys: Item, presentation and sample of each row.
        features: What `SampleReader.features` read from each row.
        settings: Numbers of reward and advantage.
        shape: P and N.
        whole: Whether a missing sample is an error.

    Returns:
        Parts, totals and advantages of shape (rows,).

    Raises:
        ShapeError: If a key occurs twice or lies outside P x N, or a sample is missing from a `whole` group.
    """
    rows = block_rows(keys, n_presentations=shape[0], n_samples=shape[1], whole=whole)
    candidates, forms, chars, numbers, gold, own = map(list, zip(*features, strict=True))
    if settings.response is not None and np.isnan(own).any():
        raise ShapeError(f"a response has no value of reward.response {settings.response}")
    first = rows.reshape(len(rows), -1).max(axis=1)  # of each item, a row that exists
    sizes = np.array(numbers)[first]
    rewards = Rewards(*np.zeros((len(Rewards._fields), len(keys))))
    for n in np.unique(sizes).tolist():  # a reward may depend on how many there are
        here = rows[sizes == n]
        present = here >= 0
        right = [[bool(gold[at] >> k & 1) for k in range(n)] for at in first[sizes == n]]
        samples = Samples(
            choices=np.where(present, np.array(candidates)[here], UNPARSED),
            right=np.array(right),
            well_formed=np.array(forms)[here] == 1,
            reasoning_chars=np.array(chars)[here],
            response=None if settings.response is None else np.array(own)[here],
        )
        scored = score(samples, settings, present=None if whole else present)
        for values, part in zip(rewards, scored, strict=True):
            values[here[present]] = part[present]
    return rewards


@dataclass(frozen=True, slots=True)
class GroupScorer:
    """Scores the responses to whole permutation groups, in the order of a trainer's batch."""

    groups: Groups  # the training data; a row's number in `groups.rows` identifies it everywhere
    settings: RewardSettings  # numbers of reward and advantage
    n_samples: int  # N
    reader: SampleReader  # reads a response

    @classmethod
    def of(cls, groups: Groups, settings: RewardSettings, recipe: Recipe) -> GroupScorer:
        """Return the scorer of a run."""
        read = SampleReader.of(
            recipe.prompt,
            answer_only=groups.answer_only,
            task=recipe.task,
            response=settings.response,
        )
        return cls(groups, settings, recipe.rollout.samples, read)

    def features(self, rows: Sequence[int], texts: Sequence[str]) -> list[tuple[int, Features]]:
        """Row and features of each response, as processes exchange them."""
        once = dataclasses.replace(self.reader, read=functools.cache(self.reader.read))
        samples = []
        for number, text in zip(rows, texts, strict=True):
            row = self.groups.rows[number]
            item = self.groups.items[number // self.groups.n_presentations]
            samples.append((number, once.features(row.shown, row.symbols, row.gold, text, item)))
        return samples

    def rewards(self, samples: Sequence[tuple[int, Features]]) -> tuple[Rewards, IntArray]:
        """Rewards of whole groups, shape (G, P, N), and the choices.

        The samples are those of all processes in their order; `ShapeError` if a block of P * N responses
        is not one whole group in order.
        """
        shape = self.groups.n_presentations, self.n_samples
        if len(samples) % (shape[0] * shape[1]):
            raise ShapeError(
                f"{len(samples)} responses are not whole groups of {shape[0]} "
                f"presentations x {shape[1]} samples"
            )
        numbers, features = zip(*samples, strict=True)
        self._check_whole(np.array(numbers).reshape(-1, *shape))
        rows = [self.groups.rows[number] for number in numbers]
        keys = [
            SampleKey(row.item_id, row.presentation, at % shape[1]) for at, row in enumerate(rows)
        ]
        scored = score_rows(keys, features, self.settings, shape, whole=True)
        choices = np.array([read.candidate for read in features])
        return Rewards(*(part.reshape(-1, *shape) for part in scored)), choices.reshape(-1, *shape)

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
