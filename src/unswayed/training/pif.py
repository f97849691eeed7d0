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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from unswayed.base.errors import UsageError
from unswayed.model.items import text_of
from unswayed.model.parsing import LABEL
from unswayed.model.tasks import task_of
from unswayed.training.chats import ChatTokens
from unswayed.training.given_answers import given_answers_trainer, split_given
from unswayed.training.groups import GroupRow, Groups
from unswayed.training.memory import Pass
from unswayed.training.plan import Plan
from unswayed.training.processes import process_count
from unswayed.training.protocol import Objective
from unswayed.training.recipe_parts import Pif, Recipe
from unswayed.training.reward_settings import RewardSettings
from unswayed.training.sampling import Split

if TYPE_CHECKING:
    import torch

_Base: Any = object  # transformers.Trainer, imported only where it is used

CLAMP: Final = 1e-6
"""Smallest 1 - p of a negative, so that a certain wrong answer has a finite loss."""


class AnswerTokens(NamedTuple):
    """A chat with one answer."""

    ids: tuple[int, ...]  # token ids
    # symbol, content: positions of the answer's tokens within `ids`
    symbol: tuple[int, ...]
    content: tuple[int, ...]


PifExample = list[AnswerTokens]
"""Answers to one presentation: the right one, and then wrong ones."""


@dataclass(frozen=True, slots=True)
class PifObjective(Objective):
    """Supervised symbol binding on permutation groups."""

    card_text = "symbol-binding SFT with negatives in the style of PIF, whose loss is not public"

    def check(self, recipe: Recipe, groups: Groups, settings: RewardSettings | None) -> None:
        """Check that replies are labels alone, and split a step into the processes."""
        if task_of(recipe.task).reply is not LABEL:
            raise UsageError(
                f"pif trains replies that are a label with its content, and replies of task "
                f"{recipe.task.value} have another format. Use pa-grpo, grpo or rl."
            )
        if not groups.answer_only:
            raise UsageError(
                f"pif teaches a label with its content as the whole reply, and prompt "
                f"{recipe.prompt.style} asks for reasoning before it, which the items do not have. Give it --set "
                f"prompt.style=direct, and audit with that prompt."
            )
        split_examples(recipe, groups)

    def largest_pass(self, recipe: Recipe, groups: Groups, chat: ChatTokens) -> Pass:
        """Return a micro batch of answers, each a candidate with its label."""
        texts = {text_of(candidate) for item in groups.items for candidate in item.candidates}
        longest = max(len(chat.ids_of(text)) for text in texts)
        return Pass(recipe.run.micro_batch, longest + groups.max_tokens)

    def steps_per_epoch(self, recipe: Recipe, groups: Groups) -> int:
        """Optimiser steps in one pass over the examples; the last one may be smaller."""
        split = split_examples(recipe, groups)
        batches = len(groups.rows) // (split.micro * process_count())
        return -(-batches // split.passes)

    def build(self, plan: Plan, out: Path) -> Any:
        """Return a trainer of transformers with the PIF-style loss."""
        return given_answers_trainer(
            plan,
            out,
            hooks=PifHooks,
            examples=examples(plan.groups, plan.recipe.pif, plan.chat, seed=plan.recipe.run.seed),
            collate=functools.partial(collate, pad=plan.chat.tokenizer.pad_token_id),
            split=split_examples(plan.recipe, plan.groups),
            weights=plan.recipe.pif,
        )


PIF = PifObjective()


def examples(groups: Groups, settings: Pif, chat: ChatTokens, *, seed: int) -> list[PifExample]:
    """One example per presentation of each item."""
    wanted = negatives_per_example(groups, settings)
    texts = {item.id: [text_of(c) for c in item.candidates] for item in groups.items}
    rows = []
    for row in groups.rows:
        contents = texts[row.item_id]
        answer = functools.partial(_answer, chat, chat.text(row.messages), settings.separator)
        gold = row.gold[0]
        pairs = [(row.shown.label_of_candidate(gold), gold), *_negatives(row, wanted, seed)]
        rows.append([answer(row.symbols[label], contents[candidate]) for label, candidate in pairs])
    return rows


def pif_loss(
    log_probs: torch.Tensor,
    symbol: torch.Tensor,
    content: torch.Tensor,
    *,
    symbol_weight: float = 1.0,
    content_weight: float = 1.0,
) -> torch.Tensor:
    """Return the loss of a batch of B examples, from log-probabilities of tokens, shape (B, 1+m, L), the
    positive first; `symbol` and `content` are 1 where a token belongs to that part of the answer.
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
        """Return the PIF-style loss of a collated batch."""
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


def collate(batch: Sequence[PifExample], *, pad: int) -> dict[str, torch.Tensor]:
    """Pad on the right to tensors of shape (B, 1+m, L)."""
    import torch

    length = max(len(answer.ids) for example in batch for answer in example)
    shape = (len(batch), len(batch[0]), length)
    ids = torch.full(shape, pad)
    mask, symbol, content = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
    for b, example in enumerate(batch):
        for s, answer in enumerate(example):
            ids[b, s, : len(answer.ids)] = torch.tensor(answer.ids)
            mask[b, s, : len(answer.ids)] = 1
            symbol[b, s, list(answer.symbol)] = 1
            content[b, s, list(answer.content)] = 1
    return {"input_ids": ids, "attention_mask": mask, "symbol": symbol, "content": content}


def negatives_per_example(groups: Groups, settings: Pif) -> int:
    """m: as asked for, or as many distinct pairs as every item has."""
    pairs = min(row.n * (row.n - len(row.gold)) for row in groups.first_rows)
    return min(settings.negatives, pairs)


def split_examples(recipe: Recipe, groups: Groups) -> Split:
    """Divide the examples of a step into equal micro batches; one holds its negatives, too."""
    sequences = 1 + negatives_per_example(groups, recipe.pif)
    total = recipe.optimiser.items_per_step * groups.n_presentations
    return split_given(recipe, total, sequences=sequences)


def _negatives(row: GroupRow, wanted: int, seed: int) -> list[tuple[int, int]]:
    wrong = [candidate for candidate in range(row.n) if candidate not in row.gold]
    pairs = list(itertools.product(range(row.n), wrong))
    draw = random.Random(f"{seed}\x00{row.item_id}\x00{row.presentation}")
    return draw.sample(pairs, wanted)


def _answer(
    chat: ChatTokens, prompt: str, separator: str, symbol: str, content: str
) -> AnswerTokens:
    """Return the tokens of a prompt with one answer, which the content cannot end."""
    content = chat.writer.broken_up(content)
    text = f"{prompt}{symbol}{separator}{content}"
    ids, spans = chat.writer.encode_placed(text)
    ends = len(prompt) + len(symbol)
    symbol_at = _tokens_between(spans, len(prompt), ends)
    content_at = _tokens_between(spans, ends + len(separator), len(text))
    symbol_at = tuple(at for at in symbol_at if at not in content_at)
    if not symbol_at or not content_at:
        raise UsageError(
            f"the tokenizer does not separate symbol {symbol!r} from content {content[:40]!r}. "
            'Choose another pif.separator, such as ". " or "\\n".'
        )
    return AnswerTokens(tuple(ids), symbol_at, content_at)


def _tokens_between(spans: Sequence[tuple[int, int]], first: int, last: int) -> tuple[int, ...]:
    """Return the tokens that share a character with a stretch of the text."""
    return tuple(
        at for at, (start, end) in enumerate(spans) if start < last and end > first and end > start
    )


def _mean(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return (values * mask).sum(-1) / mask.sum(-1)
