"""Protocols of objectives (what is optimised) and engines (what runs it)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from unswayed.training.chats import ChatTokens
from unswayed.training.groups import Groups
from unswayed.training.memory import Pass
from unswayed.training.plan import Plan
from unswayed.training.policy_loss import PolicyLoss
from unswayed.training.processes import Sharding
from unswayed.training.recipe_parts import Layouts, Recipe
from unswayed.training.reward_settings import Advantage, RewardSettings
from unswayed.training.run_folder import RunFolder
from unswayed.training.sampling import Split

Report = Callable[[Mapping[str, float]], None]
"""Called with every log line: `step`, `steps`, and every metric of the step."""


class Objective(Protocol):
    """Objective of training. Implementations are small frozen dataclasses; `table.py` names one each.

    A subclass inherits what is most frequent: gold, and neither responses nor a reward.
    """

    @property
    def sampled(self) -> bool:
        """True if responses are sampled; else they are given, or all of them are computed."""
        return False

    @property
    def needs_gold(self) -> bool:
        """True if an item without gold teaches nothing."""
        return True

    @property
    def layouts(self) -> Layouts:
        """Part that moves with a presentation where the recipe leaves it open."""
        return "coupled"

    @property
    def uses(self) -> tuple[str, ...]:
        """Fields of a recipe's table `target` that it reads; the command refuses to set the others."""
        return ()

    @property
    def card_text(self) -> str:
        """Name of the method with its source, for the model card."""
        ...

    def settings(
        self, recipe: Recipe, *, consistency: str | None, advantage: Advantage | None
    ) -> RewardSettings | None:
        """Return the reward, or None for an objective without one.

        Args:
            recipe: Its table `reward`.
            consistency: `--reward`, which overrides the recipe; refused after None.
            advantage: `--advantage`; the same holds for it.

        Raises:
            UsageError: If the objective is asked to be another one.
        """
        return None

    def check(self, recipe: Recipe, groups: Groups, settings: RewardSettings | None) -> None:
        """Check what the objective asks of data and batch, before weights are loaded.

        Raises:
            UsageError, ShapeError: Stating the numbers.
        """
        ...

    def loss(self, recipe: Recipe, settings: RewardSettings | None) -> PolicyLoss | None:
        """Return the loss as numbers for an engine with its own trainer; None if only `build` has it."""
        return None

    def largest_pass(self, recipe: Recipe, groups: Groups, chat: ChatTokens) -> Pass:
        """Return the largest backward pass, to estimate memory and to check the model's context."""
        ...

    def steps_per_epoch(self, recipe: Recipe, groups: Groups) -> int:
        """Optimiser steps in one pass over the data."""
        ...

    def build(self, plan: Plan, out: Path) -> Any:
        """Return a trainer of transformers with the model loaded, ready to train into `out`.

        For engines that run one. Others train from `loss`, read responses with
        `scoring.SampleReader`, score them with `scoring.score_rows`, and refuse in their `check` an
        objective that they cannot run.
        """
        ...


class Stop(NamedTuple):
    """Point at which an engine stopped."""

    steps: int  # optimiser steps done
    interrupted: (
        bool  # whether a signal stopped it; then the folder holds a checkpoint and no result
    )


class Engine(Protocol):
    """Engine that runs objectives: it divides steps, trains, saves."""

    def check(self, recipe: Recipe, settings: RewardSettings | None, objective: Objective) -> None:
        """Check that the engine is installed in a known version, and can run what is asked for.

        The first check of a plan, and the only one of packages, loggers, devices and sampling.

        Args:
            recipe: What it would run; `recipe.engine` holds this engine's own table.
            settings: The objective's reward; None for an objective without one.
            objective: What is optimised.

        Raises:
            MissingExtraError, UsageError: With what to install or to change.
        """
        ...

    def sharding(self, recipe: Recipe, environment: Mapping[str, str]) -> Sharding:
        """Return how many processes train and how they share the model.

        Args:
            recipe: What they would run.
            environment: As a launcher sets it.
        """
        ...

    def checkpoint_defect(self, folder: Path, step: int) -> str | None:
        """Return the defect that keeps a step's checkpoint from being resumed, in a few words; None without one."""
        ...

    def split(self, recipe: Recipe, n_presentations: int, world: int) -> Split:
        """Divide the sampled responses of a step.

        Args:
            recipe: Gives items per step, N and the micro batch.
            n_presentations: P.
            world: Processes that train.

        Raises:
            UsageError: Stating the numbers, if they cannot be divided.
        """
        ...

    def run(self, plan: Plan, folder: RunFolder, resume: int | None, report: Report | None) -> Stop:
        """Train as planned, follow the held-out items (`held_out.measure_held_out`), save the result.

        Args:
            plan: What to train.
            folder: Of result, log and checkpoints.
            resume: Step of the checkpoint to go on from; None for a fresh start.
            report: Called with every log line on the main process.
        """
        ...


class AnswerError(RuntimeError):
    """A model in training gave no answers, on every process alike; says on which one and why."""
