"""Two versions of the program on the same input: do their results differ anywhere?

    python benchmarks/same_outputs.py REVISION [--only WORD] [--tolerance 1e-12]

Runs every case with the sources of this checkout and with those of a git revision, on this machine,
and compares field by field: `metrics.json`, `answers.json`, verdicts and learned values. Numbers may
differ by the tolerance; anything else, and any key that is missing on one side, is a difference. The
last line counts them; the exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import math
import os
import random
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
DATA: Final = ROOT.parent / "shared" / "data"
QUICK: Final = ("--resamples", "100", "--methods", "all")
EACH_RUN: Final = frozenset({"latency_s", "created"})
"""Keys whose values are those of one run."""

Run = Callable[..., None]


def built_in(run: Run, here: Path) -> None:
    """The built-in sets with every method."""
    for name in ("tiny-judge", "tiny-mcq"):
        sizes = ("--estimation-sizes", "10,40", "--limit", "250")
        run("audit", name, *QUICK, *sizes, "--out", here / name)


def simulated(run: Run, here: Path) -> None:
    """Two to four candidates, groups, ties, refusals, fixed items, sampled probabilities."""
    mixed = write_items(here / "mixed.jsonl", pairs=80, triples=60, quads=40)
    pairs = write_items(here / "pairs.jsonl", pairs=120)
    judge = "simulated/judge?slot=0.7&label=0.3&noise=0.5&unparsed=0.06&tie=0.05"
    protocol = ("--protocol", "all", "--gold-ties", "class")
    run("audit", mixed, "--model", judge, *QUICK, "--out", here / "mixed", check=False)
    run("audit", pairs, "--model", judge, *QUICK, *protocol, "--out", here / "pairs")
    plain = f"{judge}&logprobs=0"
    sampled = ("--probs", "sampled:5", "--group-by", "meta.topic")
    run("audit", pairs, "--model", plain, *QUICK, *sampled, "--out", here / "sampled")
    run("audit", pairs, "--model", plain, *QUICK, "--prompt", "reasoning", "--out", here / "plain")


def recorded(run: Run, here: Path) -> None:
    """Public judge outputs, read by the importers."""
    for kind, file in (
        ("judgebench", "outputs_resp=claude-3-5-sonnet-20240620_judge=arena_hard_claude-3-haiku-"
         "20240307.jsonl.gz"),
        ("llmbar", "Natural_ChatGPT_CoT.json.gz"),
        ("autoj", "pairs_with_judge_dev.jsonl.gz"),
        ("alpaca-eval", "weighted_gpt4_turbo_vicuna-7b.jsonl.gz"),
    ):  # fmt: skip
        source = DATA / kind.replace("-", "_") / file
        if not source.exists():
            continue
        decisions, items = here / f"{kind}.decisions.jsonl", here / f"{kind}.items.jsonl"
        run("import", kind, source, "--out", decisions, "--items", items)
        run("audit", items, "--decisions", decisions, *QUICK, "--out", here / kind)


def damaged(run: Run, here: Path) -> None:
    """Recorded decisions with answers lost, unread and tied; a third of them missing."""
    items = write_items(here / "items.jsonl", pairs=90)
    judge = "simulated/judge?slot=0.7&label=0.3"
    run("audit", items, "--model", judge, *QUICK, "--protocol", "all", "--out", here / "whole")
    run("export", here / "whole", "--out", here / "decisions.jsonl")
    draw = random.Random(3)
    rows = [json.loads(line) for line in (here / "decisions.jsonl").read_text().splitlines()]
    kept = []
    for row in sorted(rows, key=lambda row: json.dumps(row, sort_keys=True)):
        chance = draw.random()
        if chance < 0.3:
            continue
        if chance < 0.4:
            row |= {"choice": None, "probs": None}
        elif chance < 0.5:
            row |= {"choice": "tie", "probs": None}
        kept.append(row)
    write_rows(here / "kept.jsonl", kept)
    run("audit", items, "--decisions", here / "kept.jsonl", *QUICK, "--out", here / "kept")
    run("audit", "--decisions", here / "kept.jsonl", *QUICK, "--out", here / "alone", check=False)


def faulty(run: Run, here: Path) -> None:
    """Servers that fail on some items."""
    from reliability import fault_modes, faults, faulty_server

    server = faulty_server.FaultyServer()
    wanted = ("status 500", "status 429", "a refusal", "empty")
    modes = [mode for mode in fault_modes.modes() if mode.name.startswith(wanted)][:6]
    try:
        for number, mode in enumerate(modes):
            server.serve(mode)
            items = faults.write_items(here / f"items-{number}.jsonl")
            command = faults.command(mode, items, here / f"faulty-{number}")
            run(*command, check=False, env=faults.environment(server))
    finally:
        server.close()


def judging(run: Run, here: Path) -> None:
    """Fit methods, and judge with them."""
    items = write_items(here / "items.jsonl", pairs=120)
    new = write_items(here / "new.jsonl", pairs=40, first=500)
    judge = ("--model", "simulated/judge?slot=0.7&label=0.3&tie=0.03")
    for spec in ("pride", "cell-median", "batch", "contextual", "additive", "calibraeval"):
        file = here / f"{spec}.json"
        run("calibrate", spec, items, *judge, "--out", file)
        run("judge", new, *judge, "--method", file, "--out", here / f"{spec}.verdicts.jsonl")
    for spec in ("vote", "sequential", "canonical", "repeat"):
        run("judge", new, *judge, "--method", spec, "--out", here / f"{spec}.verdicts.jsonl")


CASES: Final = (built_in, simulated, recorded, damaged, faulty, judging)


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def write_items(
    path: Path, *, pairs: int = 0, triples: int = 0, quads: int = 0, first: int = 0
) -> Path:
    """Items with gold of every kind, groups, and some that may not be permuted."""
    draw = random.Random(first)
    rows = []
    for n, count in ((2, pairs), (3, triples), (4, quads)):
        for number in range(first, first + count):
            gold: Any = draw.randrange(n)
            if number % 11 == 0:
                gold = "tie" if n == 2 else [0, n - 1]
            row = {
                "id": f"{n}-{number}",
                "task": "pairwise" if n == 2 and not (triples or quads) else "mcq",
                "prompt": f"question {number}",
                "candidates": [f"answer {c} to {number} of {n}" for c in range(n)],
                "gold": gold if number % 7 else None,
                "permutable": bool(number % 13),
                "group": f"g{number % 3}",
                "meta": {
                    "topic": f"t{number % 2}",
                    "utility": [draw.gauss(0, 1) for _ in range(n)],
                },
            }
            rows.append({key: value for key, value in row.items() if value is not None})
    return write_rows(path, rows)


def outputs(sources: Path, case: Callable[[Run, Path], None]) -> dict[str, Any]:
    """Everything a case writes, by file name, and the exit codes."""
    made: dict[str, Any] = {}

    def run(*arguments: object, check: bool = True, env: Mapping[str, str] = os.environ) -> None:
        command = [sys.executable, "-m", "unswayed", *map(str, arguments)]
        paths = f"{sources}{os.pathsep}{ROOT / 'benchmarks'}"
        ready = {**env, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
        done = subprocess.run(command, env=ready, capture_output=True, text=True, timeout=900)
        if check and done.returncode:
            raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
        made[f"code {len(made)}"] = done.returncode

    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        case(run, here)
        for path in sorted(here.rglob("*")):
            name = str(path.relative_to(here))
            if path.name in {"metrics.json", "answers.json"} or (
                path.suffix == ".json" and path.parent == here
            ):
                made[name] = json.loads(path.read_text())
            elif path.name.endswith(("verdicts.jsonl", "decisions.jsonl")):
                made[name] = [json.loads(line) for line in path.read_text().splitlines()]
    return made


def differences(before: Any, after: Any, tolerance: float, at: str = "") -> Iterator[str]:
    """Every place where two results differ."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in before.keys() | after.keys():
            if key in EACH_RUN:
                continue
            if key not in before or key not in after:
                yield f"{at}/{key}: only {'after' if key in after else 'before'}"
            else:
                yield from differences(before[key], after[key], tolerance, f"{at}/{key}")
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f"{at}: {len(before)} and {len(after)} entries"
        for place, (one, other) in enumerate(zip(before, after, strict=False)):
            yield from differences(one, other, tolerance, f"{at}/{place}")
    elif isinstance(before, float) or isinstance(after, float):
        numbers = all(isinstance(side, int | float) for side in (before, after))
        if not numbers or not math.isclose(before, after, rel_tol=tolerance, abs_tol=tolerance):
            yield f"{at}: {before!r} and {after!r}"
    elif before != after:
        yield f"{at}: {before!r} and {after!r}"


def sources_of(revision: str, folder: Path) -> Path:
    """The sources of a revision, unpacked."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", revision, "src"],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return folder / "src"


def results_before(revision: str, only: str, path: Path | None) -> dict[str, Any]:
    """The results of the revision, made once where a file to keep them in is given."""
    if path is not None and path.exists():
        kept: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
        return kept
    with tempfile.TemporaryDirectory() as folder:
        sources = sources_of(revision, Path(folder))
        kept = {case.__name__: outputs(sources, case) for case in CASES if only in case.__name__}
    if path is not None:
        path.write_bytes(gzip.compress(json.dumps(kept).encode()))
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("revision")
    parser.add_argument("--only", default="")
    parser.add_argument("--tolerance", type=float, default=1e-12)
    parser.add_argument("--keep", type=Path, help="keep the revision's results here for next time")
    options = parser.parse_args()
    before = results_before(options.revision, options.only, options.keep)
    total = 0
    for case in CASES:
        if options.only not in case.__name__:
            continue
        apart = list(
            differences(before[case.__name__], outputs(ROOT / "src", case), options.tolerance)
        )
        for line in apart[:20]:
            print(f"  {line}")
        print(f"{case.__name__}: {len(apart)} differences in {len(before[case.__name__])} outputs")
        total += len(apart)
    print(f"{total} differences from {options.revision}")
    sys.exit(bool(total))


if __name__ == "__main__":
    main()
