"""`unswayed audit` on bad items and options: said in a line, before any call, nothing left behind."""

import gzip
import json
import sys
from pathlib import Path

import pytest
from cli_commands import SIMULATED, Run, choice, pair, write_lines

from unswayed.base.registry import install_command


def audit(run: Run, data: str | Path, *more: str | Path, model: str = SIMULATED):  # type: ignore[no-untyped-def]
    return run("audit", data, "--model", model, "--resamples", "100", *more)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "no items"),
        ([pair(0), '{"id": "x", '], ":2: JSON: not valid JSON"),
        ([pair(0), pair(1), pair(0)], ":3: id: 'q0' was used on line 1 already"),
        ([pair(0), pair(1, candidates=["only"])], ":2: candidates: needs at least 2, got 1"),
        (
            [pair(0), pair(1, gold=2)],
            ":2: gold: 2 is out of range: there are 2 candidates (0 to 1)",
        ),
        ([pair(0, gold=-1)], ":1: gold: -1 is out of range"),
        ([pair(0, gold=[])], ":1: gold: is an empty list"),
        ([pair(0, gold="first")], ":1: gold: 'first' is not a candidate index"),
        (
            [pair(0, answer=1)],
            ":1: answer: is not a field of an item. Put your own fields into meta",
        ),
        ([{"id": "q0", "candidates": ["a", "b"]}], "no prompt among its fields (id, candidates)"),
        (["[1]"], ":1: item: Expected `object`, got `int`"),
        (
            [pair(0), choice(0), choice(1)],
            "mixed tasks (2 mcq, 1 pairwise). Choose one with --task",
        ),
        ([pair(0, candidates=["a", "b", "c"])], "pairwise needs exactly 2, got 3"),
    ],
)
def test_bad_items_are_reported_with_file_line_field_and_reason(
    rows: list[object], said: str, run: Run, folder: Path
) -> None:
    ran = audit(run, write_lines("items.jsonl", rows))
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert [path.name for path in folder.iterdir()] == ["items.jsonl"]  # nothing was begun


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("latin.jsonl", '{"id": "ä"}'.encode("latin-1"), "latin.jsonl:1: JSON: not valid JSON"),
        (
            "broken.jsonl.gz",
            gzip.compress(b"x" * 9999, mtime=0)[:30],
            "cannot read broken.jsonl.gz",
        ),
        ("plain.jsonl.gz", b'{"id": "q0"}', "cannot read plain.jsonl.gz"),
    ],
)
def test_binary_files_are_reported(name: str, content: bytes, said: str, run: Run) -> None:
    Path(name).write_bytes(content)
    ran = audit(run, name)
    assert ran.code == 2
    assert said in ran.err


def test_a_directory_or_an_absent_file_is_reported(run: Run, folder: Path) -> None:
    assert "cannot read absent.jsonl: No such file" in audit(run, "absent.jsonl").err
    assert "is a directory" in audit(run, folder).err


def test_bad_lines_are_left_out_and_counted_on_demand(run: Run) -> None:
    rows = [pair(0), "{", pair(1), pair(1), pair(2)]
    ran = audit(run, write_lines("items.jsonl", rows), "--on-bad-item", "skip", "--json")
    assert ran.code == 0
    assert ran.json["data"]["n_items"] == 3
    assert ran.json["data"]["bad_lines"] == 2
    assert any("2 bad lines left out, such as items.jsonl:2: JSON" in line for line in ran.said)


def test_one_task_of_a_mixed_file_can_be_taken(run: Run) -> None:
    data = write_lines("mixed.jsonl", [pair(0), choice(0), choice(1)])
    assert audit(run, data, "--task", "mcq", "--json").json["data"]["n_items"] == 2
    wrong = audit(run, data, "--task", "mcw")
    assert (wrong.code, wrong.err) == (2, "unswayed: unknown task 'mcw'. Did you mean 'mcq'?\n")
    assert "mixed.jsonl" in audit(run, data, "--task", "rubric").err
    built_in = run("audit", "tiny-judge", "--task", "mcq")
    assert built_in.code == 2
    assert "tiny-judge has no items of task mcq" in built_in.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--methods", "vot"], "unknown method 'vot'. Did you mean 'vote'?"),
        (
            ["--methods", "vote,pride.json"],
            "pride.json is a file, but methods are given by name here.",
        ),
        (["--methods", "pride:prir=group"], "unknown parameter 'prir'. Did you mean 'prior'?"),
        (["--methods", "pride:prior=grop"], "Did you mean 'group'?"),
        (["--methods", ","], "methods names no method"),
        (["--orders", "swp"], "unknown orders 'swp'. Did you mean 'swap'?"),
        (["--orders", "random:x"], "random:K"),
        (["--orders", "graeco-latin"], "no Graeco-Latin set for 2 candidates"),
        (["--protocol", "copled"], "unknown protocol 'copled'. Did you mean 'coupled'?"),
        (["--probs", "sampled"], "sampled:R"),
        (["--probs", "sampled:3"], "at least 5"),
        (["--estimation-sizes", "10,x"], "whole numbers separated by commas"),
        (["--estimation-sizes", "0,5"], "estimation size 0"),
        (["--group-by", "source"], "give group, criterion, or meta.FIELD"),
        (["--group-by", "meta.sorce"], "Did you mean 'meta.source'?"),
        (["--prompt", "direkt"], "unknown prompt 'direkt'. Did you mean 'direct'?"),
        (["--template", "absent.txt"], "absent.txt: cannot be read"),
        (["--labels", "A"], "2 candidates need 2 labels"),
        (["--labels", "A,A"], "label 'A' occurs twice"),
        (["--shots", "absent.jsonl"], "cannot read absent.jsonl"),
        (["--prices", "absent.toml"], "cannot read the price table absent.toml"),
    ],
)
def test_bad_option_fails_before_run_directory_exists(
    arguments: list[str], said: str, run: Run, folder: Path
) -> None:
    data = write_lines("pairs.jsonl", [pair(0, meta={"source": "s"}), pair(1)])
    # prices are read for models behind an address only
    model = "openai-api/local/m" if "--prices" in arguments else SIMULATED
    ran = audit(run, data, "--out", "run", *arguments, model=model)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("gpt-4.1-mini", "has no provider: write provider/model"),
        ("opnai/gpt-4.1-mini", "unknown provider 'opnai'. Did you mean 'openai'?"),
        ("simulated/jury", "Write simulated/judge"),
        ("simulated/judge?slto=1", "Did you mean 'slot'?"),
        ("simulated/judge?slot=x", "slot='x'"),
        ("tiny/jury", "unknown model 'tiny/jury'"),
        ("openai-api/local", "write openai-api/<service>/<model>"),
        ("openai-api/local/m", "Set LOCAL_BASE_URL"),
        ("openai/gpt-4.1-mini", "set OPENAI_API_KEY"),
        ("anthropic/claude", "set ANTHROPIC_API_KEY"),
        ("replay/absent", "no such file or directory"),
    ],
)
def test_models_that_cannot_be_reached_say_what_to_give(
    model: str, said: str, run: Run, pairs: Path
) -> None:
    ran = audit(run, pairs, "--out", "run", model=model)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not Path("run").exists()


def test_own_data_requires_model(run: Run, pairs: Path) -> None:
    ran = run("audit", pairs)
    assert ran.code == 2
    assert "Add --model, such as --model" in ran.err


def test_an_unknown_built_in_set_is_suggested(run: Run) -> None:
    ran = run("audit", "tiny-jugde")
    assert ran.code == 2
    assert "Did you mean 'tiny-judge'?" in ran.err


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("audit tiny-mcq --model hf/some-model", "the local model hf/some-model needs torch"),
        ("heads fit tiny-judge-train --out runs", "heads fit needs torch"),
    ],
)
def test_a_missing_extra_names_the_install_command(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str, named: str
) -> None:
    import importlib.util

    found = importlib.util.find_spec

    def without_torch(name: str, package: str | None = None):  # type: ignore[no-untyped-def]
        return None if name in {"torch", "transformers"} else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_torch)
    ran = run(*command.split())
    assert ran.code == 2
    assert named in ran.err
    assert f"Install it with: {install_command('local')}\n" in ran.err
    assert not Path("runs").exists()


def test_items_come_from_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    rows = "".join(f"{json.dumps(pair(number))}\n" for number in range(3))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    ran = audit(run, "-", "--json")
    assert ran.json["data"] == {**ran.json["data"], "name": "stdin", "n_items": 3}
    assert Path("runs/stdin-simulated-judge/report.html").is_file()


# --- what is printed ---------------------------------------------------------------------------


def test_json_is_metrics_json_and_nothing_else(run: Run, pairs: Path) -> None:
    ran = audit(run, pairs, "--out", "run", "--json", "--methods", "vote,pride,cell-median")
    assert ran.code == 0
    assert ran.out == Path("run/metrics.json").read_text(encoding="utf-8")
    assert json.loads(ran.out)["calls"]["made"] == 60
    assert "60/60 calls" in ran.err  # progress


def test_results_name_the_report_and_the_run_is_complete(run: Run, pairs: Path) -> None:
    ran = audit(run, pairs)
    directory = Path("runs/pairs-simulated-judge")
    assert ran.out.rstrip().endswith(str(directory / "report.html"))
    for name in ("run.json", "metrics.json", "calls.sqlite", "report.html"):
        assert (directory / name).is_file()


def test_table_has_room_for_position_without_terminal(
    run: Run, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    ran = audit(run, pairs)
    assert "First" in ran.out
    assert "No room" not in ran.out


def test_methods_that_cannot_run_are_named_with_the_reason(run: Run, pairs: Path) -> None:
    ran = audit(run, pairs, model="simulated/judge?logprobs=0")
    assert ran.code == 0
    assert ran.said == [
        "unswayed: skipped average: it needs label probabilities, and these answers have none."
    ]


def test_reasoning_prompts_give_no_probabilities(run: Run, pairs: Path) -> None:
    for prompt in ("reasoning", "modified", "debias-reasoning"):
        ran = audit(run, pairs, "--prompt", prompt, "--out", prompt, "--json")
        assert "average" in ran.json["skipped"], prompt
        assert "vote" in ran.json["methods"], prompt


def test_estimation_sizes_without_learning_method_are_reported(run: Run, pairs: Path) -> None:
    ran = audit(run, pairs, "--estimation-sizes", "5", "--json")
    assert any("none of the methods learns" in line for line in ran.said)
    curve = audit(run, pairs, "--estimation-sizes", "5,10", "--methods", "all", "--json")
    sizes = [point["estimation_items"] for point in curve.json["estimation_curve"]["pride"]]
    assert sizes == [5, 10]


@pytest.mark.parametrize(("limit", "code"), [("0.01", 1), ("1", 0)])
def test_the_gate_fails_with_1_when_more_verdicts_flip(
    limit: str, code: int, run: Run, pairs: Path
) -> None:
    ran = audit(run, pairs, "--max-flip-rate", limit)
    assert ran.code == code
    assert any("--max-flip-rate allows 1.0%" in line for line in ran.said) == (code == 1)
    assert "report.html" in ran.out  # the results are shown all the same


def test_a_gate_that_cannot_be_judged_fails(run: Run, pairs: Path) -> None:
    ran = audit(run, pairs, "--orders", "identity", "--methods", "direct", "--max-flip-rate", "1")
    assert ran.code == 1
    assert "the flip rate is unknown" in ran.err


def test_a_gate_on_answers_that_all_are_unread_fails(run: Run, pairs: Path) -> None:
    model = "simulated/judge?unparsed=1"
    ran = audit(run, pairs, "--max-flip-rate", "1", model=model)
    assert ran.code == 1
    assert "the flip rate is unknown: no answer could be read" in ran.err


def test_a_dry_run_refuses_the_template_like_the_run(run: Run, pairs: Path, folder: Path) -> None:
    template = folder / "t.jinja"
    template.write_text("{% for c in candidates %}{{ c.label }} {{ c.text }} {% endfor %}")
    ran = audit(run, pairs, "--dry-run", "--template", str(template))
    assert ran.code == 2
    assert "never shows the question" in ran.err


@pytest.mark.parametrize("model", [SIMULATED, "openai/m", "anthropic/m"])
def test_a_dry_run_prices_without_a_key_and_leaves_nothing(
    model: str, run: Run, pairs: Path, folder: Path
) -> None:
    ran = audit(run, pairs, "--dry-run", model=model)
    assert ran.code == 0
    assert ran.out.startswith("60 calls for 60 questions: 0 recorded, 60 to make\n")
    assert [path.name for path in folder.iterdir()] == ["pairs.jsonl"]
    assert audit(run, pairs, "--dry-run", "--json", model=model).json["n_to_make"] == 60


def test_the_recorded_command_holds_no_secret(
    run: Run, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-abcdefghijklmnop"
    command = [
        "unswayed",
        "audit",
        "pairs.jsonl",
        "--base-url",
        f"https://someone:{secret}@example.org/v1?api-key={secret}#x",
        "--labels",
        secret,
    ]
    monkeypatch.setattr(sys, "argv", command)
    audit(run, pairs, "--out", "run")
    for path in Path("run").iterdir():
        assert secret.encode() not in path.read_bytes(), path
    said = json.loads(Path("run/run.json").read_text())["command"]
    assert "https://example.org/v1" in said


def test_fitting_warning_is_printed_and_noisy_verdicts_stay(
    run: Run,
) -> None:
    data = write_lines("pairs.jsonl", [pair(number) for number in range(120)])
    noisy = "simulated/judge?noise=3"
    ran = audit(run, data, "--methods", "direct,calibraeval", "--json", model=noisy)
    assert ran.code == 0
    assert any("the best map is constant" in line for line in ran.said)
    rows = ran.json["methods"]
    # the same items and raw verdicts, so the same figures; a coin toss would be always consistent
    assert rows["calibraeval"]["consistency"] == rows["direct"]["consistency"]
    assert rows["calibraeval"]["accuracy"] == rows["direct"]["accuracy"]


def test_dry_run_explains_missing_and_zero_price(run: Run, pairs: Path) -> None:
    unknown = run("audit", pairs, "--model", "openai/gpt-99", "--dry-run")
    assert "cost unknown: this model has no price; give one with --prices" in unknown.out
    here = run("audit", pairs, "--model", "openai-api/ollama/m", "--dry-run")
    assert "cost $0.0000 (on this machine, or priced at 0)" in here.out


def test_dry_run_prints_the_warnings_of_the_run(run: Run, folder: Path) -> None:
    data = folder / "exam.jsonl"
    texts = ["A. heart", "B. lung", "C. liver", "D. All of the above"]
    item = {"id": "q1", "task": "mcq", "prompt": "Which?", "candidates": texts, "gold": 1}
    data.write_text(json.dumps(item) + "\n")
    warning = "1 of 1 items has an option that seems to refer to others, such as q1."
    assert warning in audit(run, data, "--dry-run").out
    assert warning in audit(run, data).err
