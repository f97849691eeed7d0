"""Reward and advantage, with every number of both; the table of rewards. No numpy here."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from unswayed.base.errors import UsageError
from unswayed.base.files import read_whole
from unswayed.base.registry import Registry, did_you_mean, in_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from unswayed.model.items import Item


@dataclass(frozen=True, slots=True)
class Reward:
    """A consistency reward."""

    about: str  # what it pays for, in a sentence
    # from choices of shape (..., P, N) and what is right, shape (..., n), to a value for each sample
    sampled: Callable[[NDArray[np.int64], NDArray[np.bool_]], NDArray[np.float64]]
    # from the probabilities of the candidates, shape (..., P, n), and what is right to the expectation of
    # the reward of a sample that names a candidate, shape (..., P, n), over all other samples; None where
    # there is none to compute
    expected: Callable[[NDArray[np.float64], NDArray[np.bool_]], NDArray[np.float64]] | None = None
    pairs_only: bool = False  # whether `expected` holds for two presentations alone
    unparsed: float = -1.0  # value of an answer that names no candidate

    def expectation(self, p: NDArray[np.float64], right: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return `expected` of p, shape (..., P, n), and `right`, shape (..., n).

        Raises:
            UsageError: If the reward has no expectation for that many presentations.
        """
        presentations = p.shape[-2]
        if self.expected is None or (self.pairs_only and presentations > 2):
            raise UsageError(
                f"this reward has no expectation for {presentations} presentations: {self.about} Use "
                "--reward inv, pair or columnwise (the vote of the released code, exact for any number "
                "of samples), or sample: train rl without --exact."
            )
        return self.expected(p, right)


REWARDS: Registry[Reward] = Registry(
    "reward",
    {
        "columnwise": "unswayed.training.rewards.consistency:COLUMNWISE",
        "con": "unswayed.training.rewards.consistency:CON",
        "inv": "unswayed.training.rewards.consistency:INV",
        "joint": "unswayed.training.rewards.consistency:JOINT",
        "mode": "unswayed.training.rewards.consistency:MODE",
        "none": "unswayed.training.rewards.consistency:NONE",
        "pair": "unswayed.training.rewards.consistency:PAIR",
        "probability-weighted": "unswayed.training.rewards.consistency:PROBABILITY_WEIGHTED",
    },
    like="unswayed.training.reward_settings:Reward",
    files=True,
)

ResponseReward = Callable[["Item", str, int | None], float]
"""Function of an item, the response to it and the candidate that this names (or None): its own reward."""
RESPONSES: Registry[ResponseReward] = Registry("response reward", {}, like="", files=True)

Advantage = Literal["group", "prompt"]
"""What a sample is compared with: its whole permutation group, or its own presentation."""
ADVANTAGES: Final[tuple[Advantage, ...]] = get_args(Advantage)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardSettings:
    """Every number of the reward and of the advantage; the table `reward` of a recipe."""

    # consistency, advantage: name of the consistency reward that is added, and samples that a sample is
    # compared with. None: the objective's own, and PA-GRPO's, con and group, where it has none
    consistency: str | None = None
    advantage: Advantage | None = None
    lam: float = 1.0  # weight of the consistency reward
    epsilon: float = 1e-6  # added to the standard deviation
    delta: float = 1e-6  # a group whose standard deviation is below this gets advantage 0
    ddof: int = 1  # 1 for the sample standard deviation, 0 for the population's
    accuracy_size: float = 1.0  # weight of accuracy, which is +1 or -1
    # format_size, length_size: size of these rewards
    format_size: float = 0.3
    length_size: float = 0.1
    response: str | None = (
        None  # `FILE.py:NAME` of a `ResponseReward`, called once for each response
    )
    response_size: float = 1.0  # its weight
    # shortest and longest rewarded reasoning in characters; None for prompts without reasoning, whose
    # parsed answers get 0
    length_band: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.consistency is not None and self.consistency not in REWARDS:
            raise UsageError(
                f"reward {self.consistency!r} does not exist. "
                f"{did_you_mean(self.consistency, REWARDS)} Name your own reward as FILE.py:NAME."
            )
        if self.response is not None and self.response not in RESPONSES:
            raise UsageError(f"response {self.response!r}: name a function as FILE.py:NAME.")
        if self.advantage is not None and self.advantage not in ADVANTAGES:
            raise UsageError(
                f"advantage {self.advantage!r} does not exist. Known: {', '.join(ADVANTAGES)}."
            )
        if self.ddof not in (0, 1):
            raise UsageError(f"ddof is {self.ddof}; it is 1 (sample) or 0 (population).")
        sizes = "accuracy_size", "format_size", "length_size", "response_size"
        for name in ("lam", "epsilon", "delta", *sizes):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"{name} is {value}; it must be a finite number, 0 or more.")
        if self.length_band is not None and not 0 <= self.length_band[0] <= self.length_band[1]:
            raise UsageError(
                f"length_band is {list(self.length_band)}; it must be [shortest, longest] in characters."
            )

    def record(self) -> dict[str, object]:
        """Return the settings as they are recorded: with the sha256 of every file that holds a reward."""
        places = (name for name in (self.consistency, self.response) if name and in_file(name))
        files = {
            place: hashlib.sha256(read_whole(place.rpartition(":")[0])).hexdigest()
            for place in places
        }
        return {**dataclasses.asdict(self), **({"files": files} if files else {})}
