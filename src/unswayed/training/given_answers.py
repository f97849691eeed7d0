"""The trainer of objectives that sample nothing: transformers' own, with a loss of theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unswayed.base.errors import UsageError
from unswayed.training.plan import Plan
from unswayed.training.processes import process_count
from unswayed.training.recipe_parts import Recipe
from unswayed.training.sampling import Split
from unswayed.training.trainer_arguments import load_arguments, lora_config, trainer_arguments


def given_answers_trainer(
    plan: Plan,
    out: Path,
    *,
    hooks: type,
    examples: Sequence[Any],
    collate: Callable[[Sequence[Any]], Any],
    split: Split,
    **settings: Any,
) -> Any:
    """Return a trainer of transformers with the model loaded, with `hooks` and their loss in front of it.

    Micro batches hold whole examples only, which `collate` makes into what the loss takes; `settings`
    are what the hooks take beside a trainer's arguments.
    """
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments, set_seed

    recipe = plan.recipe
    arguments = TrainingArguments(
        **trainer_arguments(recipe, out, micro=split.micro, passes=split.passes, steps=plan.steps),
        remove_unused_columns=False,
        label_names=[],
        dataloader_drop_last=True,
    )
    set_seed(recipe.run.seed)  # an adapter is drawn before the trainer sets it
    model: Any = AutoModelForCausalLM.from_pretrained(str(plan.folder), **load_arguments(recipe))
    adapter = lora_config(recipe)
    if adapter is not None:
        from peft import get_peft_model

        if recipe.run.gradient_checkpointing:
            model.enable_input_require_grads()
        model = get_peft_model(model, adapter)
    kind: Any = type(f"{hooks.__name__}Trainer", (hooks, Trainer), {})
    return kind(
        model=model,
        args=arguments,
        train_dataset=list(examples),
        data_collator=collate,
        processing_class=plan.chat.tokenizer,
        **settings,
    )


def split_given(recipe: Recipe, examples_per_step: int, *, sequences: int) -> Split:
    """Divide the examples of a step, of so many sequences each, into equal micro batches of whole examples."""
    processes = process_count()
    if examples_per_step % processes:
        raise UsageError(
            f"a step of {recipe.optimiser.items_per_step} items = {examples_per_step} examples "
            f"cannot be split into {processes} processes. Change optimiser.items_per_step."
        )
    share = examples_per_step // processes
    most = max(1, recipe.run.micro_batch // sequences)
    micro = max(size for size in range(1, min(most, share) + 1) if share % size == 0)
    return Split(micro, share // micro)
