"""A recipe in the words of transformers: what every trainer takes, whatever the objective."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

from unswayed.training.devices import computed_in, loaded_in, on_cpu
from unswayed.training.recipe_parts import Recipe

CHECKPOINTS: Final = 10
"""Checkpoints of a run with `save_every = "auto"`."""

FARTHEST: Final = 50
"""Most steps between them: what a long run may lose."""


def trainer_arguments(
    recipe: Recipe, out: Path, *, micro: int, passes: int, steps: int
) -> dict[str, Any]:
    """Arguments of `transformers.TrainingArguments` and of what inherits from it.

    `micro` sequences per process and backward pass, `passes` of which make a step.
    """
    optimiser, run = recipe.optimiser, recipe.run
    every = save_steps(recipe, steps)
    return {
        "output_dir": str(out),
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": passes,
        "optim": "adamw_torch",
        "learning_rate": optimiser.learning_rate,
        "weight_decay": optimiser.weight_decay,
        "max_grad_norm": optimiser.max_grad_norm,
        "lr_scheduler_type": optimiser.schedule.replace("constant", "constant_with_warmup"),
        "warmup_steps": optimiser.warmup_steps,
        "num_train_epochs": optimiser.epochs,
        "max_steps": optimiser.steps or -1,
        "seed": run.seed,
        "use_cpu": on_cpu(recipe),
        "bf16": computed_in(recipe, on_gpu=not on_cpu(recipe)) == "bfloat16",
        "gradient_checkpointing": run.gradient_checkpointing,
        "logging_steps": run.log_every,
        "logging_nan_inf_filter": False,  # it would log the loss of the steps before instead
        "save_strategy": "steps" if every else "no",
        "save_steps": every or 1,
        "save_total_limit": run.keep,
        "report_to": list(run.loggers) or "none",
        "disable_tqdm": True,
    }


def save_steps(recipe: Recipe, steps: int) -> int:
    """Return the number of steps between checkpoints; 0 for none.

    `optimiser.inner_updates` divides it, because a checkpoint between two updates of the same
    responses could not be resumed exactly.
    """
    every = recipe.run.save_every
    if every != "auto":
        return every
    updates = recipe.optimiser.inner_updates
    batches = min(-(-steps // CHECKPOINTS), FARTHEST) / updates
    return max(1, math.floor(batches)) * updates


def load_arguments(recipe: Recipe) -> dict[str, Any]:
    """Arguments of `from_pretrained`: dtype, file format and, if asked for, the attention kernel."""
    dtype = loaded_in(recipe, on_gpu=not on_cpu(recipe))
    kernel = recipe.run.attention
    asked = {} if kernel is None else {"attn_implementation": kernel}
    return {"dtype": dtype, "use_safetensors": True, **asked}


def lora_config(recipe: Recipe) -> Any:
    """peft's configuration of the adapter; None where all weights are trained."""
    if recipe.lora is None:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=recipe.lora.rank,
        lora_alpha=recipe.lora.alpha,
        lora_dropout=recipe.lora.dropout,
        target_modules=recipe.lora.target,
        task_type="CAUSAL_LM",
    )
