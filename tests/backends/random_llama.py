"""A small Llama with random weights and a byte-level BPE tokenizer, as a plain folder."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from unswayed.model.items import Item, Task
from unswayed.model.presentation import Ask, canonical
from unswayed.prompts import PromptSettings, render

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
SPECIAL = ["<s>", "</s>", "<pad>", "<|user|>", "<|assistant|>", "<|system|>"]
LAYERS, WIDTH, HEADS, INNER = 2, 64, 4, 128


def corpus() -> list[str]:
    """Our own prompts about made-up items."""
    things = ("rivers", "bridges", "kettles", "planets", "sonnets", "engines", "gardens")
    texts = []
    for number, thing in enumerate(things):
        for n in (2, 4):
            item = Item(
                id=f"c{number}-{n}",
                task=Task.PAIRWISE if n == 2 else Task.MCQ,
                prompt=f"How do {thing} change over the years, and why?",
                candidates=tuple(
                    f"{thing} change in way {k} because of {t}."
                    for k, t in zip(range(n), things, strict=False)
                ),
            )
            rendered = render(item, Ask(canonical(n)), PromptSettings())
            texts += [message.content for message in rendered.messages]
    return texts


@cache
def trained_bpe(vocabulary: int) -> str:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(corpus(), trainer)
    return str(bpe.to_str())


def make_random_llama(
    folder: Path, *, seed: int = 0, vocabulary: int = 600, chat_template: str | None = CHAT_TEMPLATE
) -> Path:
    """Write the model; the same seed gives the same weights."""
    import torch
    from tokenizers import Tokenizer
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(trained_bpe(vocabulary)),
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        additional_special_tokens=SPECIAL[3:],
        chat_template=chat_template,
    )
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=1024,
        initializer_range=0.2,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_adapter(folder: Path, out: Path, *targets: str) -> None:
    """Write a random adapter of a model to `out/lora`, and the two merged to `out/merged`."""
    import peft
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(1)
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    config = peft.LoraConfig(r=4, target_modules=list(targets), init_lora_weights=False)
    adapted = peft.get_peft_model(base, config)
    adapted.save_pretrained(out / "lora")
    adapted.merge_and_unload().save_pretrained(out / "merged")
    AutoTokenizer.from_pretrained(folder).save_pretrained(out / "merged")
