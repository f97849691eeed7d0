"""Following accuracy and consistency on held-out items while a model trains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from unswayed.presentation import Ask
from unswayed.prompts import PromptSettings, render
from unswayed.training.checks import chat_ids
from unswayed.training.data import Groups
from unswayed.training.responses import Reader

__all__ = ["agreement", "greedy_choices", "measure_held_out"]

Choices = Sequence[Sequence[int | None]]
"""Per item, the candidate chosen under each presentation; None if unparsed."""


def agreement(choices: Choices, gold: Sequence[Sequence[int]], n: int) -> dict[str, float]:
    """Accuracy, consistency and the share of unparsed answers.

    Args:
        choices: Per item and presentation.
        gold: Right candidates per item.
        n: Number of candidates. Two: an item is consistent if all answers are parsed and equal.
            More: the share of the most frequent candidate.
    """
    right = [
        sum(choice in good for choice in row) / len(row)
        for row, good in zip(choices, gold, strict=True)
    ]
    same = []
    for row in choices:
        counts = Counter(choice for choice in row if choice is not None)
        most = max(counts.values(), default=0)
        same.append(float(most == len(row)) if n == 2 else most / len(row))
    unparsed = [choice is None for row in choices for choice in row]
    return {
        "accuracy": sum(right) / len(right),
        "consistency": sum(same) / len(same),
        "unparsed": sum(unparsed) / len(unparsed),
    }


def measure_held_out(
    trainer: Any,
    groups: Groups,
    settings: PromptSettings,
    read: Reader,
    options: Mapping[str, Any],
    *,
    batch: int,
) -> dict[str, float]:
    """Greedy answers of the model being trained, on the held-out items in all presentations.

    Every process computes all of them: with sharded weights all have to take part anyway. Greedy
    answers draw no random numbers, so checking changes nothing in the training.
    """
    shown = [row.shown for row in groups.rows[: groups.n_presentations]]
    symbols = groups.rows[0].symbols
    prompts = [
        chat_ids(trainer.processing_class, render(item, Ask(one), settings).messages, options)
        for item in groups.held_out
        for one in shown
    ]
    answers = greedy_choices(trainer, prompts, max_tokens=groups.rows[0].max_tokens, batch=batch)
    labels = [read(answer, symbols).label for answer in answers]
    width = len(shown)
    choices = [
        [
            None if label is None else one.candidate_of_label(label)
            for label, one in zip(labels[at : at + width], shown, strict=True)
        ]
        for at in range(0, len(labels), width)
    ]
    gold = [item.gold_candidates() for item in groups.held_out]
    return agreement(choices, gold, groups.n_candidates)


def greedy_choices(
    trainer: Any, prompts: Sequence[Sequence[int]], *, max_tokens: int, batch: int
) -> list[str]:
    """The greedy answer to each prompt, in order; prompts of like length share a batch."""
    import torch
    from transformers import GenerationConfig
    from trl.models.utils import unwrap_model_for_generation

    tokenizer = trainer.processing_class
    make: Any = GenerationConfig  # its constructor is not typed
    config = make(
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
            made = model.generate(
                input_ids=padded["input_ids"],
                attention_mask=padded["attention_mask"],
                generation_config=config,
            )
            new = made[:, padded["input_ids"].shape[1] :]
            for at, text in zip(
                part, tokenizer.batch_decode(new, skip_special_tokens=True), strict=True
            ):
                answers[at] = text
    if was_training:
        trainer.model.train()
    return answers
