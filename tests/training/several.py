"""One process of several, through the whole program: see `test_sharded.py` and `test_server.py`.

Two things are replaced because there is no GPU. accelerate shards on accelerators only, and takes
gloo on CPUs for plain data parallelism: here it is told that they are devices. trl refuses to send
weights from a CPU: here its client is told that this is one of CUDA. Sharding, gathering, merging,
checkpoints, saving and the client's requests are those of torch, peft, accelerate and trl.
"""

import json
import os
import signal
import sys
from pathlib import Path


def announce_cpus_as_devices():
    from accelerate.state import PartialState
    from accelerate.utils import DistributedType

    begin = PartialState.__init__

    def begin_as_devices(self, *arguments, **keywords):
        begin(self, *arguments, **keywords)
        if self.distributed_type is DistributedType.MULTI_CPU:
            self.distributed_type = DistributedType.MULTI_GPU

    PartialState.__init__ = begin_as_devices


def announce_sender_as_cuda():
    for name in [name for name in sys.modules if name.partition(".")[0] == "trl"]:
        del sys.modules[name]  # it looked for vLLM when it was imported
    from trl.generation.vllm_client import VLLMClient

    join = VLLMClient.init_communicator
    VLLMClient.init_communicator = lambda self, device: join(self, device="cuda")


def check_shards(trainers):
    """Each process has held a part of every weight: what is asked for by variables was done."""
    from torch.distributed.tensor import DTensor

    weights = [weight for trainer in trainers for weight in trainer.model.parameters()]
    assert all(isinstance(weight, DTensor) for weight in weights)


def trace(*, scripted, stop_in):
    """Write down every batch; with `scripted`, a response depends on prompt and sample alone.

    In the step `stop_in` a SIGTERM comes to each process, as a launcher passes it on.

    Returns:
        The trainers, as they are built.
    """
    from traced import traced_class

    from unswayed.training import pa_grpo

    original, trainers = pa_grpo.trainer_class(), []

    class Kept(traced_class(original)):
        def __init__(self, **arguments):
            super().__init__(**arguments)
            trainers.append(self)

        def _generate_single_turn(self, prompt_ids, *rest):
            if self.state.global_step + 1 == stop_in:
                os.kill(os.getpid(), signal.SIGTERM)
            if not scripted:
                return super()._generate_single_turn(prompt_ids, *rest)
            tokenizer, first = self.processing_class, self.accelerator.process_index
            places = [first * len(prompt_ids) + at for at in range(len(prompt_ids))]
            answers = [
                "AB"[(sum(ids) + place % self.num_generations) % 2]
                for ids, place in zip(prompt_ids, places, strict=True)
            ]
            coded = tokenizer(answers, add_special_tokens=False)["input_ids"]
            return [[*ids, tokenizer.eos_token_id] for ids in coded], None

    pa_grpo.trainer_class = lambda: Kept
    return trainers


def main():
    model, out, settings_json = sys.argv[1:]
    settings = json.loads(settings_json)
    stop_in = settings.pop("stop_in", None)
    if "FSDP_VERSION" in os.environ:
        announce_cpus_as_devices()
    if settings.get("rollout_engine"):
        announce_sender_as_cuda()
    trainers = trace(scripted=settings.pop("scripted", False), stop_in=stop_in)
    from small_models import colour_items, small_recipe, small_run

    from unswayed.training.processes import joined

    n, sync_at_end = settings.pop("n", 2), settings.pop("sync_at_end", False)
    items = colour_items(settings.pop("items"), n=n)
    objective = settings.pop("objective", "pa-grpo")
    recipe = small_recipe(n, **settings)
    with joined(recipe):
        small_run(model, out, objective, items, recipe=recipe)
        if "FSDP_VERSION" in os.environ:
            check_shards(trainers)
        if sync_at_end:  # the server gets what was saved
            trainers[0].vllm_generation.sync_weights()
    batches = [batch for trainer in trainers for batch in trainer.trace]
    Path(out, f"rank{os.environ.get('RANK', '0')}.json").write_text(json.dumps(batches))


if __name__ == "__main__":
    main()
    os._exit(0)  # as the command ends each of several processes
