"""Damaged files under every command: a one-line message or the same result, nothing else.

    python benchmarks/reliability/corruption.py [--damages 40] [--write]

For every kind of file a good copy is damaged in many ways and the command that reads it is run.
The end is one of
    same       the result of the undamaged file
    refused    exit code 2 and one line beside the progress
    disclosed  another input: the run's own record names another fingerprint, model or prompt, or
               the file is one that the user writes (prices, a method file) and is valid
    WRONG      a traceback, another exit code, or another figure without a word
Permissions are not taken away: where this runs as root they do not count.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import io
import json
import random
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unswayed.auditing.audit import Audit, plan_for, run_settings_for, write_record
from unswayed.auditing.run_directory import write_sums
from unswayed.auditing.settings import AuditSettings
from unswayed.backends import open_backend
from unswayed.backends.simulated import simulated_items
from unswayed.calls import Caller
from unswayed.cli import main as unswayed
from unswayed.model.items import encode_item, load_items
from unswayed.report.collect import write_report
from unswayed.store import CallStore

sys.path.insert(0, str(Path(__file__).parents[1]))

from evidence_table import Table, add_write
from reliability.damages import WAYS

DAMAGES: Final = 40
MODEL: Final = "simulated/judge?slot=0.6&label=0.4"
FAST: Final = ("--methods", "direct,vote", "--resamples", "100")
ENDS: Final = ("same", "refused", "disclosed", "WRONG")
TEMPLATE: Final = (
    "{{ question }}\n{% for c in candidates %}{{ c.label }}: {{ c.text }}\n{% endfor %}Answer:"
)
RECIPE: Final = """name = "mine"
task = "pairwise"
[optimiser]
learning_rate = 1e-5
steps = 3
[lora]
rank = 4
"""
PRICES: Final = (
    'as_of = "2026-11-20"\n[models."openai/gpt-4.1-mini"]\ninput = 40.0\noutput = 160.0\n'
)


@dataclass(frozen=True)
class Kind:
    """A kind of file and the command that reads it.

    Attributes:
        file: What is damaged, relative to the folder.
        command: Arguments; {folder} stands for the folder.
        result: What must be the same, read after the command with its standard output.
        is_input: Whether the user writes the file, so that another valid content is another input.
        drop: Files that are removed beside it.
    """

    name: str
    file: str
    command: tuple[str, ...]
    result: Callable[[Path, str], object]
    is_input: bool = False
    drop: tuple[str, ...] = ()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--damages", type=int, default=DAMAGES, help="of each kind of file")
    add_write(parser, "reliability")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        good = Path(folder) / "good"
        kinds = prepare(good)
        table = Table(("file, command", *ENDS))
        wrong = 0
        for kind in kinds:
            ends, stories = damage(kind, good, Path(folder), given.damages)
            wrong += ends["WRONG"]
            table.add(kind.name, *(ends[end] for end in ENDS))
            for story in stories:
                print(f"    {story}")
        if given.write:
            table.keep("reliability", "corruption")
    sys.exit(bool(wrong))


def prepare(folder: Path, *, models: bool = True) -> list[Kind]:
    """Write good files of every kind; return what reads them, local models only if wanted."""
    folder.mkdir()
    _write_files(folder)
    return _file_kinds() + (_model_kinds(folder) if models else [])


def _write_files(folder: Path) -> None:
    items = simulated_items(30, 2, seed=3)
    lines = b"".join(encode_item(item) + b"\n" for item in items)
    (folder / "items.jsonl").write_bytes(lines)
    (folder / "items.jsonl.gz").write_bytes(gzip.compress(lines))
    shots = simulated_items(2, 2, seed=9)
    shot_lines = (encode_item(item).replace(b"Question", b"Example") for item in shots)
    (folder / "shots.jsonl").write_bytes(b"\n".join(shot_lines))
    (folder / "template.jinja").write_text(TEMPLATE)
    (folder / "recipe.toml").write_text(RECIPE)
    (folder / "prices.toml").write_text(PRICES)
    data, run = str(folder / "items.jsonl"), str(folder / "run")
    ask = ("audit", data, "--model", MODEL, *FAST)
    _run((*ask, "--out", run))
    _run((*ask, "--limit", "25", "--out", str(folder / "other")))
    _run(("export", run, "--out", str(folder / "decisions.jsonl")))
    recorded = ("audit", data, "--decisions", str(folder / "decisions.jsonl"), *FAST)
    _run((*recorded, "--out", str(folder / "recorded")))
    for method in ("cell-median", "calibraeval"):
        out = str(folder / f"{method}.json")
        _run(("calibrate", method, data, "--model", MODEL, "--out", out))
    _unclosed(folder / "items.jsonl", folder / "open")


def _file_kinds() -> list[Kind]:
    audit = ("audit", "{folder}/items.jsonl", "--model", MODEL, *FAST, "--out")
    report = ("report", "{folder}/run", "{folder}/other", "--out", "{folder}/x.html")
    export = ("export", "{folder}/run", "--out", "{folder}/x.jsonl")
    judge = ("judge", "{folder}/items.jsonl", "--model", MODEL, "--method")
    sums = ("run/SHA256SUMS", "other/SHA256SUMS")
    page = _file("x.html")
    made = _file("x.jsonl")
    return [
        Kind("calls.sqlite, audit", "run/calls.sqlite", (*audit, "{folder}/run"), _figures("run")),
        Kind("calls.sqlite, export", "run/calls.sqlite", export, made),
        Kind("calls.sqlite-wal, audit", "open/calls.sqlite-wal", (*audit, "{folder}/open"),
             _figures("open")),
        Kind("run.json, report", "run/run.json", report, page),
        Kind("run.json, export", "run/run.json", export, made),
        Kind("metrics.json, report", "run/metrics.json", report, page),
        Kind("answers.json, report", "run/answers.json", report, page),
        Kind("flipped.json, report", "run/flipped.json", report, page),
        Kind("SHA256SUMS, report", "run/SHA256SUMS", report, page),
        Kind("decisions.jsonl of a run, export", "recorded/decisions.jsonl",
             ("export", "{folder}/recorded", "--out", "{folder}/x.jsonl"), made),
        Kind("run.json without sums, report", "run/run.json", report, page, True, sums),
        Kind("run.json without sums, export", "run/run.json", export, made, True, sums),
        Kind("metrics.json without sums, report", "run/metrics.json", report, page, True, sums),
        Kind("answers.json without sums, report", "run/answers.json", report, page, True, sums),
        Kind("flipped.json without sums, report", "run/flipped.json", report, page, True, sums),
        Kind("items.jsonl, audit", "items.jsonl", (*audit, "{folder}/new"), _figures("new"), True),
        Kind("items.jsonl.gz, judge", "items.jsonl.gz",
             ("judge", "{folder}/items.jsonl.gz", "--model", MODEL), _output, True),
        Kind("decisions, audit", "decisions.jsonl",
             ("audit", "{folder}/items.jsonl", "--decisions", "{folder}/decisions.jsonl", *FAST,
              "--out", "{folder}/new"), _figures("new"), True),
        Kind("fitted method, judge", "cell-median.json", (*judge, "{folder}/cell-median.json"),
             _output, True),
        Kind("fitted curves, judge", "calibraeval.json", (*judge, "{folder}/calibraeval.json"),
             _output, True),
        Kind("template, audit", "template.jinja",
             (*audit, "{folder}/new", "--template", "{folder}/template.jinja"), _figures("new"),
             True),
        Kind("shots, audit", "shots.jsonl",
             (*audit, "{folder}/new", "--shots", "{folder}/shots.jsonl"), _figures("new"), True),
        Kind("prices, dry run", "prices.toml",
             ("audit", "{folder}/items.jsonl", "--model", "openai/gpt-4.1-mini", "--dry-run", "--json",
              "--prices", "{folder}/prices.toml"), _output, True),
        Kind("recipe, train", "recipe.toml", ("recipe",), _output, True),
    ]  # fmt: skip


def _model_kinds(folder: Path) -> list[Kind]:
    """The tiny judge as a folder and a small adapter on it; none where torch or peft is missing."""
    try:
        import torch
        from peft import LoraConfig, get_peft_model
        from transformers import AutoModelForCausalLM
    except ImportError:
        return []
    from unswayed.tiny.formats import FORMATS

    shutil.copytree(FORMATS["judge"].folder, folder / "model")
    _run(("audit", "tiny-judge", "--limit", "6", "--model", f"hf/{folder}/model", "--out",
          str(folder / "tiny"), *FAST))  # fmt: skip
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_pretrained(folder / "model")
    adapted = get_peft_model(
        base, LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False)
    )
    adapted.save_pretrained(str(folder / "adapter"))
    ask = ("audit", "tiny-judge", "--limit", "6", *FAST, "--out", "{folder}/new", "--model")
    names = sorted(path.name for path in (folder / "model").iterdir() if path.is_file())
    wanted = [n for n in names if n in {"config.json", "tokenizer.json", "model.safetensors",
                                        "tokenizer_config.json"}]  # fmt: skip
    plain, lora = (*ask, "hf/{folder}/model"), (*ask, "hf/{folder}/model+lora={folder}/adapter")
    return [
        *(Kind(f"model {n}, audit", f"model/{n}", plain, _figures("new"), True) for n in wanted),
        *(
            Kind(f"adapter {n}, audit", f"adapter/{n}", lora, _figures("new"), True)
            for n in ("adapter_config.json", "adapter_model.safetensors")
        ),
    ]


def damage(
    kind: Kind, good: Path, work: Path, damages: int, *, seed: int = 0
) -> tuple[Counter[str], list[str]]:
    """Damage one kind of file again and again; how the command ended, and what was wrong."""
    before = _once(kind, good, work, None)
    if isinstance(before, str):
        raise RuntimeError(f"{kind.name}: the undamaged file fails: {before}")
    ends: Counter[str] = Counter()
    stories: list[str] = []
    for number in range(damages):
        rng = random.Random(f"{seed}:{kind.name}:{number}")
        name, change = WAYS[number % len(WAYS)]
        after = _once(kind, good, work, lambda path, c=change, r=rng: c(path, r))  # type: ignore[misc]
        if after == "refused":
            ends["refused"] += 1
        elif isinstance(after, str):
            ends["WRONG"] += 1
            stories.append(f"{name} ({number}): {after}")
        elif after == before:
            ends["same"] += 1
        elif kind.is_input:
            ends["disclosed"] += 1
        else:
            ends["WRONG"] += 1
            stories.append(f"{name} ({number}): another result")
    return ends, stories


def _once(
    kind: Kind, good: Path, work: Path, change: Callable[[Path], None] | None
) -> tuple[object] | str:
    """The result of one run, "refused", or what was wrong with its end."""
    folder = work / "now"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(good, folder)
    for name in kind.drop:
        (folder / name).unlink(missing_ok=True)
    if change is not None:
        change(folder / kind.file)
    arguments = [argument.replace("{folder}", str(folder)) for argument in kind.command]
    code, said, errors = _load(folder) if kind.command == ("recipe",) else _captured(arguments)
    lines = [line for line in errors.splitlines() if line.startswith("unswayed: ")]
    if code is None:
        return errors
    if code == 2:
        return "refused" if len(lines) == 1 or lines else f"exit 2 without a line: {errors!r}"
    if code not in {0, 3}:
        return f"exit {code}: {errors[-200:]!r}"
    if code == 3:
        return "refused" if lines else f"exit 3 without a line: {errors!r}"
    return (kind.result(folder, said),)


def _load(folder: Path) -> tuple[int | None, str, str]:
    from unswayed.base.errors import UnswayedError
    from unswayed.training.recipe import load_recipe

    try:
        return 0, repr(load_recipe(folder / "recipe.toml")), ""
    except UnswayedError as error:
        return 2, "", f"unswayed: {error}"
    except Exception as error:  # the harness reports what a reader lets through
        return None, "", _place(error)


def _captured(arguments: Sequence[str]) -> tuple[int | None, str, str]:
    out, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code: int | None = unswayed(arguments)
        except Exception as error:  # the harness reports what a command lets through
            return None, "", _place(error)
    out.flush()
    return code, out.buffer.getvalue().decode("utf-8", "replace"), errors.getvalue()  # type: ignore[attr-defined]


def _place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "unswayed" in f.filename and "reliability" not in f.filename]
    at = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"
    return f"traceback {type(error).__name__} at {at}: {str(error)[:120]}"


def _run(arguments: Sequence[str]) -> None:
    code, _, errors = _captured(arguments)
    if code != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {code} {errors}")


def _unclosed(items: Path, directory: Path) -> None:
    """A run directory as a kill leaves it: every call still in the journal."""
    settings = AuditSettings(methods=("direct", "vote"), resamples=100)
    with CallStore.open(directory) as store:
        backend = open_backend(MODEL)
        plan = plan_for(load_items(items), settings, backend)
        audit = Audit.begin(plan, Caller(backend, store, run_settings_for(settings, backend)))
        record = audit.measure(asyncio.run(audit.ask()), command="unswayed audit")
        write_record(directory, record)
        write_report(directory, record)
        write_sums(directory)
        shutil.copytree(directory, directory.with_name("copy"))
    shutil.rmtree(directory)
    directory.with_name("copy").rename(directory)


def _file(name: str) -> Callable[[Path, str], object]:
    return lambda folder, said: (folder / name).read_bytes().replace(b"good", b"now")


def _output(folder: Path, said: str) -> object:
    return said


def _figures(run: str) -> Callable[[Path, str], object]:
    def read(folder: Path, said: str) -> object:
        metrics = json.loads((folder / run / "metrics.json").read_text())
        return {key: metrics[key] for key in ("data", "protocols", "methods", "recommendation")}

    return read


if __name__ == "__main__":
    main()
