"""The built-in judge with more heads and neurons, of which one of each pushes a label."""

from __future__ import annotations

import copy
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unswayed.tiny.backend import WEIGHTS
from unswayed.tiny.items import VOCABULARY

LAYER = 1
WIDTH = 16


def grown() -> Any:
    """The judge with more heads and a neuron per layer, whose weights are all zero."""
    import torch
    from transformers import LlamaForCausalLM

    base = LlamaForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float32)
    config = copy.deepcopy(base.config)
    config.head_dim = WIDTH
    config.num_attention_heads *= 2  # transformers wants a divisor of the width
    config.num_key_value_heads *= 2
    config.intermediate_size += 1
    larger = LlamaForCausalLM(config).eval()
    weights = larger.state_dict()
    for name, own in base.state_dict().items():
        whole = weights[name].zero_()
        whole[tuple(slice(0, size) for size in own.shape)] = own
    return larger


def plant(
    model: Any, prompts: Sequence[Sequence[int]], *, head: float = 0.0, neuron: float = 0.0
) -> None:
    """Let the last head and neuron of a layer push label A by so many logits, on these prompts."""
    import torch

    layer = model.model.layers[LAYER]
    seen: list[torch.Tensor] = []
    norms = layer.input_layernorm, layer.post_attention_layernorm
    hooks = [norm.register_forward_hook(lambda _, __, out: seen.append(out)) for norm in norms]
    with torch.no_grad():
        model(torch.tensor(prompts), use_cache=False)
        for hook in hooks:
            hook.remove()
        rows = model.lm_head.weight[[VOCABULARY.index(label) for label in "AB"]]
        apart = rows[0] - rows[1]
        apart = apart / (apart @ apart)
        ones = torch.ones(len(prompts), 1)
        # uniform attention reads the mean of all tokens, the MLP the last one
        value = torch.linalg.lstsq(seen[0].mean(1), ones).solution[:, 0]
        last = torch.linalg.lstsq(seen[1][:, -1], ones).solution[:, 0]
        attention, mlp = layer.self_attn, layer.mlp
        if head:
            attention.v_proj.weight[-WIDTH] = value
            attention.o_proj.weight[:, -WIDTH] = head * apart
        if neuron:
            mlp.gate_proj.weight[-1] = 3 * last
            mlp.up_proj.weight[-1] = last
            mlp.down_proj.weight[:, -1] = neuron * apart * (1 + math.exp(-3)) / 3


def save(model: Any, folder: Path) -> Path:
    """Write a folder that can be asked as the built-in judge is."""
    shutil.copytree(WEIGHTS, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    model.save_pretrained(folder)
    return folder
