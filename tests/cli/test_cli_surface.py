"""Help, version, lists and usage errors: short, on the right stream, with the right code."""

import os
import subprocess
import sys

import pytest
from cli_commands import Run

import unswayed
from unswayed.cli import COMMANDS, command_of, main

HEAVY = {"torch", "transformers", "scipy", "numpy", "pandas", "matplotlib", "aiohttp", "jinja2"}


@pytest.mark.parametrize("command", sorted(COMMANDS))
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help(command: str, flag: str, run: Run) -> None:
    ran = run(*command.split(), flag)
    assert ran.code == 0
    assert f"unswayed {command}" in ran.out or f" {command} " in ran.out
    assert not ran.err


def test_help_lists_the_commands_that_exist_and_no_others(run: Run) -> None:
    ran = run("--help")
    listed = ran.out.partition("Commands:")[2].split("\n")
    assert [line.split("  ")[1] for line in listed if line.strip()] == list(COMMANDS)
    assert all(map(callable, map(command_of, COMMANDS)))


def test_no_command_shows_the_help_and_is_a_usage_error(run: Run) -> None:
    ran = run()
    assert ran.code == 2
    assert "Commands:" in ran.out + ran.err


@pytest.mark.parametrize(("flags", "code"), [([], 2), (["--help"], 0)])
def test_first_word_of_two_lists_its_commands(flags: list[str], code: int, run: Run) -> None:
    ran = run("heads", *flags)
    shown = ran.out + ran.err
    assert ran.code == code
    assert "heads fit " in shown
    assert "heads show " in shown
    assert "audit" not in shown


def test_the_version_is_the_package_s(run: Run) -> None:
    ran = run("--version")
    assert (ran.code, ran.out) == (0, f"unswayed {unswayed.__version__}\n")


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom unswayed.cli import main\nassert main(['--help']) == 0\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lst"], "Did you mean 'list'?"),
        (["audit", "--metods", "vote"], "--methods"),
        (["audit", "--limit", "many"], "'--limit'"),
        (["audit", "--limit", "0"], "'--limit'"),
        (["audit", "--max-flip-rate", "2"], "'--max-flip-rate'"),
        (["audit", "--resamples", "10"], "'--resamples'"),
        (["audit", "--gold-ties", "maybe"], "'exclude', 'class'"),
        (["calibrate"], "'method'"),
        (["judge"], "'data'"),
        (["train", "advise"], "'data'"),
        (["train", "advise", "tiny-judge", "--reciep", "x"], "--recipe"),
        (["train", "pa-grop", "tiny-judge"], "'pa-grpo'"),
        (["report", "run"], "'--out'"),
        (["list", ""], "the value after list is empty"),
        (["audit", "--calls="], "the value after --calls= is empty"),
        (["audit", "--prompt", ""], "the value after --prompt is empty"),
        (["audit", "pairs\udcff.jsonl"], "'pairs\\udcff.jsonl' is not UTF-8"),
        (["list", "methos"], "Did you mean 'methods'?"),
        (["list", "colours"], "Known: benchmarks, engines, importers, launch, methods"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_code_2(
    arguments: list[str], said: str, run: Run
) -> None:
    ran = run(*arguments)
    assert ran.code == 2
    assert not ran.out
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("unswayed: ")
    assert said.casefold() in ran.err.casefold()  # the parser's releases differ in case


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("methods", ["direct", "vote", "average", "pride", "calibraeval", "domain-contextual"]),
        ("metrics", ["accuracy", "consistency", "rstd", "consistent_accuracy_fractional"]),
        ("models", ["openai/...", "openai-api/...", "anthropic/...", "hf/...", "tiny/..."]),
        ("importers", ["judgebench", "llmbar", "jsonl"]),
        ("benchmarks", ["arc-challenge", "gpqa", "mt-bench", "reward-bench-2", "tiny-mmlu"]),
        ("prompts", ["direct", "reasoning", "modified"]),
        ("tasks", ["mcq", "pairwise"]),
        ("recipes", ["tiny-judge", "tiny-mcq", "tiny-rubric"]),
        ("objectives", ["grpo", "pa-grpo", "pif", "rl"]),
        ("rewards", ["columnwise", "con", "inv", "none"]),
        ("engines", ["trl", "verl"]),
    ],
)
def test_lists_name_everything_in_full(kind: str, names: list[str], run: Run) -> None:
    ran = run("list", kind)
    assert ran.code == 0
    first = [line.split()[0] for line in ran.out.splitlines() if line[:1].strip()]
    assert set(names) <= set(first)
    assert "…" not in ran.out


def test_prompts_are_told_apart_by_their_description(run: Run) -> None:
    rows = [line.split(maxsplit=1)[1] for line in run("list", "prompts").out.splitlines()[1:]]
    assert len(set(rows)) == len(rows)


def test_list_methods_has_a_sentence_and_the_parameters_of_each(run: Run) -> None:
    from unswayed.methods import METHODS
    from unswayed.methods.names import parameters

    ran = run("list", "methods")
    said = " ".join(ran.out.split())
    assert "Learn the judge's preference for each label" in said
    for name in METHODS:
        for parameter in parameters(METHODS.load(name)):
            assert f"{parameter}=" in said


def test_list_models_has_the_prices_in_use(run: Run) -> None:
    from unswayed.backends.prices import load_prices

    ran = run("list", "models")
    table = load_prices()
    assert set(table.checked) == {name.partition("/")[0] for name in table.shipped}
    rows = {line.split()[0]: line.split()[1:] for line in ran.out.splitlines() if line.strip()}
    for name, price in table.shipped.items():
        *rates, day, age, unit, _ = rows[name]
        assert (float(rates[0]), float(rates[-1])) == (price.input, price.output)
        assert day == f"{table.checked[name.partition('/')[0]]},"
        assert age.isdigit()
        assert unit in ("day", "days")


def test_a_vllm_model_is_told_how_it_is_reached(run: Run) -> None:
    assert "openai-api/vllm/<model>" in " ".join(run("list", "models").out.split())
    ran = run("audit", "tiny-judge", "--model", "vllm/my-model")
    assert ran.code == 2
    assert "openai-api/vllm/<model>, with VLLM_BASE_URL" in ran.err


@pytest.mark.parametrize(
    ("typed", "word", "offered"),
    [
        ("unswayed aud", 1, "audit"),
        ("unswayed tra", 1, "train"),
        ("unswayed audit --resam", 2, "--resamples"),
        ("unswayed train --gold", 2, "--gold-noise"),
        ("unswayed train advise --js", 3, "--json"),
    ],
)
def test_the_shell_can_complete_commands_and_options(
    typed: str,
    word: int,
    offered: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = {"_UNSWAYED_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(word)}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["unswayed"])
    assert (main(), capsys.readouterr().out.split()) == (0, [offered])


def test_the_completion_can_be_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    ran = run("--show-completion", "bash")
    assert ran.code == 0
    assert "complete -o default" in ran.out


def test_completion_is_for_the_command_however_it_was_started() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unswayed", "--show-completion", "bash"],
        capture_output=True,
        text=True,
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        check=True,
    )
    assert done.stdout.splitlines()[-1] == ("complete -o default -F _unswayed_completion unswayed")
