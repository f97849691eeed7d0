"""Each distinct prompt of a step is computed once, however many samples share it.

`SharedPrompts` is mixed into `trl.GRPOTrainer` behind `GroupHooks`. Each of its overrides calls
`super()` and changes what it is given or returns, never what is learned:

- `_generate_and_score_completions`: while transformers samples, each distinct prompt is prefilled
  once and its keys and values are repeated for its samples. The random numbers drawn are the same.
- `_get_per_token_logps_and_entropies`: of model and reference, equal rows are computed once, and
  prompts once where that is less work; see `prompt_trees`.
- `_prepare_inputs`: micro batches are cut from rows sorted by prompt and response, so that what is
  equal meets. trl shuffles them within the step; the step's mean is the same.

Numbers equal trl's own to floating-point error. In bfloat16 that error can turn a draw, so there the
samples are other draws from the same distribution. One term of trl's depends on how a step is cut into
micro batches: the entropy bonus is the mean of each one's mean over tokens.

A model that draws random numbers in its forward pass (dropout) is left to trl as it is, and so is
prefilling where some layer does not attend to all that came before (sliding windows, recurrence).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from unswayed.training.prompt_trees import GAIN, SharedForward, trees_hold

if TYPE_CHECKING:
    from torch import Tensor

_Base: Any = object  # trl.GRPOTrainer; trl is not typed, and imported only where it is used


class SharedPrompts(_Base):  # type: ignore[misc]
    """Mixed into `trl.GRPOTrainer` between `GroupHooks` and it."""

    def __init__(self, *, share_prompts: bool, **trainer: Any) -> None:
        super().__init__(**trainer)
        self._shares = share_prompts and not has_dropout(self.model)
        self._prefills = self._shares and takes_prompts_apart(self.model)
        self._trees: bool | None = None  # not tried yet

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        # Processes with sharded weights must all prefill or none: counted from what all have.
        distinct = len(inputs) // self.num_generations + 1
        pays = distinct <= GAIN * len(inputs)
        if not (self._prefills and self.model.training and pays):
            return dict(super()._generate_and_score_completions(inputs))
        with prefilled_once(self.accelerator.unwrap_model(self.model_wrapped)):
            return dict(super()._generate_and_score_completions(inputs))

    def _get_per_token_logps_and_entropies(self, model: Any, *inputs: Any, **named: Any) -> Any:
        if self._shares:
            if self._trees is None:
                self._trees = self._try_trees(model)
            model = SharedForward(model, self._trees)
        return super()._get_per_token_logps_and_entropies(model, *inputs, **named)

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        trl: Any = self
        before = trl._buffered_inputs
        inputs: dict[str, Any] = super()._prepare_inputs(generation_batch)
        batches = trl._buffered_inputs
        if not self._shares or batches is None or batches is before or len(batches) == 1:
            return inputs
        cut = sorted_by_prompt(batches)
        trl._buffered_inputs = cut
        return cut[int(trl._step) % len(cut)]

    def _try_trees(self, model: Any) -> bool:
        config = self.model.config
        if not self._prefills or config._attn_implementation != "sdpa":
            return False  # other kernels take no mask of booleans, or no mask of any form
        with self.accelerator.autocast():
            return trees_hold(model, config.get_text_config().vocab_size)


@contextmanager
def prefilled_once(model: Any) -> Iterator[None]:
    """Within it, `model.generate` computes each distinct prompt once.

    The keys and values of all but the last token come from the distinct prompts; sampling goes on
    from there as it would. A model that gives no plain cache generates as it is.
    """
    import torch

    stock = model.generate

    def generate(*, input_ids: Tensor, attention_mask: Tensor, **options: Any) -> Any:
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if set(options) <= {"generation_config"}:
            prompts, prompt_of = torch.unique(
                torch.stack([*inputs.values()], dim=2), dim=0, return_inverse=True
            )
            cache = prefilled(model, *prompts[:, :-1].unbind(2))
            if cache is not None:
                cache.batch_select_indices(prompt_of)
                options["past_key_values"] = cache
        return stock(**inputs, **options)

    model.generate = generate
    try:
        yield
    finally:
        del model.generate


def prefilled(model: Any, ids: Tensor, mask: Tensor) -> Any:
    """Keys and values of left-padded prompts, shape (G, L); None if the model keeps another cache."""
    from transformers.cache_utils import DynamicCache

    if ids.shape[1] == 0:
        return None
    cache = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=(mask.cumsum(1) - 1).clamp(min=0),
        use_cache=True,
        logits_to_keep=1,
    ).past_key_values
    plain = type(cache) is DynamicCache and cache.get_seq_length() == ids.shape[1]
    return cache if plain else None


def sorted_by_prompt(batches: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Micro batches of the same rows, cut after sorting them by prompt and response.

    Batches are of equal size, as trl buffers them: tensors and lists with an entry per row, and scalars.
    """
    import torch

    names = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")
    rows = torch.cat([torch.cat([batch[name] for name in names], dim=1) for batch in batches])
    order = torch.unique(rows, dim=0, return_inverse=True)[1].argsort(stable=True)
    size = len(rows) // len(batches)
    parts = order.split(size)

    def cut(name: str) -> list[Any]:
        values = [batch[name] for batch in batches]
        if isinstance(values[0], torch.Tensor) and values[0].ndim > 0:
            whole = torch.cat(values)
            return [whole[part] for part in parts]
        if isinstance(values[0], list):
            entries = [entry for value in values for entry in value]
            return [[entries[at] for at in part.tolist()] for part in parts]
        return values

    columns = {name: cut(name) for name in batches[0]}
    return [{name: column[at] for name, column in columns.items()} for at in range(len(batches))]


def has_dropout(model: Any) -> bool:
    """Return True if a forward pass in training draws random numbers."""
    import torch

    settings = model.config.get_text_config().to_dict()
    attention = (settings.get(key) for key in settings if "drop" in key and key.startswith("att"))
    layers = (module.p for module in model.modules() if isinstance(module, torch.nn.Dropout))
    return any([*attention, *layers])


def takes_prompts_apart(model: Any) -> bool:
    """Return True if a prompt can be computed apart from its responses.

    Every layer keeps the keys and values of all tokens, not of a window or a state in their place,
    and the model takes the position of each token.
    """
    from peft import PeftModel
    from transformers.cache_utils import DynamicCache, DynamicLayer

    untyped: Any = DynamicCache
    whole = all(type(layer) is DynamicLayer for layer in untyped(config=model.config).layers)
    base = model.get_base_model() if isinstance(model, PeftModel) else model
    taken = inspect.signature(base.forward).parameters
    return whole and {"position_ids", "logits_to_keep"} <= set(taken)
