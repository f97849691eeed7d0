"""Items with more candidates than can be measured are refused by name, before anything is asked."""

from collections.abc import Sequence

import pytest
from cli_commands import Run, Server, choice, write_lines

MODEL = ["--model", Server.model]


@pytest.mark.parametrize(
    "command",
    [
        ["audit", "many.jsonl", "--out", "run"],
        ["audit", "many.jsonl", "--out", "run", "--dry-run"],
        ["judge", "many.jsonl", "--method", "vote"],
        ["calibrate", "additive", "many.jsonl", "--out", "fitted.json"],
        ["calibrate", "pride", "many.jsonl", "--out", "fitted.json"],
    ],
    ids=["audit", "dry run", "judge", "additive", "pride"],
)
def test_too_many_candidates_are_refused_by_name_before_any_call(
    run: Run, server: Server, command: Sequence[str]
) -> None:
    write_lines("many.jsonl", [choice(1), choice(2, n=129)])
    server.start()
    ran = run(*command, *MODEL)
    assert ran.code == 2
    assert "m2: " in ran.err
    assert "support at most 128 candidates, got 129" in ran.err
    assert server.received == 0


def test_the_filter_refuses_too_many_candidates_before_any_call(run: Run, server: Server) -> None:
    write_lines("many.jsonl", [choice(2, n=129)])
    server.start()
    ran = run("filter", "many.jsonl", "--out", "kept.jsonl", *MODEL)
    assert ran.code == 2
    assert "support at most 128 candidates, got 129" in ran.err
    assert server.received == 0


def test_the_single_call_judges_any_number_of_candidates(run: Run, server: Server) -> None:
    write_lines("many.jsonl", [choice(2, n=300)])
    server.start(labels=("7", "12"))
    ran = run("judge", "many.jsonl", "--method", "direct", *MODEL)
    assert (ran.code, server.received) == (0, 1)
