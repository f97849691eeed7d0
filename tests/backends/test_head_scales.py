"""Files of scales: what is kept, what is refused, and the names of scaled models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from local_asking import CPU, ask, chat, logprobs, opened, query
from random_llama import HEADS, INNER, LAYERS, make_random_llama, save_adapter

import unswayed as us
from unswayed.backends import open_backend
from unswayed.backends.head_scales import FORMAT, HEADER_BYTES, HeadScales
from unswayed.backends.model_folders import fingerprint_folder, locate
from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.tiny.backend import WEIGHTS

pytest.importorskip("torch")


def scales_for(folder: Path, *, base: str = "hf/m", seed: int = 0) -> HeadScales:
    rng = np.random.default_rng(seed)
    heads, neurons = (rng.uniform(0, 2, (LAYERS, n)).astype(np.float32) for n in (HEADS, INNER))
    record = {
        "base": base,
        "revision": fingerprint_folder(folder),
        "imbalance": [0.5, 0.1],
        "variance_ratio": [0.4, 0.2],
    }
    return HeadScales(heads, neurons, record)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_random_llama(tmp_path_factory.mktemp("heads") / "m")


@pytest.fixture
def file(folder: Path, tmp_path: Path) -> Path:
    path = tmp_path / "scales.safetensors"
    scales_for(folder).write(path)
    return path


def test_written_scales_are_read_again(folder: Path, file: Path, tmp_path: Path) -> None:
    written, found = scales_for(folder), HeadScales.read(file)
    assert np.array_equal(found.heads, written.heads)
    assert found.neurons is not None
    assert np.array_equal(found.neurons, written.neurons)
    assert found.record == written.record
    scales_for(folder).write(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == file.read_bytes()
    HeadScales(written.heads, None, written.record).write(tmp_path / "experts")
    assert HeadScales.read(tmp_path / "experts").neurons is None


def test_scaled_model_has_a_name_of_its_own(folder: Path, file: Path, tmp_path: Path) -> None:
    plain, scaled = opened(folder), opened(f"{folder}+heads={file}")
    assert scaled.model == f"{plain.model}+heads={file}@{HeadScales.read(file).fingerprint}"
    assert opened(scaled.model.removeprefix("hf/")).model == scaled.model
    answers = [logprobs(ask(backend, [query(chat(9))])[0]) for backend in (plain, scaled)]
    assert abs(answers[0]["A"] - answers[1]["A"]) > 1e-3
    scales_for(folder, seed=1).write(file)
    assert opened(f"{folder}+heads={file}").model != scaled.model
    with pytest.raises(UsageError, match="Give the file with that fingerprint"):
        opened(scaled.model.removeprefix("hf/"))
    ordered = locate(f"{folder}+dtype=float32+heads={file}")
    assert "+dtype=float32+heads=" in ordered.name


def test_scales_of_another_base_are_refused(file: Path, tmp_path: Path) -> None:
    other = make_random_llama(tmp_path / "other", seed=3)
    with pytest.raises(UsageError, match=r"was fitted for hf/m \(sha256:\w+\), and this model is"):
        open_backend(f"hf/{other}+heads={file}", CPU)
    with pytest.raises(UsageError, match="was fitted for hf/m"):
        open_backend(f"tiny/judge+heads={file}", CPU)


def test_vllm_refuses_scales(file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unswayed.backends.vllm.find_spec", lambda name: name)
    with pytest.raises(UsageError, match="vLLM does not scale heads"):
        open_backend(f"vllm/{folder}+heads={file}")


def figured(record: str, **figures: object) -> str:
    return json.dumps({**json.loads(record), **figures})


DAMAGES: dict[str, Callable[[dict[str, Any], dict[str, str], bytes], object]] = {
    "format": lambda header, told, _: told.update({"unswayed-gates/9": told.pop(FORMAT)}),
    "record": lambda header, told, _: told.update({FORMAT: "[]"}),
    "figures": lambda header, told, _: told.update({FORMAT: figured(told[FORMAT], imbalance=[1])}),
    "counts": lambda header, told, _: told.update({FORMAT: figured(told[FORMAT], items="x")}),
    "no heads": lambda header, *_: header.update(other=header.pop("heads")),
    "neurons": lambda header, *_: header.update(Neurons=header.pop("neurons")),
    "shape": lambda header, *_: header["heads"].update(shape=[LAYERS * HEADS]),
    "layers": lambda header, *_: header["heads"].update(shape=[1, LAYERS * HEADS]),
    "dtype": lambda header, *_: header["heads"].update(dtype="I64"),
    "bit": lambda header, told, numbers: numbers[:2] + bytes([numbers[2] ^ 64]) + numbers[3:],
    "nan": lambda header, told, numbers: np.full(len(numbers) // 4, np.nan, np.float32).tobytes(),
    "cut off": lambda header, told, numbers: numbers[:-5],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_or_foreign_file_is_refused(damage: str, file: Path) -> None:
    content = file.read_bytes()
    start = HEADER_BYTES + int.from_bytes(content[:HEADER_BYTES], "little")
    header, numbers = json.loads(content[HEADER_BYTES:start]), content[start:]
    changed = DAMAGES[damage](header, header["__metadata__"], numbers)
    text = json.dumps(header).encode()
    size = len(text).to_bytes(HEADER_BYTES, "little")
    file.write_bytes(size + text + (changed if isinstance(changed, bytes) else numbers))
    with pytest.raises(UsageError, match=r"is not a complete mask file \(unswayed-gates/1\)"):
        HeadScales.read(file)


@pytest.mark.parametrize("content", [b"", b"\x80\x04]", b"{}", b"\xff" * 64, b"PK\x03\x04" * 20])
def test_file_of_another_kind_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UsageError, match="is not a complete mask file"):
        HeadScales.read(tmp_path / "x")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        HeadScales.read(tmp_path / "y")


def test_scales_beyond_every_fit_are_refused(folder: Path, file: Path) -> None:
    heads = np.full((LAYERS, HEADS), 1001, np.float32)
    HeadScales(heads, None, scales_for(folder).record).write(file)
    with pytest.raises(UsageError, match="is not a complete mask file"):
        HeadScales.read(file)


@pytest.mark.parametrize(
    ("heads", "neurons"),
    [((2, 2), (2, 128)), ((2, 0), (2, 128)), ((2, 8), None), ((1, 4), None), ((2, 4), (2, 1))],
)
@pytest.mark.parametrize("name", ["tiny/judge", f"hf/{WEIGHTS}"])
def test_scales_of_another_shape_are_refused(
    heads: tuple[int, int], neurons: tuple[int, int] | None, name: str, tmp_path: Path
) -> None:
    arrays = [shape and np.full(shape, 0.5, np.float32) for shape in (heads, neurons)]
    file = tmp_path / "s"
    HeadScales(*arrays, scales_for(WEIGHTS).record).write(file)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"s: the mask does not fit 2 layers of 4 heads"):
        us.audit(f"{name}+heads={file}", "tiny-judge", limit=2)


def test_adapter_and_scales_stack(folder: Path, file: Path, tmp_path: Path) -> None:
    save_adapter(folder, tmp_path, "o_proj", "down_proj")
    scales_for(tmp_path / "merged").write(tmp_path / "own")
    both = opened(f"{folder}+heads={file}+lora={tmp_path / 'lora'}")
    (found,) = ask(both, [query(chat(9))])
    (merged,) = ask(opened(f"{tmp_path / 'merged'}+heads={tmp_path / 'own'}"), [query(chat(9))])
    assert logprobs(found) == pytest.approx(logprobs(merged), abs=1e-4)


def test_unknown_part_of_a_name_is_refused(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown part \+tails=\..*\+heads=FILE"):
        opened(f"{folder}+tails=x")


def test_part_given_twice_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="a part is given twice"):
        opened(f"{folder}+bits=8+bits=4")


@pytest.mark.parametrize("more", ["+bits=4", "+dtype=float64", "+lora=x", "+heads=x"])
def test_built_in_judge_takes_scales_alone(more: str, tmp_path: Path) -> None:
    scales_for(WEIGHTS).write(tmp_path / "s")
    with pytest.raises(UsageError, match=r"only \+heads=FILE may follow tiny/judge"):
        open_backend(f"tiny/judge+heads={tmp_path / 's'}{more}", CPU)


def test_built_in_judge_takes_the_scales_of_its_folder(tmp_path: Path) -> None:
    heads, neurons = np.ones((2, 4), np.float32), np.ones((2, 128), np.float32)
    HeadScales(heads, neurons, scales_for(WEIGHTS).record).write(tmp_path / "s")
    names = f"tiny/judge+heads={tmp_path / 's'}", f"hf/{WEIGHTS}+heads={tmp_path / 's'}"
    ours, theirs = (open_backend(name, CPU).model for name in names)
    assert ours.removeprefix("tiny/judge") == theirs.removeprefix(f"hf/{WEIGHTS}")
    assert open_backend(ours, CPU).model == ours
