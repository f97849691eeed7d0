"""The tiny judges' forward pass in numpy: a Llama of two layers, read at the last token only.

Importing torch and transformers takes longer than judging 4 000 prompts. The figures are those of
the same weights in transformers to 1e-5 in the log-probability of a label, 2e-5 in that of any
token after any tokens (tests/tiny/test_tiny_forward.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unswayed.backends.head_scales import FloatArray, HeadScales, tensors_of
from unswayed.base.errors import UsageError

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Layer:
    """Weights of one layer, each (inputs, outputs); norms are folded into what reads them."""

    query: FloatArray
    key: FloatArray
    value: FloatArray
    out: FloatArray
    gate: FloatArray
    up: FloatArray
    down: FloatArray


@dataclass(frozen=True, slots=True)
class TinyModel:
    """A Llama without biases, with as many key heads as heads and tied embeddings."""

    embeddings: FloatArray  # shape (vocabulary, width)
    layers: tuple[_Layer, ...]
    output: FloatArray  # output layer with the last norm folded in, shape (width, vocabulary)
    heads: int
    longest: int  # most tokens of a prompt and its answer
    # epsilon, theta: of the norms and of the rotary embedding
    epsilon: float
    theta: float

    def logprobs(self, prompts: IntArray) -> NDArray[np.float64]:
        """Log-probability of every token after prompts of shape (prompts, tokens): (prompts, vocabulary)."""
        states = self.embeddings[prompts]
        turns = _turns(prompts.shape[1], self.embeddings.shape[1] // self.heads, self.theta)
        *others, last = self.layers
        for layer in others:
            states = self._through(layer, states, states, turns)
        end = self._through(last, states, states[:, -1:], turns)[:, 0]  # only its end is read
        logits = (_unit(end, self.epsilon) @ self.output).astype(np.float64)
        peak = logits.max(axis=1, keepdims=True)
        total = peak + np.log(np.exp(logits - peak).sum(axis=1, keepdims=True))
        logprobs: NDArray[np.float64] = logits - total
        return logprobs

    def _through(
        self, layer: _Layer, states: FloatArray, reading: FloatArray, turns: tuple[FloatArray, ...]
    ) -> FloatArray:
        """One layer at the last `reading.shape[1]` positions of (prompts, tokens, width)."""
        n, tokens, width = states.shape
        asked = reading.shape[1]
        seen = _unit(states, self.epsilon)

        def heads(inputs: FloatArray, weights: FloatArray) -> FloatArray:
            apart = (inputs @ weights).reshape(n, -1, self.heads, width // self.heads)
            return apart.transpose(0, 2, 1, 3)

        query = _turned(heads(seen[:, -asked:], layer.query), turns, tokens - asked)
        key = _turned(heads(seen, layer.key), turns, 0)
        scores = query @ key.transpose(0, 1, 3, 2)
        later = np.triu(np.ones((asked, tokens), dtype=np.bool_), k=tokens - asked + 1)
        scores[..., later] = -np.inf
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        attended = (weights @ heads(seen, layer.value)).transpose(0, 2, 1, 3)
        reading = reading + attended.reshape(n, asked, width) @ layer.out
        inner = _unit(reading, self.epsilon)
        gate = inner @ layer.gate
        gated = gate / (1 + np.exp(-gate)) * (inner @ layer.up)
        after: FloatArray = reading + gated @ layer.down
        return after


def read_model(folder: Path, scales: HeadScales | None = None) -> TinyModel:
    """Return the model of a folder as transformers writes it, with its heads and neurons scaled."""
    try:
        config = json.loads((folder / "config.json").read_text())
        tensors = tensors_of((folder / "model.safetensors").read_bytes())[0]
        if config["model_type"] != "llama" or not config["tie_word_embeddings"]:
            raise ValueError("not a Llama with tied embeddings")
        layers = tuple(
            _layer(tensors, f"model.layers.{number}.", config["num_attention_heads"])
            for number in range(config["num_hidden_layers"])
        )
        if scales is not None:
            scales.check(len(layers), config["num_attention_heads"], len(layers[0].down))
            wide = np.repeat(scales.heads, len(layers[0].out) // scales.heads.shape[1], axis=1)
            neurons = np.ones((len(wide), 1)) if scales.neurons is None else scales.neurons
            layers = tuple(
                replace(layer, out=layer.out * out[:, None], down=layer.down * down[:, None])
                for layer, out, down in zip(layers, wide, neurons, strict=True)
            )
        embeddings = tensors["model.embed_tokens.weight"]
        return TinyModel(
            embeddings=embeddings,
            layers=layers,
            output=tensors["model.norm.weight"][:, None] * embeddings.T,
            heads=config["num_attention_heads"],
            longest=config["max_position_embeddings"],
            epsilon=config["rms_norm_eps"],
            theta=config["rope_parameters"]["rope_theta"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{folder}: the built-in judge cannot be read ({error}). Install unswayed again."
        ) from error


def _layer(tensors: Mapping[str, FloatArray], prefix: str, heads: int) -> _Layer:
    before = tensors[f"{prefix}input_layernorm.weight"][:, None]
    between = tensors[f"{prefix}post_attention_layernorm.weight"][:, None]

    def weights(name: str) -> FloatArray:
        return tensors[f"{prefix}{name}.weight"].T

    query = before * weights("self_attn.q_proj")
    return _Layer(
        query=query * np.float32((query.shape[1] // heads) ** -0.5),
        key=before * weights("self_attn.k_proj"),
        value=before * weights("self_attn.v_proj"),
        out=weights("self_attn.o_proj"),
        gate=between * weights("mlp.gate_proj"),
        up=between * weights("mlp.up_proj"),
        down=weights("mlp.down_proj"),
    )


def _unit(states: FloatArray, epsilon: float) -> FloatArray:
    """Divided by the root mean square of each row; the norm's weight is in the next layer's."""
    squares = np.einsum("...d,...d->...", states, states) / states.shape[-1]
    scaled: FloatArray = states / np.sqrt(squares + np.float32(epsilon))[..., None]
    return scaled


def _turns(tokens: int, width: int, theta: float) -> tuple[FloatArray, FloatArray]:
    """Cosine and sine of the rotary embedding, each (tokens, width / 2)."""
    speeds = theta ** -(np.arange(0, width, 2) / width)
    angles = np.arange(tokens)[:, None] * speeds
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _turned(heads: FloatArray, turns: tuple[FloatArray, ...], begin: int) -> FloatArray:
    """Rotated by position, the first of them `begin`; shape (prompts, heads, tokens, width)."""
    cosine, sine = (turn[begin : begin + heads.shape[2]] for turn in turns)
    left, right = np.split(heads, 2, axis=-1)
    turned = (left * cosine - right * sine, right * cosine + left * sine)
    return np.concatenate(turned, axis=-1)
