"""Measure a training step against trl's own GRPO step: paired, same batch, same model.

    python benchmarks/training.py [--rounds 30] [--model PATH] [--write]

Four trainers with the same weights take a batch of the same items in turn: ours, ours without sharing
prompts (`run.share_prompts = false`), trl's GRPO with one trivial reward function, and `rl-exact`,
which samples nothing. The first two read every response, compute all rewards and advantages and check
the groups; the first also computes each distinct prompt once. The base's answers, which `rl-exact` asks
once before training, are not in its steps; what they cost is printed. Who goes first rotates. Printed are
medians and quartiles over rounds of the paired ratios of CPU times (one thread; on a shared machine
steps of the same work vary by 10%), and the CPU time spent in the hooks of permutation groups
themselves, as a share of the step.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch

from evidence_table import Table, add_write
from unswayed.tiny.items import judge_items
from unswayed.training.pa_grpo import group_dataset, grpo_config
from unswayed.training.planning import plan_training
from unswayed.training.progress import quiet
from unswayed.training.recipe import load_recipe, with_changes
from unswayed.training.table import OBJECTIVES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--model", default="tiny/judge")
    parser.add_argument("--samples", type=int, default=8)
    add_write(parser, "beyond")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, quiet():
        table = measure(arguments.model, arguments.samples, arguments.rounds, Path(folder))
    if arguments.write:
        table.keep("beyond", "step-cost")


def measure(model: str, samples: int, rounds: int, out: Path) -> Table:
    recipe = with_changes(
        load_recipe("tiny-judge"),
        {
            "data.held_out": "0",
            "rollout.samples": str(samples),
            "run.micro_batch": "100000",
            "run.loggers": "[]",
            "run.save_every": "0",
        },
    )
    plan = plan_training("pa-grpo", judge_items(64), model=model, recipe=recipe)
    all_trainers = trainers(plan, out)
    ours = all_trainers["shared"]
    rows = [
        row
        for row in range(recipe.optimiser.items_per_step * plan.groups.n_presentations)
        for _ in range(samples)
    ]
    batch = [ours.train_dataset[row] for row in rows]
    began = time.process_time()
    exact = exact_trainer(plan, out / "exact")
    asked = time.process_time() - began
    examples = exact.train_dataset[: recipe.optimiser.items_per_step]
    steps: dict[str, Callable[[], object]] = {
        name: functools.partial(trainer.training_step, trainer.model, batch, None)
        for name, trainer in all_trainers.items()
    }
    steps["exact"] = lambda: exact.training_step(exact.model, exact.data_collator(examples))
    all_trainers["exact"] = exact
    for trainer in all_trainers.values():
        trainer.create_optimizer()
        trainer.model.train()
        trainer.current_gradient_accumulation_steps = 1
    seconds: dict[str, list[float]] = {name: [] for name in all_trainers}
    own = time_hooks(ours)
    for number in range(rounds + 2):
        order = list(all_trainers)
        turn = number % len(order)
        for name in order[turn:] + order[:turn]:
            trainer = all_trainers[name]
            torch.manual_seed(number)  # the same responses for all
            began = time.process_time()
            steps[name]()
            trainer.model.zero_grad()
            spent = time.process_time() - began
            if number >= 2:  # the first two warm up
                seconds[name].append(spent)
    table = report(len(batch), seconds, own[2:])
    print(
        f"exact: {1000 * asked:.0f} ms of CPU before the first step, for {len(plan.groups)} items"
    )
    return table


def trainers(plan, out):  # type: ignore[no-untyped-def]
    from trl import GRPOTrainer

    objective = OBJECTIVES.load(plan.objective)
    unshared = replace(plan, recipe=with_changes(plan.recipe, {"run.share_prompts": "false"}))
    config = grpo_config(plan, out / "trl")
    config.reward_weights = None
    config.model_init_kwargs = {"dtype": "float32"}
    stock = GRPOTrainer(
        model=str(plan.folder),
        args=config,
        train_dataset=group_dataset(plan.groups, plan.chat),
        processing_class=plan.chat.tokenizer,
        reward_funcs=says_a,
    )
    return {
        "shared": objective.build(plan, out / "shared"),
        "unshared": objective.build(unshared, out / "unshared"),
        "trl": stock,
    }


def exact_trainer(plan, out):  # type: ignore[no-untyped-def]
    objective = OBJECTIVES.load("rl-exact")
    settings = objective.settings(plan.recipe, consistency=None, advantage=None)
    exact = replace(plan, objective="rl-exact", settings=settings, sampled=False)
    return objective.build(exact, out)


def says_a(completions, **_columns):  # type: ignore[no-untyped-def]
    return [float(completion.startswith("A")) for completion in completions]


def time_hooks(trainer) -> list[float]:  # type: ignore[no-untyped-def]
    """Note the CPU time of each step of a trainer that is spent in its hooks and not behind them."""
    from trl import GRPOTrainer

    from unswayed.training.shared_prompts import SharedPrompts
    from unswayed.training.trl_hooks import GroupHooks

    own: list[float] = []
    inside = {"hooks": 0.0, "behind": 0.0}

    def timed(kind: type, name: str, where: str) -> None:
        original = getattr(kind, name)

        def wrapper(self, *values):  # type: ignore[no-untyped-def]
            began = time.process_time()
            try:
                return original(self, *values)
            finally:
                if self is trainer:
                    inside[where] += time.process_time() - began
                    if name == "_generate_and_score_completions" and where == "hooks":
                        own.append(inside["hooks"] - inside["behind"])
                        inside.update(hooks=0.0, behind=0.0)

        setattr(kind, name, wrapper)

    # Rewards are computed inside what the other hook calls: the two count as nested calls.
    for name, behind in (
        ("_calculate_rewards", GRPOTrainer),
        ("_generate_and_score_completions", SharedPrompts),
    ):
        timed(GroupHooks, name, "hooks")
        timed(behind, name, "behind")
    return own


def report(responses: int, seconds: dict[str, list[float]], own: list[float]) -> Table:
    print(f"{responses} responses a step, {len(own)} rounds")
    table = Table(("trainer", "CPU-ms per step", "multiple of exact", "multiple of shared"))
    for name, values in seconds.items():
        ratios = (paired(values, seconds[other]) for other in ("exact", "shared"))
        table.add(name, f"{1000 * statistics.median(values):.1f}", *ratios)
    print(f"unshared / trl: {paired(seconds['unshared'], seconds['trl'])}")
    share = statistics.median(own) / statistics.median(seconds["shared"])
    print(
        f"in the hooks of groups themselves: {1000 * statistics.median(own):.2f} ms a step, {share:.2%}"
    )
    return table


def paired(seconds: list[float], others: list[float]) -> str:
    """Median and quartiles of the paired ratios."""
    ratios = [mine / theirs for mine, theirs in zip(seconds, others, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


if __name__ == "__main__":
    main()
