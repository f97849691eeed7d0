"""Questions of `local.py`, and the model with random weights that answers them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from unswayed.model.items import Item, ItemSet, Task
from unswayed.model.presentation import Ask, presentations
from unswayed.prompts import PromptSettings, render

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class Work(NamedTuple):
    """Items of random words, each asked in some orders.

    Attributes:
        name: What it stands for.
        question: Words of a question.
        candidate: Words of a candidate, on average.
        n: Candidates.
        items: How many.
        shots: Examples shown before each, which all items share.
    """

    name: str
    question: int
    candidate: int
    n: int
    items: int
    shots: int = 0

    def settings(self) -> PromptSettings:
        """Prompt settings of the items: with examples, if any."""
        examples = (
            self._replace(items=self.shots, shots=0).item_set(1, seed=1) if self.shots else ()
        )
        return PromptSettings(shots=tuple(examples))

    def item_set(self, share: float, *, seed: int = 0) -> ItemSet:
        chance = random.Random(seed)

        def text(words: int) -> str:
            return " ".join(chance.choices(WORDS, k=chance.randint(words // 2, words * 3 // 2)))

        items = [
            Item(
                id=f"item-{seed}-{number}",
                task=Task.MCQ if self.n > 2 else Task.PAIRWISE,
                prompt=text(self.question),
                candidates=tuple(f"{text(self.candidate)} {k}" for k in range(self.n)),
                gold=number % self.n,
            )
            for number in range(max(1, round(share * self.items)))
        ]
        return ItemSet.of(items, name=self.name)


TEXT = (
    "the model judge answer option score prompt label river bridge kettle planet sonnet engine "
    "garden because of time and change over years why does water move under old stone"
)
WORDS = TEXT.split()
TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
WORKS = (
    Work("4 options × 24 orders, short", 60, 12, 4, 20),
    Work("4 options × 24 orders, 600 words", 600, 12, 4, 20),
    Work("pairs × 2 orders, long answers", 40, 200, 2, 20),
    Work("pairs × 2 orders, short", 40, 12, 2, 60),
    Work("pairs × 2 orders, 8 examples", 40, 12, 2, 60, shots=8),
)


def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE, learned from the prompts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "</s>", "<|system|>", "<|user|>", "<|assistant|>"]
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    texts = [
        message.content
        for work in WORKS
        for item in work.item_set(0.05)
        for message in render(
            item, Ask(presentations("identity", item.n)[0]), PromptSettings()
        ).messages
    ]
    bpe.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=4096,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="</s>",
        pad_token="<pad>",
        additional_special_tokens=special[2:],
        chat_template=TEMPLATE,
    )


def make_model(folder: Path, width: int, layers: int) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=4096,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        num_key_value_heads=width // 64,
        max_position_embeddings=8192,
        initializer_range=0.1,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
