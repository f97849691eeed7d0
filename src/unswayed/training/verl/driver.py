"""Rewards and advantages of permutation groups on verl's driver, and its guards.

A worker scores one response by itself (`reward.py`). The consistency reward needs the whole group, so
the trainer adds it before advantages are computed. The uid of a prompt names its group and its
presentation, `<32 hex digits>.p03`; verl's key of a response adds sample and output, `<uid>_1_0`.

Source: verl 0.9.1, `trainer/ppo/v1/trainer_base.py` and `trainer/ppo/core_algos.py`.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from unswayed.base.errors import ShapeError, UsageError
from unswayed.training.rewards import FloatArray, SampleKey
from unswayed.training.rewards.score import standardise
from unswayed.training.scoring import Features, score_rows
from unswayed.training.verl.reward import VerlRun

ESTIMATOR: Final = "unswayed"
MODE: Final = "unswayed_sync"
MARK: Final = ".p"
PADDING: Final = "pad"
"""How the uids of rows begin that fill up a batch."""

ACTOR: Final = "actor_rollout_ref.actor"
REQUIRED: Final[Mapping[str, Any]] = {
    "data.shuffle": False,
    "data.filter_overlong_prompts": False,
    "data.truncation": "error",
    "algorithm.adv_estimator": ESTIMATOR,
    "algorithm.use_kl_in_reward": False,
    "algorithm.filter_groups.enable": False,
    "trainer.v1.trainer_mode": MODE,
    "trainer.v1.sampler.sync_refill_failed_groups": False,
    f"{ACTOR}.loss_agg_mode": "seq-mean-token-mean",
}
"""Values that keep groups whole and average within a response first."""
BATCHES: Final = ("data.train_batch_size", "data.gen_batch_size")
"""Numbers of prompts that have to be multiples of the presentations."""


def run_of(algorithm: Any) -> VerlRun:
    """Return the settings in verl's table `algorithm`."""
    return msgspec.json.decode(algorithm.get("unswayed"), type=VerlRun)


def check_config(config: Any) -> None:
    """Check that verl's configuration keeps permutation groups whole.

    Raises:
        UsageError: With all that is wrong.
    """
    from omegaconf import OmegaConf

    presentations = run_of(config.algorithm).presentations
    faults = [
        f"{key} is {value!r} instead of {wanted!r}"
        for key, wanted in REQUIRED.items()
        if (value := OmegaConf.select(config, key)) != wanted
    ]
    faults += [
        f"{key} {size} is not a multiple of the {presentations} presentations of a group"
        for key in BATCHES
        if (size := OmegaConf.select(config, key) or 0) % presentations
    ]
    if faults:
        raise UsageError(
            f"verl would split permutation groups: {'; '.join(faults)}. Correct these."
        )


def register_estimator() -> None:
    """Register the advantage with verl."""
    from verl.trainer.ppo.core_algos import register_adv_est

    register_adv_est(ESTIMATOR)(estimate)


def estimate(
    token_level_rewards: Any, response_mask: Any, index: Sequence[Any], config: Any = None, **_: Any
) -> tuple[Any, Any]:
    """Return advantages and returns of responses: their rewards against the samples that exist.

    Args:
        token_level_rewards: Rewards of tokens, whose sum is a response's, shape (responses, tokens).
        response_mask: 1 for a token of the response, of the same shape.
        index: The uids.
        config: verl's table `algorithm`.
    """
    import torch

    settings = run_of(config).reward
    rewards = token_level_rewards.double().sum(-1).cpu().numpy()
    sets: dict[str, list[int]] = defaultdict(list)
    for row, uid in enumerate(map(str, index)):
        if not uid.startswith(PADDING):
            sets[uid if settings.advantage == "prompt" else uid.rpartition(MARK)[0]].append(row)
    values = np.zeros(len(rewards))
    for rows in sets.values():
        if len(rows) > settings.ddof:
            values[rows] = standardise(
                rewards[rows], settings.epsilon, settings.delta, settings.ddof
            )[0]
    advantages = torch.from_numpy(values).to(token_level_rewards).unsqueeze(-1) * response_mask
    return advantages, advantages


def consistency_of(
    keys: Sequence[str], features: Sequence[Mapping[str, Any]], run: VerlRun, n_samples: int
) -> FloatArray:
    """Return the weighed consistency reward of each response; 0 for padding.

    Args:
        keys: verl's keys.
        features: What the worker returned for each.
        run: P and the reward.
        n_samples: N.

    Raises:
        ShapeError: If a response came in several outputs, or twice.
    """
    real = [row for row, key in enumerate(keys) if not key.startswith(PADDING)]
    samples = []
    for row in real:
        uid, session, output = keys[row].rsplit("_", 2)
        if output != "0":
            raise ShapeError(f"{keys[row]}: a response in several outputs has no single answer")
        group, _, presentation = uid.rpartition(MARK)
        samples.append(SampleKey(group, int(presentation), int(session)))
    read = [Features(**{name: features[row][name] for name in Features._fields}) for row in real]
    added = np.zeros(len(keys))
    if real:
        scored = score_rows(samples, read, run.reward, (run.presentations, n_samples))
        added[real] = run.reward.lam * scored.consistency
    return added


def uids_of(rows: Sequence[Mapping[str, Any]], presentations: int) -> list[str]:
    """Return new uids for the prompts of a batch, one group for each item.

    Raises:
        ShapeError: If a group is not whole.
    """
    names: dict[str, str] = defaultdict(lambda: uuid.uuid4().hex)
    shown: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        shown[row["item_id"]].append(int(row["presentation"]))
    for item, numbers in shown.items():
        if sorted(numbers) != list(range(presentations)):
            raise ShapeError(
                f"{item}: a batch has presentations {sorted(numbers)} of {presentations}. A "
                "permutation group must stay whole."
            )
    return [f"{names[row['item_id']]}{MARK}{int(row['presentation']):02d}" for row in rows]


def trainer_class() -> Any:
    """Return verl's synchronous trainer with the hooks of permutation groups, registered under `MODE`."""
    import torch
    import transfer_queue as tq
    from tensordict import TensorDict
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY, register_trainer
    from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
    from verl.utils import tensordict_utils

    if MODE in TRAINER_REGISTRY:
        return TRAINER_REGISTRY[MODE]

    class GroupTrainer(PPOTrainerSync):  # type: ignore[misc]
        def __init__(self, config: Any) -> None:
            check_config(config)
            super().__init__(config)

        def _build_replay_buffer(self) -> Any:
            self.trainer_mode = "sync"  # any other mode counts as asynchronous from here on
            return super()._build_replay_buffer()

        def _fetch_one_gen_batch(self) -> Any:
            batch = super()._fetch_one_gen_batch()
            rows = [_plain(row) for row in batch["extra_info"]]
            uids = uids_of(rows, run_of(self.config.algorithm).presentations)
            batch.update(tensordict_utils.get_tensordict({"uid": uids}))
            return batch

        def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
            place = {"keys": batch.keys, "partition_id": batch.partition_id}
            data = tq.kv_batch_get(**place, select_fields=["rm_scores", "extra_fields"])
            extra = [_plain(row) or {} for row in data["extra_fields"]]
            features = [row.get("reward_extra_info", {}) for row in extra]
            run, n_samples = run_of(self.config.algorithm), self.config.actor_rollout_ref.rollout.n
            added = consistency_of(batch.keys, features, run, n_samples)
            scores = [row.clone() for row in data["rm_scores"].unbind()]
            for row, value in zip(scores, added.tolist(), strict=True):
                row[-1:] += value
            nested = torch.nested.as_nested_tensor(scores, layout=torch.jagged)
            tq.kv_batch_put(**place, fields=TensorDict({"rm_scores": nested}, len(scores)))
            real = [not key.startswith(PADDING) for key in batch.keys]
            metrics["unswayed/consistency_reward"] = float(added[real].mean())
            return super()._compute_advantage(batch, metrics)

    return register_trainer(MODE)(GroupTrainer)


def _plain(value: Any) -> Any:
    """Return the data of a tensordict that are not tensors."""
    return getattr(value, "data", value)
