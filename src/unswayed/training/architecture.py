"""The model's shape without its weights: built from its config on the meta device, in a second.

What is counted here is exact: parameters and adapters are those that training will load and add.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from unswayed.backends.local_models import build_outline, shortened
from unswayed.base.errors import UsageError
from unswayed.training.recipe_parts import Recipe
from unswayed.training.trainer_arguments import lora_config

SHOWN: Final = 12
"""Names of layers that an error lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A causal language model, as sizes."""

    parameters: int  # of the base model; tied ones count once
    adapter: int  # of the adapter; 0 without one
    layers: int  # decoder layers
    # hidden, intermediate: width of a layer and of its feed-forward part
    hidden: int
    intermediate: int
    # heads, kv_heads, head_dim: of attention
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int  # rows of the output layer
    largest_layer: int  # parameters of the largest decoder layer
    ends: int  # parameters outside the decoder layers: embeddings and output layer
    normed: int  # widths that a decoder layer normalises, added up
    adapted: int  # input widths of the adapted layers of a decoder layer, added up
    largest_rank: int  # the highest rank that an adapted layer can have; 0 without an adapter
    context: int | None  # positions the model knows; None if it does not say

    @property
    def trained(self) -> int:
        """Parameters that training changes."""
        return self.adapter or self.parameters

    @property
    def cache_values(self) -> int:
        """Numbers that the KV cache keeps for one token."""
        return 2 * self.layers * self.kv_heads * self.head_dim


def build_skeleton(folder: Path) -> Any:
    """Return the model of a folder on the meta device, if it generates text."""
    import transformers

    model = build_outline(folder, name=str(folder))
    if not model.config.architectures:
        raise UsageError(
            f"{folder}: config.json names no architectures, so trl cannot know which class to load. "
            "Save the model again with save_pretrained."
        )
    named = getattr(transformers, model.config.architectures[0], None)
    if named is not None and not issubclass(named, transformers.GenerationMixin):
        raise UsageError(
            f"{folder} is a {named.__name__}, which generates no text. Train a causal language model."
        )
    return model


def check_quantised(model: Any, recipe: Recipe) -> None:
    """Check that quantised weights have an adapter to train, and the package that reads them."""
    settings = getattr(model.config, "quantization_config", None)
    if settings is None:
        return
    if recipe.lora is None:
        raise UsageError(
            "the model's weights are quantised and cannot be trained themselves. Add a table lora "
            "to the recipe, or train the model that it was made from."
        )
    from transformers.quantizers.auto import AutoHfQuantizer

    untyped: Any = AutoHfQuantizer
    try:
        untyped.from_config(settings, pre_quantized=True).validate_environment(device_map=None)
    except ImportError as error:
        raise UsageError(f"the model's weights are quantised: {shortened(error)}") from None
    except (RuntimeError, ValueError):
        return  # no GPU here, which a dry run need not have


def shape_of(model: Any, recipe: Recipe, *, sampled: bool) -> Architecture:
    """Return the sizes of a model on the meta device, on which the recipe's adapter is put.

    trl, where it samples responses, reads the output layer's own weight, which is then not adapted.
    """
    import torch

    text = model.config.get_text_config()
    lists = [list(x) for x in model.modules() if isinstance(x, torch.nn.ModuleList)]
    stack = max(lists, key=len, default=[model])  # the repeated layers
    heads = text.num_attention_heads
    kv_heads = getattr(text, "num_key_value_heads", None) or heads
    head_dim = getattr(text, "head_dim", None) or text.hidden_size // heads
    parts = {name.rpartition(".")[2] for name, _ in stack[0].named_modules()}
    normed_heads = heads + kv_heads if "q_norm" in parts else 0
    parameters = sum(weight.numel() for weight in model.parameters())
    sizes = [sum(weight.numel() for weight in layer.parameters()) for layer in stack]
    adapters = [] if recipe.lora is None else _adapters(model, recipe, sampled=sampled)
    trained = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    return Architecture(
        parameters=parameters,
        adapter=trained if adapters else 0,
        layers=len(stack),
        hidden=text.hidden_size,
        intermediate=getattr(text, "intermediate_size", None) or 4 * text.hidden_size,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocabulary=text.vocab_size,
        largest_layer=max(sizes),
        ends=parameters - sum(sizes),
        normed=2 * text.hidden_size + normed_heads * head_dim,
        adapted=sum(layer.in_features for layer in adapters) // len(stack),
        largest_rank=max((min(x.in_features, x.out_features) for x in adapters), default=0),
        context=getattr(text, "max_position_embeddings", None),
    )


def _adapters(model: Any, recipe: Recipe, *, sampled: bool) -> list[Any]:
    """Return the adapted layers, after the adapter was put on as training will."""
    import torch
    from peft import get_peft_model
    from peft.tuners.lora import LoraLayer

    asked = lora_config(recipe)
    output = model.get_output_embeddings()
    kinds = sorted(
        {
            name.rpartition(".")[2]
            for name, module in model.named_modules()
            if isinstance(module, torch.nn.Linear) and not (sampled and module is output)
        }
    )
    remedy = (
        f"The model has the linear layers {', '.join(kinds[:SHOWN])}: set lora.target to "
        f'"all-linear", or to a regular expression of whole names, such as ".*{kinds[0]}".'
    )
    try:
        with torch.device("meta"):
            get_peft_model(model, asked)
    except (ValueError, re.error) as error:
        raise UsageError(
            f"lora.target {asked.target_modules!r} makes no adapter: {shortened(error)} {remedy}"
        ) from None
    if sampled and isinstance(model.get_output_embeddings(), LoraLayer):
        raise UsageError(
            f"lora.target {asked.target_modules!r} adapts the output layer, whose own weight trl "
            f"reads, so that its adapter would never be trained. {remedy}"
        )
    return [module for module in model.modules() if isinstance(module, LoraLayer)]
