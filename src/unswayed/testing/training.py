"""Rules for every reward, objective and engine, without a model."""

from __future__ import annotations

import dataclasses
from typing import Final, get_args

import msgspec
import numpy as np

from unswayed.base.errors import UnswayedError
from unswayed.model.items import Task
from unswayed.testing.rules import hold
from unswayed.training.protocol import Engine, Objective
from unswayed.training.recipe_parts import Layouts, Recipe
from unswayed.training.reward_settings import Reward, RewardSettings
from unswayed.training.sampling import Split

RECIPE: Final = Recipe("recipe", Task.PAIRWISE)


def check_reward(reward: Reward) -> None:
    """Check a reward.

    Raises:
        AssertionError: Naming the broken rule.
    """
    hold("reward", (pays_every_sample, ignores_the_numbers_of_candidates), reward)


def _choices(n: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(n)
    right = np.eye(n, dtype=bool)[draw.integers(0, n, 50)]
    return draw.integers(-1, n, (50, 3, 4)), right


def pays_every_sample(reward: Reward) -> None:
    """Every sample gets a finite value, alone as in a batch; what it pays for is told in a sentence."""
    assert reward.about.strip()
    for n in (2, 3, 4):
        choices, right = _choices(n)
        paid = reward.sampled(choices, right)
        assert paid.shape == choices.shape
        assert np.isfinite(paid).all()
        alone = [reward.sampled(*item) for item in zip(choices, right, strict=True)]
        np.testing.assert_allclose(paid, np.stack(alone))
        if reward.expected is not None:
            presentations = 2 if reward.pairs_only else 3
            probs = np.random.default_rng(n).dirichlet(np.ones(n), (50, presentations))
            expected = reward.expectation(probs, right)
            assert expected.shape == probs.shape
            assert np.isfinite(expected).all()


def ignores_the_numbers_of_candidates(reward: Reward) -> None:
    """Renumbered candidates are paid alike, and so are presentations in another order."""
    for n in (2, 3, 4):
        choices, right = _choices(n)
        paid = reward.sampled(choices, right)
        turned = np.where(choices >= 0, (choices + 1) % n, choices)
        np.testing.assert_allclose(reward.sampled(turned, np.roll(right, 1, axis=1)), paid)
        np.testing.assert_allclose(reward.sampled(choices[:, ::-1], right), paid[:, ::-1])


def check_objective(objective: Objective) -> None:
    """Check what an objective says of itself.

    Raises:
        AssertionError: Naming the broken rule.
    """
    hold("objective", (describes_itself, names_what_it_uses), objective)


def describes_itself(objective: Objective) -> None:
    """Check that an objective is a frozen dataclass that declares sampling, gold and what moves."""
    assert dataclasses.is_dataclass(objective)
    assert type(objective).__dataclass_params__.frozen
    assert objective.card_text.strip()
    assert isinstance(objective.sampled, bool)
    assert isinstance(objective.needs_gold, bool)
    assert objective.layouts in get_args(Layouts)
    for name in ("check", "loss", "largest_pass", "steps_per_epoch", "build"):
        assert callable(getattr(objective, name)), name
    settings = objective.settings(RECIPE, consistency=None, advantage=None)
    assert settings is None or isinstance(settings, RewardSettings)


def names_what_it_uses(objective: Objective) -> None:
    """Check that `uses` names fields of a recipe's table `target`, which it adds to the command."""
    fields = {f"target.{field}" for field in RECIPE.target.__struct_fields__}
    assert set(objective.uses) <= fields, f"{objective.uses} are not all in the table target"


def check_engine(engine: Engine) -> None:
    """Check how an engine divides a step.

    Raises:
        AssertionError: Naming the broken rule.
    """
    hold("engine", (divides_a_step_or_refuses,), engine)


def divides_a_step_or_refuses(engine: Engine) -> None:
    """Check that a step is divided without a rest, or refused by an error with the numbers."""
    for name in ("check", "sharding", "checkpoint_defect", "run"):
        assert callable(getattr(engine, name)), name
    for items in (1, 4, 7, 8):
        optimiser = msgspec.structs.replace(RECIPE.optimiser, items_per_step=items)
        try:
            split = engine.split(msgspec.structs.replace(RECIPE, optimiser=optimiser), 2, 1)
        except UnswayedError as error:
            assert any(letter.isdigit() for letter in str(error)), error
            continue
        assert isinstance(split, Split)
        assert split.micro * split.passes == items * 2 * RECIPE.rollout.samples
