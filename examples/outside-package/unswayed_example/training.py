"""A reward, an objective and an engine."""

import json
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from unswayed.ext.errors import UsageError
from unswayed.ext.rewards import Reward
from unswayed.ext.training import PIF, Pif, Sharding, Split, Stop, measure_held_out


def unanimous(choices, right):
    """+3 where all samples of the group name one candidate, else -3."""
    z = np.asarray(choices)
    flat = z.reshape(*z.shape[:-2], -1)
    same = (flat == flat[..., :1]).all(axis=-1) & (flat[..., 0] >= 0)
    return np.where(np.broadcast_to(same[..., None, None], z.shape), 3.0, -3.0)


UNANIMOUS = Reward("three times as much where all samples of the group agree", sampled=unanimous)


@dataclass(frozen=True)
class SymbolOnly:
    """PIF without its negatives."""

    card_text: str = "cross-entropy on the symbol alone"
    sampled: bool = False
    needs_gold: bool = True
    layouts: str = "coupled"
    uses: tuple[str, ...] = ()

    def settings(self, recipe, *, consistency, advantage):
        return None

    def check(self, recipe, groups, settings):
        PIF.check(recipe, groups, settings)

    def loss(self, recipe, settings):
        return None

    def largest_pass(self, recipe, groups, chat):
        return PIF.largest_pass(recipe, groups, chat)

    def steps_per_epoch(self, recipe, groups):
        return PIF.steps_per_epoch(recipe, groups)

    def build(self, plan, out):
        symbol = Pif(negatives=0, content_weight=0.0, separator=" : ")
        return PIF.build(
            replace(plan, recipe=msgspec.structs.replace(plan.recipe, pif=symbol)), out
        )


SYMBOL_ONLY = SymbolOnly()


class Counting:
    """Trains nothing: writes the length of each prompt as the model, and answers its first label."""

    def check(self, recipe, settings, objective):
        if not objective.sampled:
            raise UsageError("the counting engine needs an objective that samples responses.")

    def sharding(self, recipe, environment):
        return Sharding()

    def checkpoint_defect(self, folder, step):
        return "the counting engine resumes nothing"

    def split(self, recipe, n_presentations, world):
        responses = recipe.optimiser.items_per_step * n_presentations * recipe.rollout.samples
        if responses % 7:
            raise UsageError(f"the counting engine counts in sevens, not {responses}.")
        return Split(7, responses // 7)

    def run(self, plan, folder, resume, report):
        import torch
        from safetensors.torch import save_file

        lengths = [len(plan.chat.ids(row.messages)) for row in plan.groups.rows]

        def answers(prompts):
            return [plan.groups.symbols[0] for _ in prompts]

        for step in (0, plan.steps):
            line = {"step": step, "steps": plan.steps, **measure_held_out(plan, answers)}
            folder.append(line)
            report(line)
        save_file({"lengths": torch.tensor(lengths)}, folder.path / "model.safetensors")
        (folder.path / "model.json").write_text(json.dumps([*plan.split, *lengths]))
        return Stop(plan.steps, interrupted=False)


COUNTING = Counting()
