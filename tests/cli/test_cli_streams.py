"""Standard streams that are full, closed, left by their reader, or not in UTF-8."""

import gzip
import os
from pathlib import Path

import pytest
from cli_commands import SIMULATED, Run, pair, shell, write_lines

import needs
from unswayed.base import files

AUDIT = f"unswayed audit pairs.jsonl --model {SIMULATED} --resamples 100"
JUDGE = f"unswayed judge pairs.jsonl --model {SIMULATED}"


@pytest.mark.parametrize("command", [AUDIT, JUDGE, "unswayed list metrics"])
def test_early_leaving_reader_is_accepted(command: str, pairs: Path) -> None:
    ran = shell(f"{command} | head -n 1; exit ${{PIPESTATUS[0]}}")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 1
    assert not ran.said
    assert "rror" not in ran.err


@needs.linux
@pytest.mark.parametrize("command", [f"{AUDIT} --json", JUDGE, "unswayed --help"])
def test_a_full_output_is_one_line_and_code_2(command: str, pairs: Path) -> None:
    ran = shell(f"{command} > /dev/full")
    assert ran.code == 2
    assert ran.said == ["unswayed: cannot read or write: No space left on device."]
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("command", [f"{AUDIT} >&-", f"{JUDGE} 2>&-", f"{JUDGE} <&-"])
def test_closed_streams_do_not_matter(command: str, pairs: Path) -> None:
    ran = shell(command, fresh=True)
    assert ran.code == 0
    assert "Traceback" not in ran.err


def test_an_output_that_is_not_utf_8_shows_what_it_can(pairs: Path) -> None:
    ran = shell(f"export PYTHONIOENCODING=ascii; {AUDIT}", fresh=True)
    assert ran.code == 0
    assert ran.out.isascii()
    assert "Consistency" in ran.out
    exact = shell(f"export PYTHONIOENCODING=ascii; {AUDIT} --json", fresh=True)
    assert exact.out == Path("runs/pairs-simulated-judge/metrics.json").read_text()


def test_control_sequences_of_the_data_do_not_reach_the_terminal(run: Run, folder: Path) -> None:
    ran = run("audit", "hostile\x1b[2J.jsonl", "--model", SIMULATED)
    assert ran.code == 2
    assert "\x1b" not in ran.err
    assert "\N{SYMBOL FOR ESCAPE}[2J" in ran.err


def test_good_lines_before_a_deeply_nested_one_are_judged(run: Run, folder: Path) -> None:
    deep = (
        '{"id":"q2","prompt":"p","candidates":["a","b"],"meta":' + '{"a":' * 5000 + "1" + "}" * 5001
    )
    write_lines("pairs.jsonl", [pair(1)])
    with Path("pairs.jsonl").open("a") as file:
        file.write(deep + "\n")
    ran = run("judge", "pairs.jsonl", "--model", SIMULATED)
    assert ran.code == 2
    assert len(ran.out.splitlines()) == 1
    assert "pairs.jsonl:2: JSON: nested too deeply" in ran.err


@pytest.mark.parametrize("command", ["audit", "judge"])
def test_a_damaged_gzip_file_is_one_line(command: str, run: Run, folder: Path) -> None:
    write_lines("pairs.jsonl", [pair(number) for number in range(200)])
    packed = bytearray(gzip.compress(Path("pairs.jsonl").read_bytes()))
    packed[len(packed) // 2] ^= 0xFF
    Path("pairs.jsonl.gz").write_bytes(packed)
    ran = run(command, "pairs.jsonl.gz", "--model", SIMULATED)
    assert ran.code == 2
    assert "pairs.jsonl.gz" in ran.err.splitlines()[-1]


# --- devices and pipes -------------------------------------------------------------------------

READERS = [
    "audit odd.jsonl --model simulated/judge",
    "audit odd.csv --model simulated/judge",
    "audit odd.parquet --model simulated/judge",
    "audit pairs.jsonl --decisions odd.jsonl",
    "audit pairs.jsonl --decisions odd.jsonl.gz",
    "audit pairs.jsonl --model simulated/judge --template odd.jinja",
    "audit pairs.jsonl --model simulated/judge --shots odd.jsonl",
    "audit pairs.jsonl --model openai/gpt-4.1-mini --dry-run --prices odd.toml",
    "judge odd.jsonl --model simulated/judge",
    "judge pairs.jsonl --model simulated/judge --method odd.json",
    "import auto odd.jsonl --out d.jsonl",
    "import auto odd.eval --out d.jsonl",
    "check-table odd.csv",
    "train rl pairs.jsonl --recipe odd.toml --out trained --dry-run",
]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_endless_input_is_refused_by_name(
    kind: str, reader: str, run: Run, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PIPE_MS", 10)
    (name,) = (Path(word) for word in reader.split() if word.startswith("odd"))
    if kind == "pipe":
        os.mkfifo(name)
    else:
        name.symlink_to("/dev/zero")
    ran = run(*reader.split())
    assert ran.code == 2
    said = "it is a device" if kind == "device" else "no process writes to this pipe"
    assert str(name) in ran.err
    assert said in ran.err


@needs.linux
@pytest.mark.parametrize("command", ["audit", "judge"])
def test_endless_standard_input_is_refused(command: str, folder: Path) -> None:
    line = f"ulimit -v 4000000; unswayed {command} - --model {SIMULATED} < /dev/zero"
    ran = shell(line, fresh=True)
    assert ran.code == 2
    assert ran.said == ["unswayed: -:1: the line is longer than 64 MB. Split it, or leave it out."]


@pytest.mark.parametrize(
    "line",
    [
        "unswayed judge <(sleep 1.5; cat pairs.jsonl) --model simulated/judge",
        "cat pairs.jsonl | unswayed judge /dev/stdin --model simulated/judge",
        "unswayed judge /dev/stdin --model simulated/judge < pairs.jsonl",
        "cat pairs.jsonl | unswayed judge - --model simulated/judge",
        "mkfifo p.jsonl.gz; gzip -c pairs.jsonl > p.jsonl.gz & "
        "sleep 0.2; unswayed judge p.jsonl.gz --model simulated/judge",
        "unswayed judge pairs.jsonl --model simulated/judge "
        "--prices <(printf 'as_of = \"2026-01-01\"\\n[models]\\n')",
    ],
)
def test_pipe_with_writer_is_read(line: str, pairs: Path) -> None:
    ran = shell(line, fresh="<(" in line)  # a file of this shell's own
    assert ran.code == 0, ran.err
    assert len(ran.out.splitlines()) == len(pairs.read_text().splitlines())
