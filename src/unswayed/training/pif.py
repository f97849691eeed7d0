"""PIF-style training: supervised symbol binding with negative instances.

The answer is trained as "symbol, content" (the gold candidate with the symbol it is shown with),
against negatives that put a random wrong content beside a random symbol. Per example, with the
mean taken over tokens,

    L = - w_s log p(symbol+) - w_c mean log p(content+)
        - 1/m sum over negatives of log(1 - exp(mean log p(symbol-, content-)))

This is our reading. Point-wise Intelligent Feedback (Xue et al. 2024, as described in
arXiv 2603.21016, Appendix E) builds its negatives this way, but its exact loss is not public:
results must be called PIF-style.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from unswayed.errors import UsageError
from unswayed.items import text_of
from unswayed.training import checks
from unswayed.training.data import Groups, Row, prompt_settings
from unswayed.training.held_out import measure_held_out
from unswayed.training.plan import Plan
from unswayed.training.progress import Step, catch_interrupt, quiet, run_callback, trim_log
from unswayed.training.recipe import Pif, Recipe
from unswayed.training.responses import reader
from unswayed.training.results import TrainingResult, finish
from unswayed.training.trl_engine import (
    SCHEDULES,
    device_arguments,
    load_dtype,
    lora_config,
    process_count,
)

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

    _Base: Any  # transformers.Trainer, imported only where it is used
else:
    _Base = object

__all__ = ["AnswerTokens", "Example", "PifHooks", "examples", "pif_loss", "train_pif"]

CLAMP: Final = 1e-6
"""Smallest 1 - p of a negative, so that a certain wrong answer has a finite loss."""


class AnswerTokens(NamedTuple):
    """A chat with one answer.

    Attributes:
        ids: Token ids.
        symbol, content: Positions of the answer's tokens within `ids`.
    """

    ids: tuple[int, ...]
    symbol: tuple[int, ...]
    content: tuple[int, ...]


class Example(NamedTuple):
    """The right answer to one presentation, and wrong ones."""

    positive: AnswerTokens
    negatives: tuple[AnswerTokens, ...]


def examples(
    groups: Groups,
    settings: Pif,
    tokenizer: PreTrainedTokenizerBase,
    options: dict[str, Any],
    *,
    seed: int,
) -> list[Example]:
    """One example per presentation of each item.

    Args:
        groups: The data; with several right candidates the first is the positive.
        settings: Number of negatives, separator.
        tokenizer: A fast tokenizer.
        options: Arguments of the chat template.
        seed: Draws the negatives; those of an item do not depend on the other items.
    """
    wanted = negatives_per_example(groups, settings)
    texts = {item.id: [text_of(c) for c in item.candidates] for item in groups.items}
    made = []
    for row in groups.rows:
        chat = checks.chat_text(tokenizer, row.messages, options)
        contents = texts[row.item_id]

        def sequence(symbol: str, content: str, chat: str = chat) -> AnswerTokens:
            return _sequence(tokenizer, chat, symbol, settings.separator, content)

        gold = row.gold[0]
        own = row.symbols[row.shown.label_of_candidate(gold)]
        made.append(
            Example(
                positive=sequence(own, contents[gold]),
                negatives=tuple(
                    sequence(row.symbols[label], contents[candidate])
                    for label, candidate in _negatives(row, len(contents), wanted, seed)
                ),
            )
        )
    return made


def pif_loss(
    log_probs: torch.Tensor,
    symbol: torch.Tensor,
    content: torch.Tensor,
    *,
    symbol_weight: float = 1.0,
    content_weight: float = 1.0,
) -> torch.Tensor:
    """The loss of a batch.

    Args:
        log_probs: Log-probability of each token, shape (B, 1+m, L); the positive comes first.
        symbol: 1 where the token belongs to the answer's symbol, same shape.
        content: 1 where it belongs to the content.
        symbol_weight: w_s.
        content_weight: w_c.

    Returns:
        Mean over the B examples, a scalar.
    """
    import torch

    on_symbol = (log_probs[:, 0] * symbol[:, 0]).sum(-1)
    on_content = _mean(log_probs[:, 0], content[:, 0])
    loss = -symbol_weight * on_symbol - content_weight * on_content
    if log_probs.shape[1] > 1:
        negative = _mean(log_probs[:, 1:], symbol[:, 1:] + content[:, 1:])
        pushed = torch.log((1 - negative.exp()).clamp(min=CLAMP))
        loss = loss - pushed.mean(-1)
    return loss.mean()


class PifHooks(_Base):  # type: ignore[misc]
    """Mixed into `transformers.Trainer`: its own loss, nothing else."""

    def __init__(self, *, weights: Pif, **trainer: Any) -> None:
        self.weights = weights
        super().__init__(**trainer)

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The PIF-style loss of a collated batch."""
        import torch

        shape = inputs["symbol"].shape  # (B, 1+m, L)
        flat = {name: inputs[name].flatten(0, 1) for name in ("input_ids", "attention_mask")}
        logits = model(**flat).logits[:, :-1].float()
        taken = torch.log_softmax(logits, dim=-1).gather(2, flat["input_ids"][:, 1:, None])
        loss = pif_loss(
            taken[..., 0].view(shape[0], shape[1], -1),
            inputs["symbol"][..., 1:],
            inputs["content"][..., 1:],
            symbol_weight=self.weights.symbol_weight,
            content_weight=self.weights.content_weight,
        )
        return (loss, logits) if return_outputs else loss


def train_pif(
    plan: Plan,
    out: Path,
    checkpoint: Path | None,
    *,
    report: Callable[[Step], None] | None = None,
) -> TrainingResult:
    """Train as planned; see `unswayed.training.run.train`."""
    recipe = plan.recipe
    tokenizer = checks.load_tokenizer(str(plan.folder))
    options = checks.chat_options(recipe)
    data = examples(plan.groups, recipe.pif, tokenizer, options, seed=recipe.run.seed)
    with catch_interrupt() as interrupt, quiet():
        trainer = _trainer(plan, tokenizer, data, out)
        check = partial(
            measure_held_out,
            trainer,
            plan.groups,
            prompt_settings(recipe.prompt),
            reader(recipe.prompt, answer_only=plan.groups.rows[0].answer_only),
            options,
            batch=recipe.run.micro_batch,
        )
        trainer.add_callback(
            run_callback(
                out=out,
                record=plan.record,
                interrupt=interrupt,
                stop_every=1,
                check_every=recipe.run.check_every,
                check=check if plan.groups.held_out else None,
                report=report,
            )
        )
        resumed_from = None
        if checkpoint is not None:
            resumed_from = int(checkpoint.name.removeprefix("checkpoint-"))
        if trainer.is_world_process_zero():
            trim_log(out, resumed_from or 0)
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        if not interrupt.requested:
            trainer.save_model(str(out))
    return finish(
        plan,
        out,
        steps=trainer.state.global_step,
        interrupted=interrupt.requested,
        resumed_from=resumed_from,
        is_main=trainer.is_world_process_zero(),
    )


def _trainer(
    plan: Plan, tokenizer: PreTrainedTokenizerBase, data: Sequence[Example], out: Path
) -> Any:
    from transformers import AutoModelForCausalLM, PrinterCallback, Trainer, TrainingArguments

    recipe = plan.recipe
    optimiser, run = recipe.optimiser, recipe.run
    micro, passes = split_examples(recipe, plan.groups)
    arguments = TrainingArguments(
        output_dir=str(out),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=passes,
        optim="adamw_torch",
        learning_rate=optimiser.learning_rate,
        weight_decay=optimiser.weight_decay,
        max_grad_norm=optimiser.max_grad_norm,
        lr_scheduler_type=SCHEDULES[optimiser.schedule],
        warmup_steps=optimiser.warmup_steps,
        num_train_epochs=optimiser.epochs,
        max_steps=optimiser.steps or -1,
        seed=run.seed,
        **device_arguments(recipe),
        gradient_checkpointing=run.gradient_checkpointing,
        logging_steps=run.log_every,
        save_strategy="steps" if run.save_every else "no",
        save_steps=run.save_every or 1,
        save_total_limit=run.keep,
        report_to=list(run.loggers) or "none",
        disable_tqdm=True,
        remove_unused_columns=False,
        label_names=[],
        dataloader_drop_last=True,
    )
    model: Any = AutoModelForCausalLM.from_pretrained(
        str(plan.folder), dtype=load_dtype(recipe), use_safetensors=True
    )
    adapter = lora_config(recipe)
    if adapter is not None:
        from peft import get_peft_model

        if run.gradient_checkpointing:
            model.enable_input_require_grads()
        model = get_peft_model(model, adapter)
    kind: Any = type("PifTrainer", (PifHooks, Trainer), {})
    trainer = kind(
        weights=recipe.pif,
        model=model,
        args=arguments,
        train_dataset=list(data),
        data_collator=functools.partial(collate, pad=tokenizer.pad_token_id),
        processing_class=tokenizer,
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def collate(batch: Sequence[Example], *, pad: int) -> dict[str, torch.Tensor]:
    """Pad on the right to tensors of shape (B, 1+m, L)."""
    import torch

    rows = [(one.positive, *one.negatives) for one in batch]
    length = max(len(answer.ids) for row in rows for answer in row)
    shape = (len(rows), len(rows[0]), length)
    ids = torch.full(shape, pad)
    mask, symbol, content = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
    for b, row in enumerate(rows):
        for s, answer in enumerate(row):
            ids[b, s, : len(answer.ids)] = torch.tensor(answer.ids)
            mask[b, s, : len(answer.ids)] = 1
            symbol[b, s, list(answer.symbol)] = 1
            content[b, s, list(answer.content)] = 1
    return {"input_ids": ids, "attention_mask": mask, "symbol": symbol, "content": content}


def negatives_per_example(groups: Groups, settings: Pif) -> int:
    """m: as asked for, or as many distinct pairs as every item has."""
    n = groups.n_candidates
    wrong = n - max(len(row.gold) for row in groups.rows)
    return min(settings.negatives, n * wrong)


def steps_per_epoch(recipe: Recipe, groups: Groups) -> int:
    """Optimiser steps per pass over the examples; the last one may be smaller."""
    micro, passes = split_examples(recipe, groups)
    batches = len(groups.rows) // (micro * process_count())
    return -(-batches // passes)


def split_examples(recipe: Recipe, groups: Groups) -> tuple[int, int]:
    """Examples per process and backward pass, and backward passes per step.

    Raises:
        UsageError: Stating the numbers, if a step cannot be split into the processes.
    """
    n_presentations = groups.n_presentations
    sequences = 1 + negatives_per_example(groups, recipe.pif)
    total, processes = recipe.optimiser.items_per_step * n_presentations, process_count()
    if total % processes:
        raise UsageError(
            f"a step of {recipe.optimiser.items_per_step} items x P {n_presentations} = {total} "
            f"examples cannot be split into {processes} processes."
        )
    share = total // processes
    most = max(1, recipe.run.micro_batch // sequences)
    micro = max(size for size in range(1, min(most, share) + 1) if share % size == 0)
    return micro, share // micro


def _negatives(row: Row, n: int, wanted: int, seed: int) -> list[tuple[int, int]]:
    """Distinct pairs of a symbol and a wrong content."""
    wrong = [candidate for candidate in range(n) if candidate not in row.gold]
    pairs = list(itertools.product(range(n), wrong))
    draw = random.Random(f"{seed}\x00{row.item_id}\x00{row.presentation}")
    return draw.sample(pairs, wanted)


def _sequence(
    tokenizer: PreTrainedTokenizerBase, chat: str, symbol: str, separator: str, content: str
) -> AnswerTokens:
    text = f"{chat}{symbol}{separator}{content}"
    coded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    begin = len(chat)
    spans = ((begin, begin + len(symbol)), (begin + len(symbol) + len(separator), len(text)))
    parts = [
        tuple(
            at
            for at, (start, end) in enumerate(coded["offset_mapping"])
            if start < last and end > first and end > start
        )
        for first, last in spans
    ]
    symbol_at = tuple(at for at in parts[0] if at not in parts[1])
    if not symbol_at or not parts[1]:
        raise UsageError(
            f"the tokenizer does not separate symbol {symbol!r} from content {content[:40]!r}. "
            'Choose another pif.separator, such as ". " or "\\n".'
        )
    return AnswerTokens(tuple(coded["input_ids"]), symbol_at, parts[1])


def _mean(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return (values * mask).sum(-1) / mask.sum(-1)
