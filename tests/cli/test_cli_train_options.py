"""`unswayed train`: its options, what they change in the plan, and what is refused."""

import json
from pathlib import Path

import pytest
from cli_commands import Ran, Run, judge_without_template

from unswayed.sources import load_data
from unswayed.training.planning import plan_training
from unswayed.training.recipe import load_recipe, with_changes
from unswayed.training.table import OBJECTIVES

DATA = ("tiny-judge-train", "--limit", "60", "--recipe", "tiny-judge", "--out", "trained")
COUPLED = {"layouts": ["coupled"], "presentations": 2}
ALL = {"layouts": ["coupled", "label", "order"], "presentations": 4}


def planned(run: Run, objective: str, *options: str) -> Ran:
    ran = run("train", objective, *DATA, *options, "--dry-run")
    assert ran.code == 0, ran.err
    return ran


@pytest.mark.parametrize(
    ("arguments", "expected", "fields", "reward"),
    [
        (["rl", "--exact"], COUPLED, {"target.distill": 0.5}, "inv"),
        (["rl-exact"], COUPLED, {"target.distill": 0.5}, "inv"),
        (["rl-exact", "--exact"], COUPLED, {"target.distill": 0.5}, "inv"),
        (["rl", "--exact", "--distill", "0"], COUPLED, {"target.distill": 0.0}, "inv"),
        (["rl", "--exact", "--reward", "pair", "--layouts", "all"], ALL, {}, "pair"),
        (["rl"], COUPLED, {}, "con"),
        (["rl", "--reward", "joint"], COUPLED, {}, "joint"),
        (["distill"], ALL, {"data.layouts": None}, None),
        (["distill", "--layouts", "coupled"], COUPLED, {"data.layouts": "coupled"}, None),
        (["sft"], COUPLED, {"target.gold_noise": "none"}, None),
        (["sft", "--gold-noise", "auto"], COUPLED, {"target.gold_noise": "auto"}, None),
        (["pif", "--layouts", "all"], ALL, {}, None),
        (["pa-grpo", "--layouts", "all"], ALL, {"data.layouts": "all"}, "con"),
        (["pa-grpo"], COUPLED, {"data.layouts": None}, "con"),
    ],
)
def test_options_decide_objective_reward_layouts_and_fields(
    run: Run,
    arguments: list[str],
    expected: dict[str, object],
    fields: dict[str, object],
    reward: str | None,
) -> None:
    objective, *options = arguments
    ran = planned(run, objective, *options)
    plan = ran.json
    assert plan["kind"] == ("rl-exact" if "--exact" in options else objective)
    assert {name: plan[name] for name in expected} == expected
    assert {name: plan["recipe"][name] for name in fields} == fields
    assert (plan["reward"] or {}).get("consistency") == reward
    moving = ", ".join(plan["layouts"])
    line = next(line for line in ran.err.splitlines() if " on 28 of 60 items" in line)
    assert line.startswith(f"{plan['kind']} on ")
    assert f"{plan['presentations']} presentations each ({moving})" in line


def test_exact_is_the_objective_of_that_name(run: Run) -> None:
    exact = planned(run, "rl", "--exact", "--reward", "pair")
    named = planned(run, "rl-exact", "--reward", "pair")
    assert (exact.out, exact.err) == (named.out, named.err)


@pytest.mark.parametrize(
    ("objective", "option", "change", "field", "value"),
    [
        ("rl-exact", ("--distill", "0.25"), "target.distill=2", "target.distill", 0.25),
        ("distill", ("--layouts", "coupled"), "data.layouts=all", "data.layouts", "coupled"),
        ("sft", ("--gold-noise", "none"), "target.gold_noise=auto", "target.gold_noise", "none"),
    ],
)
def test_an_option_goes_before_set_as_reward_does(
    run: Run, objective: str, option: tuple[str, str], change: str, field: str, value: object
) -> None:
    plan = planned(run, objective, "--set", change, *option).json
    assert plan["recipe"][field] == value
    both = ("--set", "reward.consistency=pair", "--reward", "mode")
    assert planned(run, "rl", *both).json["reward"]["consistency"] == "mode"


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["pa-grpo", "--exact"], "Leave it out, or use train rl --exact."),
        (["distill", "--exact"], "Leave it out, or use train rl --exact."),
        (["rl", "--distill", "0.5"], "train rl has no --distill. Leave it out, or use train rl --"),
        (["distill", "--distill", "1"], "train distill has no --distill."),
        (["pa-grpo", "--distill", "0"], "or use train rl --exact."),
        (["rl", "--exact", "--gold-noise", "auto"], "train rl --exact has no --gold-noise."),
        (["pif", "--gold-noise", "none"], "Leave it out, or use train sft."),
        (["rl", "--exact", "--advantage", "group"], "or sample: train rl without --exact."),
        (["distill", "--reward", "inv"], "use train rl for those"),
        (["sft", "--advantage", "group"], "use train rl for those"),
        (["sft", "--gold-noise", "bayes"], "'none', 'auto'"),
        (["distill", "--layouts", "label"], "'coupled', 'all'"),
        (["rl", "--exact", "--distill=-1"], "'--distill'"),
        (["rl", "--exact", "--distill", "inf"], "target.distill: inf is not a finite number"),
        (["rl", "--exact", "--set", "target.distil=1"], "Did you mean 'distill'?"),
        (
            ["rl", "--exact", "--set", "target.invariance=1"],
            "no target.invariance. Leave it out, or",
        ),
        (["distill", "--set", "target.gold_noise=auto"], "Leave it out, or use train sft."),
        (
            ["pa-grpo", "--set", "target.temperature=2"],
            "train distill or train rl --exact or train sft",
        ),
        (["sft", "--set", "target.gold_noise=maybe"], "Known: auto, none."),
        (["sft", "--set", "target=1"], "It is a table: set target.distill or "),
        (["sft", "--set", "data.layout=all"], "Did you mean 'layouts'?"),
        (["sft", "--set", "target.distill"], "write field=value"),
    ],
)
def test_an_unsupported_objective_is_refused_with_a_remedy(
    run: Run, folder: Path, arguments: list[str], remedy: str
) -> None:
    objective, *options = arguments
    ran = run("train", objective, *DATA, *options)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.said) == 1
    assert remedy in ran.said[0]
    assert not (folder / "trained").exists()


@pytest.mark.parametrize("objective", ["distill", "rl-exact", "sft"])
def test_reasoning_is_refused_for_answers_of_one_label(run: Run, objective: str) -> None:
    reasoning = ("--set", "prompt.style=reasoning", "--set", "data.max_prompt_tokens=4096")
    ran = run("train", objective, *DATA, "--model", judge_without_template("judge"), *reasoning)
    assert ran.code == 2
    assert (
        "Give it --set prompt.style=direct; or, with gold, sample: train rl --reward inv" in ran.err
    )


@pytest.mark.parametrize(
    ("objective", "options", "changes"),
    [
        ("rl-exact", ["--distill", "0.1"], {"target.distill": "0.1"}),
        ("distill", ["--layouts", "coupled"], {"data.layouts": "coupled"}),
        ("sft", ["--gold-noise", "auto"], {"target.gold_noise": "auto"}),
    ],
)
def test_python_plans_what_the_command_plans(
    run: Run, objective: str, options: list[str], changes: dict[str, str]
) -> None:
    ran = planned(run, objective, *options)
    recipe = with_changes(load_recipe("tiny-judge"), changes)
    items = load_data("tiny-judge-train", limit=60)
    plan = plan_training(objective, items, model="tiny/judge", recipe=recipe, digest=False)
    assert json.loads(json.dumps(plan.described())) == ran.json
    assert "@" not in ran.json["model"]


def test_own_recipe_has_new_fields(run: Run, folder: Path) -> None:
    own = folder / "own.toml"
    text = 'task = "pairwise"\nmodel = "tiny/judge"\n[data]\nlayouts = "all"\nheld_out = 8\n'
    own.write_text(f"{text}[target]\ndistill = 0.25\ntemperature = 2\ninvariance = 1\n")
    data = ("tiny-judge-train", "--limit", "40", "--recipe", str(own), "--out", "trained")
    plan = run("train", "rl", *data, "--exact", "--dry-run").json
    assert {name: plan[name] for name in ALL} == ALL
    assert plan["recipe"]["target.distill"] == 0.25
    own.write_text(f"{text}[target]\ninvarience = 1\n")
    ran = run("train", "sft", *data, "--dry-run")
    assert ran.code == 2
    assert "unknown field target.invarience. Did you mean 'invariance'?" in ran.err


def test_help_names_every_objective_and_where_to_read_more(run: Run) -> None:
    shown = run("train", "--help").out
    assert f"<{'|'.join(OBJECTIVES)}>" in shown
    assert "`unswayed list objectives`" in " ".join(shown.split())
    assert "`train advise`" in shown
    assert len(shown.splitlines()) <= 56
