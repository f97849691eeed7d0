"""The same weights behind a real OpenAI-compatible server and in the `hf` backend."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
import pytest
from local_asking import answered, query
from random_llama import make_random_llama

from unswayed.backends import open_backend
from unswayed.model.calls import Query, Request
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, Message, Task
from unswayed.model.parsing import read_decision
from unswayed.model.presentation import Ask, presentations
from unswayed.prompts import PromptSettings, render

pytest.importorskip("torch", reason="the same model is asked here, with the extra 'local'")
LLAMA_PYTHON = os.environ.get("UNSWAYED_LLAMA_PYTHON") or (
    sys.executable if importlib.util.find_spec("llama_cpp") else None
)
pytestmark = pytest.mark.skipif(
    LLAMA_PYTHON is None,
    reason='needs llama.cpp: pip install "llama-cpp-python[server]" gguf safetensors in some '
    "environment (it compiles for some minutes), then UNSWAYED_LLAMA_PYTHON=that python",
)

VOCABULARY = 600
FLOAT32 = "0"  # ggml's number of the type; by default the key-value cache is half precision
ITEMS = [
    Item(
        id=f"q{number}",
        task=Task.PAIRWISE if n == 2 else Task.MCQ,
        prompt=f"Why do {thing} change?",
        candidates=tuple(f"Because of {cause}." for cause in ["time", "rain", "use", "luck"][:n]),
    )
    for number, (thing, n) in enumerate([("rivers", 2), ("kettles", 2), ("sonnets", 4)])
]


class Reply(msgspec.Struct, forbid_unknown_fields=True):
    """What SCHEMA says, as Python reads it."""

    fair: bool
    choice: Literal["A", "B"]
    ranking: Annotated[list[Literal["A", "B"]], msgspec.Meta(min_length=1, max_length=2)]


SCHEMA = msgspec.json.encode(msgspec.json.schema_components([Reply])[1]["Reply"]).decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_random_llama(tmp_path_factory.mktemp("llama"), vocabulary=VOCABULARY)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    """Address of llama.cpp's server over the same weights."""
    assert LLAMA_PYTHON is not None
    gguf = folder / "model.gguf"
    writer = Path(__file__).parent / "write_gguf.py"
    subprocess.run([LLAMA_PYTHON, str(writer), str(folder), str(gguf)], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "model": str(gguf),
        "host": "127.0.0.1",
        "port": str(port),
        "n_ctx": "1024",
        "n_threads": "1",
        "n_threads_batch": "1",
        "logits_all": "true",
        "verbose": "false",
        "type_k": FLOAT32,
        "type_v": FLOAT32,
    }
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    log = folder / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [LLAMA_PYTHON, "-m", "llama_cpp.server", *arguments], stdout=output, stderr=output
        )
    try:
        wait_until_it_serves(f"http://127.0.0.1:{port}/v1", process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_until_it_serves(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the server ended:\n{log.read_text()[-2000:]}"
        try:
            urllib.request.urlopen(f"{address}/models", timeout=5).read()
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"the server did not come up:\n{log.read_text()[-2000:]}")


def decisions_of(model: str) -> dict[tuple[str, Ask], Decision]:
    """Every item in every cyclic order, under all three protocols."""
    backend = open_backend(model)
    settings = PromptSettings(top_logprobs=VOCABULARY)  # all of them: nothing is censored
    queries = []
    for item in ITEMS:
        for protocol in ("coupled", "label", "order"):
            for shown in presentations("cyclic", item.n, protocol=protocol):
                rendered = render(item, Ask(shown), settings)
                request = Request(
                    model=backend.model,
                    messages=rendered.messages,
                    labels=rendered.labels,
                    max_tokens=1,
                    top_logprobs=rendered.top_logprobs,
                )
                queries.append(Query(item, Ask(shown), request))
    return {
        (item.id, own): read_decision(
            item, own, request.labels, response, model=backend.model, answer_only=True
        )
        for (item, own, request, _), response in zip(
            queries, answered(backend, queries, closes=True), strict=True
        )
    }


def test_server_and_local_backend_give_equal_label_probabilities(
    folder: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMACPP_BASE_URL", server)
    served = decisions_of("openai-api/llamacpp/random")
    local = decisions_of(f"hf/{folder}")
    assert served.keys() == local.keys()
    assert len(served) == 2 * 4 + 1 * 10  # X0..X3 each, X0 thrice; 3 x 4 rotations, 3 the same
    for key, decision in served.items():
        assert decision.input_tokens == local[key].input_tokens
        assert not decision.censored
        np.testing.assert_allclose(decision.probs, local[key].probs, atol=1e-3)
        assert decision.label_mass == pytest.approx(local[key].label_mass, abs=1e-3)


def test_random_weights_write_what_the_schema_says(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMACPP_BASE_URL", server)
    messages = (Message("user", "Which changes more: rivers or kettles?"),)
    bound: list[str] = []
    free: list[str] = []
    backend = open_backend("openai-api/llamacpp/random")
    for schema, texts in ((SCHEMA, bound), (msgspec.UNSET, free)):
        how = {"max_tokens": 200, "top_logprobs": 0, "temperature": 1.0, "schema": schema}
        asked = [query(messages, sample=sample, **how) for sample in (1, 2, 3)]
        texts += [response.text for response in answered(backend, asked, closes=True)]
    for text in bound:
        assert msgspec.json.decode(text, type=Reply, strict=True).ranking
    for text in free:
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(text)
    # its server is one of those that know schemas by an older name, and refuse with a 500
    assert backend.remarks == ("the server takes a JSON schema only in an older form",)


def test_the_comparison_can_fail(
    folder: Path, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMACPP_BASE_URL", server)
    served = decisions_of("openai-api/llamacpp/random")
    other = decisions_of(f"hf/{make_random_llama(tmp_path / 'other', seed=1)}")
    gaps = [np.abs(np.subtract(served[key].probs, other[key].probs)).max() for key in served]
    assert max(gaps) > 0.05
