"""`--shard` and `merge`: shards leave files of calls, and merged they give what one process gives."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli_commands import SIMULATED, Run, choice, pair, write_lines

from unswayed.audits import RunArguments
from unswayed.backends import BackendSettings
from unswayed.model.items import Shard, as_item, shard_of
from unswayed.prompts import AskOptions
from unswayed.sharded import plan_of
from unswayed.sources import DataOptions

FIGURES = ("metrics.json", "answers.json", "flipped.json")


def ask(run: Run, out: str, count: int, *options: str, command: str = "audit") -> None:
    for number in range(count):
        asked = run(command, *options, "--out", out, "--shard", f"{number}/{count}")
        assert asked.code == 0, asked.err


def same_figures(*directories: str) -> None:
    for name in FIGURES:
        first, *others = (Path(directory, name).read_bytes() for directory in directories)
        assert all(other == first for other in others), name


def without_times(page: Path) -> list[str]:
    return re.sub(r"<dt>Time</dt><dd[^>]*>[^<]*", "", page.read_text("utf-8")).splitlines()


def merged_equals_whole(run: Run, options: Sequence[str], count: int) -> None:
    ask(run, "run", count, *options)
    assert run("merge", "run").code == 0
    Path("run").rename("merged")
    assert run("audit", *options, "--out", "run").code == 0
    same_figures("merged", "run")
    assert without_times(Path("merged/report.html")) == without_times(Path("run/report.html"))


def test_merged_shards_equal_one_process_with_all_methods(run: Run, pairs: Path) -> None:
    merged_equals_whole(run, ("pairs.jsonl", "--model", SIMULATED, "--methods", "all"), 3)
    assert not list(Path("merged").glob("shards/*.jsonl"))


def test_merged_shards_equal_one_process_with_samples(run: Run) -> None:
    write_lines("m.jsonl", [choice(number, n=3 + number % 2) for number in range(12)])
    options = ("--model", SIMULATED, "--methods", "all", "--probs", "sampled:5", "--seed", "3")
    merged_equals_whole(run, ("m.jsonl", *options), 3)


def test_shard_without_items_shots_and_method_that_stops_early(run: Run) -> None:
    items = write_lines("p.jsonl", [pair(number) for number in range(6)])
    empty = [k for k in range(9) if k not in {shard_of(f"q{number}", 9) for number in range(6)}]
    assert empty
    shots = write_lines("shots.jsonl", [pair(9)])
    options = (str(items), "--model", SIMULATED, "--methods", "sequential", "--shots", str(shots))
    merged_equals_whole(run, options, 9)


def test_plan_of_shards_has_no_secret_of_an_address() -> None:
    reach = BackendSettings(base_url="https://me:word@example.org/v1?key=abc")
    kept = {"asking": AskOptions(), "selection": DataOptions(), "reach": reach}
    plan = plan_of(RunArguments(data="a.jsonl", model="m", **kept), "judge", Shard(0, 2))  # type: ignore[arg-type]
    assert plan.reach["base_url"] == "https://example.org/v1"


def test_shard_of_item_depends_on_its_id_alone() -> None:
    assert [shard_of(name, 7) for name in ("a", "b", "c")] == [2, 5, 1]
    item = as_item(pair(1))
    assert sum(Shard(number, 7).holds(item) for number in range(7)) == 1


def test_finished_shard_is_there_without_its_model(run: Run, pairs: Path) -> None:
    options = (pairs, "--model", "hf/nowhere", "--out", "run", "--shard", "0/2")
    ask(run, "run", 2, "pairs.jsonl", "--model", SIMULATED)
    plan = Path("run/shards/plan.json")
    plan.write_text(plan.read_text().replace(f'"model": "{SIMULATED}"', '"model": "hf/nowhere"'))
    ran = run("audit", *options)
    assert (ran.code, ran.out) == (0, "run/shards/00000-of-00002.parquet: already complete\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--shard", "4/4", "--out", "run"],
            "--shard 4/4: K counts from 0, so it must be below N.",
        ),
        (["--shard", "0/100000", "--out", "run"], "use at most 99,999 shards."),
        (["--shard", "one", "--out", "run"], "write K/N, such as 0/4 for the first of four."),
        (["--shard", "0/4"], "--shard needs --out: give the directory that all shards share."),
        (["--shard", "0/4", "--out", "run", "--decisions", "d"], "Leave out --decisions."),
        (["--shard", "0/4", "--out", "run", "--batch", "b"], "--shard excludes --batch: "),
        (["--shard", "0/4", "--out", "run", "--max-flip-rate", "0"], "Leave out --max-flip-rate."),
        (
            ["--shard", "0/4", "--out", "run", "--fail-if", "flip_rate>0"],
            "--shard excludes --fail-if: ",
        ),
    ],
)
def test_shard_options_that_cannot_work_are_refused(
    options: list[str], said: str, run: Run, pairs: Path
) -> None:
    ran = run("audit", pairs, "--model", SIMULATED, *options)
    assert ran.code == 2
    assert said in ran.err
    assert not Path("run").exists()


def test_merge_of_missing_shards_needs_partial(run: Run, pairs: Path) -> None:
    ask(run, "run", 4, "pairs.jsonl", "--model", SIMULATED)
    for number in (1, 2):
        Path(f"run/shards/{number:05d}-of-00004.parquet").unlink()
    ran = run("merge", "run")
    assert (ran.code, ran.said) == (
        2,
        ["unswayed: 2 of 4 shards are missing (1, 2). Run their commands."],
    )
    assert not Path("run/calls.sqlite").exists()
    lost = sum(shard_of(f"q{number}", 4) in (1, 2) for number in range(30))
    ran = run("merge", "run", "--partial")
    assert ran.code == 0
    assert f"2 of 4 shards are missing (1, 2): {lost} of 30 items have no answer." in ran.err
    calls = json.loads(Path("run/metrics.json").read_text())["calls"]
    assert (calls["planned"], calls["made"], calls["cached"]) == (60, 60 - 2 * lost, 0)
    for number in (1, 2):
        asked = run("audit", pairs, "--model", SIMULATED, "--out", "run", "--shard", f"{number}/4")
        assert asked.code == 0, asked.err
    assert run("merge", "run").code == 0
    assert run("merge", "run").code == 0
    Path("run").rename("merged")
    assert run("audit", pairs, "--model", SIMULATED, "--out", "run").code == 0
    same_figures("merged", "run")


def test_merge_of_folder_without_shards_is_refused(run: Run) -> None:
    ran = run("merge", "nothing")
    assert ran.code == 2
    assert "nothing holds no shards (shards/plan.json is missing)." in ran.err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--shards", "3"), "--shards needs --engine"),
        (("--engine", "ray"), "--shards needs --engine"),
        (("--shards", "3", "--engine", "ray", "--shard", "0/3"), "excludes --shard"),
        (("--shards", "3", "--engine", "ray"), "needs --out"),
    ],
)
def test_shards_need_engine_and_directory(
    options: tuple[str, ...], problem: str, run: Run, pairs: Path
) -> None:
    refused = run("audit", "pairs.jsonl", "--model", SIMULATED, *options)
    assert refused.code == 2
    assert problem in refused.err


@pytest.mark.parametrize("method", ["sequential", "pride.json"])
def test_merged_verdicts_equal_one_command(method: str, run: Run, pairs: Path) -> None:
    options = ["pairs.jsonl", "--model", SIMULATED, "--method", method]
    fitted = run("calibrate", "pride", "pairs.jsonl", "--model", SIMULATED, "--out", "pride.json")
    assert fitted.code == 0, fitted.err
    ask(run, "run", 4, *options, command="judge")
    assert run("judge", *options, "--out", "run", "--shard", "1/4").out.endswith(
        ": already complete\n"
    )
    assert run("merge", "run").out == "run/verdicts.jsonl: 30 verdicts\n"
    assert run("judge", *options, "--out", "whole.jsonl").code == 0
    assert Path("run/verdicts.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()
    assert run("judge", *options, "--out", "again.jsonl", "--calls", "run").code == 0
    assert Path("again.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()


def test_merged_verdicts_on_criteria_equal_one_command(run: Run) -> None:
    rows = [
        {
            "id": f"s{number}",
            "task": "rubric",
            "prompt": f"Question {number}?",
            "candidates": ["bad", "fair", "good"],
            "values": [1, 2, 3],
            "response": f"answer {number}",
            "criteria": ["style", "truth"],
        }
        for number in range(12)
    ]
    options = (write_lines("s.jsonl", rows), "--model", SIMULATED, "--method", "balanced-rubric")
    ask(run, "run", 3, *map(str, options), command="judge")
    assert run("merge", "run").out == "run/verdicts.jsonl: 24 verdicts\n"
    assert run("judge", *options, "--out", "whole.jsonl").code == 0
    assert Path("run/verdicts.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()


def test_other_fitted_file_is_refused(run: Run, pairs: Path) -> None:
    for seed in ("0", "1"):
        model = f"{SIMULATED}?seed={seed}"
        assert run("calibrate", "pride", pairs, "--model", model, "--out", "f.json").code == 0
        ran = run(
            "judge", pairs, "--model", model, "--method", "f.json", "--out", "run", "--shard", "0/2"
        )
        Path("f.json").unlink()
    assert ran.code == 2
    assert "run/shards/plan.json is of other shards: --model is" in ran.err
    assert "; method is 'sha256:" in ran.err


def test_partial_merge_of_verdicts_leaves_items_out(run: Run, pairs: Path) -> None:
    options = ("pairs.jsonl", "--model", SIMULATED)
    ask(run, "run", 2, *options, command="judge")
    Path("run/shards/00001-of-00002.parquet").unlink()
    ran = run("merge", "run", "--partial")
    kept = sum(shard_of(f"q{number}", 2) == 0 for number in range(30))
    assert (ran.code, ran.out) == (0, f"run/verdicts.jsonl: {kept} verdicts\n")
    assert f"1 of 2 shards is missing (1): {30 - kept} verdicts left out." in ran.err
    refused = run("merge", "run", "--partial", "--json")
    assert refused.code == 2
    assert "run holds verdicts, and --json prints figures." in refused.err
