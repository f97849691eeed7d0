"""A scale of levels from the command line: learn an order, judge in it, check that it still holds."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_commands import Run, write_lines

JUDGE = "simulated/judge?slot=1.5&label=0"


def response(number: int, *, values: tuple[float, ...] = (1, 2, 3, 4, 5)) -> dict[str, Any]:
    return {
        "id": f"r{number}",
        "task": "rubric",
        "prompt": "How clear is it?",
        "response": f"answer {number}",
        "candidates": [f"level {value:g}" for value in values],
        "values": list(values),
    }


def verdicts(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.usefixtures("folder")
def test_a_learned_order_is_saved_and_asked(run: Run) -> None:
    data = write_lines("probe.jsonl", [response(number) for number in range(60)])
    ran = run("calibrate", "bias-cost", data, "--model", JUDGE, "--out", "order.json")
    assert ran.code == 0, ran.err
    (probe,) = json.loads(Path("order.json").read_text())["method"]["probes"]
    assert probe["count"] == 60
    assert len(probe["costs"]) == 10
    assert probe["cost"] == min(probe["costs"])
    # the same responses, their levels listed the other way round: the same calls, the same scores
    up = [response(number) for number in range(500, 520)]
    down = [response(number, values=(5, 4, 3, 2, 1)) for number in range(500, 520)]
    scores = []
    for name, items in (("up", up), ("down", down)):
        judged = run(
            "judge", write_lines(f"{name}.jsonl", items), "--model", JUDGE, "--method", "order.json"
        )
        assert judged.code == 0, judged.err
        scores.append([line["score"] for line in verdicts(judged.out)])
        assert {line["n_calls"] for line in verdicts(judged.out)} == {1}
    assert scores[0] == scores[1]
    assert len(set(scores[0])) > 1
    another = run("judge", "up.jsonl", "--model", "simulated/judge", "--method", "order.json")
    assert another.code == 2
    assert "bias-cost file was fitted for" in another.said[-1]


@pytest.mark.usefixtures("folder")
def test_a_mean_over_orders_comes_with_its_spread(run: Run) -> None:
    data = write_lines("new.jsonl", [response(number) for number in range(5)])
    ran = run("judge", data, "--model", JUDGE, "--method", "balanced-rubric")
    assert ran.code == 0, ran.err
    for line in verdicts(ran.out):
        assert 1 <= line["score"] <= 5
        assert line["sd"] >= 0
        assert line["n_calls"] == 10


@pytest.mark.usefixtures("folder")
def test_a_long_scale_is_calibrated_and_not_audited(run: Run) -> None:
    long = tuple(range(1, 8))
    probe = write_lines("probe.jsonl", [response(k, values=long) for k in range(60)])
    new = write_lines("new.jsonl", [response(k, values=long) for k in range(60, 65)])
    ran = run("audit", new, "--model", JUDGE, "--methods", "bias-cost:search=all")
    assert ran.code == 2
    assert "5,040 orders of 7 levels" in ran.err
    ran = run("calibrate", "bias-cost:search=all", probe, "--model", JUDGE, "--out", "order.json")
    assert ran.code == 0, ran.err
    ran = run("judge", new, "--model", JUDGE, "--method", "order.json")
    assert ran.code == 0, ran.err
    assert [line["n_calls"] for line in verdicts(ran.out)] == [1] * 5
