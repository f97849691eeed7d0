"""Train with sharded weights (FSDP2): code needed beside its launch file.

None of it does torch, accelerate or trl by itself: gradients are summed over processes in float32;
adapters in float32 over weights in bfloat16 are trainable in the first pass; weights are sharded
when trl sends them to vLLM; and the result is saved whole.
"""

from __future__ import annotations

import dataclasses
from typing import Any


def settle_sharding(trainer: Any) -> None:
    """Prepare a trainer whose weights FSDP2 will shard; others are left alone."""
    if not trainer.is_fsdp_enabled or trainer.accelerator.state.fsdp_plugin.fsdp_version != 2:
        return
    import torch
    from transformers import TrainerCallback

    plugin = trainer.accelerator.state.fsdp_plugin
    if plugin.mixed_precision_policy is not None:
        plugin.mixed_precision_policy = dataclasses.replace(
            plugin.mixed_precision_policy, reduce_dtype=torch.float32
        )
    trainer.add_callback(type("ShardCallback", (ShardHooks, TrainerCallback), {}))


class ShardHooks:
    """Mixed into `transformers.TrainerCallback`: keeps FSDP2's weights as trl and peft expect them."""

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any, **_: Any) -> None:
        """Pass one token through the model, with its adapter on.

        FSDP2 settles in its first pass which dtype gradients have, by the parameters that are
        trainable then. trl's first pass may be that of the reference, for which peft switches the
        adapter off and its parameters to not trainable: then gradients in bfloat16 meet parameters
        in float32, and the first backward pass fails.
        """
        import torch

        with torch.no_grad():
            model(input_ids=torch.zeros((1, 1), dtype=torch.long, device=args.device))

    def on_step_begin(self, args: Any, state: Any, control: Any, model: Any, **_: Any) -> None:
        """Shard what a pass without gradients left whole.

        Head and embeddings stay whole after a pass, until a backward pass shards them again. trl
        takes weights that it sends to vLLM for sharded ones.
        """
        from torch.distributed.fsdp import FSDPModule

        for module in model.modules():
            if isinstance(module, FSDPModule):
                module.reshard()


def save_whole(trainer: Any, folder: str) -> None:
    """Save weights that can be read without the processes that trained them.

    Checkpoints under FSDP are sharded, for speed; a result saved so would be no model.
    """
    if trainer.is_fsdp_enabled:
        plugin = trainer.accelerator.state.fsdp_plugin
        plugin.state_dict_config = plugin.optim_state_dict_config = None
        plugin.set_state_dict_type("FULL_STATE_DICT")
    trainer.save_model(folder)
