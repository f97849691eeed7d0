"""Lists to rank and scales to score, through every command that takes items."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_commands import Run, choice, write_lines

MODEL = "simulated/judge?slot=2&label=0&noise=0.5"
MILD = "simulated/judge?slot=0.3&label=0&noise=0.1"  # some choices move, some do not


def ranked(number: int, **changes: object) -> dict[str, Any]:
    return choice(number, task="listwise", **changes)


def scored(number: int, **changes: object) -> dict[str, Any]:
    return {
        "id": f"r{number}",
        "task": "rubric",
        "prompt": f"Explain thing {number}.",
        "candidates": ["wrong", "half right", "right", "right and clear"],
        "values": [1, 2, 4, 5],
        "response": f"It is thing {number}.",
        "gold": [1, 2, 4, 5, 3.5][number % 5],
        **changes,
    }


@pytest.fixture(params=["listwise", "rubric"])
def data(request: pytest.FixtureRequest, folder: Path) -> Path:
    row = ranked if request.param == "listwise" else scored
    return write_lines(folder / f"{request.param}.jsonl", [row(number) for number in range(30)])


def verdicts(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("method", ["direct", "vote", "average"])
def test_judge_gives_scores_of_scales_and_lists(run: Run, data: Path, method: str) -> None:
    ran = run("judge", data, "--model", MODEL, "--method", method)
    assert ran.code == 0
    judged = verdicts(ran.out)
    ids = [json.loads(line)["id"] for line in data.read_text().splitlines()]
    assert [verdict["item_id"] for verdict in judged] == ids
    if data.stem == "listwise":
        assert not any("score" in verdict or "sd" in verdict for verdict in judged)
        if method == "average":
            assert all(max(v["scores"]) == v["scores"][v["choice"]] for v in judged)
            assert max(max(v["scores"]) for v in judged) > 50  # points, no shares
        return
    assert all(1 <= verdict["score"] <= 5 for verdict in judged)
    assert all(("sd" in verdict) == (method != "direct") for verdict in judged)
    if method == "direct":
        assert all(v["score"] == (1, 2, 4, 5)[v["choice"]] for v in judged)


def test_an_audit_its_export_its_report_and_its_decisions(
    run: Run, data: Path, folder: Path
) -> None:
    first = run("audit", data, "--model", MODEL, "--out", "run", "--json", "--resamples", "100")
    assert first.code == 0
    assert set(first.json["methods"]) == {"direct", "vote", "average"}
    assert first.json["data"]["task"] == data.stem
    assert (
        first.json["methods"]["direct"]["position_rate"][0]["value"] > 0.3
    )  # planted, 0.25 is fair
    assert run("export", "run", "--as", "jsonl", "--out", "decisions.jsonl").code == 0
    again = run(
        "audit", data, "--decisions", "decisions.jsonl", "--out", "again", "--json",
        "--resamples", "100",
    )  # fmt: skip
    assert again.code == 0
    for method, row in first.json["methods"].items():
        for metric in ("accuracy", "consistency"):
            assert again.json["methods"][method][metric]["value"] == row[metric]["value"], method
    alone = run("audit", "--decisions", "decisions.jsonl", "--out", "alone", "--json")
    assert alone.code == 0
    assert alone.json["methods"]["direct"]["consistency"]["value"] == pytest.approx(
        first.json["methods"]["direct"]["consistency"]["value"]
    )
    for kind in ("csv", "parquet"):
        assert run("export", "run", "--as", kind, "--out", f"decisions.{kind}").code == 0
    assert run("report", "run", "--out", "report.html").code == 0
    assert "<html" in Path("report.html").read_text(encoding="utf-8")


def test_filter_keeps_the_items_whose_choice_moves(run: Run, data: Path) -> None:
    assert run("filter", data, "--model", MILD, "--out", "kept.jsonl").code == 0
    kept = Path("kept.jsonl").read_text().splitlines()
    decided = run("judge", data, "--model", MILD, "--method", "vote", "--calls", "kept.calls")
    moved = [v["item_id"] for v in verdicts(decided.out) if not v["consistent"]]
    assert [json.loads(line)["id"] for line in kept] == moved
    assert 0 < len(kept) < 30


def test_a_fit_on_a_scale_judges_it_and_its_shadow_asks_again(run: Run, folder: Path) -> None:
    data = write_lines(folder / "rubric.jsonl", [scored(number) for number in range(40)])
    new = write_lines(folder / "new.jsonl", [scored(number) for number in range(40, 70)])
    assert run("calibrate", "pride", data, "--model", MODEL, "--out", "pride.json").code == 0
    ran = run("judge", new, "--model", MODEL, "--method", "pride.json", "--shadow", "1")
    assert ran.code == 0
    assert all(verdict["score"] in (1, 2, 4, 5) for verdict in verdicts(ran.out))
    assert any("no drift" in line for line in ran.said)


def test_method_unfit_for_lists_fails_before_any_call(run: Run, folder: Path) -> None:
    data = write_lines(folder / "list.jsonl", [ranked(number) for number in range(5)])
    ran = run("calibrate", "pride", data, "--model", MODEL, "--out", "pride.json")
    assert ran.code == 2
    assert "it needs label probabilities, and these answers have none" in ran.err
    ran = run("judge", data, "--model", MODEL, "--method", "average", "--shadow", "0.5")
    assert ran.code == 2
    assert "average learns nothing" in ran.err


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (ranked(0, candidates=["only"], gold=0), "candidates: needs at least 2, got 1"),
        (scored(0, candidates=["only"], values=[1]), "candidates: needs at least 2, got 1"),
        (scored(0, values=[1, 2]), "values: rubric needs one score per level: 4 levels, values: 2"),
        (scored(0, values=None), "4 levels, values: none"),
        (scored(0, values=[3, 3, 3, 3]), "are not 4 different numbers"),
        (scored(0, response=None), "response: rubric needs the text that is scored"),
    ],
)
def test_invalid_list_or_scale_stops_every_command(
    run: Run, folder: Path, row: dict[str, Any], reason: str
) -> None:
    data = write_lines(folder / "bad.jsonl", [row])
    for command in (["judge"], ["audit"], ["filter", "--out", "kept.jsonl"]):
        ran = run(command[0], data, "--model", MODEL, *command[1:])
        assert ran.code == 2
        assert "bad.jsonl:1: " in ran.err
        assert reason in ran.err
        assert "Traceback" not in ran.err


def test_a_scale_without_probabilities_names_another_method(run: Run, folder: Path) -> None:
    data = write_lines(folder / "rubric.jsonl", [scored(number) for number in range(5)])
    ran = run("judge", data, "--model", "simulated/judge?logprobs=0")
    assert ran.code == 2
    remedy = ran.err.rpartition("Use ")[2].strip().rstrip(".").partition(" or ")[0]
    again = run("judge", data, "--model", "simulated/judge?logprobs=0", "--method", remedy)
    assert again.code == 0
    assert len(verdicts(again.out)) == 5


def test_constant_human_scores_leave_everything_else_measured(run: Run, folder: Path) -> None:
    data = write_lines(folder / "rubric.jsonl", [scored(number, gold=4) for number in range(20)])
    ran = run("audit", data, "--model", MODEL, "--out", "run", "--json", "--resamples", "100")
    assert ran.code == 0
    assert ran.json["methods"]["direct"]["consistency"]["value"] is not None
