"""`unswayed train advise`: what is said for which gold, what is asked, and what is never asked twice."""

import os
import random
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli_commands import Ran, Run, copied_judge, judge_without_template, write_lines

from unswayed.backends import local_jobs
from unswayed.backends.huggingface import HuggingFaceBackend
from unswayed.cli import main
from unswayed.model.items import Item, encode_item
from unswayed.store import CallStore
from unswayed.tiny.items import builtin_items
from unswayed.training.base_answers import ANSWERS

ITEMS = 400
HELD_OUT = 32
"""Of the recipe tiny-judge."""

KINDS = ("clean", "flipped", "unrelated", "none", "few")


def gold_of(kind: str, number: int, item: Item, rng: random.Random) -> int | None:
    gold = item.gold_candidates()[0]
    if kind == "none" or (kind == "few" and number >= 100):
        return None
    wrong = {"clean": 0.0, "few": 0.0, "flipped": 0.35, "unrelated": 0.5}[kind]
    return 1 - gold if rng.random() < wrong else gold


@pytest.fixture
def files(folder: Path) -> dict[str, Path]:
    """The same items with each kind of gold."""
    given = builtin_items("tiny-judge-train")[:ITEMS]
    files = {}
    for kind in KINDS:
        rng = random.Random(0)
        rows = [
            encode_item(
                msgspec.structs.replace(item, gold=gold_of(kind, number, item, rng))
            ).decode()
            for number, item in enumerate(given)
        ]
        files[kind] = write_lines(folder / f"{kind}.jsonl", rows)
    return files


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the batches that the model is asked."""
    sizes: list[int] = []
    original = HuggingFaceBackend._run

    def counted(self: HuggingFaceBackend, jobs: Sequence[Any], shared: int) -> Any:
        sizes.append(len(jobs))
        return original(self, jobs, shared)

    monkeypatch.setattr(HuggingFaceBackend, "_run", counted)
    return sizes


def advised(run: Run, data: object, *options: str) -> Ran:
    return run("train", "advise", str(data), "--model", "tiny/judge", *options)


def test_gold_decides_the_objective_and_only_the_first_asks(
    run: Run, files: dict[str, Path], asked: list[int]
) -> None:
    objectives = {}
    for kind, file in files.items():
        ran = advised(run, file, "--out", "trained", "--json")
        assert ran.code == 0, ran.err
        advice = ran.json
        objectives[kind] = advice["objective"]
        assert advice["reasons"]
        assert advice["figures"]["gold"] == {"none": 0, "few": 92}.get(kind, ITEMS - HELD_OUT)
        assert set(advice) == {"objective", "changes", "reasons", "figures", "command"}
        # gold is no part of a question
        assert sum(asked) == 2 * (ITEMS - HELD_OUT)
    assert objectives == {
        "clean": "sft",
        "flipped": "rl-exact",
        "unrelated": "distill",
        "none": "distill",
        "few": "distill",
    }


@pytest.mark.parametrize(
    ("kind", "typed"),
    [
        ("clean", "train sft clean.jsonl --set target.invariance=1"),
        ("flipped", "train rl flipped.jsonl --exact --reward inv --distill 0.5"),
        ("none", "train distill none.jsonl"),
    ],
)
def test_the_advised_command_asks_nothing_again(
    run: Run, files: dict[str, Path], folder: Path, asked: list[int], kind: str, typed: str
) -> None:
    ran = advised(run, files[kind].name, "--out", "trained")
    assert ran.code == 0, ran.err
    *reasons, command = (line for line in ran.out.splitlines() if line.startswith(("- ", "next")))
    assert reasons
    assert command == f"next: unswayed {typed} --recipe tiny-judge --out trained"
    # gold items, agreement with the average, its interval
    if kind == "flipped":
        assert "wrong gold" in ran.out
    short = ["--set", "optimiser.steps=1", "--set", "run.loggers=[]", "--set", "run.save_every=0"]
    words = shlex.split(command.removeprefix("next: unswayed "))
    before = sum(asked)
    trained = run(*words, *short)
    assert trained.code == 0, trained.err
    assert (folder / "trained" / "model.safetensors").is_file()
    assert sum(asked) == before == 2 * (ITEMS - HELD_OUT)


def test_trainings_share_calls_of_items_with_and_without_gold(
    run: Run, folder: Path, asked: list[int]
) -> None:
    """Each objective keeps other items apart: those of the gold, or of all."""
    given = builtin_items("tiny-judge-train")[:120]
    rows = [
        encode_item(item if number % 3 else msgspec.structs.replace(item, gold=None)).decode()
        for number, item in enumerate(given)
    ]
    data = str(write_lines(folder / "mixed.jsonl", rows))
    assert advised(run, data, "--out", "trained").code == 0
    before = sum(asked)
    assert before == 2 * (120 - HELD_OUT)
    for number, (objective, *options) in enumerate(
        [
            ["distill"],
            ["rl", "--exact", "--set", "data.without_gold=drop"],
            ["sft", "--gold-noise", "auto", "--set", "data.without_gold=drop"],
        ]
    ):
        out = folder / f"run{number}"
        (out).mkdir()
        (folder / "trained" / ANSWERS).rename(out / ANSWERS)
        short = ["--set", "optimiser.steps=1", "--set", "run.loggers=[]"]
        common = ("--recipe", "tiny-judge", "--out", str(out))
        ran = run("train", objective, data, *common, *options, *short)
        assert ran.code == 0, ran.err
        (out / ANSWERS).rename(folder / "trained" / ANSWERS)
    assert sum(asked) == before


def test_multiple_choice_is_asked_in_its_rotations(run: Run, asked: list[int]) -> None:
    ran = run("train", "advise", "tiny-mcq-train", "--limit", "60", "--json")
    assert ran.code == 0, ran.err
    assert sum(asked) == 4 * (60 - HELD_OUT)
    command = shlex.split(ran.json["command"])
    assert command[-6:] == [
        *("--recipe", "tiny-mcq", "--limit", "60"),
        *("--out", "runs/tiny-mcq-train-tiny-judge-trained"),
    ]
    assert Path(command[-1], ANSWERS).is_dir()


def test_a_reasoning_prompt_gets_sampling_and_no_question(
    run: Run, folder: Path, asked: list[int]
) -> None:
    model = str(judge_without_template("judge"))
    options = ("--recipe", "tiny-judge", "--set", "prompt.style=reasoning", "--json")
    ran = run("train", "advise", "tiny-judge-train", "--model", model, *options)
    assert ran.code == 0, ran.err
    assert ran.json["objective"] == "rl"
    assert (
        "train rl tiny-judge-train --set prompt.style=reasoning --reward inv --recipe"
        in (ran.json["command"])
    )
    assert not asked
    assert not (folder / "runs").exists()


def test_a_model_without_recipe_is_told_to_write_one(run: Run) -> None:
    model = str(copied_judge("judge"))
    ran = run("train", "advise", "tiny-judge-train", "--model", model, "--limit", "40")
    assert ran.code == 0, ran.err
    assert f"no shipped recipe is for {model}" in ran.err
    assert f"--recipe RECIPE.toml --model {model}" in ran.out


@pytest.mark.parametrize(
    ("arguments", "code", "remedy"),
    [
        (["tiny-judge-train", "--model", "openai/gpt-4.1-mini"], 2, "only open weights can. Give"),
        (["tiny-judge-train", "--model", "hf/x+lora=y"], 2, "Merge the adapter into its base"),
        (["tiny-judge-train", "--recipe", "tiny-juge"], 2, "Did you mean 'tiny-judge'?"),
        (["tiny-judge-train", "--set", "prompt.stile=direct"], 2, "Did you mean 'style'?"),
        (["tiny-judge-train", "--limit", "5"], 2, "set data.held_out lower"),
        (["tiny-judge-train", "--recipe", "tiny-mcq"], 2, "task"),
        (["pairs.jsonl"], 2, "Add --model PATH or a hub id, or a --recipe that names one."),
        (["missing.jsonl", "--model", "tiny/judge"], 2, "cannot read missing.jsonl"),
    ],
)
def test_what_cannot_be_advised_is_refused_with_the_remedy(
    run: Run, pairs: Path, arguments: list[str], code: int, remedy: str
) -> None:
    ran = run("train", "advise", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert remedy in " ".join(ran.said)


def test_a_folder_with_calls_of_another_model_is_refused(run: Run, files: dict[str, Path]) -> None:
    given = (str(files["none"]), "--limit", "60", "--out", "trained")
    assert run("train", "advise", *given, "--model", "tiny/judge").code == 0
    other = copied_judge("judge")
    (other / "generation_config.json").unlink()
    ran = run("train", "advise", *given, "--model", str(other))
    assert ran.code == 2
    assert "holds calls of model" in ran.err
    assert "Choose another --out." in ran.err


def test_an_interrupted_advice_goes_on_and_asks_nothing_twice(
    run: Run, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    original = HuggingFaceBackend._run

    def stopped(self: HuggingFaceBackend, jobs: Sequence[Any], shared: int) -> Any:
        sizes.append(len(jobs))
        if len(sizes) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, jobs, shared)

    monkeypatch.setattr(HuggingFaceBackend, "_run", stopped)
    monkeypatch.setattr(local_jobs, "WINDOW", 128)  # what is taken is answered before a stop
    first = advised(run, files["none"], "--out", "trained")
    assert (first.code, first.out) == (130, "")
    assert 0 < sum(sizes) < 2 * (ITEMS - HELD_OUT)
    assert advised(run, files["none"], "--out", "trained").code == 0
    assert sum(sizes) == 2 * (ITEMS - HELD_OUT)


def test_a_killed_advice_asks_what_was_not_recorded(
    run: Run, files: dict[str, Path], folder: Path, asked: list[int]
) -> None:
    words = ["train", "advise", str(files["none"]), "--model", "tiny/judge", "--out", "trained"]
    child = os.fork()
    if not child:
        original = HuggingFaceBackend._run

        def killed(self: HuggingFaceBackend, jobs: Sequence[Any], shared: int) -> Any:
            if len(asked) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(self, jobs, shared)

        HuggingFaceBackend._run = killed  # type: ignore[method-assign]
        main(words)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with CallStore.open(folder / "trained" / ANSWERS) as store:
        recorded = sum(1 for _ in store.calls())
    assert recorded > 0
    assert run(*words).code == 0
    assert sum(asked) == 2 * (ITEMS - HELD_OUT) - recorded


def test_calls_that_fail_are_code_3_and_the_rest_is_kept(
    run: Run, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    score = HuggingFaceBackend._score
    monkeypatch.setattr(
        HuggingFaceBackend,
        "_score",
        lambda *asked: ([None, *part[1:]] for part in score(*asked)),
    )
    ran = advised(run, files["none"], "--out", "trained", "--json")
    assert (ran.code, ran.out) == (3, "")
    assert "Run the same command again to ask the rest." in ran.err
