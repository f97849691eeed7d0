"""What an objective is (what is optimised) and what an engine is (what runs it)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from unswayed.reward_settings import Advantage, RewardSettings
from unswayed.training.data import Groups
from unswayed.training.plan import Plan
from unswayed.training.recipe_parts import Recipe
from unswayed.training.run_folder import RunFolder

__all__ = ["Engine", "Objective", "Report", "Stop"]

Report = Callable[[Mapping[str, float]], None]
"""Called with every log line: `step`, `steps`, and every metric of the step."""


class Objective(Protocol):
    """What is optimised. Implementations are small frozen dataclasses; `table.py` names one each."""

    @property
    def card_text(self) -> str:
        """What the model card says the method is: a name with its source."""
        ...

    def settings(
        self, recipe: Recipe, *, consistency: str | None, advantage: Advantage | None
    ) -> RewardSettings | None:
        """The reward, or None for an objective without one.

        Args:
            recipe: Its table `reward`.
            consistency: `--reward`, which goes before the recipe.
            advantage: `--advantage`, likewise.

        Raises:
            UsageError: If the objective is asked to be another one.
        """
        ...

    def check(self, recipe: Recipe, groups: Groups, settings: RewardSettings | None) -> None:
        """Check what the objective asks of data and batch, before weights are loaded.

        Raises:
            UsageError, ShapeError: Stating the numbers.
        """
        ...

    def steps_per_epoch(self, recipe: Recipe, groups: Groups) -> int:
        """Optimiser steps in one pass over the data."""
        ...

    def build(self, plan: Plan, out: Path) -> Any:
        """A trainer of transformers with the model loaded, ready to train into `out`."""
        ...


class Stop(NamedTuple):
    """Where an engine stopped.

    Attributes:
        steps: Optimiser steps done.
        interrupted: Whether a signal stopped it; then the folder holds a checkpoint and no result.
    """

    steps: int
    interrupted: bool


class Engine(Protocol):
    """What runs objectives: steps, checkpoints, log and held-out checks."""

    def check(self) -> None:
        """Check that the engine is installed in a version that is known to work.

        Raises:
            MissingExtraError, UsageError: With what to install.
        """
        ...

    def run(self, plan: Plan, folder: RunFolder, resume: int | None, report: Report | None) -> Stop:
        """Train as planned and save the result in the folder.

        Args:
            plan: What to train.
            folder: Of result, log and checkpoints.
            resume: Step of the checkpoint to go on from; None for a fresh start.
            report: Called with every log line on the main process.
        """
        ...
