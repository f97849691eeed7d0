"""`unswayed serve` as a process: its page, its end, and its clients."""

from __future__ import annotations

import http.server
import os
import re
import signal
import socket
import subprocess
import threading
import urllib.error
from pathlib import Path
from typing import Any

import pytest
import run_page
from decision_stub import DecisionStub
from processes import post, serving
from served import APIS, MODEL, body_of

import unswayed as us
from needs import interpreter
from unswayed.backends.simulated import simulated_items
from unswayed.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "decisions.md"
NOWHERE = "http://127.0.0.1:9/v1"
OPENAI = "print(sorted((p.value, p.probability) for p in decision.answers[0].probabilities))\n"
SHOW = {"typesafe_sdk": "    print(sorted(decision.choices['team'].probabilities.items()))\n"}
"""Lines that print the probabilities of the page's clients."""


@pytest.mark.parametrize("api", APIS)
def test_sigterm_lets_open_requests_finish(api: str) -> None:
    replies: list[tuple[int, Any]] = []
    with DecisionStub(latency_s=0.3) as stub, serving(stub.url, f"{api}/{MODEL}") as (url, process):
        ask = threading.Thread(
            target=lambda: replies.append(post(f"{url}/v1/{api}", body_of(api, ["a", "b"])))
        )
        ask.start()
        while not stub.bodies:
            pass
        process.send_signal(signal.SIGTERM)
        ask.join()
        assert process.wait(60) == 0
        with pytest.raises(urllib.error.URLError):
            post(f"{url}/v1/{api}", body_of(api, ["a", "b"]))
    assert [status for status, _ in replies] == [200]


@pytest.mark.parametrize("api", APIS)
def test_model_of_request_is_passed_on_without_name(api: str) -> None:
    with DecisionStub() as stub, serving(stub.url, api) as (url, _):
        for model in ("one", "two"):
            status, _ = post(f"{url}/v1/{api}", {**body_of(api, ["a", "b"]), "model": model})
            assert (status, stub.bodies[-1]["model"]) == (200, model)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["systemone/x", "--port", "TAKEN", "--base-url", NOWHERE], "Choose another --port."),
        (["systemone/x", "--orders", "random"], "--orders"),
        (["systemone/x", "--shadow", "0.1"], "--shadow tests a fitted file"),
        (["simulated/judge", "--method", "vote", "--shadow", "0.1"], "nothing can drift"),
        (["simulated/judge", "--orders", "cyclic"], "--orders would change nothing"),
        (["simulated/judge", "--mean", "log", "--polarity"], "--mean and --polarity would change"),
        (["simulated/judge", "--host", "0.0.0.0"], "UNSWAYED_SERVE_TOKEN"),
        (["nobody/x"], "unknown provider"),
        (["systemone/x", "--patience", "9", "--base-url", NOWHERE], "--max-retries and --patience"),
        (
            ["systemone/x", "--labels", "X,Y", "--base-url", NOWHERE],
            "questions of its clients unchanged",
        ),
    ],
)
def test_unusable_option_or_port_is_one_line(
    options: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = str(held.getsockname()[1])
        assert main(["serve", *(port if own == "TAKEN" else own for own in options)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert word in line


class Busy(http.server.BaseHTTPRequestHandler):
    """A server that rejects every request."""

    def do_POST(self) -> None:  # the name that http.server calls
        self.send_error(429)

    def log_message(self, *_: object) -> None:
        pass


def test_patience_limits_the_wait_for_a_busy_model() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Busy) as busy:
        threading.Thread(target=busy.serve_forever).start()
        address = f"http://127.0.0.1:{busy.server_address[1]}/v1"
        try:
            with serving(address, "openai/x", "--patience", "0.3", "--max-retries", "1") as (
                url,
                _,
            ):
                body = {"prompt": "Which?", "candidates": ["one", "two"]}
                status, reply = post(f"{url}/v1/judge", body)
        finally:
            busy.shutdown()
    assert status == 502
    assert "nothing for 0.3 seconds" in str(reply)


@pytest.mark.parametrize("head", ["Authorization: Bearer sesame" + "A" * 9000, "X-Key sesame"])
def test_a_request_that_cannot_be_read_is_not_logged(head: str) -> None:
    with serving(NOWHERE, "simulated/judge") as (url, process):
        place = url.removeprefix("http://").split(":")
        with socket.create_connection((place[0], int(place[1])), timeout=30) as client:
            client.sendall(f"GET /health HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode())
            assert b"400" in client.recv(65536)
        process.terminate()
        assert process.communicate(timeout=60)[1] == ""


def test_method_whose_drift_test_does_not_repeat_is_not_shadowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, model = tmp_path / "curve.json", "simulated/judge?slot=0.6"
    us.calibrate("calibraeval", simulated_items(60, 2), model, out=file)
    assert main(["serve", model, "--method", str(file), "--shadow", "0.1"]) == 2
    assert "can be tested for drift once" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["contextual", "domain-contextual"])
def test_method_whose_numbers_have_no_interval_is_not_shadowed(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, model = tmp_path / "free.json", "simulated/judge?slot=0.6"
    us.calibrate(name, simulated_items(60, 2), model, out=file)
    assert main(["serve", model, "--method", str(file), "--shadow", "0.1"]) == 2
    assert "have no interval, so they cannot be tested" in capsys.readouterr().err


def test_file_of_other_labels_is_served_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, model = tmp_path / "pride.json", "simulated/judge?slot=0.6"
    us.calibrate("pride", simulated_items(60, 2), model, labels="X,Y", out=file)
    assert main(["serve", model, "--method", str(file)]) == 2
    assert "fitted for the labels X Y" in capsys.readouterr().err
    with serving(NOWHERE, model, "--method", str(file), "--labels", "X,Y") as (url, _):
        body = {"prompt": "Which?", "candidates": ["one", "two"]}
        assert post(f"{url}/v1/judge", body)[0] == 200


def snippets() -> dict[str, str]:
    """The Python blocks of the page by the package they need."""
    blocks = re.findall(
        r"<!-- skip: needs the package (\w+) -->\n```python\n(.*?)```", PAGE.read_text(), re.S
    )
    return dict(blocks)


def test_page_names_the_clients_of_ci() -> None:
    ci = (PAGE.parents[1] / ".ci" / "run").read_text(encoding="utf-8")
    installed = re.findall(r"(openai|typesafe-sdk|litellm)(?:\[zstd\])?==([\d.]+)", ci)
    told = re.findall(r"`(openai|typesafe_sdk|litellm) ([\d.]+)`", PAGE.read_text(encoding="utf-8"))
    assert len(told) == 3
    assert told == [(name.replace("-", "_"), version) for name, version in installed]


def test_commands_of_page_run_in_a_shell(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("unswayed serve "))
    options = line.split()[2:3]
    assert line == f"unswayed serve {options[0]} --base-url http://127.0.0.1:8000/v1 --port 8950"
    with DecisionStub() as stub, serving(stub.url, *options) as (url, _):
        page = tmp_path / PAGE.name
        here = text.replace("http://127.0.0.1:8000/v1", stub.url)
        page.write_text(here.replace("http://127.0.0.1:8950", url), encoding="utf-8")
        (folder := tmp_path / "folder").mkdir()
        assert run_page.run_page(page, folder).ran == 2


@pytest.mark.parametrize("package", ["openai", "typesafe_sdk", "litellm"])
def test_client_of_page_gets_order_free_answers(package: str) -> None:
    python = interpreter("UNSWAYED_CLIENTS", package)
    turned = {
        '{"value": "billing"}, {"value": "support"}': '{"value": "support"}, {"value": "billing"}',
        '{"billing": None, "support": None}': '{"support": None, "billing": None}',
    }
    code = snippets()[package]
    code += SHOW.get(package, OPENAI)
    printed = []
    with DecisionStub() as stub, serving(stub.url, f"systemone/{MODEL}") as (url, _):
        for old, new in [("", ""), *turned.items()]:
            if old in code:
                text = code.replace(old, new).replace("http://127.0.0.1:8950", url)
                done = subprocess.run(
                    [python, "-c", text],
                    capture_output=True,
                    text=True,
                    check=False,
                    env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
                )
                assert done.returncode == 0, done.stderr
                printed.append(done.stdout)
    assert len(printed) == 2
    assert len(set(printed)) == 1
    assert "('billing', 0." in printed[0]


def test_openai_client_of_page_calls_any_judge() -> None:
    python = interpreter("UNSWAYED_CLIENTS", "openai")
    (call,) = re.findall(r"`(client\.post\(.+?\))`", PAGE.read_text(encoding="utf-8"))
    with serving(NOWHERE, "simulated/judge", "--method", "average") as (url, _):
        code = (
            "from openai import OpenAI\n"
            "item = {'prompt': 'Name a metal.', 'candidates': ['iron', 'oak']}\n"
            f"client = OpenAI(base_url='{url}/v1', api_key='none')\n"
            f"print({call}['n_calls'])"
        )
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "2", done.stderr
