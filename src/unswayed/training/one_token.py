"""Training on answers that are one label: nothing is sampled, each prompt is computed once.

An example is an item in some of its presentations. One forward pass gives the log-probability of
each candidate's label in each of them; everything that an objective wants is a function of these and
of what is known about the item before training. The labels' tokens are those that an audit counts.
"""

from __future__ import annotations

import inspect
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from unswayed.backends.local_chats import LabelTokens
from unswayed.training.plan import Plan
from unswayed.training.processes import everyone
from unswayed.training.rewards import BoolArray, FloatArray
from unswayed.training.run_folder import SETTLED
from unswayed.training.sampling import GroupSampler

if TYPE_CHECKING:
    import torch

_Base: Any = object  # transformers.Trainer, imported only where it is used

NEVER: Final = -1e4
"""Log-probability of a candidate that an item does not have, beside items that have more."""

NO_TOKEN: Final = -1

TEXTS: Final = ("input_ids", "attention_mask", "position_ids")
"""What a model reads; one that knows no positions (ALiBi) takes none."""


class LabelPrompt(NamedTuple):
    """One presentation."""

    ids: Sequence[int]  # token ids of the chat, up to where the answer begins
    # the token ids that stand for each candidate's label, by candidate
    labels: Sequence[Sequence[int]]


class Example(NamedTuple):
    """One item in some of its presentations."""

    prompts: Sequence[LabelPrompt]  # the presentations
    right: BoolArray  # whether a candidate is right, shape (n,); nowhere if gold is not looked at
    # log-probabilities before training, shape (presentations, n); None if not needed
    base: FloatArray | None = None
    # distribution to train towards, shape (n,); None if there is none
    target: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class LabelBatch:
    """Input of a loss; n candidates at most."""

    # log-probability of each candidate's label among all tokens, shape (items, presentations, n)
    log_p: torch.Tensor
    right: BoolArray  # shape (items, n)
    base: torch.Tensor | None  # as `log_p`, of the untrained model; None if not needed
    target: torch.Tensor | None  # shape (items, n); None if there is none


Loss = Callable[[LabelBatch], tuple["torch.Tensor", Mapping[str, "torch.Tensor"]]]
"""Function of a batch: the loss, and its parts for the log."""


def prompts_of(plan: Plan) -> Iterator[list[LabelPrompt]]:
    """Yield the presentations of each item as the model reads them, with what stands for each candidate."""
    tokens, size = LabelTokens(plan.chat.writer), plan.groups.n_presentations
    texts = plan.chat.texts([row.messages for row in plan.groups.rows])
    written = zip(plan.groups.rows, texts, plan.chat.writer.encode(texts), strict=True)
    for _ in plan.groups.items:
        prompts = []
        for row, text, ids in itertools.islice(written, size):
            by_label = tokens.ids(row.symbols, text)
            labels = [by_label[row.shown.label_of_candidate(k)] for k in range(row.n)]
            prompts.append(LabelPrompt(ids, labels))
        yield prompts


class OneToken(_Base):  # type: ignore[misc]
    """Mixed into `transformers.Trainer`: a loss of labels, its parts in the log, whole steps."""

    def __init__(
        self,
        *,
        loss: Loss,
        constants: Mapping[str, float],
        per_step: int,
        shuffle: bool,
        **trainer: Any,
    ) -> None:
        from peft import PeftModel

        self.loss_of = loss
        self.constants = constants
        self.per_step = per_step
        self.shuffle = shuffle
        model = trainer["model"]
        plain = model.get_base_model() if isinstance(model, PeftModel) else model
        self.takes = inspect.signature(plain.forward).parameters
        self.parts: dict[str, list[torch.Tensor]] = defaultdict(list)
        super().__init__(**trainer)

    def _get_train_sampler(self, dataset: Any = None) -> GroupSampler:
        examples: Sequence[Example] = self.train_dataset
        return GroupSampler(
            n_groups=len(examples),
            groups_per_batch=self.per_step,
            shuffle=self.shuffle,
            seed=self.args.seed,
            behind=lambda: int(self.state.epoch or 0),
            lengths=[max(len(prompt.ids) for prompt in example.prompts) for example in examples],
        )

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return the loss of a collated batch."""
        log_p = label_log_probs(model, inputs, takes=self.takes)
        log_p = log_p.view(len(inputs["right"]), -1, log_p.shape[-1])
        right: BoolArray = inputs["right"].cpu().numpy()
        batch = LabelBatch(log_p, right, inputs.get("base"), inputs.get("target"))
        loss, parts = self.loss_of(batch)
        for name, value in parts.items():
            self.parts[name].append(value.detach())
        return (loss, log_p) if return_outputs else loss

    def log(self, logs: dict[str, float], *values: Any, **named: Any) -> None:
        """Log the trainer's own figures, with the means of the loss's parts since the last line.

        Over all processes, as the loss is.
        """
        if "loss" in logs:
            own = {name: float(sum(seen)) / len(seen) for name, seen in self.parts.items()}
            shares = everyone(own)
            means = {name: sum(share[name] for share in shares) / len(shares) for name in own}
            self.parts.clear()
            settled = {f"{SETTLED}{name}": value for name, value in self.constants.items()}
            logs = {**logs, **means, **settled}
        super().log(logs, *values, **named)


def label_log_probs(
    model: Any, inputs: Mapping[str, Any], *, takes: Collection[str]
) -> torch.Tensor:
    """Log-probability of each candidate's label among all tokens, shape (prompts, n).

    Prompts are padded on the left; `label_ids` have shape (prompts, n, tokens of a label), `NO_TOKEN`
    where there is none. A model that `takes` `logits_to_keep` computes the logits of the last token alone.
    """
    import torch

    texts = {name: inputs[name] for name in TEXTS if name in takes}
    kept = {"logits_to_keep": 1} if "logits_to_keep" in takes else {}
    log_p = torch.log_softmax(model(**texts, **kept).logits[:, -1].float(), -1)
    ids = inputs["label_ids"]
    taken = log_p.gather(1, ids.clamp(min=0).flatten(1)).view(ids.shape)
    exists = (ids >= 0).any(-1)
    per_token = torch.where(ids >= 0, taken, torch.full_like(taken, -torch.inf))
    # a gradient through logsumexp of nothing but -inf is not a number
    summed = torch.logsumexp(torch.where(exists[..., None], per_token, taken), -1)
    return torch.where(exists, summed, torch.full_like(summed, NEVER))


def collate(batch: Sequence[Example], *, pad: int) -> dict[str, torch.Tensor]:
    """Prompts padded on the left, their labels, and what is known of the items."""
    import torch

    prompts = [prompt for example in batch for prompt in example.prompts]
    length = max(len(prompt.ids) for prompt in prompts)
    n = max(len(example.right) for example in batch)
    width = max(len(ids) for prompt in prompts for ids in prompt.labels)
    input_ids = torch.full((len(prompts), length), pad)
    mask = torch.zeros((len(prompts), length), dtype=torch.long)
    label_ids = torch.full((len(prompts), n, width), NO_TOKEN)
    for row, prompt in enumerate(prompts):
        input_ids[row, length - len(prompt.ids) :] = torch.tensor(prompt.ids)
        mask[row, length - len(prompt.ids) :] = 1
        for candidate, ids in enumerate(prompt.labels):
            label_ids[row, candidate, : len(ids)] = torch.tensor(ids)
    arrays: dict[str, tuple[Sequence[Any], float | bool]] = {
        "right": ([example.right for example in batch], False),
        "base": ([example.base for example in batch], NEVER),
        "target": ([example.target for example in batch], 0.0),
    }
    return {
        "input_ids": input_ids,
        "attention_mask": mask,
        "position_ids": (mask.cumsum(-1) - 1).clamp(min=0),
        "label_ids": label_ids,
        **{
            name: torch.from_numpy(np.stack([_wide(part, n, fill) for part in parts]))
            for name, (parts, fill) in arrays.items()
            if parts[0] is not None
        },
    }


def _wide(values: Any, n: int, fill: float | bool) -> Any:
    """Return an array with its last axis filled up to n; numbers in float32."""
    own = values.shape[-1]
    wide = np.full((*values.shape[:-1], n), fill, np.bool_ if fill is False else np.float32)
    wide[..., :own] = values
    return wide
