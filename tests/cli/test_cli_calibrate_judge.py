"""`unswayed calibrate` and `unswayed judge`: fit once, judge as items come, refuse what does not fit."""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from cli_commands import SIMULATED, Ran, Run, Server, choice, command_of, pair, write_lines

UNBIASED = "simulated/judge?slot=0&label=0&content=0&noise=0"


def calibrate(
    run: Run, method: str, data: str | Path, *more: str | Path, model: str = SIMULATED
) -> Ran:
    return run("calibrate", method, data, "--model", model, "--out", "fitted.json", *more)


def judge(run: Run, data: str | Path, *more: str | Path, model: str = SIMULATED) -> Ran:
    return run("judge", data, "--model", model, *more)


def verdicts(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def new_pairs(name: str = "new.jsonl", n: int = 10) -> Path:
    return write_lines(name, [pair(1000 + number) for number in range(n)])


# --- calibrate ---------------------------------------------------------------------------------


def test_a_fitted_file_says_what_was_learned_and_from_what(run: Run, pairs: Path) -> None:
    ran = calibrate(run, "pride", pairs)
    assert ran.code == 0
    assert not ran.said
    assert "prior of label A" in ran.out
    assert "30 items, 60 decisions, 0 unparsed" in ran.out
    file = json.loads(Path("fitted.json").read_text())
    assert file["label_set"] == ["A", "B"]
    assert file["diagnostics"]["estimation_items"] == 30
    assert len(file["estimation_marks"]) == 30


@pytest.mark.parametrize("labels", ["X,Y", "B,A"])
def test_learned_values_are_printed_with_the_own_labels(run: Run, pairs: Path, labels: str) -> None:
    ran = calibrate(run, "pride", pairs, "--labels", labels)
    first, second = labels.split(",")
    assert f"prior of label {first} under {first} {second} " in ran.out
    assert ran.out.count("prior of label") == 2
    file = json.loads(Path("fitted.json").read_text())
    assert f"prior of label {second} under {first} {second}" in file["diagnostics"]["estimates"]


def test_calibrating_again_makes_no_call(run: Run, pairs: Path) -> None:
    calibrate(run, "pride", pairs)
    first = Path("fitted.json").read_bytes()
    ran = calibrate(run, "pride", pairs)
    assert "60 reused" in ran.err
    assert Path("fitted.json").read_bytes() == first


def test_no_items_that_may_be_permuted_give_no_file(run: Run, folder: Path) -> None:
    data = write_lines("fixed.jsonl", [pair(number, permutable=False) for number in range(5)])
    ran = calibrate(run, "pride", data)
    assert ran.code == 2
    assert "pride learned nothing" in ran.said[-1]
    assert not Path("fitted.json").exists()


def test_a_map_that_corrects_nothing_is_written_on_demand_only(run: Run, pairs: Path) -> None:
    ran = calibrate(run, "calibraeval", pairs, model=UNBIASED)
    assert ran.code == 2
    assert "corrects nothing" in ran.said[-1]
    assert "--force" in ran.said[-1]
    assert not Path("fitted.json").exists()
    assert calibrate(run, "calibraeval", pairs, "--force", model=UNBIASED).code == 0
    fitted = judge(run, new_pairs(), "--method", "fitted.json", model=UNBIASED)
    assert fitted.code == 0


def test_missing_probabilities_are_counted(run: Run, pairs: Path, server: Server) -> None:
    server.start({"kind": "no_logprobs", "contains": "first answer 3"})
    ran = calibrate(run, "pride", pairs, model=Server.model)
    assert ran.code == 0
    assert "2 without probabilities" in ran.out
    server.start({"kind": "no_logprobs"})
    ran = calibrate(run, "pride", pairs, "--calls", "others", model=Server.model)
    assert ran.code == 2
    assert "none of the 60 estimation decisions has any" in ran.err


def test_labels_outside_the_top_k_are_counted_as_censored(
    run: Run, pairs: Path, server: Server
) -> None:
    server.start(labels=("A",))  # B is never among the alternatives
    assert calibrate(run, "pride", pairs, model=Server.model).code == 0
    assert json.loads(Path("fitted.json").read_text())["diagnostics"]["censored"] == 60


def test_different_numbers_of_candidates_are_fitted_apart(run: Run, folder: Path) -> None:
    rows = [choice(n, 3) for n in range(25)] + [choice(n, 4) for n in range(25, 50)]
    ran = calibrate(run, "pride", write_lines("mixed.jsonl", rows))
    assert ran.code == 0
    assert "under A B C " in ran.out
    assert "under A B C D" in ran.out
    assert json.loads(Path("fitted.json").read_text())["diagnostics"]["candidates"] == {
        "3": 25,
        "4": 25,
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["prid", "pairs.jsonl"], "Did you mean 'pride'?"),
        (["vote", "pairs.jsonl"], "vote learns nothing"),
        (["pride", "absent.jsonl"], "cannot read absent.jsonl"),
        (["pride", "empty.jsonl"], "no items"),
        (["pride", "mixed.jsonl"], "Choose one with --task"),
        (["cell-median", "mcq.jsonl"], "it needs 2 candidates, got 4"),
        (["pride", "pairs.jsonl", "--prompt", "reasoning"], "it needs label probabilities"),
        (["pride", "pairs.jsonl", "--prompt", "direkt"], "Did you mean 'direct'?"),
        (["pride", "pairs.jsonl", "--out", "pairs.jsonl"], "is both input and output"),
        (["pride", "pairs.jsonl", "--out", "."], "is a directory"),
    ],
)
def test_uncalibratable_method_fails_before_any_call(
    arguments: list[str], said: str, run: Run, pairs: Path, folder: Path
) -> None:
    write_lines("empty.jsonl", [])
    write_lines("mixed.jsonl", [pair(0), choice(0)])
    write_lines("mcq.jsonl", [choice(0)])
    out = [] if "--out" in arguments else ["--out", "fitted.json"]
    ran = run("calibrate", *arguments, "--model", SIMULATED, *out)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    names = {path.name for path in folder.iterdir()}
    assert names == {"empty.jsonl", "mixed.jsonl", "mcq.jsonl", "pairs.jsonl"}


def test_one_task_and_good_lines_can_be_taken(run: Run, folder: Path) -> None:
    data = write_lines("mixed.jsonl", [*map(pair, range(20)), "{", choice(0)])
    ran = calibrate(run, "pride", data, "--task", "pairwise", "--on-bad-item", "skip")
    assert ran.code == 0
    assert any("1 bad line left out: mixed.jsonl:21" in line for line in ran.said)


def test_failed_calls_leave_no_file_but_can_be_resumed(
    run: Run, pairs: Path, server: Server
) -> None:
    server.start({"kind": "status", "status": 400, "contains": "first answer 3"})
    ran = calibrate(run, "pride", pairs, model=Server.model)
    assert ran.code == 3
    assert "2 of 60 answers missing, such as q3: HTTP 400" in ran.err
    assert not Path("fitted.json").exists()
    server.start()
    assert calibrate(run, "pride", pairs, model=Server.model).code == 0
    assert server.received == 2


# --- judge -------------------------------------------------------------------------------------


def test_one_line_in_one_line_out_in_the_same_order(run: Run, pairs: Path) -> None:
    ran = judge(run, pairs, "--method", "vote")
    assert ran.code == 0
    assert [one["item_id"] for one in verdicts(ran.out)] == [f"q{n}" for n in range(30)]
    assert verdicts(ran.out)[0] == {**verdicts(ran.out)[0], "method": "vote", "n_calls": 2}
    assert not ran.said
    assert ran.err.splitlines() == [
        "30 of 30 items were judged: 16 ties, 0 without a verdict",
        "60 calls made, 0 reused, 0 failed; $0.0000",
    ]


def test_verdicts_between_equal_scores_are_counted(run: Run, pairs: Path) -> None:
    even = "simulated/judge?slot=2&label=0&noise=0&content=0"
    ran = run("judge", pairs, "--model", even, "--method", "average")
    told = "30 verdicts have equal scores, so a hash of id and text decides"
    assert ran.err.splitlines()[-1] == told


def test_recorded_answers_are_counted_as_read(run: Run, pairs: Path) -> None:
    assert run("audit", pairs, "--model", "simulated/judge", "--out", "run").code == 0
    ran = run("judge", pairs, "--model", "replay/run", "--method", "vote")
    assert ran.err.splitlines()[-1] == "60 recorded answers read, 0 reused, 0 failed; $0.0000"


def test_verdicts_can_be_written_to_a_file(run: Run, pairs: Path) -> None:
    printed = judge(run, pairs)
    ran = judge(run, pairs, "--out", "new/verdicts.jsonl")
    assert (ran.code, ran.out) == (0, "")
    assert Path("new/verdicts.jsonl").read_text() == printed.out


def test_a_verdict_comes_before_the_next_line_is_sent(folder: Path) -> None:
    with subprocess.Popen(
        command_of("judge", "-", "--model", SIMULATED),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        given_up = threading.Timer(60, process.kill)  # a verdict that never comes ends the test
        given_up.start()
        for number in range(5):
            process.stdin.write(f"{json.dumps(pair(number))}\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["item_id"] == f"q{number}"
        process.stdin.write(json.dumps(pair(5)))  # the last line needs no end
        process.stdin.close()
        assert json.loads(process.stdout.readline())["item_id"] == "q5"
        assert process.stdout.read() == ""
        assert process.wait(30) == 0
        given_up.cancel()


@pytest.mark.parametrize("method", ["contextual", "domain-contextual"])
def test_no_item_flatters_a_content_free_fit(method: str, run: Run, pairs: Path) -> None:
    calibrate(run, method, pairs)
    ran = judge(run, pairs, "--method", "fitted.json")
    assert ran.code == 0
    assert not ran.said


def test_fitted_file_judges_and_reports_its_estimation_items(run: Run, pairs: Path) -> None:
    calibrate(run, "pride", pairs)
    ran = judge(run, new_pairs(), "--method", "fitted.json")
    assert ran.code == 0
    assert not ran.said
    assert {one["method"] for one in verdicts(ran.out)} == {"pride"}
    ran = judge(run, pairs, "--method", "fitted.json")
    assert ran.code == 0
    assert ran.said == [
        "unswayed: 30 judged items (such as q0) were used to fit the method; figures on them "
        "flatter it. Judge other items."
    ]


def test_a_damaged_file_is_refused(run: Run, pairs: Path) -> None:
    calibrate(run, "pride", pairs)
    whole = json.loads(Path("fitted.json").read_text())
    damaged = {
        "absent.json": None,
        "cut.json": Path("fitted.json").read_text()[:200],
        "items.json": json.dumps(pair(0)),
        "typed.json": json.dumps({**whole, "method": {**whole["method"], "priors": "many"}}),
        "named.json": json.dumps({**whole, "method": {**whole["method"], "name": "prid"}}),
        "newer.json": json.dumps({**whole, "unswayed_method": 99}),
    }
    for name, text in damaged.items():
        if text is not None:
            Path(name).write_text(text)
        ran = judge(run, pairs, "--method", name)
        assert ran.code == 2, name
        assert len(ran.err.splitlines()) == 1, ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pairs.jsonl", "--method", "prid"], "Did you mean 'pride'?"),
        (["pairs.jsonl", "--method", "pride"], "unswayed calibrate pride"),
        (["pairs.jsonl", "--method", "vote", "--shadow", "0.5"], "nothing can drift"),
        (["pairs.jsonl", "--prompt", "reasoning"], "it needs label probabilities"),
        (["empty.jsonl"], "empty.jsonl: no items"),
        (["pairs.jsonl", "--task", "mcq"], "pairs.jsonl: no items of task mcq"),
        (["twice.jsonl"], "twice.jsonl:2: id 'i' occurs more than once"),
        (["absent.jsonl"], "cannot read absent.jsonl"),
        (["pairs.jsonl", "--out", "pairs.jsonl"], "is both input and output"),
        (["pairs.jsonl", "--out", "pairs.CSV"], "are JSON Lines. Name a .jsonl file"),
        (["pairs.jsonl", "--out", "."], "is a directory"),
        (
            ["listwise.jsonl", "--method", "vote"],
            "listwise.jsonl:1: candidates: needs at least 2, got 1",
        ),
    ],
)
def test_unjudgeable_input_gives_one_line(
    arguments: list[str], said: str, run: Run, pairs: Path
) -> None:
    write_lines("empty.jsonl", [])
    write_lines("twice.jsonl", [{**pair(0), "id": "i"}, {**pair(1), "id": "i"}])
    write_lines("listwise.jsonl", [choice(0, task="listwise", candidates=["one"], gold=0)])
    before = pairs.read_bytes()
    ran = run("judge", *arguments, "--model", SIMULATED)
    assert ran.code == 2
    assert said in ran.err
    assert len([line for line in ran.err.splitlines() if line.startswith("unswayed: ")]) == 1
    assert pairs.read_bytes() == before


def test_empty_stream_succeeds(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n")))
    assert judge(run, "-") == Ran(0, "", "")


def test_a_bad_line_stops_after_earlier_verdicts_or_is_skipped(run: Run, folder: Path) -> None:
    data = write_lines("bad.jsonl", [pair(0), "{", pair(1)])
    ran = judge(run, data)
    assert ran.code == 2
    assert [one["item_id"] for one in verdicts(ran.out)] == ["q0"]
    assert "bad.jsonl:2: JSON: not valid JSON" in ran.err
    ran = judge(run, data, "--on-bad-item", "skip")
    assert ran.code == 0
    assert [one["item_id"] for one in verdicts(ran.out)] == ["q0", "q1"]
    assert "bad.jsonl:2: " in ran.said[0]


def test_failed_calls_give_reason_and_others_are_judged(
    run: Run, folder: Path, server: Server
) -> None:
    server.start({"kind": "status", "status": 400, "contains": "first answer 3"})
    data = write_lines("few.jsonl", [pair(number) for number in range(6)])
    ran = judge(run, data, "--calls", "calls", model=Server.model)
    assert ran.code == 3
    assert [one["item_id"] for one in verdicts(ran.out)] == ["q0", "q1", "q2", "q4", "q5"]
    assert len(ran.said) == 1
    assert ran.said[0].startswith("unswayed: q3: no verdict, 2 calls failed: HTTP 400 from ")
    server.start()
    again = judge(run, data, "--calls", "calls", model=Server.model)
    assert again.code == 0
    assert server.received == 2


def test_a_wrong_key_stops_the_stream(run: Run, folder: Path, server: Server) -> None:
    server.start({"kind": "status", "status": 401})
    data = write_lines("many.jsonl", [pair(number) for number in range(500)])
    ran = judge(run, data, "--max-connections", "2", model=Server.model)
    assert ran.code == 3
    assert not ran.out
    assert len(ran.said) == 1
    assert ran.said[0].startswith("unswayed: stopped at q0: no verdict, 2 calls missing: HTTP 401")
    assert server.received <= 4


def test_null_verdicts_are_counted(run: Run, pairs: Path, server: Server) -> None:
    server.start({"kind": "no_logprobs"})
    ran = judge(run, pairs, model=Server.model)
    assert ran.code == 0
    assert all(one["choice"] is None for one in verdicts(ran.out))
    assert {one["null_reason"] for one in verdicts(ran.out)} == {"without label probabilities"}
    assert "30 without a verdict (30 without label probabilities)" in ran.err


def test_ctrl_c_ends_a_stream_quietly(folder: Path) -> None:
    with subprocess.Popen(
        command_of("judge", "-", "--model", SIMULATED),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(f"{json.dumps(pair(0))}\n")
        process.stdin.flush()
        assert process.stdout.readline()
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(30) == 130
        said = process.stderr.read()
    assert said.splitlines() == [
        "unswayed: interrupted. No call was recorded: use --out or --calls to record them.",
        "1 of 1 item was judged: 0 ties, 0 without a verdict",
        "2 calls made, 0 reused, 0 failed; $0.0000",
    ]


def test_a_canonical_order_gives_one_verdict_for_any_input(run: Run, folder: Path) -> None:
    rows = [pair(number) for number in range(20)]
    turned = [
        {**row, "candidates": row["candidates"][::-1], "gold": 1 - row["gold"]} for row in rows
    ]
    given = judge(run, write_lines("given.jsonl", rows), "--order", "canonical")
    other = judge(run, write_lines("turned.jsonl", turned), "--order", "canonical")
    assert given.code == other.code == 0
    for one, two in zip(verdicts(given.out), verdicts(other.out), strict=True):
        assert one["method"] == "canonical"
        assert one["n_calls"] == 1
        assert one["choice"] == 1 - two["choice"]


def test_an_order_of_its_own_goes_with_no_other_method(run: Run, pairs: Path) -> None:
    ran = judge(run, pairs, "--order", "canonical", "--method", "vote")
    assert ran.code == 2
    assert "works only with --method direct, not with vote" in ran.err
