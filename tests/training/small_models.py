"""A tiny Llama with random weights and a word-level tokenizer, on disk, items in its words."""

import os

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import random

from unswayed.model.items import Item, Task, encode_item
from unswayed.training.planning import plan_training
from unswayed.training.recipe import load_recipe, with_changes
from unswayed.training.run import train
from unswayed.training.table import OBJECTIVES

COLOURS = ("red", "blue", "green", "cyan", "pink", "gold")
SENTENCE = "<pad> <unk> <|user|> <|assistant|> <|end|> A B C D : . ? which of these is warmer"
WORDS = [*SENTENCE.split(), *COLOURS, *map(str, range(10))]
TEMPLATE = (
    "which of these is warmer {{ question }}"
    "{% for c in candidates %} {{ c.label }} : {{ c.text }} .{% endfor %} ?"
)
CHAT = (
    "{% for m in messages %}{% if m.role == 'assistant' %}<|assistant|> {{ m.content }} <|end|> "
    "{% else %}<|user|> {{ m.content }} {% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def save_word_model(folder, *, seed=0, context=64, chat=CHAT, **model):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(
        models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="<unk>")
    )
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        unk_token="<unk>",
        pad_token="<pad>",
        eos_token="<|end|>",
        additional_special_tokens=["<|user|>", "<|assistant|>"],
    )
    tokenizer.chat_template = chat
    save_model(folder, tokenizer, size=len(WORDS), seed=seed, context=context, **model)
    (folder / "prompt_template.jinja").write_text(TEMPLATE)
    return folder


def save_model(
    folder,
    tokenizer,
    *,
    size,
    seed=0,
    context=64,
    labels="ABCD",
    pull=1.2,
    kind="llama",
    tied=False,
):
    """Random weights with a pull towards the labels everywhere, so that answers vary."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(
            kind,
            vocab_size=size,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=8,
            max_position_embeddings=context,
            tie_word_embeddings=tied,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            initializer_range=0.2,
        )
    )
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = 2.0
        model.lm_head.weight[:, 0] = 0.0
        for label in tokenizer.convert_tokens_to_ids(list(labels)):
            model.lm_head.weight[label, 0] = pull
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def colour_items(count, *, n=2, seed=0):
    draw = random.Random(seed)
    return [
        Item(
            id=f"q{number}",
            task=Task.PAIRWISE if n == 2 else Task.MCQ,
            prompt=str(number % 10),
            candidates=tuple(draw.sample(COLOURS, n)),
            gold=draw.randrange(n),
        )
        for number in range(count)
    ]


def small_settings(n=2, **changes):
    """What makes a recipe one of seconds; `reward_lam="0.5"` sets `reward.lam`."""
    small = {
        "data.held_out": "0",
        "data.max_prompt_tokens": "64",
        "prompt.max_response_tokens": "1",
        "rollout.samples": "4" if n == 2 else "2",
        "optimiser.items_per_step": "2",
        "optimiser.steps": "2",
        "optimiser.learning_rate": "1e-3",
        "run.micro_batch": "8" if n == 2 else "10",
        "run.save_every": "0",
        "run.check_every": "0",
        "run.loggers": "[]",
    }
    return small | {key.replace("_", ".", 1): value for key, value in changes.items()}


def small_recipe(n=2, **changes):
    """A recipe of seconds."""
    recipe = load_recipe("tiny-judge" if n == 2 else "tiny-mcq")
    return with_changes(recipe, small_settings(n, **changes))


def small_plan(
    model, objective="pa-grpo", items=6, n=2, *, recipe=None, consistency=None, advantage=None, **changes
):  # fmt: skip
    """The plan of a recipe, or of a small one with changes, for these items or for so many."""
    return plan_training(
        objective,
        colour_items(items, n=n) if isinstance(items, int) else items,
        model=str(model),
        recipe=recipe or small_recipe(n, **changes),
        consistency=consistency,
        advantage=advantage,
    )


def small_run(model, out, *given, report=None, **changes):
    """Plan and train, as the command does."""
    return train(small_plan(model, *given, **changes), out, report=report)


def small_command(folder, model, objective="pa-grpo", items=6, **changes):
    """The words after `unswayed` that plan the same, of items in a file in the folder."""
    file = folder / "items.jsonl"
    data = colour_items(items) if isinstance(items, int) else items
    file.write_bytes(b"".join(encode_item(item) + b"\n" for item in data))
    settings = small_settings(**changes).items()
    sets = [part for field, value in settings for part in ("--set", f"{field}={value}")]
    return ["train", objective, str(file), "--recipe", "tiny-judge", "--model", str(model), *sets]


def settings_of(objective, recipe, *, consistency=None, advantage=None):
    """The reward that an objective takes from a recipe and the options."""
    return OBJECTIVES.load(objective).settings(recipe, consistency=consistency, advantage=advantage)
