"""What is said of local models before they are loaded, against what they do."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from local_asking import CPU, ask, chat, opened, query

from unswayed.backends import BackendSettings, open_backend
from unswayed.backends.huggingface import HuggingFaceBackend
from unswayed.base.errors import UsageError
from unswayed.cli import main
from unswayed.model.calls import Query

pytest.importorskip("torch")

PRICED = replace(CPU, pricing_only=True)


@pytest.fixture
def bare(folder: Path, tmp_path: Path) -> Path:
    """The same model without its weights."""
    without = shutil.ignore_patterns("*.safetensors")
    return shutil.copytree(folder, tmp_path / "bare", ignore=without)


def queries() -> list[Query]:
    """Five items with twelve prompts that begin alike, and one that begins like no other."""
    asked = [
        query((*chat(60, start=number), *chat(3, start=end)[1:]), f"i{number}")
        for number in range(5)
        for end in range(12)
    ]
    return [*asked, query(chat(9), "lone")]


def priced(folder: Path, settings: BackendSettings = PRICED) -> HuggingFaceBackend:
    backend = open_backend(f"hf/{folder}", settings)
    assert isinstance(backend, HuggingFaceBackend)
    return backend


def test_what_is_forecast_without_weights_is_what_is_read(folder: Path, bare: Path) -> None:
    (said,) = priced(bare).forecast(queries())
    assert "would be read as plain 1, trie 60; " in said
    assert "Trees are tested at loading" in said
    backend = opened(folder)
    ask(backend, queries())
    (read,) = backend.remarks
    assert "of 61 label prompts 60 were read as trees" in read
    counted = re.search(r"[\d,]+ of [\d,]+ tokens", read)
    assert counted is not None
    assert counted[0] in said


def test_rows_are_forecast_where_trees_cannot_be(bare: Path) -> None:
    settings = replace(PRICED, attn_implementation="flex_attention")
    (said,) = priced(bare, settings).forecast(queries())
    assert "would be read as plain 61; " in said
    assert "tried" not in said


def test_texts_and_prompts_that_are_too_long_are_counted(bare: Path) -> None:
    asked = [query(chat(5), top_logprobs=0, max_tokens=8), query(chat(5)), query(chat(1200))]
    scored, written, refused = priced(bare).forecast(asked)
    assert "plain 1; " in scored
    assert "1 prompts are answered with text" in written
    assert "1 prompts are longer than the model or the memory allows" in refused


def test_forecast_passes_stay_within_the_budget(bare: Path) -> None:
    (said,) = priced(bare, replace(PRICED, memory_gb=0.002)).forecast(queries())
    numbers = re.search(r"at most ([\d.e-]+) of ([\d.e-]+) GB", said)
    assert numbers is not None
    assert 0 < float(numbers[1]) <= float(numbers[2]) == 0.002


def test_a_dry_run_says_how_prompts_would_be_read(
    bare: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["audit", "tiny-mcq", "--limit", "2", "--orders", "full", "--model", f"hf/{bare}"]
    given = ["--device", "cpu", "--dry-run", "--out", str(tmp_path / "run")]
    assert main([*command, *given]) == 0
    assert "label prompts would be read as " in capsys.readouterr().out
    assert not (tmp_path / "run").exists()


def test_price_for_missing_device_reports_its_error(bare: Path) -> None:
    (said,) = priced(bare, replace(PRICED, device="cuda:99")).forecast(queries())
    assert "unknown on this machine: cuda:99: " in said


def test_a_price_downloads_no_weights(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub as hub

    asked: list[list[str]] = []

    def download(repository: str, **patterns: Any) -> str:
        asked.append(patterns["allow_patterns"])
        return str(bare)

    monkeypatch.setattr(hub, "snapshot_download", download)
    open_backend("hf/org/name", PRICED)
    with pytest.raises(UsageError, match=r"no \*\.safetensors"):
        open_backend("hf/org/name", CPU)
    without, all_of_it = asked
    assert [pattern for pattern in all_of_it if pattern not in without] == ["*.safetensors"]


def test_pickled_weights_are_refused_in_a_price_too(bare: Path) -> None:
    (bare / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(UsageError, match=r"no \*\.safetensors"):
        priced(bare)


def test_a_configuration_that_cannot_be_read_is_refused(bare: Path) -> None:
    (bare / "config.json").write_text('{"model_type": "no-such-family"}')
    with pytest.raises(UsageError, match="cannot build"):
        priced(bare).forecast(queries())
