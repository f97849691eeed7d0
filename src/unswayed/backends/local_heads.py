"""Attention heads and MLP neurons of a decoder: find, scale and watch them.

A head is a slice of the input of its layer's attention output projection, a neuron is one input of
the last MLP projection. `W (g * x) = (W diag g) x`: a scale is a hook while masks are compared, and
is folded into the weight for use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from unswayed.backends.head_scales import FloatArray, HeadScales
from unswayed.base.errors import UsageError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

ATTENTION: Final = re.compile(
    r"(?:^|\.)(?:self_attn|attn|attention|self_attention)\.(?:o_proj|out_proj|dense|c_proj)$"
)
MLP: Final = re.compile(r"(?:^|\.)(?:mlp\.(?:down_proj|dense_4h_to_h|fc2|c_proj)|fc2)$")
NORM: Final = re.compile(r"(?:^|decoder\.)(?:norm|ln_f|final_layer_?norm)$")
EXPERTS: Final = ("num_experts", "num_local_experts", "n_routed_experts")
"""Fields of configurations with mixtures of experts, whose neurons are left alone."""


class HeadSites:
    """The projections whose inputs are heads and neurons, one of each per layer.

    Raises:
        UsageError: If the model's modules do not have the usual names, one per layer.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        config = model.config.get_text_config()
        self.layers = config.num_hidden_layers
        self.heads = getattr(config, "num_attention_heads", 0)
        named = dict(model.base_model.named_modules())
        places = [place for place in named if ATTENTION.search(place)]
        self.attention = [named[place] for place in places]
        self.blocks = [named[place.rsplit(".", 2)[0]] for place in places]
        self.norms = [module for place, module in named.items() if NORM.search(place)]
        mixed = any(getattr(config, name, 0) for name in EXPERTS)
        self.mlp = [] if mixed else [named[place] for place in named if MLP.search(place)]
        widths = {width_of(module) for module in self.attention}
        inner = {0} if mixed else {width_of(module) for module in self.mlp}
        counts = len(self.attention), len(self.mlp) or mixed * self.layers
        single = (len(widths), len(inner), len(self.norms)) == (1, 1, 1)
        if counts != (self.layers, self.layers) or not single or max(widths) % self.heads:
            raise UsageError(
                f"{type(model).__name__}: of {self.layers} layers {counts[0]} have an attention projection and "
                f"{counts[1]} an MLP projection of a usual name, with {len(self.norms)} final norms, so heads "
                "cannot be scaled here. Choose a model of another family, or a correction of probabilities."
            )
        (self.width,), (self.neurons,) = widths, inner

    def _scaled(self, scales: HeadScales) -> Iterator[tuple[Any, FloatArray]]:
        """Yield the projections whose inputs change, with the scale of each input."""
        scales.check(self.layers, self.heads, self.neurons)
        wide = np.repeat(scales.heads, self.width // self.heads, axis=1)
        for modules, rows in ((self.attention, wide), (self.mlp, scales.neurons)):
            if rows is not None:
                pairs = zip(modules, rows, strict=True)
                yield from ((module, row) for module, row in pairs if (row != 1).any())

    @contextmanager
    def hooked(self, scales: HeadScales) -> Iterator[None]:
        """Scale by hooks until the block ends."""
        with ExitStack() as stack:
            for module, row in self._scaled(scales):
                stack.callback(_hook(module, row).remove)
            yield

    def apply(self, scales: HeadScales) -> None:
        """Fold scales into the weights for good; quantised and adapted projections keep a hook."""
        import torch
        from transformers.pytorch_utils import Conv1D

        full = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
        for module, row in self._scaled(scales):
            weight = module.weight if isinstance(module, torch.nn.Linear | Conv1D) else None
            if weight is None or weight.is_meta or weight.dtype not in full:
                _hook(module, row)
                continue
            factor = torch.from_numpy(row).to(weight)
            with torch.no_grad():
                weight.mul_(factor[:, None] if isinstance(module, Conv1D) else factor)

    @contextmanager
    def watched(self, watch: Callable[[str, int, torch.Tensor], None]) -> Iterator[None]:
        """Show what enters layers ("residual"), heads and neurons, with the layer, until the block ends."""
        parts = {"residual": self.blocks, "heads": self.attention, "neurons": self.mlp}

        def see(part: str, layer: int, _: object, inputs: Any, named: Any) -> None:
            watch(part, layer, inputs[0] if inputs else named["hidden_states"])

        with ExitStack() as stack:
            for part, layer in product(parts, range(self.layers)):
                for module in parts[part][layer : layer + 1]:
                    hook = partial(see, part, layer)
                    stack.callback(module.register_forward_pre_hook(hook, with_kwargs=True).remove)
            yield


def width_of(module: Any) -> int:
    """Return the number of inputs of a projection; GPT-2 keeps its weights transposed."""
    return int(getattr(module, "in_features", None) or module.weight.shape[0])


def _hook(module: Any, row: FloatArray) -> Any:
    import torch

    factor = torch.from_numpy(row)

    def scaled(_: object, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return inputs[0] * factor.to(inputs[0]), *inputs[1:]

    return module.register_forward_pre_hook(scaled)
