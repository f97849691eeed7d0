"""`--no-reask`, and what prices and budgets say of calls that ask again."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_commands import Run, Server, pair, write_lines, write_prices

import unswayed as us

RAMBLE = "Both have their merits, and I would not choose."


def says(messages: bytes) -> str:
    """Rambles first, and says B when asked again."""
    return "B" if b"Reply with the label only" in messages else RAMBLE


@pytest.fixture
def few(folder: Path, server: Server) -> Path:
    """4 pairs: 8 calls."""
    server.start(say=says)
    write_prices(1)
    return write_lines("few.jsonl", [pair(number) for number in range(4)])


def calls() -> Any:
    return json.loads(Path("run/metrics.json").read_text())["calls"]


AUDIT = ("--model", Server.model, "--out", "run", "--resamples", "100", "--prices", "prices.json")
JUDGE = ("--model", Server.model, "--out", "verdicts.jsonl", "--prices", "prices.json")
VOTE = (*JUDGE, "--method", "vote")


def choices() -> list[object]:
    return [json.loads(line)["choice"] for line in Path("verdicts.jsonl").read_text().splitlines()]


def test_audit_asks_again_unless_no_reask(run: Run, few: Path, server: Server) -> None:
    priced = run("audit", few, *AUDIT, "--dry-run")
    assert "8 calls for 8 questions: 0 recorded, 8 to make" in priced.out
    assert "up to 8 more calls, at most $0.0" in priced.out
    assert " if no reply can be read" in priced.out
    assert run("audit", few, *AUDIT, "--no-reask").code == 0
    assert (server.received, calls()["unparsed"], calls()["reasked"]) == (8, 8, 0)
    priced = run("audit", few, *AUDIT, "--dry-run")
    assert "16 calls for 8 questions, 8 of them second calls: 8 recorded, 8 to make" in priced.out
    assert "more" not in priced.out
    assert run("audit", few, *AUDIT).code == 0
    assert (server.received, calls()["unparsed"], calls()["reasked_read"]) == (16, 0, 8)
    ran = run("audit", few, *AUDIT, "--no-reask")
    assert (server.received, calls()["unparsed"]) == (16, 8)
    assert any("8 recorded second replies left out" in line for line in ran.said)
    assert "more" not in run("audit", few, *AUDIT, "--no-reask", "--dry-run").out


def test_price_of_offline_judges_omits_reask(run: Run, few: Path) -> None:
    for model in ("simulated/judge?unparsed=0.5", "tiny/judge"):
        data = few if model.startswith("simulated") else "tiny-judge"
        ran = run("audit", data, "--model", model, "--dry-run", "--out", "run")
        assert ran.code == 0
        assert "more" not in ran.out
    assert run("audit", few, "--model", "simulated/judge?unparsed=0.5", "--out", "run").code == 0
    assert calls()["reasked"] == 0


def test_finished_run_is_measured_again_without_model(run: Run, few: Path, server: Server) -> None:
    assert run("audit", few, *AUDIT).code == 0
    first = calls()
    again = run("audit", few, "--model", "replay/run", "--out", "again", "--resamples", "100")
    assert again.code == 0
    assert server.received == 16
    copied = json.loads(Path("again/metrics.json").read_text())["calls"]
    assert (copied["reasked_read"], copied["unparsed"]) == (8, 0)
    assert first["reasked_read"] == 8


def test_replay_without_second_calls_has_no_failures(run: Run, few: Path) -> None:
    assert run("audit", few, *AUDIT, "--no-reask").code == 0
    again = run("audit", few, "--model", "replay/run", "--out", "again", "--resamples", "100")
    assert again.code == 0
    copied = json.loads(Path("again/metrics.json").read_text())["calls"]
    assert (copied["reasked"], copied["unparsed"], copied["failed"]) == (0, 8, 0)


def test_reasked_decisions_replay_as_such(run: Run, few: Path, server: Server) -> None:
    assert run("audit", few, *AUDIT).code == 0
    assert run("export", "run", "--out", "e.jsonl").code == 0
    replay = ("--model", "replay/e.jsonl", "--resamples", "100", "--out")
    for options, reasked, unparsed in (((), 8, 0), (("--no-reask",), 0, 8)):
        assert run("audit", few, *replay, f"again{len(options)}", *options).code == 0
        copied = json.loads(Path(f"again{len(options)}/metrics.json").read_text())["calls"]
        assert (copied["reasked"], copied["reasked_read"]) == (reasked, reasked)
        assert (copied["replies"], copied["unparsed"], copied["failed"]) == (8, unparsed, 0)
    assert server.received == 16


def test_judge_asks_again_unless_no_reask(run: Run, few: Path, server: Server) -> None:
    assert "up to 8 more calls" in run("judge", few, *VOTE, "--dry-run").out
    assert run("judge", few, *VOTE, "--no-reask").code == 0
    assert (server.received, choices()) == (8, [None] * 4)
    ran = run("judge", few, *VOTE)
    assert ran.code == 2
    assert "another use of --no-reask" in ran.err
    assert "a verdict:" not in ran.err  # which the file does not take
    Path("verdicts.jsonl").unlink()
    assert run("judge", few, *VOTE).code == 0
    assert (server.received, choices()) == (16, ["tie"] * 4)  # B in both orders
    Path("verdicts.jsonl").unlink()
    ran = run("judge", few, *VOTE, "--no-reask")
    assert "8 recorded second replies ignored (--no-reask)" in ran.err


@pytest.mark.parametrize("command", ["audit", "judge"])
def test_budget_spent_before_second_calls_names_larger_one(
    command: str, run: Run, few: Path, server: Server
) -> None:
    options = AUDIT if command == "audit" else (*JUDGE, "--method", "direct")
    method = "vote" if command == "audit" else "direct"
    plan = us.Judge(Server.model, method=method, prices="prices.json").price(us.load_data(few))
    assert plan.most_cost_usd is not None
    ran = run(command, few, *options, "--budget", f"{plan.most_cost_usd / 2:.6f}")
    assert ran.code == 3
    if command == "audit":  # 8 replies, and some second calls
        told, awaiting = calls(), 16 - calls()["made"]
        assert (told["unparsed"], told["awaiting"], told["replies"]) == (0, awaiting, 8 - awaiting)
        assert f"{awaiting} unreadable replies still await a second call." in ran.out
        assert "could not be read, so" not in ran.out
    (line,) = [line for line in ran.said if "to resume: " in line]
    asked = server.received
    words = line.partition("to resume: unswayed ")[2].split()
    assert run(command, few, *options, "--budget", words[words.index("--budget") + 1]).code == 0
    assert asked < server.received == (16 if command == "audit" else 8)
    if command == "judge":
        assert choices() == [1] * 4


def test_filter_and_calibrate_accept_no_reask(run: Run, few: Path, server: Server) -> None:
    filtering = ("filter", few, "--model", Server.model, "--out", "kept.jsonl")
    assert run(*filtering, "--no-reask").code == 0
    assert server.received == 8
    assert run(*filtering).code == 0
    assert server.received == 16
    assert run("calibrate", "--help").out.count("--no-reask") == 1
