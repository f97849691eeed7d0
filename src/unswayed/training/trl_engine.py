"""The trl engine: a recipe as trl's configuration, and the trainer of permutation groups.

Runs on one CPU core, on one GPU, and on many through `accelerate launch` (FSDP, DeepSpeed), with
responses sampled by transformers or by vLLM.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from unswayed.errors import UsageError
from unswayed.rewards import RewardSettings
from unswayed.training.checks import chat_options, check_reference
from unswayed.training.data import Groups
from unswayed.training.recipe import Recipe
from unswayed.training.responses import reader
from unswayed.training.trl_hooks import GroupHooks, GroupScorer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, TrainerCallback
    from trl.trainer.grpo_config import GRPOConfig

__all__ = ["build_trainer", "group_dataset", "grpo_config", "split_batch", "trainer_class"]

SCHEDULES: Final[Mapping[str, str]] = {
    "constant": "constant_with_warmup",
    "linear": "linear",
    "cosine": "cosine",
}


@functools.cache
def trainer_class() -> Any:
    """trl's GRPO trainer with the hooks of permutation groups in front of it."""
    from trl.trainer.grpo_trainer import GRPOTrainer

    return type("PermutationGroupTrainer", (GroupHooks, GRPOTrainer), {})


def split_batch(recipe: Recipe, n_presentations: int, n_processes: int) -> tuple[int, int]:
    """How many responses each process handles at once, and how many times per step.

    Args:
        recipe: Gives items per step, N and the micro batch.
        n_presentations: P.
        n_processes: Processes of the launcher.

    Returns:
        Responses per process and backward pass, and backward passes per step.

    Raises:
        UsageError: Stating the numbers, if they do not divide.
    """
    items, samples = recipe.optimiser.items_per_step, recipe.rollout.samples
    total = items * n_presentations * samples
    micro = min(recipe.run.micro_batch, total // n_processes)
    if micro == 0 or total % (micro * n_processes):
        raise UsageError(
            f"a step of {items} items x P {n_presentations} x N {samples} = {total} responses "
            f"cannot be split into {n_processes} processes x micro batches of "
            f"{recipe.run.micro_batch}. Change run.micro_batch or optimiser.items_per_step."
        )
    return micro, total // (micro * n_processes)


def grpo_config(
    recipe: Recipe, settings: RewardSettings, groups: Groups, out: Path, *, n_processes: int
) -> GRPOConfig:
    """trl's configuration for a recipe; everything that trl would decide otherwise is set."""
    from trl.trainer.grpo_config import GRPOConfig

    optimiser, rollout, run = recipe.optimiser, recipe.rollout, recipe.run
    micro, passes = split_batch(recipe, groups.n_presentations, n_processes)
    return GRPOConfig(
        output_dir=str(out),
        # the batch: one batch of responses per optimiser step (or per inner_updates steps)
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=passes,
        steps_per_generation=passes,
        num_generations=rollout.samples,
        num_iterations=optimiser.inner_updates,
        shuffle_dataset=recipe.data.shuffle,
        # the objective: trl's defaults are beta 0, "dapo", token-level corrections
        loss_type="grpo",
        beta=optimiser.beta,
        epsilon=optimiser.clip,
        entropy_coef=optimiser.entropy,
        scale_rewards="group",
        multi_objective_aggregation="sum_then_normalize",
        reward_weights=[1.0, 1.0, 1.0, settings.lam],
        use_bias_correction_kl=False,
        vllm_importance_sampling_correction=False,
        mask_truncated_completions=False,
        # the optimiser
        optim="adamw_torch",
        learning_rate=optimiser.learning_rate,
        weight_decay=optimiser.weight_decay,
        max_grad_norm=optimiser.max_grad_norm,
        lr_scheduler_type=SCHEDULES[optimiser.schedule],
        warmup_steps=optimiser.warmup_steps,
        num_train_epochs=optimiser.epochs,
        max_steps=optimiser.steps or -1,
        # sampling
        temperature=rollout.temperature,
        max_completion_length=groups.rows[0].max_tokens,
        chat_template_kwargs=chat_options(recipe),
        **_vllm(recipe, groups),
        # the run
        seed=run.seed,
        **device_arguments(recipe),
        gradient_checkpointing=run.gradient_checkpointing,
        logging_steps=run.log_every,
        save_strategy="steps" if run.save_every else "no",
        save_steps=run.save_every or 1,
        save_total_limit=run.keep,
        report_to=list(run.loggers) or "none",
        disable_tqdm=True,
        log_completions=False,
    )


def device_arguments(recipe: Recipe) -> dict[str, Any]:
    """Device and precision, as every trainer of transformers takes them."""
    import torch

    on_cpu = recipe.run.device == "cpu" or not torch.cuda.is_available()
    precision = recipe.run.precision
    if precision == "auto":
        precision = "float32" if on_cpu else "bfloat16"
    return {"use_cpu": on_cpu, "bf16": precision == "bfloat16"}


def load_dtype(recipe: Recipe) -> str:
    """The dtype the weights are loaded in.

    Frozen weights under an adapter lose nothing in bfloat16; weights that are trained stay in
    float32, because an update of 1e-5 of their size is below bfloat16's resolution.
    """
    return "bfloat16" if recipe.lora is not None and device_arguments(recipe)["bf16"] else "float32"


def group_dataset(groups: Groups) -> Any:
    """The rows as a `datasets.Dataset`: prompt, row number, item and presentation."""
    from datasets import Dataset

    return Dataset.from_list(
        [
            {
                "prompt": [{"role": m.role, "content": m.content} for m in row.messages],
                "row": number,
                "item_id": row.item_id,
                "presentation": row.presentation,
            }
            for number, row in enumerate(groups.rows)
        ]
    )


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


def build_trainer(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    groups: Groups,
    recipe: Recipe,
    settings: RewardSettings,
    out: Path,
    *,
    callbacks: Sequence[TrainerCallback] = (),
) -> Any:
    """A trainer that is ready to train.

    Args:
        model: Path or id; a model in memory is allowed where the reference does not need a path.
        tokenizer: As loaded by `checks.load_tokenizer`.
        groups: The data.
        recipe: How to train.
        settings: Reward and advantage, from `recipe.reward_settings`.
        out: Folder of checkpoints.
        callbacks: Called beside the trainer's own.

    Raises:
        UsageError: If the batch cannot be split, or the KL term has no reference.
    """
    from transformers import PrinterCallback

    check_reference(model, recipe)
    config = grpo_config(recipe, settings, groups, out, n_processes=process_count())
    if isinstance(model, str | Path):
        config.model_init_kwargs = {"dtype": load_dtype(recipe), "use_safetensors": True}
        model = str(model)
    trainer = trainer_class()(
        model=model,
        args=config,
        train_dataset=group_dataset(groups),
        processing_class=tokenizer,
        peft_config=lora_config(recipe),
        callbacks=list(callbacks),
        scorer=scorer_of(groups, settings, recipe),
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def process_count() -> int:
    """Processes of this run, as its launcher (accelerate, torchrun) announces them."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def scorer_of(groups: Groups, settings: RewardSettings, recipe: Recipe) -> GroupScorer:
    """The part of the trainer that turns responses into rewards."""
    read = reader(recipe.prompt, answer_only=groups.rows[0].answer_only)
    return GroupScorer.of(groups, settings, recipe.rollout.samples, read)


def _vllm(recipe: Recipe, groups: Groups) -> dict[str, Any]:
    rollout = recipe.rollout
    if rollout.engine == "transformers":
        return {"use_vllm": False}
    common = {"use_vllm": True, "vllm_mode": rollout.engine.removeprefix("vllm-")}
    if rollout.engine == "vllm-server":
        return {**common, "vllm_server_base_url": rollout.server_url}
    longest = groups.counts.longest_prompt or recipe.data.max_prompt_tokens
    return {
        **common,
        "vllm_gpu_memory_utilization": rollout.gpu_memory,
        "vllm_tensor_parallel_size": rollout.tensor_parallel,
        "vllm_max_model_length": longest + groups.rows[0].max_tokens,
    }
