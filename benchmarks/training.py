"""What permutation groups cost on top of trl's own GRPO step: paired, same batch, same model.

    python benchmarks/training.py [--rounds 30] [--model PATH]

Two trainers with the same weights take the same batch in turn: trl's GRPO with one trivial reward
function, and ours, which reads every response, computes all rewards and
advantages and checks the groups. The difference is everything the hooks do. Which one goes first
alternates. Two figures: the median over rounds of the paired ratio of CPU times (one thread; on a
shared machine steps of the same work vary by 10 %, so its quartiles are printed), and the CPU time
spent in the hooks themselves without trl's part of them, as a share of the step.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch

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
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, quiet():
        measure(arguments.model, arguments.samples, arguments.rounds, Path(folder))


def measure(model: str, samples: int, rounds: int, out: Path) -> None:
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
    ours, stock = trainers(plan, out)
    rows = [
        row
        for row in range(recipe.optimiser.items_per_step * plan.groups.n_presentations)
        for _ in range(samples)
    ]
    batch = [ours.train_dataset[row] for row in rows]
    for trainer in (ours, stock):
        trainer.create_optimizer()
        trainer.model.train()
        trainer.current_gradient_accumulation_steps = 1
    seconds: dict[str, list[float]] = {"ours": [], "trl": []}
    own = time_hooks(type(ours))
    for number in range(rounds + 2):
        pair = [("ours", ours), ("trl", stock)]
        for name, trainer in pair if number % 2 else reversed(pair):
            torch.manual_seed(number)  # the same responses for both
            began = time.process_time()
            trainer.training_step(trainer.model, batch, None)
            trainer.model.zero_grad()
            spent = time.process_time() - began
            if number >= 2:  # the first two warm up
                seconds[name].append(spent)
    report(len(batch), seconds, own[2:])


def trainers(plan, out):  # type: ignore[no-untyped-def]
    from trl import GRPOTrainer

    ours = OBJECTIVES.load(plan.objective).build(plan, out / "ours")
    config = grpo_config(plan, out / "trl")
    config.reward_weights = None
    config.model_init_kwargs = {"dtype": "float32"}
    stock = GRPOTrainer(
        model=str(plan.folder),
        args=config,
        train_dataset=group_dataset(plan.groups),
        processing_class=plan.chat.tokenizer,
        reward_funcs=says_a,
    )
    return ours, stock


def says_a(completions, **_columns):  # type: ignore[no-untyped-def]
    return [float(completion[0]["content"].startswith("A")) for completion in completions]


def time_hooks(ours: type) -> list[float]:
    """Note the CPU time of each of our steps that is spent in the hooks and not in trl."""
    from trl import GRPOTrainer

    own: list[float] = []
    inside = {"hooks": 0.0, "trl": 0.0}

    def timed(kind: type, name: str, where: str) -> None:
        original = getattr(kind, name)

        def wrapper(self, *values):  # type: ignore[no-untyped-def]
            began = time.process_time()
            try:
                return original(self, *values)
            finally:
                if isinstance(self, ours):
                    inside[where] += time.process_time() - began
                    if name == "_generate_and_score_completions" and where == "hooks":
                        own.append(inside["hooks"] - inside["trl"])
                        inside.update(hooks=0.0, trl=0.0)

        setattr(kind, name, wrapper)

    # Rewards are computed inside trl's part of the other hook: the two count as nested calls.
    for name in ("_calculate_rewards", "_generate_and_score_completions"):
        timed(ours, name, "hooks")
        timed(GRPOTrainer, name, "trl")
    return own


def report(responses: int, seconds: dict[str, list[float]], own: list[float]) -> None:
    ratios = [mine / theirs for mine, theirs in zip(seconds["ours"], seconds["trl"], strict=True)]
    for name, values in seconds.items():
        print(f"{name:5s} median {1000 * statistics.median(values):7.1f} ms of CPU a step")
    quarters = statistics.quantiles(ratios, n=4)
    print(
        f"paired ratio: median {statistics.median(ratios):.4f} "
        f"(quartiles {quarters[0]:.4f} to {quarters[2]:.4f}), "
        f"{responses} responses a step, {len(ratios)} rounds"
    )
    share = statistics.median(own) / statistics.median(seconds["ours"])
    print(f"in the hooks themselves: {1000 * statistics.median(own):.2f} ms a step, {share:.2%}")


if __name__ == "__main__":
    main()
