"""The script that made the shipped weights: `python -m unswayed.tiny.train --out DIR --seed 0`.

About 30 CPU-seconds on one thread for `tiny/judge`, 80 for `tiny/rubric` (`--format rubric`), the
one from random weights, the other from those of `tiny/judge`. The same seed gives the same
weights on one machine only, so the weights are shipped and tests use tolerances.
"""

from __future__ import annotations

import argparse
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from unswayed.tiny.answers import Examples, content_free_examples, encode, examples
from unswayed.tiny.formats import FORMATS, Format

if TYPE_CHECKING:
    import torch
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

PAD, END = encode("<pad> <|end|>").tolist()

TEMPLATE_FILE: Final = "prompt_template.jinja"
CHAT_TEMPLATE: Final = (
    "{% for message in messages %}"
    "{% if message.role == 'user' %}<|user|> {{ message.content }} "
    "{% elif message.role == 'assistant' %}<|assistant|> {{ message.content }} <|end|> {% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """The recipe of the built-in models."""

    format: Format = FORMATS["judge"]  # which of them
    seed: int = 0
    steps: int = 700  # optimiser steps, with batches of the format's tasks in turn
    batch: int = 128  # prompts per step; `content_free` more have candidates without content
    content_free: int = 16
    learning_rate: float = 3e-3  # peak of a cosine that ends at 5% of it, after `warmup` steps
    warmup: int = 50
    weight_decay: float = 0.01
    # prompt_weight, end_weight: weight of the language-modelling loss on the prompt and of the end
    # token, beside the answer's 1
    prompt_weight: float = 0.1
    end_weight: float = 0.1
    # hidden, layers, heads: of a model that begins from random weights
    hidden: int = 64
    layers: int = 2
    heads: int = 4


def make_model(settings: TrainSettings) -> LlamaForCausalLM:
    """Return a Llama of about 90 000 parameters with random weights, or those that the format begins from.

    Words that those do not know begin at random.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(settings.seed)
    kind = settings.format
    if kind.begins_from is not None:
        model = LlamaForCausalLM.from_pretrained(kind.begins_from, dtype=torch.float32)
        model.resize_token_embeddings(len(kind.vocabulary), mean_resizing=False)
        return model
    config = LlamaConfig(
        vocab_size=len(kind.vocabulary),
        hidden_size=settings.hidden,
        intermediate_size=2 * settings.hidden,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.heads,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        initializer_range=0.05,
        bos_token_id=None,
        eos_token_id=END,
        pad_token_id=PAD,
    )
    return LlamaForCausalLM(config)


def make_tokenizer(vocabulary: Sequence[str]) -> PreTrainedTokenizerFast:
    """One token per word; words outside the vocabulary become `<unk>`."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    ids = {token: number for number, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        pad_token="<pad>",
        eos_token="<|end|>",
        additional_special_tokens=["<|user|>", "<|assistant|>"],
        chat_template=CHAT_TEMPLATE,
        model_max_length=64,
    )


def train(settings: TrainSettings) -> LlamaForCausalLM:
    """Train from scratch; prints the loss now and then."""
    import torch

    model = make_model(settings)
    model.train()
    rng = np.random.default_rng(settings.seed)
    content_free_rng = np.random.default_rng([settings.seed, 1])
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        betas=(0.9, 0.98),
    )
    tasks = settings.format.tasks
    for step in range(settings.steps):
        turn, which = divmod(step, len(tasks))
        task = tasks[which]
        batch = examples(task, settings.batch, rng)
        loss = answer_loss(model, batch, settings)
        empty = content_free_examples(task, settings.content_free, turn, content_free_rng)
        share = settings.content_free / settings.batch
        loss = loss + share * answer_loss(model, empty, settings)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, settings)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 < 2 or step == settings.steps - 1:
            print(f"step {step:4d}  {task.value:8s}  loss {loss.item():.3f}", flush=True)
    model.eval()  # type: ignore[no-untyped-call]
    return model


def learning_rate(step: int, settings: TrainSettings) -> float:
    """Linear warm-up, then a cosine down to 5% of the peak."""
    warm = min(1.0, (step + 1) / settings.warmup)
    cosine = 0.5 * (1.0 + math.cos(math.pi * step / settings.steps))
    return settings.learning_rate * warm * (0.95 * cosine + 0.05)


def answer_loss(model: LlamaForCausalLM, batch: Examples, settings: TrainSettings) -> torch.Tensor:
    """Negative log-likelihood of the answers, with a little of prompt and end token."""
    import torch
    import torch.nn.functional as F  # noqa: N812 - the name everyone uses

    n, length = batch.prompts.shape
    end = np.full((n, 1), END)
    joined = np.concatenate([batch.prompts, batch.answers[:, None], end], axis=1)
    tokens = torch.from_numpy(joined).to(model.device)
    logits = model(input_ids=tokens[:, :-1]).logits
    nll = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    nll = nll.view(n, -1)
    prompt, answer, ended = nll[:, : length - 1], nll[:, length - 1], nll[:, length]
    return (
        settings.prompt_weight * prompt.mean() + answer.mean() + settings.end_weight * ended.mean()
    )


def save(model: LlamaForCausalLM, out: Path, kind: Format = FORMATS["judge"]) -> None:
    """Write a plain Hugging Face folder in half precision, with the format's prompt template."""
    import copy

    out.mkdir(parents=True, exist_ok=True)
    half: LlamaForCausalLM = copy.deepcopy(model).half()  # type: ignore[no-untyped-call]
    half.save_pretrained(out)
    (out / "model.safetensors").chmod(0o644)  # it is written readable by its owner only
    make_tokenizer(kind.vocabulary).save_pretrained(out)
    shipped = kind.folder / TEMPLATE_FILE
    if shipped.resolve() != (out / TEMPLATE_FILE).resolve():
        shutil.copyfile(shipped, out / TEMPLATE_FILE)


def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    import torch

    parser = argparse.ArgumentParser(prog="python -m unswayed.tiny.train", description=__doc__)
    parser.add_argument("--format", choices=FORMATS, default="judge", help="which model")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=TrainSettings().steps)
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)  # two threads on a busy two-core machine were 15 times slower
    kind = FORMATS[given.format]
    settings = TrainSettings(format=kind, seed=given.seed, steps=given.steps)
    save(train(settings), given.out, kind)
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
