"""`unswayed train`: train position and label bias out of a model."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from unswayed.auditing.run_directory import json_text
from unswayed.backends.model_folders import OPEN
from unswayed.base.counts import plural
from unswayed.base.errors import UsageError
from unswayed.calls.interrupts import INTERRUPTED
from unswayed.cli.options import with_options
from unswayed.cli.output import note, write
from unswayed.cli.steps import StepLines
from unswayed.cli.training_options import RecipeOptions, check_read, exact_form
from unswayed.sources import DataOptions
from unswayed.training.checkpoints import RECORD
from unswayed.training.filtering import check_prompt
from unswayed.training.held_out import checked_items, figures_of, look_filtered
from unswayed.training.memory import advice
from unswayed.training.plan import Plan
from unswayed.training.planning import plan_training
from unswayed.training.processes import is_main
from unswayed.training.recipe import load_recipe, local_name, with_changes
from unswayed.training.run import TrainingResult
from unswayed.training.run import train as run_training
from unswayed.training.run_folder import RunFolder
from unswayed.training.table import ENGINES, OBJECTIVES

if TYPE_CHECKING:
    EngineName: TypeAlias = str
    ObjectiveName: TypeAlias = str
else:  # what is registered, third parties' too, stands in --help
    EngineName, ObjectiveName = Literal[*ENGINES], Literal[*OBJECTIVES]


@with_options
def train(
    *,
    objective: Annotated[
        ObjectiveName,
        typer.Argument(
            help="pa-grpo and grpo are presets of arXiv 2603.21016, rl combines rewards, sft and pif imitate gold, "
            "distill needs no gold; see `unswayed list objectives`."
        ),
    ],
    data: Annotated[str, typer.Argument(help="Items, such as `unswayed filter` writes.")],
    recipe: Annotated[str, typer.Option(help="Shipped recipe, or a .toml file.")],
    out: Annotated[Path, typer.Option(help="Folder for the adapter or model.")],
    model: Annotated[
        str | None, typer.Option(help="Path or hub id of the model [default: the recipe's]")
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compute the expected reward of rl instead of sampling.")
    ] = False,
    options: RecipeOptions,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Set a recipe field, such as reward.lam=0.5; repeatable."),
    ] = None,
    engine_name: Annotated[EngineName, typer.Option("--engine", help="Training engine.")] = "trl",
    selection: Annotated[DataOptions, "limit", "data_dir", "columns", "on_bad_item"],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check data and settings without loading weights.")
    ] = False,
) -> int:
    """Train position and label bias out of a model.

    The same command resumes, exactly unless vLLM samples. `train advise` recommends an objective.
    """
    if exact:
        objective = exact_form(objective)
    changes = options.changes(change or ())
    check_read(objective, changes)
    chosen = with_changes(load_recipe(recipe), changes)
    name = model or chosen.model
    if not name:
        raise UsageError(f"recipe {chosen.name} names no model. Give --model PATH.")
    items = selection.load(data)
    plan = plan_training(
        objective,
        items,
        model=name,
        recipe=chosen,
        consistency=options.reward,
        advantage=options.advantage,
        engine=engine_name,
        digest=not dry_run,
    )
    fingerprint = plan.record["prompt_fingerprint"]
    if is_main() and (told := check_prompt(Path(data), plan.recipe.prompt.style, fingerprint)):
        note(told)
    if dry_run and (out / RECORD).is_file():  # what a run there would be refused for
        folder = RunFolder(out)
        folder.check_same_run(folder.read_record(), plan.record)
        if plan.record["model"].endswith(OPEN):
            note(f"the weights of {name} were not compared with the weights of the run in {out}.")
    if is_main():  # of several processes one talks
        _announce(plan, dry_run=dry_run)
    if dry_run:
        return 0
    lines = StepLines()
    try:
        result = run_training(plan, out, report=lines, begin=_begin)
    finally:
        lines.close()
    if is_main():
        _conclude(plan, result, name, out)
    return INTERRUPTED if result.interrupted else 0


def _announce(plan: Plan, *, dry_run: bool) -> None:
    """Announce objective and data of a run and what was left out; before a dry run ends, the whole plan."""
    for warning in plan.warnings:
        note(warning)
    counts = plan.groups.counts
    left = {
        "held out": 0 if plan.recipe.data.evaluation else counts.held_out,
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
            f"held-out checks use {checked:,} of {plural(counts.held_out, 'item')}: more would add over a quarter "
            "to the responses between two checks. To use more, raise run.check_every."
        )
    typer.echo(
        f"{plan.objective} on {counts.kept:,} of {plural(counts.given, 'item')}{f' ({text})' if text else ''}: "
        f"{plural(plan.groups.n_presentations, 'presentation')} each ({', '.join(plan.groups.moving)}), "
        f"{plural(plan.steps, 'step')}, {plan.steps_per_epoch:,} per epoch",
        err=True,
    )
    if dry_run:
        if (memory := f"memory: {advice(plan.demand)}") not in plan.warnings:
            note(memory)
        sys.stdout.write(json_text(plan.described()))


def _begin(step: int) -> None:
    """Announce the step from which an earlier run resumes."""
    if step:
        typer.echo(f"resuming from step {step:,}", err=True)


def _conclude(plan: Plan, result: TrainingResult, name: str, out: Path) -> None:
    """Print the figures of a finished run, and the model's name."""
    if result.interrupted:
        note(
            f"interrupted after step {result.steps} of {plan.steps}; run the same command again to resume."
        )
        return
    if result.resumed_from == result.steps:
        note(
            f"this run already has its {plural(result.steps, 'step')}. For another run, choose another --out."
        )
    before = {figure.name: figure for figure in figures_of(result.before)}
    for figure in figures_of(result.after):
        start = f"{before[figure.name].value:.3f} -> " if figure.name in before else ""
        write(f"{f'held_out/{figure.name}':24s} {start}{figure}")
    if look_filtered(before.values()):
        note(
            "no held-out item was consistent before training, as after a filter. To measure the gain "
            "from training, audit fresh items."
        )
    asked = shlex.join(["--model", str(local_name(name)), "--recipe", str(out)])
    write(f"\n{result.model_name}\nnext: unswayed audit DATA {asked}")
    write(f"      unswayed audit DATA --model {shlex.quote(result.model_name)}")
