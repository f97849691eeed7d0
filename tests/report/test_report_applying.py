"""The block to copy after an audit: its commands and its lines of Python work as they stand."""

import contextlib
import html
import io
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import unswayed as us
from unswayed.auditing.measurement import asked_for
from unswayed.backends import BackendSettings
from unswayed.backends.simulated import simulated_items
from unswayed.cli import main
from unswayed.model.items import ItemSet, encode_item
from unswayed.prompts import PromptSettings

MODEL = "simulated/judge?slot=2&noise=0.3"
COLUMNS = "id=Nr.,prompt=My question,candidates=Ours,, so far|It's theirs"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Items in a folder of their own, under a name that needs quoting."""
    monkeypatch.chdir(tmp_path)
    path = Path("my pairs; $HOME.jsonl")
    path.write_bytes(b"".join(encode_item(i) + b"\n" for i in simulated_items(120, 2, seed=3)))
    return path


def rename_fields(data: Path) -> None:
    """Write the items under the headings of `COLUMNS`."""
    items = [json.loads(line) for line in data.read_text().splitlines()]
    for item in items:
        item["Nr."], item["My question"] = item.pop("id"), item.pop("prompt")
        item["Ours, so far"], item["It's theirs"] = item.pop("candidates")
    data.write_text("".join(f"{json.dumps(item)}\n" for item in items))


def block_of(text: str) -> tuple[str, str]:
    """The command and the Python of the block in what the terminal shows."""
    applied = text.partition("Apply the method\n")[2]
    command, _, python = applied.partition("import unswayed")
    python = python.partition("\n\nrun")[0]
    return command, f"import unswayed{python}"


def carry_out(command: str) -> str:
    """Run what a shell makes of a command, in this process; what it says to its user."""
    words = 'unswayed() { printf "%s\\0" "$@" "next"; }\n'
    split = subprocess.run(["bash", "-c", words + command], capture_output=True, check=True)
    *commands, rest = split.stdout.decode().split("next\0")
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        assert [main(own.split("\0")[:-1]) for own in commands] == [0] * len(commands)
    assert not rest
    return told.getvalue()


@pytest.mark.parametrize(
    ("methods", "more"),
    [
        ("direct,average", []),
        ("direct,cell-median", ["--labels", "X,it's", "--prompt", "modified-direct"]),
        ("direct,cell-median", ["--columns", COLUMNS]),
    ],
)
def test_the_commands_and_the_python_work_and_reuse_the_calls(
    methods: str,
    more: list[str],
    data: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    if "--columns" in more:
        rename_fields(data)
    given = ["audit", str(data), "--model", MODEL, "--methods", methods, "--out", "run", *more]
    assert main([*given, "--resamples", "100"]) == 0
    command, python = block_of(capsys.readouterr().out)
    assert command.count("unswayed calibrate") == ("cell-median" in methods)
    said = carry_out(command)
    assert re.search(r"^0 calls made, [1-9]", said, re.MULTILINE)
    verdicts = [json.loads(line) for line in Path("run/verdicts.jsonl").read_text().splitlines()]
    assert len(verdicts) == 120
    assert {verdict["method"] for verdict in verdicts} == {methods.partition(",")[2]}
    names: dict[str, us.Verdict] = {}
    exec(python, names)
    assert names["verdict"].n_calls in (1, 2)
    page = html.unescape(Path("run/report.html").read_text())
    assert command.strip() in page
    assert python.strip() in page


def test_nothing_is_shown_where_nothing_is_recommended(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["audit", str(data), "--model", MODEL, "--out", "run", "--limit", "5"]
    assert main([*command, "--resamples", "100"]) == 0
    assert "Apply the method" not in capsys.readouterr().out
    assert "Apply the method" not in Path("run/report.html").read_text()


def test_an_open_question_has_a_command_for_both_answers(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["audit", str(data), "--model", "simulated/judge?slot=0&label=0", "--out", "run"]
    assert main([*command, "--resamples", "100"]) == 0
    told = capsys.readouterr().out
    for word, method in (("most accurate", "average"), ("cheapest", "direct")):
        block = told.partition(f"Apply the method: {word}\n")[2].partition("Apply the method")[0]
        assert f"--method {method}" in block
        assert f"method='{method}'" in block
        assert f"--out run/verdicts-{word.replace(' ', '-')}.jsonl" in block
        assert f"Apply the method: {word}" in Path("run/report.html").read_text()


def test_sampled_probabilities_get_no_command(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = "simulated/judge?slot=1&label=0&logprobs=0"
    command = ["audit", str(data), "--model", model, "--out", "run", "--probs", "sampled:5"]
    assert main([*command, "--resamples", "100"]) == 0
    assert "--method average" not in capsys.readouterr().out


def test_a_method_by_groups_is_shown_with_items_that_name_theirs(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    methods = ["--methods", "direct,pride:prior=group", "--out", "run", "--resamples", "100"]
    assert main(["audit", "tiny-judge", "--limit", "120", *methods]) == 0
    told = capsys.readouterr().out
    assert "us.load_method('run/pride-prior-group.json')" in told
    assert "judge.verdicts(us.load_data('tiny-judge'))" in told


@pytest.mark.parametrize("built_in", ["tiny-judge", "tiny-mcq"])
def test_the_built_in_judge_is_asked_in_words_that_it_knows(
    built_in: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["audit", built_in, "--limit", "60", "--methods", "direct,average", "--out", "run"]
    assert main([*given, "--resamples", "100"]) == 0
    _, python = block_of(capsys.readouterr().out)
    names: dict[str, us.Verdict] = {}
    exec(python, names)
    assert names["verdict"].n_calls in (2, 4)


def test_items_in_memory_get_python_only() -> None:
    items: ItemSet = simulated_items(120, 2, seed=3)
    result = us.audit(MODEL, items, methods="direct,pride", resamples=100)
    command, python = block_of(str(result))
    assert not command
    assert "us.calibrate('pride', items, " in python


def test_extra_body_is_kept(data: Path) -> None:
    result = us.audit(MODEL, data, methods="direct,average", resamples=100)
    asked = {**result.record.run.asked, "extra_body": '{"effort": "low"}'}
    run = msgspec.structs.replace(result.record.run, asked=asked)
    command, python = block_of(str(us.AuditResult(replace(result.record, run=run))))
    assert """--extra-body '{"effort": "low"}'""" in " ".join(command.split())
    assert """extra_body='{"effort": "low"}'""" in " ".join(python.split())


def test_an_address_is_kept_without_what_may_be_secret() -> None:
    reach = BackendSettings(base_url="https://me:word@example.org:8000/v1?key=abc")
    asked = asked_for("openai-api/local/m", reach, PromptSettings(), None, {"data": "a.jsonl"})
    address = "https://example.org:8000/v1"
    assert asked == {"model": "openai-api/local/m", "base_url": address, "data": "a.jsonl"}
