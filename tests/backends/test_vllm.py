"""Models through vLLM: what its engine is asked, and what is made of its answers (by a fake engine on a CPU)."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import vllm_engine_types
from local_asking import answered, ask, chat, logprobs, opened, plain_label_logprobs, query
from random_llama import save_adapter
from vllm_engine_types import Engine

from unswayed.backends import BackendSettings, open_backend
from unswayed.backends import vllm as vllm_backend
from unswayed.backends.huggingface import HuggingFaceBackend
from unswayed.backends.vllm import VllmBackend, engine_arguments
from unswayed.base.errors import MissingExtraError, UsageError
from unswayed.base.registry import install_command
from unswayed.cli import main
from unswayed.model.calls import Failure, Query, Response

torch = pytest.importorskip("torch")

SCHEMA = '{"type":"object","properties":{"a":{"type":"integer"}}}'


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("VLLM_LOGGING_STREAM", "ext://sys.stderr")  # taken back after the test
    return vllm_engine_types.install(monkeypatch)


def running(model: Path | str, **settings: object) -> VllmBackend:
    backend = open_backend(f"vllm/{model}", BackendSettings(**settings))  # type: ignore[arg-type]
    assert isinstance(backend, VllmBackend)
    return backend


def label_ids(backend: VllmBackend) -> list[int]:
    ids = backend._start().reader.labels.ids(("A", "B"), "?")
    return sorted({token for spellings in ids for token in spellings})


# --- labels ----------------------------------------------------------------------------------


def test_label_probabilities_are_those_of_the_whole_distribution(
    folder: Path, engine: Engine
) -> None:
    backend = running(folder)
    chats = [chat(length) for length in (3, 40, 9)]
    for messages, answer in zip(chats, answered(backend, map(query, chats)), strict=True):
        assert answer.exact
        assert answer.output_tokens == 1
        assert answer.model == backend.model
        assert logprobs(answer) == pytest.approx(plain_label_logprobs(folder, messages), abs=1e-4)
    ((prompts, params, lora),) = engine.calls
    assert lora is None
    assert len(prompts) == 3
    for one in params:
        assert (one.max_tokens, one.temperature, one.detokenize) == (1, 0.0, False)
        assert one.logprob_token_ids == label_ids(backend)


def test_prompts_are_the_tokens_that_hf_reads(folder: Path, engine: Engine) -> None:
    ask(running(folder), [query(chat(7))])
    (written,) = opened(folder)._load().plan.reader.writer.write([chat(7)], thinking=False)
    assert engine.calls[0][0] == [written.tokens]


def test_equal_beginnings_are_adjacent_and_the_cache_is_told(folder: Path, engine: Engine) -> None:
    backend = running(folder)
    ask(backend, [query(chat(20, start=start)) for start in (0, 4, 0, 4, 8, 0)])
    ((prompts, _, _),) = engine.calls
    assert prompts == sorted(prompts)
    (remark,) = backend.remarks
    assert "were in vLLM's prefix cache" in remark


def test_labels_with_many_tokens_are_asked_in_parts(
    folder: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_backend, "MOST_IDS", 3)
    backend = running(folder)
    ids = label_ids(backend)
    assert len(ids) > 3
    asked = [query(chat(5)), query(chat(8))]
    for one, answer in zip(asked, ask(backend, asked), strict=True):
        expected = plain_label_logprobs(folder, one.request.messages)
        assert logprobs(answer) == pytest.approx(expected, abs=1e-4)
    ((prompts, params, _),) = engine.calls
    parts = -(-len(ids) // 3)
    assert len(prompts) == 2 * parts
    assert [token for one in params[:parts] for token in one.logprob_token_ids or ()] == ids


def test_a_sampled_label_is_drawn_as_hf_draws_it(folder: Path, engine: Engine) -> None:
    asked = [query(chat(5), temperature=1.0, sample=sample) for sample in range(1, 30)]
    texts = texts_of(running(folder), asked)
    assert texts == texts_of(opened(folder), asked)
    assert set(texts) == {"A", "B"}


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), float("inf"), 5.0])
def test_non_numeric_scores_fail_calls(folder: Path, engine: Engine, value: float) -> None:
    engine.value = value
    (answer,) = ask(running(folder), [query(chat(5))])
    assert isinstance(answer, Failure)
    assert "q7: " in answer.message
    assert "not numbers" in answer.message
    assert "--dtype float32" in answer.message
    assert not answer.fatal


@pytest.mark.parametrize(
    "given", [lambda told: told[:-1], lambda told: [*told, *told], lambda told: told[::-1]]
)
@pytest.mark.parametrize("labelled", [True, False])
def test_answers_to_other_prompts_do_not_count(
    folder: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch, given: Any, labelled: bool
) -> None:
    generate = vllm_engine_types.LLM.generate
    monkeypatch.setattr(
        vllm_engine_types.LLM,
        "generate",
        lambda *told, **options: given(generate(*told, **options)),
    )
    how = {} if labelled else {"top_logprobs": 0, "max_tokens": 2}
    answers = ask(running(folder), [query(chat(3), **how), query(chat(40, start=4), **how)])
    for answer in answers:
        assert isinstance(answer, Failure)
        assert answer.fatal
        assert "answers to 2 prompts, or out of order" in answer.message


# --- prompts and labels that do not fit ------------------------------------------------------


def test_a_prompt_longer_than_what_fits_is_a_failure(folder: Path, engine: Engine) -> None:
    engine.longest = 60
    short, long = ask(running(folder), [query(chat(3)), query(chat(200))])
    assert isinstance(short, Response)
    assert isinstance(long, Failure)
    assert "reads at most 60" in long.message
    (written,) = ask(running(folder), [query(chat(3), top_logprobs=0, max_tokens=60)])
    assert isinstance(written, Failure)


def test_a_label_of_several_tokens_counts_with_its_first(folder: Path, engine: Engine) -> None:
    labels = ("Zebra", "Quokka")
    (answer,) = ask(running(folder), [query(chat(5), labels=labels)])
    (same,) = ask(opened(folder), [query(chat(5), labels=labels)])
    assert logprobs(answer) == pytest.approx(logprobs(same), abs=1e-4)


# --- texts -----------------------------------------------------------------------------------


def texts_of(backend: VllmBackend | HuggingFaceBackend, asked: Sequence[Query]) -> list[str]:
    return [answer.text for answer in answered(backend, asked)]


def test_texts_are_generated_as_transformers_alone_would(folder: Path, engine: Engine) -> None:
    asked = [query(chat(length), top_logprobs=0, max_tokens=6) for length in (4, 11)]
    backend = running(folder)
    assert texts_of(backend, asked) == texts_of(opened(folder), asked)
    (answer,) = answered(backend, asked[:1])
    assert not answer.exact
    assert (answer.finish_reason, answer.output_tokens) == ("length", 6)


@pytest.mark.parametrize("top_logprobs", [0, 5])
def test_answer_broken_off_by_engine_is_retried(
    folder: Path, engine: Engine, top_logprobs: int
) -> None:
    asked = [query(chat(length), top_logprobs=top_logprobs, max_tokens=6) for length in (4, 11)]
    whole = texts_of(running(folder), asked)
    engine.calls.clear()
    engine.endings += ["abort", "length", "error", "length"]
    assert texts_of(running(folder), asked) == whole
    assert [len(tokens) for tokens, _, _ in engine.calls] == [2, 1, 1]
    engine.endings += ["abort", "length", "abort", "abort"]
    broken, good = sorted(ask(running(folder), asked), key=lambda one: isinstance(one, Response))
    assert isinstance(broken, Failure)
    assert not broken.fatal
    assert "ended every attempt with 'abort'" in broken.message
    assert isinstance(good, Response)


@pytest.mark.parametrize("reason", ["repetition", "OTHER"])
def test_other_engine_ending_is_kept_as_sent(folder: Path, engine: Engine, reason: str) -> None:
    engine.endings.append(reason)
    (answer,) = answered(running(folder), [query(chat(4), top_logprobs=0, max_tokens=3)])
    assert answer.finish_reason == reason


def test_a_sample_has_a_seed_of_its_own_and_greedy_text_none(folder: Path, engine: Engine) -> None:
    asked = [
        query(chat(4), top_logprobs=0, max_tokens=3, temperature=1.0, sample=sample)
        for sample in (1, 2)
    ]
    ask(running(folder), [*asked, query(chat(4), top_logprobs=0, max_tokens=3)])
    seeds = {one.seed for one in engine.calls[0][1]}
    assert len(seeds) == 3
    assert None in seeds
    assert all(seed is None or 0 <= seed < 2**63 for seed in seeds)
    assert texts_of(running(folder), asked) == texts_of(running(folder), asked[::-1])[::-1]


def test_an_answer_with_a_schema_is_held_to_it(folder: Path, engine: Engine) -> None:
    ask(running(folder), [query(chat(4), top_logprobs=0, max_tokens=3, schema=SCHEMA)])
    (params,) = engine.calls[0][1]
    assert params.structured_outputs is not None
    assert params.structured_outputs.json == SCHEMA


# --- how the engine is started ---------------------------------------------------------------


def test_the_engine_starts_with_the_first_question_and_once(folder: Path, engine: Engine) -> None:
    backend = running(folder)
    assert engine.started == []
    ask(backend, [query(chat(3))])
    ask(running(folder), [query(chat(3))])
    first, second = engine.started
    assert first == second
    assert first["model"] == str(folder)
    assert first["max_model_len"] == -1
    assert first["enable_prefix_caching"]
    assert (first["tensor_parallel_size"], first["dtype"]) == (1, "auto")
    assert first["trust_remote_code"] is False
    assert first["hf_overrides"] == {"head_dtype": "float32"}
    assert "enable_lora" not in first


def test_options_reach_the_engine(folder: Path, engine: Engine) -> None:
    backend = running(
        f"{folder}+bits=8", dtype="float16", memory_gb=2, tensor_parallel=4, trust_remote_code=True
    )
    assert backend.model.endswith("+bits=8+dtype=float16")
    with pytest.warns(UserWarning, match="may run Python code"):
        ask(backend, [query(chat(3))])
    (given,) = engine.started
    assert given["quantization"] == "fp8"
    assert given["hf_overrides"] is None  # rounded weights have no output layer in float32
    assert (given["dtype"], given["tensor_parallel_size"]) == ("float16", 4)
    assert given["kv_cache_memory_bytes"] == 2_000_000_000
    assert given["trust_remote_code"] is True


def test_a_model_that_was_saved_rounded_keeps_its_output_layer(
    folder: Path, tmp_path: Path, engine: Engine
) -> None:
    made = shutil.copytree(folder, tmp_path / "awq")
    config = json.loads((made / "config.json").read_text())
    (made / "config.json").write_text(
        json.dumps({**config, "quantization_config": {"quant_method": "awq"}})
    )
    given = engine_arguments(running(made).folder, BackendSettings())
    assert "hf_overrides" not in given
    assert "quantization" not in given


def test_an_adapter_is_asked_for_by_name(folder: Path, tmp_path: Path, engine: Engine) -> None:
    save_adapter(folder, tmp_path, "q_proj")
    name = f"{folder}+lora={tmp_path / 'lora'}"
    backend = running(name)
    (answer,) = ask(backend, [query(chat(5))])
    (same,) = ask(opened(name), [query(chat(5))])
    assert logprobs(answer) == pytest.approx(logprobs(same), abs=1e-4)
    (given,) = engine.started
    assert (given["enable_lora"], given["max_lora_rank"]) == (True, 8)
    lora = engine.calls[0][2]
    assert lora is not None
    assert (lora.lora_int_id, lora.lora_path) == (1, str(tmp_path / "lora"))
    assert "+lora=" in backend.model


@pytest.mark.parametrize(
    ("rank", "room"), [(4, 8), (8, 8), (9, 16), (33, 64), (512, 512), (1024, None)]
)
def test_an_adapter_has_room_or_is_refused(
    folder: Path, tmp_path: Path, engine: Engine, rank: int, room: int | None
) -> None:
    config = {"r": 4, "rank_pattern": {"q_proj": rank}}
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    (tmp_path / "adapter_model.safetensors").write_bytes(b"weights")
    located = running(f"{folder}+lora={tmp_path}").folder
    if room is None:
        with pytest.raises(UsageError, match=r"rank 1024; vLLM takes ranks up to 512"):
            engine_arguments(located, BackendSettings())
    else:
        assert engine_arguments(located, BackendSettings())["max_lora_rank"] == room


def test_its_log_does_not_go_to_standard_output(
    folder: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VLLM_LOGGING_STREAM")
    ask(running(folder), [query(chat(3))])
    assert os.environ["VLLM_LOGGING_STREAM"] == "ext://sys.stderr"


# --- what cannot be --------------------------------------------------------------------------


def test_a_missing_vllm_is_named_with_the_ways_to_install_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_backend, "find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=re.escape(f"{install_command('vllm')}; or start its")
    ):
        running(folder)
    priced = open_backend(f"vllm/{folder}", BackendSettings(pricing_only=True))
    assert priced.model.startswith("vllm/")


def test_an_engine_that_cannot_start_is_told_with_the_remedy(
    folder: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.failure = RuntimeError("Failed to infer device type.")
    with pytest.raises(UsageError, match=r"cannot start: Failed .* Torch sees no GPU .* use hf/"):
        ask(running(folder), [query(chat(3))])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(UsageError, match=r"--memory-gb .*--tensor-parallel"):
        ask(running(folder), [query(chat(3))])


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("EngineCore encountered an issue"), "EngineCore encountered an issue"),
        (MemoryError(), "vLLM's engine failed: MemoryError. If memory is short"),
    ],
)
def test_a_failing_engine_ends_the_run_and_keeps_answers(
    folder: Path, engine: Engine, error: Exception, told: str
) -> None:
    backend = running(folder)
    (before,) = ask(backend, [query(chat(3))])
    assert isinstance(before, Response)
    engine.failure = error
    (after,) = ask(backend, [query(chat(9))])
    assert isinstance(after, Failure)
    assert after.fatal
    assert told in after.message
    assert "--memory-gb" in after.message


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("{folder}+bits=4", {}, r"vLLM rounds weights to 8 bits .*AWQ, GPTQ"),
        ("{folder}", {"device": "cuda:1"}, r"device='cuda:1' is for hf/ .*CUDA_VISIBLE_DEVICES"),
        ("{folder}", {"device_map": "auto"}, r"device_map='auto' is for hf/"),
        ("{folder}", {"attn_implementation": "eager"}, "is for hf/"),
        ("{folder}", {"threads": 2}, "is for hf/"),
        ("./no/such", {}, r"vllm/\./no/such: there is no folder"),
    ],
)
def test_unsupported_options_of_vllm_are_refused_before_loading(
    folder: Path, engine: Engine, name: str, settings: dict[str, object], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        running(name.format(folder=folder), **settings)
    assert engine.started == []


def test_an_audit_runs_from_the_command_line_and_resumes(
    folder: Path, engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["audit", "tiny-mcq", "--limit", "3", "--model", f"vllm/{folder}"]
    command += ["--out", str(tmp_path / "run"), "--json"]
    assert main(command) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert metrics["model"].startswith(f"vllm/{folder}@sha256:")
    assert metrics["calls"]["label_mass"] is not None
    made = len(engine.calls)
    assert main(command) == 0
    assert len(engine.calls) == made
    hf = replace(BackendSettings(), device="cpu", threads=1)
    assert open_backend(f"hf/{folder}", hf).model != metrics["model"]
