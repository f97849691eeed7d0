"""`unswayed train`: train position and label bias out of a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from unswayed.cli.options import Limit, OnBadItem
from unswayed.cli.output import note, write
from unswayed.errors import UsageError
from unswayed.reward_settings import REWARDS, Advantage
from unswayed.training.table import ENGINES, OBJECTIVES

if TYPE_CHECKING:
    from unswayed.training.plan import Plan
    from unswayed.training.results import TrainingResult

    EngineName: TypeAlias = str
    ObjectiveName: TypeAlias = str
    RewardName: TypeAlias = str
else:  # what is registered, third parties' too, stands in --help
    EngineName, ObjectiveName, RewardName = (
        Literal[*registry] for registry in (ENGINES, OBJECTIVES, REWARDS)
    )


def train(
    objective: Annotated[
        ObjectiveName,
        typer.Argument(help="pa-grpo and grpo are the papers' presets; rl combines; pif is SFT."),
    ],
    data: Annotated[str, typer.Argument(help="Items with gold, such as `unswayed filter` writes.")],
    recipe: Annotated[str, typer.Option(help="A shipped recipe or a .toml file.")],
    out: Annotated[Path, typer.Option(help="Folder for the adapter or model.")],
    model: Annotated[
        str | None, typer.Option(help="Path or hub id [default: the recipe's]")
    ] = None,
    reward: Annotated[
        RewardName | None,
        typer.Option(help="rl: the consistency reward [default: the recipe's, or con]"),
    ] = None,
    advantage: Annotated[
        Advantage | None,
        typer.Option(help="rl: what advantages compare [default: the recipe's, or group]"),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a recipe field: reward.lam=0.5 (repeatable)."),
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="What runs the training.")] = "trl",
    limit: Limit = None,
    on_bad_item: OnBadItem = "stop",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything on the data, load no weights.")
    ] = False,
) -> int:
    """Train with permutation groups; the same command resumes (bit for bit, unless vLLM samples)."""
    from unswayed.api import load_data
    from unswayed.cli.steps import StepLines
    from unswayed.registry import require
    from unswayed.training.planning import plan_training
    from unswayed.training.processes import is_main
    from unswayed.training.recipe import load_recipe, with_changes
    from unswayed.training.run import train as run_training

    require("trl", extra="train", feature="training")
    chosen = load_recipe(recipe)
    if change:
        chosen = with_changes(chosen, dict(_change(text) for text in change))
    name = model or chosen.model
    if not name:
        raise UsageError(f"recipe {chosen.name} names no model. Give --model PATH.")
    items = load_data(data, limit=limit, on_bad_item=on_bad_item)
    plan = plan_training(
        objective,
        items,
        model=name,
        recipe=chosen,
        consistency=reward,
        advantage=advantage,
        engine=engine,
    )
    if dry_run:
        from unswayed.auditing.run_directory import json_text
        from unswayed.training.checkpoints import RECORD
        from unswayed.training.memory import advice
        from unswayed.training.run_folder import RunFolder

        folder = RunFolder(out)
        if (out / RECORD).is_file():  # what a run there would be refused for
            folder.check_same_run(folder.read_record(), plan.record)
        if is_main():
            _announce(plan)
            if (memory := f"memory: {advice(plan.demand)}") not in plan.warnings:
                note(memory)
            sys.stdout.write(json_text(plan.described()))
        return 0
    if is_main():  # of several processes one talks
        _announce(plan)
    lines = StepLines()
    try:
        result = run_training(plan, out, report=lines, begin=_begin)
    finally:
        lines.close()
    if is_main():
        _conclude(plan, result)
    return 130 if result.interrupted else 0


def _announce(plan: Plan) -> None:
    """What is about to be trained on what, and what was left out."""
    from unswayed.training.held_out import checked_items

    for warning in plan.warnings:
        note(warning)
    counts = plan.groups.counts
    left = {
        "held out": counts.held_out,
        "too long": counts.overlong,
        "without gold": counts.without_gold,
        "all right": counts.all_right,
        "with a candidate twice": counts.identical,
        "not permutable": counts.not_permutable,
    }
    text = ", ".join(f"{number:,} {what}" for what, number in left.items() if number)
    checked = len(checked_items(plan))
    if checked < counts.held_out:
        note(
            f"held-out checks ask about {checked:,} of {counts.held_out:,} items: more would cost "
            "over a quarter of the responses trained on between two. Raise run.check_every for more."
        )
    typer.echo(
        f"{plan.objective} on {counts.kept:,} of {counts.given:,} items{f' ({text})' if text else ''}: "
        f"{plan.steps:,} steps, {plan.steps_per_epoch:,} to an epoch",
        err=True,
    )


def _begin(step: int) -> None:
    """Where a run goes on that was begun before."""
    if step:
        typer.echo(f"going on from step {step:,}", err=True)


def _conclude(plan: Plan, result: TrainingResult) -> None:
    """What came of it: the figures, and the model's name."""
    from unswayed.training.held_out import figures_of, look_filtered

    if result.interrupted:
        note(
            f"interrupted after step {result.steps} of {plan.steps}; the same command goes on "
            "from here."
        )
        return
    if result.resumed_from == result.steps:
        note(f"all {result.steps} steps were done before. For another run choose another --out.")
    before = {figure.name: figure for figure in figures_of(result.before)}
    for figure in figures_of(result.after):
        start = f"{before[figure.name].value:.3f} -> " if figure.name in before else ""
        write(f"{f'held_out/{figure.name}':24s} {start}{figure}")
    if look_filtered(before.values()):
        note(
            "no held-out item was consistent before training: if a filter chose the items, that "
            "is its choice. The audit of fresh items measures what training bought."
        )
    write(f"\n{result.model_name}\nnext: unswayed audit DATA --model {result.model_name}")


def _change(text: str) -> tuple[str, str]:
    field, equals, value = text.partition("=")
    if not equals or not field:
        raise UsageError(f"--set {text!r}: write field=value, such as reward.lam=0.5.")
    return field.strip(), value.strip()
