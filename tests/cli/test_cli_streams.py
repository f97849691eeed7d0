"""Standard streams that are full, closed, left by their reader, or not in UTF-8."""

from pathlib import Path

import pytest
from cli_commands import SIMULATED, shell

AUDIT = f"unswayed audit pairs.jsonl --model {SIMULATED} --resamples 100"
JUDGE = f"unswayed judge pairs.jsonl --model {SIMULATED}"


@pytest.mark.parametrize("command", [AUDIT, JUDGE, "unswayed list metrics"])
def test_a_reader_that_leaves_is_no_error(command: str, pairs: Path) -> None:
    ran = shell(f"{command} | head -n 1; exit ${{PIPESTATUS[0]}}")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 1
    assert not ran.said
    assert "rror" not in ran.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", [f"{AUDIT} --json", JUDGE, "unswayed --help"])
def test_a_full_output_is_one_line_and_code_2(command: str, pairs: Path) -> None:
    ran = shell(f"{command} > /dev/full")
    assert ran.code == 2
    assert ran.said == ["unswayed: cannot read or write: No space left on device."]
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "command", [f"{AUDIT} >&-", f"{AUDIT} --json 2>&-", f"{JUDGE} >&-", f"{JUDGE} <&-"]
)
def test_closed_streams_do_not_matter(command: str, pairs: Path) -> None:
    ran = shell(command)
    assert ran.code == 0
    assert "Traceback" not in ran.err


def test_an_output_that_is_not_utf_8_shows_what_it_can(pairs: Path) -> None:
    ran = shell(f"export PYTHONIOENCODING=ascii; {AUDIT}")
    assert ran.code == 0
    assert ran.out.isascii()
    assert "Consistency" in ran.out
    exact = shell(f"export PYTHONIOENCODING=ascii; {AUDIT} --json")
    assert exact.out == Path("runs/pairs-simulated-judge/metrics.json").read_text()


def test_progress_is_on_standard_error_only(pairs: Path) -> None:
    ran = shell(f"{AUDIT} --json 2>/dev/null")
    assert ran.out.startswith("{")
    assert "calls ·" not in ran.out
