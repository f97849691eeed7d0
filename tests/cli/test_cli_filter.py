"""`unswayed filter` never writes over what it reads."""

import asyncio
from pathlib import Path

from cli_commands import SIMULATED, Run


def test_it_runs_inside_a_running_event_loop(run: Run, pairs: Path) -> None:
    async def in_a_notebook() -> int:
        return run("filter", pairs, "--model", SIMULATED, "--out", "kept.jsonl").code

    assert asyncio.run(in_a_notebook()) == 0
    assert Path("kept.jsonl").is_file()


def test_the_input_is_not_overwritten(run: Run, pairs: Path) -> None:
    before = pairs.read_bytes()
    for out in (pairs, f"./{pairs}", pairs.absolute()):
        ran = run("filter", pairs, "--model", SIMULATED, "--out", out)
        assert ran.code == 2
        assert "is both input and output" in ran.err
    ran = run("filter", pairs, "--model", SIMULATED, "--out", "kept", "--evaluation", "pairs.jsonl")
    assert pairs.read_bytes() == before


def test_unwritable_output_fails_before_any_call(run: Run, pairs: Path, folder: Path) -> None:
    ran = run("filter", pairs, "--model", SIMULATED, "--out", ".")
    assert ran.code == 2
    assert "is a directory" in ran.err
    assert [path.name for path in folder.iterdir()] == ["pairs.jsonl"]


def test_missing_folder_at_root_is_not_made(run: Run, pairs: Path) -> None:
    for out in ("/no-such-folder/kept.jsonl", "/no-such-folder/deep/kept.jsonl"):
        ran = run("filter", pairs, "--model", SIMULATED, "--out", out)
        assert ran.code == 2
        assert ran.err.startswith(
            "unswayed: the folder /no-such-folder does not exist. Create it, or"
        )
        assert not Path("/no-such-folder").exists()
    assert run("filter", pairs, "--model", SIMULATED, "--out", "made/deep/kept.jsonl").code == 0
