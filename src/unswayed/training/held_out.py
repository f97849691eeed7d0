"""Following accuracy and consistency on held-out items while a model trains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from unswayed.decisions import Decision
from unswayed.items import Item, blind
from unswayed.metrics import METRICS, measure, outcomes_from_decisions
from unswayed.metrics.accuracy import ACCURACY
from unswayed.metrics.answers import UNPARSED_RATE
from unswayed.metrics.consistency import CONSISTENCY
from unswayed.presentation import Ask
from unswayed.prompts import render
from unswayed.training.data import prompt_settings
from unswayed.training.plan import Plan
from unswayed.training.responses import reader

__all__ = ["figures", "greedy_answers", "measure_held_out"]

BATCH: Final = 32
"""Held-out prompts answered at once; without gradients more fit than in training."""

FOLLOWED: Final = {
    name.removesuffix("_rate"): name
    for name in map(METRICS.name_of, (ACCURACY, CONSISTENCY, UNPARSED_RATE))
}
"""Name in the log, and the metric that it is."""


def figures(items: Sequence[Item], decisions: Iterable[Decision]) -> dict[str, float]:
    """Accuracy, consistency and the share of unparsed answers, as an audit defines them."""
    outcomes = outcomes_from_decisions(items, decisions)
    row = measure(outcomes, names=list(FOLLOWED.values()), resamples=0)
    values = {name: row[metric].value for name, metric in FOLLOWED.items()}
    return {name: value for name, value in values.items() if value is not None}


def measure_held_out(trainer: Any, plan: Plan) -> dict[str, float]:
    """Greedy answers of the model being trained, on the held-out items in all presentations.

    Every process computes all of them: with sharded weights all have to take part anyway. Greedy
    answers draw no random numbers, so checking changes nothing in the training.
    """
    groups, recipe = plan.groups, plan.recipe
    prompts = prompt_settings(recipe.prompt)
    asked = [
        (item, shown, render(blind(item), Ask(shown), prompts))
        for item in groups.held_out
        for shown in groups.views[item.n]
    ]
    answers = greedy_answers(
        trainer,
        [plan.chat.ids(rendered.messages) for _, _, rendered in asked],
        max_tokens=groups.max_tokens,
        batch=max(recipe.run.micro_batch, BATCH),
    )
    read = reader(recipe.prompt, answer_only=groups.answer_only, task=recipe.task)
    decisions = []
    for (item, shown, rendered), answer in zip(asked, answers, strict=True):
        symbols = rendered.labels
        label = read(answer, symbols).label
        decisions.append(
            Decision(
                item_id=item.id,
                order=shown.order,
                labels=shown.symbols(symbols),
                label_set=symbols,
                choice=None if label is None else shown.candidate_of_label(label),
            )
        )
    return figures(groups.held_out, decisions)


def greedy_answers(
    trainer: Any, prompts: Sequence[Sequence[int]], *, max_tokens: int, batch: int
) -> list[str]:
    """The greedy answer to each prompt, in order; prompts of like length share a batch."""
    import torch
    from transformers import GenerationConfig
    from trl.models.utils import unwrap_model_for_generation

    tokenizer = trainer.processing_class
    untyped: Any = GenerationConfig  # its constructor is not typed
    config = untyped(
        max_new_tokens=max_tokens,
        do_sample=False,
        disable_compile=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=trainer.model.generation_config.eos_token_id or tokenizer.eos_token_id,
    )
    answers = [""] * len(prompts)
    by_length = sorted(range(len(prompts)), key=lambda at: len(prompts[at]))
    was_training = trainer.model.training
    trainer.model.eval()
    with (
        torch.no_grad(),
        unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator) as model,
    ):
        for start in range(0, len(by_length), batch):
            part = by_length[start : start + batch]
            padded = tokenizer.pad(
                {"input_ids": [list(prompts[at]) for at in part]},
                padding=True,
                padding_side="left",
                return_tensors="pt",
            ).to(trainer.accelerator.device)
            sequences = model.generate(
                input_ids=padded["input_ids"],
                attention_mask=padded["attention_mask"],
                generation_config=config,
            )
            responses = sequences[:, padded["input_ids"].shape[1] :]
            texts = tokenizer.batch_decode(responses, skip_special_tokens=True)
            for at, text in zip(part, texts, strict=True):
                answers[at] = text
    if was_training:
        trainer.model.train()
    return answers
