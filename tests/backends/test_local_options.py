"""Options of local models: what they do, where they are recorded, and which of them are in the key."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from local_asking import CPU, ask, chat, logprobs, opened, query

from unswayed.backends import LOCAL, BackendSettings, local_models, local_options
from unswayed.base.errors import UsageError
from unswayed.cli import main

torch = pytest.importorskip("torch")


def test_a_dtype_that_is_given_is_part_of_the_name(folder: Path) -> None:
    plain = opened(folder)
    half = opened(folder, replace(CPU, dtype="bfloat16"))
    assert half.model == f"{plain.model}+dtype=bfloat16"
    assert opened(half.model.removeprefix("hf/")).model == half.model
    assert half._load().model.dtype == torch.bfloat16
    assert opened(f"{folder}+dtype=bfloat16")._load().model.dtype == torch.bfloat16
    assert plain._load().model.dtype == torch.float32
    (exact,), (rounded,) = ask(plain, [query(chat(9))]), ask(half, [query(chat(9))])
    gap = abs(logprobs(exact)["A"] - logprobs(rounded)["A"])
    assert 1e-5 < gap < 0.3


@pytest.mark.parametrize(
    ("name", "dtype", "reason"),
    [
        ("{folder}+dtype=float12", None, r"unknown dtype 'float12'\. Known: float32, bfloat16"),
        ("{folder}", "float12", r"unknown dtype 'float12'"),
        ("{folder}+dtype=float32", "bfloat16", r"and the option bfloat16"),
    ],
)
def test_an_impossible_dtype_is_refused_before_loading(
    folder: Path, name: str, dtype: str | None, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        opened(name.format(folder=folder), replace(CPU, dtype=dtype))


def test_a_cpu_gets_one_thread_and_a_large_model_a_note(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    told: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", told.append)
    unsaid = BackendSettings(device="cpu")
    small = opened(folder, unsaid)
    ask(small, [query(chat(3))])
    assert (told, small.remarks) == ([1], ())

    monkeypatch.setattr(local_models, "SMALL_PARAMETERS", 1000)
    large = opened(folder, unsaid)
    ask(large, [query(chat(3))])
    (note,) = large.remarks
    assert told == [1, 1]
    assert "ran on one thread of the CPU" in note
    assert "--threads 6" in note

    given = opened(folder, replace(unsaid, threads=3))
    ask(given, [query(chat(3))])
    assert told[2:] == [3]
    assert given.remarks == ()
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    free = opened(folder, unsaid)
    ask(free, [query(chat(3))])
    assert len(told) == 3
    assert free.remarks == ()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (BackendSettings(tensor_parallel=2), r"tensor_parallel=2 is for vllm/ models.*device_map"),
        (BackendSettings(device="cpu", device_map="auto"), "both place the model"),
    ],
)
def test_options_that_cannot_be_are_refused_by_a_price_too(
    folder: Path, options: BackendSettings, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        opened(folder, replace(options, pricing_only=True))


def test_an_unknown_device_is_told_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"unknown device 'tpu': give cpu, cuda, cuda:1 or mps"):
        local_models.device_of(BackendSettings(device="tpu"))


def test_only_options_that_were_given_are_recorded() -> None:
    assert local_options(BackendSettings(timeout=3, max_retries=0)) == {}
    given = {
        "device": "cuda:1",
        "device_map": "auto",
        "dtype": "float16",
        "attn_implementation": "eager",
        "memory_gb": 2.5,
        "threads": 4,
        "tensor_parallel": 2,
        "trust_remote_code": True,
    }
    assert set(given) == set(LOCAL)
    assert local_options(BackendSettings(**given)) == given  # type: ignore[arg-type]


def test_the_command_has_the_options_and_run_json_keeps_them(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    given = ["--device", "cpu", "--dtype", "float32", "--attn-implementation", "eager"]
    given += ["--memory-gb", "0.5", "--threads", "1", "--trust-remote-code"]
    command = ["audit", "tiny-judge", "--limit", "6", "--model", f"hf/{folder}", *given]
    with pytest.warns(UserWarning, match="may run Python code"):
        assert main([*command, "--out", str(out)]) == 0
    run = json.loads((out / "run.json").read_text())
    assert run["model"].endswith("+dtype=float32")
    asked = {name: run["asked"][name] for name in LOCAL if name in run["asked"]}
    names = {"device": "cpu", "dtype": "float32", "attn_implementation": "eager"}
    assert asked == {**names, "memory_gb": 0.5, "threads": 1, "trust_remote_code": True}
    capsys.readouterr()
    assert main(["report", str(out), "--out", str(tmp_path / "again.html")]) == 0


def test_they_are_refused_where_decisions_are_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "decisions.jsonl"
    file.write_text('{"item_id":"q","order":[0,1],"labels":["A","B"],"choice":0}\n')
    assert main(["audit", "--decisions", str(file), "--dtype", "float16"]) == 2
    assert "--dtype has no effect on --decisions" in capsys.readouterr().err
