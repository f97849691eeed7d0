"""What permutation groups cost on top of trl's own GRPO step: paired, same batch, same model.

    python benchmarks/training.py [--rounds 30] [--model PATH]

Two trainers with the same weights take the same batch in turn: trl's GRPO with four reward
functions that return zeros, and ours, which reads every response, computes all rewards and
advantages and checks the groups. The difference is everything the hooks do. Which one goes first
alternates; the figure is the median over rounds of the paired ratio of CPU times (one thread).
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
from unswayed.training import checks
from unswayed.training.plan import plan_training
from unswayed.training.progress import quiet
from unswayed.training.recipe import load_recipe, with_changes
from unswayed.training.trl_engine import build_trainer, group_dataset, grpo_config
from unswayed.training.trl_hooks import reward_parts


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
    report(len(batch), seconds)


def trainers(plan, out):  # type: ignore[no-untyped-def]
    from trl import GRPOTrainer

    tokenizer = checks.load_tokenizer(str(plan.folder))
    common = (plan.recipe, plan.settings)
    ours = build_trainer(str(plan.folder), tokenizer, plan.groups, *common, out / "ours")
    config = grpo_config(*common, plan.groups, out / "trl", n_processes=1)
    config.model_init_kwargs = {"dtype": "float32"}
    stock = GRPOTrainer(
        model=str(plan.folder),
        args=config,
        train_dataset=group_dataset(plan.groups),
        processing_class=tokenizer,
        reward_funcs=reward_parts(),
    )
    return ours, stock


def report(responses: int, seconds: dict[str, list[float]]) -> None:
    ratios = [mine / theirs for mine, theirs in zip(seconds["ours"], seconds["trl"], strict=True)]
    for name, values in seconds.items():
        print(f"{name:5s} median {1000 * statistics.median(values):7.1f} ms of CPU a step")
    quarters = statistics.quantiles(ratios, n=4)
    print(
        f"paired ratio: median {statistics.median(ratios):.4f} "
        f"(quartiles {quarters[0]:.4f} to {quarters[2]:.4f}), "
        f"{responses} responses a step, {len(ratios)} rounds"
    )


if __name__ == "__main__":
    main()
