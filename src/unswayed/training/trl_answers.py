"""Answers of a model in training, from where its rollouts come: transformers, or vLLM.

Under several processes each answers its share of the prompts: prompts in order of length go round
the processes, and the last round is filled up with prompts that somebody has already, so that all
take part in equally many forward passes of like size (with sharded weights they have to). What a
process could not answer it says where all meet, so nobody waits for it; only a failure inside a
forward pass of sharded weights leaves the others in that pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from unswayed.backends.local_texts import end_ids
from unswayed.base.errors import first_line
from unswayed.training.plan import Plan
from unswayed.training.processes import everyone
from unswayed.training.protocol import AnswerError

TOKENS: Final = 65_536
"""Most tokens, prompts and answers together, that a process holds at once. Their keys and values
take 8.6 GB in a Llama of 8 billion weights, less than those of a step's rollouts."""

GREEDY: Final[Mapping[str, float]] = {
    "temperature": 0.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
}
"""The likeliest token each time: nothing penalised, and no random number drawn."""

Prompt = Sequence[int]


def answers_of(trainer: Any, plan: Plan, prompts: Sequence[Prompt]) -> list[str]:
    """One greedy answer to each prompt, in order, on every process; all call it with the same prompts.

    Raises:
        AnswerError: On every process alike, if one of them failed.
    """
    by_vllm = plan.sampled and plan.recipe.rollout.engine != "transformers"
    world, process = trainer.accelerator.num_processes, trainer.accelerator.process_index
    longest = plan.groups.max_tokens
    lengths = [len(prompt) for prompt in prompts]
    shares = [share(lengths, number, world) for number in range(world)]
    if by_vllm:
        if trainer.state.global_step != trainer._last_loaded_step:  # else rollouts loaded them
            trainer.vllm_generation.sync_weights()
            trainer._last_loaded_step = trainer.state.global_step
        if trainer.vllm_generation.mode == "server":  # the main process asks for all
            shares = [list(range(len(prompts))), *([] for _ in range(world - 1))]
    own = shares[process]
    asked = [prompts[at] for at in own]
    texts: list[str] = []
    reason = ""
    try:
        if by_vllm:
            texts = _by_vllm(trainer, asked, longest)
        else:
            widths = [max(lengths[at] for at in turn) for turn in zip(*shares, strict=True)]
            parts = batches(widths, longest, TOKENS)  # the same for all processes
            texts = _by_transformers(trainer, asked, parts, longest)
    except Exception as error:  # told to all below, whatever it is
        reason = f"{type(error).__name__}: {first_line(error)}"
    answers = [""] * len(prompts)
    for number, (places, part, failure) in enumerate(everyone((own, texts, reason))):
        if failure:
            raise AnswerError(failure if world == 1 else f"process {number}: {failure}")
        for at, text in zip(places, part, strict=True):
            answers[at] = text
    return answers


def share(lengths: Sequence[int], process: int, world: int) -> list[int]:
    """Return the prompts of one process, the shortest first; equally many for every process."""
    by_length = sorted(range(len(lengths)), key=lambda at: lengths[at])
    rounds = -(-len(lengths) // world)
    return [by_length[min(turn * world + process, len(lengths) - 1)] for turn in range(rounds)]


def batches(lengths: Sequence[int], longest_answer: int, tokens: int) -> list[range]:
    """Consecutive prompts whose padded rows and answers hold at most so many tokens.

    A prompt that alone holds more is a batch of its own.
    """
    starts: list[int] = []
    widest = 0
    for at, length in enumerate(lengths):
        widest = max(widest, length + longest_answer)
        if not starts or (at - starts[-1] + 1) * widest > tokens:
            starts.append(at)
            widest = length + longest_answer
    return [range(*ends) for ends in zip(starts, [*starts[1:], len(lengths)], strict=False)]


def _by_transformers(
    trainer: Any, prompts: Sequence[Prompt], parts: Sequence[range], max_tokens: int
) -> list[str]:
    import torch
    from transformers import GenerationConfig
    from trl.models.utils import unwrap_model_for_generation

    tokenizer = trainer.processing_class
    untyped: Any = GenerationConfig  # its constructor is not typed
    config = untyped(
        max_new_tokens=max_tokens,
        do_sample=False,
        repetition_penalty=1.0,
        disable_compile=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=sorted(end_ids(trainer.model, tokenizer)) or None,
    )
    answers: list[str] = []
    failure: Exception | None = None
    was_training = trainer.model.training
    trainer.model.eval()
    with (
        torch.no_grad(),
        unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator) as model,
        _root_weights(trainer),
    ):
        try:
            for batch in parts:
                padded = tokenizer.pad(
                    {"input_ids": [list(prompts[at]) for at in batch]},
                    padding=True,
                    padding_side="left",
                    return_tensors="pt",
                ).to(trainer.accelerator.device)
                sequences = model.generate(
                    input_ids=padded["input_ids"],
                    attention_mask=padded["attention_mask"],
                    generation_config=config,
                )
                responses = sequences[:, padded["input_ids"].shape[1] :]
                answers += tokenizer.batch_decode(responses, skip_special_tokens=True)
        except Exception as error:  # gradient checkpointing comes back on as the context closes
            failure = error
    if was_training:
        trainer.model.train()
    if failure is not None:
        raise failure
    return answers


def _root_weights(trainer: Any) -> AbstractContextManager[Any]:
    """Gather the weights outside the sharded layers, where FSDP 1 keeps them flat; FSDP 2 needs nothing."""
    if trainer.is_fsdp_enabled and trainer.accelerator.state.fsdp_plugin.fsdp_version == 1:
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel.summon_full_params(trainer.model_wrapped, recurse=False)
    return nullcontext()


def _by_vllm(trainer: Any, prompts: Sequence[Prompt], max_tokens: int) -> list[str]:
    """Answers of a server to everything at once, or of the vLLM in this process to its share."""
    vllm = trainer.vllm_generation
    if not prompts:
        return []
    asked = [list(prompt) for prompt in prompts]
    if vllm.mode == "server":
        reply = vllm.vllm_client.generate(prompts=asked, n=1, max_tokens=max_tokens, **GREEDY)
        responses = reply["completion_ids"]
    else:
        usual = {name: vars(vllm)[name] for name in GREEDY}
        vars(vllm).update(GREEDY)
        try:
            responses = vllm.generate(prompts=asked, images=None, num_generations=1)[1]
        finally:
            vars(vllm).update(usual)
    decoded: list[str] = trainer.processing_class.batch_decode(responses, skip_special_tokens=True)
    return decoded
