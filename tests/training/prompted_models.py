"""Tiny models whose chat templates differ as those of real families do, and what is put to them."""

from contextlib import contextmanager

from small_models import save_model

from unswayed.backends.huggingface import HuggingFaceBackend
from unswayed.model.items import Item, Task
from unswayed.model.presentation import Ask, canonical
from unswayed.prompts import PromptSettings, render

SPECIAL = ("<pad>", "<|end|>", "<|start|>", "<|eot_id|>", "<|im_end|>")
PLAIN = (
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
CHATS = {
    "plain": PLAIN,
    "begins with a token": "{{ bos_token }}" + PLAIN,
    "refuses the system role": (
        "{{ bos_token }}{% if messages[0].role == 'system' %}"
        "{{ raise_exception('System role not supported') }}{% endif %}" + PLAIN
    ),
    "can think": PLAIN.removesuffix("{% endif %}")
    + "{% if enable_thinking is defined and enable_thinking is false %}"
    "<think>\n\n</think>\n\n{% endif %}{% endif %}",
    "none": None,
}


def save_chat_model(folder, chat):
    """Its tokenizer puts a token before every text and names none for padding, as that of Llama."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=[*SPECIAL, "<bos>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(corpus(), trainer)
    inner.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", inner.token_to_id("<bos>"))]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<bos>",
        eos_token="<|end|>",
        additional_special_tokens=list(SPECIAL[2:]),
    )
    tokenizer.chat_template = chat
    return save_model(folder, tokenizer, size=len(tokenizer), context=1024, pull=6.0)


def corpus():
    """Our own words, so that prompts have few tokens."""
    return [
        message.content
        for item in pairs()
        for style in ("direct", "reasoning")
        for message in render(item, Ask(canonical(2), style), PromptSettings()).messages
    ]


def pairs(count=2, *, text="plain"):
    return [
        Item(
            id=f"q{number}",
            task=Task.PAIRWISE,
            prompt=f"Which is better, number {number}?",
            candidates=(f"{text} first {number}", f"second {number}"),
            gold=number % 2,
        )
        for number in range(count)
    ]


@contextmanager
def noting_audits():
    """Notes the token ids of every prompt that the `hf` backend puts to a model."""
    sent, prepare = set(), HuggingFaceBackend._prepare

    def noting(self, window):
        jobs, refused = prepare(self, window)
        assert not refused
        sent.update(tuple(job.tokens) for job in jobs)
        return jobs, refused

    HuggingFaceBackend._prepare = noting
    try:
        yield sent
    finally:
        HuggingFaceBackend._prepare = prepare


@contextmanager
def noting_rollouts():
    """Notes the token ids of every prompt that trl samples responses to."""
    from trl import GRPOTrainer

    sent, generate = set(), GRPOTrainer._generate_single_turn

    def noting(self, prompt_ids, *rest):
        sent.update(map(tuple, prompt_ids))
        return generate(self, prompt_ids, *rest)

    GRPOTrainer._generate_single_turn = noting
    try:
        yield sent
    finally:
        GRPOTrainer._generate_single_turn = generate
