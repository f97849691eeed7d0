"""The verl engine: its checks, its configuration from a recipe, its launch and its result."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from unswayed.base.errors import MissingExtraError, RunDirectoryError, UsageError
from unswayed.base.files import read_object
from unswayed.training.devices import computed_in
from unswayed.training.plan import Plan
from unswayed.training.policy_loss import PolicyLoss
from unswayed.training.processes import Sharding
from unswayed.training.progress import TrainingWarning
from unswayed.training.protocol import Objective, Report, Stop
from unswayed.training.recipe_parts import Recipe
from unswayed.training.reward_settings import RewardSettings
from unswayed.training.run_folder import RunFolder
from unswayed.training.sampling import Split
from unswayed.training.table import OBJECTIVES
from unswayed.training.trainer_arguments import save_steps
from unswayed.training.verl.driver import (
    ACTOR,
    BATCHES,
    REQUIRED,
    check_config,
    register_estimator,
    trainer_class,
)
from unswayed.training.verl.epochs import TEMPLATE, run_text, write_data

VERSION: Final = "0.9.1"
INSTALL: Final = (
    f"pip install verl=={VERSION} ray==2.60.0 transformers==5.10.4 tensordict==0.10.0 "
    "TransferQueue==0.1.11 cachetools fastapi uvicorn pillow"
)
PLACE: Final = "verl"
"""Folder of verl's data, logs and checkpoints in that of the run."""
LATEST: Final = "latest_checkpointed_iteration.txt"
NODES: Final = ("trainer.nnodes", "trainer.n_gpus_per_node")
GPUS: Final = (1, 8)
"""Machines and GPUs of each, where `[engine.verl]` names none."""
ROLLOUT: Final = "actor_rollout_ref.rollout"
MODEL: Final = "actor_rollout_ref.model"


class VerlEngine:
    """Trains policy gradients with verl, on GPUs of one or several machines."""

    def check(self, recipe: Recipe, settings: RewardSettings | None, objective: Objective) -> None:
        """Check verl's version, and that it can run objective and recipe; see `protocol.Engine`."""
        try:
            installed = version("verl")
        except PackageNotFoundError:
            installed = None
        if installed != VERSION:
            state = f"{installed} is installed" if installed else "which is not installed"
            raise MissingExtraError(
                f"engine verl needs verl {VERSION}, {state}. Install it with Unswayed in their own environment: "
                f"{INSTALL}"
            )
        loss = objective.loss(recipe, settings)
        if loss is None:
            able = ", ".join(name for name in OBJECTIVES if OBJECTIVES.load(name).sampled)
            raise UsageError(
                f"verl runs {able}; {OBJECTIVES.name_of(objective)} is not a policy gradient. Use "
                "--engine trl."
            )
        faults = [fault for holds, fault in _needs(recipe, loss) if not holds]
        if faults:
            raise UsageError(
                f"engine verl cannot run this recipe: {'; '.join(faults)}. Change that with --set, or use "
                "--engine trl."
            )
        warnings.warn(
            "engine verl is untested on GPUs. Check its first steps. It measures no held-out items, so "
            "audit the model before and after. The memory plan is for trl.",
            TrainingWarning,
            stacklevel=2,
        )

    def sharding(self, recipe: Recipe, environment: Mapping[str, str]) -> Sharding:
        """Return FSDP over the GPUs that `[engine.verl]` names; see `protocol.Engine`."""
        nodes, gpus = (table_of(recipe).get(*pair) for pair in zip(NODES, GPUS, strict=True))
        world = int(nodes) * int(gpus)
        return Sharding(name="verl", processes=world, weights=world, gradients=world, states=world)

    def checkpoint_defect(self, folder: Path, step: int) -> str | None:
        """Return the defect of one of verl's checkpoints; see `protocol.Engine`."""
        if newest_step(folder.parent) != step:
            return f"not named in {LATEST}"
        needed = ("actor", "data.pt")
        return next((f"no {name}" for name in needed if not (folder / name).exists()), None)

    def split(self, recipe: Recipe, n_presentations: int, world: int) -> Split:
        """Divide a step's responses among the GPUs; see `protocol.Engine`."""
        total = recipe.optimiser.items_per_step * n_presentations * recipe.rollout.samples
        parallel = recipe.rollout.tensor_parallel
        if total % world or world % parallel:
            raise UsageError(
                f"a step of {total} responses cannot be divided among {world} GPUs, with "
                f"rollout.tensor_parallel {parallel}. Change optimiser.items_per_step, or the GPUs: "
                f"--set 'engine.verl={{\"{NODES[1]}\" = 4}}', say."
            )
        return Split(total // world, 1)

    def run(self, plan: Plan, folder: RunFolder, resume: int | None, report: Report | None) -> Stop:
        """Train with Ray, then merge the result; see `protocol.Engine`.

        verl resumes from its own newest checkpoint and measures no held-out items.
        """
        from verl.trainer.ppo.utils import need_critic, need_reference_policy
        from verl.utils.config import validate_config

        place, updates = folder.path / PLACE, plan.stop_every
        begun = newest_step(place)
        newest = place / f"global_step_{begun}"
        if begun and (defect := self.checkpoint_defect(newest, begun)):
            raise RunDirectoryError(
                f"{newest} cannot be resumed ({defect}). Choose another --out, or name an earlier "
                f"checkpoint in {place / LATEST}."
            )
        if begun * updates < plan.steps:  # else it was stopped before its result was merged
            config = configuration(plan, folder.path)
            validate_config(config, need_reference_policy(config), need_critic(config))
            try:
                launch(config, place / f"log-{begun}.jsonl")
            except KeyboardInterrupt:
                return Stop(newest_step(place) * updates, interrupted=True)
        for step, numbers in sorted(logged_steps(place).items()):
            line = {**numbers, "step": step * updates, "steps": plan.steps}
            folder.append(line)
            if report is not None:
                report(line)
        merge(plan, place / f"global_step_{newest_step(place)}" / "actor", folder)
        return Stop(plan.steps, interrupted=False)


def table_of(recipe: Recipe) -> dict[str, Any]:
    """Return verl's own table of a recipe."""
    return dict(recipe.engine.get("verl", {}))


def newest_step(place: Path) -> int:
    """Return the step of verl's newest checkpoint; 0 without one."""
    file = place / LATEST
    return int(file.read_text()) if file.is_file() else 0


def logged_steps(place: Path) -> dict[int, dict[str, float]]:
    """Return the figures that verl logged, by its steps: of a step that was run twice, the later ones."""
    steps = {}
    for file in sorted(place.glob("log-*.jsonl"), key=lambda path: int(path.stem[4:])):
        for line in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            numbers = {k: v for k, v in line["data"].items() if isinstance(v, int | float)}
            steps[int(line["step"])] = numbers
    return steps


def _needs(recipe: Recipe, loss: PolicyLoss) -> list[tuple[bool, str]]:
    """Return the conditions of verl on a recipe, each with the fault if it is not met."""
    rollout, optimiser = recipe.rollout, recipe.optimiser
    owned = [
        key
        for key in table_of(recipe)
        for guarded in (*REQUIRED, *BATCHES)
        if guarded.startswith(key.lstrip("+~")) or key.lstrip("+~").startswith(guarded)
    ]
    return [
        (rollout.engine == "vllm-colocate", "rollout.engine is not vllm-colocate"),
        (rollout.samples > 1, "rollout.samples is 1, and a sample is compared with others"),
        (rollout.correction == "none", "rollout.correction is set, which trl alone reads"),
        (loss.aggregate == "response", "optimiser.loss is not grpo"),
        (optimiser.schedule != "linear", "optimiser.schedule linear does not exist in verl"),
        (optimiser.max_grad_norm > 0, "optimiser.max_grad_norm is 0"),
        (recipe.lora is None or recipe.lora.dropout == 0, "lora.dropout is not 0"),
        (not owned, f"{', '.join(owned)} in [engine.verl] would split groups"),
    ]


def loss_overrides(loss: PolicyLoss) -> dict[str, Any]:
    """Return the loss as fields of verl's configuration; its mean over tokens is in `REQUIRED`."""
    low, high = loss.clip
    return {
        f"{ACTOR}.clip_ratio": low,
        f"{ACTOR}.clip_ratio_low": low,
        f"{ACTOR}.clip_ratio_high": high,
        f"{ACTOR}.clip_ratio_c": 1e9,  # a second clip, which the objective does not have
        f"{ACTOR}.use_kl_loss": loss.kl > 0,
        f"{ACTOR}.kl_loss_coef": loss.kl,
        f"{ACTOR}.kl_loss_type": "low_var_kl",
        f"{ACTOR}.entropy_coeff": loss.entropy,
        f"{ACTOR}.ppo_epochs": loss.iterations,
    }


def overrides(plan: Plan, out: Path) -> dict[str, Any]:
    """Return the fields of verl's configuration that a plan sets, without the files of its data."""
    recipe, groups, updates = plan.recipe, plan.groups, plan.stop_every
    optimiser, rollout, run, lora = recipe.optimiser, recipe.rollout, recipe.run, recipe.lora
    assert plan.loss is not None  # `check` refuses others
    prompts = optimiser.items_per_step * groups.n_presentations
    longest = groups.counts.longest_prompt
    tokens = run.micro_batch * (longest + groups.max_tokens)
    steps, precision = math.ceil(plan.steps / updates), computed_in(recipe, on_gpu=True)
    every = save_steps(recipe, plan.steps) // updates
    fields: dict[str, Any] = {
        **REQUIRED,
        **loss_overrides(plan.loss),
        "+algorithm.unswayed": run_text(plan),
        "data.train_batch_size": prompts,
        "data.max_prompt_length": longest,
        "data.max_response_length": groups.max_tokens,
        "data.seed": run.seed,
        f"{MODEL}.path": str(plan.folder),
        f"{MODEL}.custom_chat_template": TEMPLATE,
        f"{MODEL}.enable_gradient_checkpointing": run.gradient_checkpointing,
        f"{ACTOR}.ppo_mini_batch_size": prompts,
        f"{ACTOR}.use_dynamic_bsz": True,
        f"{ACTOR}.ppo_max_token_len_per_gpu": tokens,
        f"{ACTOR}.data_loader_seed": run.seed,
        f"{ACTOR}.fsdp_config.seed": run.seed,
        f"{ACTOR}.fsdp_config.dtype": precision,
        f"{ACTOR}.optim.lr": optimiser.learning_rate,
        f"{ACTOR}.optim.weight_decay": optimiser.weight_decay,
        f"{ACTOR}.optim.clip_grad": optimiser.max_grad_norm,
        f"{ACTOR}.grad_clip": optimiser.max_grad_norm,
        f"{ACTOR}.optim.lr_scheduler_type": optimiser.schedule,
        f"{ACTOR}.optim.lr_warmup_steps": math.ceil(optimiser.warmup_steps / updates),
        f"{ROLLOUT}.name": "vllm",
        f"{ROLLOUT}.n": rollout.samples,
        f"{ROLLOUT}.temperature": rollout.temperature,
        f"{ROLLOUT}.seed": run.seed,
        f"{ROLLOUT}.dtype": precision,
        f"{ROLLOUT}.gpu_memory_utilization": rollout.gpu_memory,
        f"{ROLLOUT}.tensor_model_parallel_size": rollout.tensor_parallel,
        "reward.custom_reward_function.path": "pkg://unswayed.training.verl.reward",
        "trainer.project_name": "unswayed",
        "trainer.experiment_name": out.name,
        "trainer.logger": ["console", "file", *run.loggers],
        "trainer.total_epochs": 1,  # of the files of all epochs, one after another
        "trainer.total_training_steps": steps,
        "trainer.save_freq": every or steps,
        "trainer.test_freq": -1,
        "trainer.val_before_train": False,
        "trainer.max_actor_ckpt_to_keep": run.keep,
        "trainer.default_local_dir": str(out / PLACE),
    }
    if run.attention is not None:
        fields[f"+{MODEL}.override_config.attn_implementation"] = run.attention
    if lora is not None:
        fields |= {
            f"{MODEL}.lora_rank": lora.rank,
            f"{MODEL}.lora_alpha": lora.alpha,
            f"{MODEL}.target_modules": lora.target,
            f"{ROLLOUT}.load_format": "safetensors",
        }
    return fields


def configuration(plan: Plan, out: Path) -> Any:
    """Write the data and return verl's configuration with the fields of plan and recipe, checked."""
    from hydra import compose, initialize_config_module
    from omegaconf import OmegaConf

    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer")
    files = write_data(plan, out / PLACE / "data")
    data = {"data.train_files": files.train, "data.val_files": files.validation}
    for key, value in {**overrides(plan, out), **data, **table_of(plan.recipe)}.items():
        try:
            OmegaConf.update(config, key.lstrip("+"), value, force_add=key.startswith("+"))
        except Exception as error:  # omegaconf raises many kinds
            raise UsageError(
                f"verl does not take {key} = {value!r} ({error}). Correct it with --set."
            ) from None
    check_config(config)
    return config


def launch(config: Any, log: Path) -> None:
    """Run verl's trainer in an actor of Ray until it ends."""
    import ray
    from verl.trainer.main_ppo import TaskRunnerV1, run_ppo

    base: Any = TaskRunnerV1.__ray_actor_class__

    class Runner(base):  # type: ignore[misc]
        def run(self, config: Any) -> Any:
            os.environ["VERL_FILE_LOGGER_PATH"] = str(log)
            register_estimator()  # in the actor's process, which looks both up
            trainer_class()
            return super().run(config)

    run_ppo(config, task_runner_class=ray.remote(Runner))


def merge(plan: Plan, actor: Path, folder: RunFolder) -> None:
    """Put the trained weights of verl's last checkpoint, or their adapter, into the run's folder."""
    whole = folder.aside / "merged"
    command = [sys.executable, "-m", "verl.model_merger", "merge", "--backend", "fsdp"]
    subprocess.run([*command, "--local_dir", str(actor), "--target_dir", str(whole)], check=True)
    result = whole / "lora_adapter" if plan.recipe.lora is not None else whole
    config = result / "adapter_config.json"
    if plan.recipe.lora is not None:
        named = {**read_object(config), "base_model_name_or_path": str(plan.folder)}
        config.write_text(json.dumps(named, indent=2), encoding="utf-8")
    for path in result.iterdir():
        if path.is_file():
            shutil.move(path, folder.path / path.name)
    shutil.rmtree(whole)
    plan.chat.tokenizer.save_pretrained(folder.path)  # with the model's own chat template


VERL = VerlEngine()
