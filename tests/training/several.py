"""One process of several, through the whole program: see `run` in `test_sharded.py`.

Two things are replaced because there is no GPU. accelerate shards on accelerators only, and takes
gloo on CPUs for plain data parallelism: here it is told that they are devices. trl refuses to send
weights from a CPU: here its client is told that this is one of CUDA. Sharding, gathering, merging,
checkpoints, saving and the client's requests are those of torch, peft, accelerate and trl.
"""

import json
import math
import os
import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from unittest import mock


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


def record_answers(*, fails):
    """Write down the answers of every held-out check; with `fails`, the second process has none."""
    from unswayed.training import trl_answers, trl_engine

    answered = []

    def recorded(trainer, plan, prompts):
        tokenizer, poor = type(trainer.processing_class), fails and os.environ["RANK"] == "1"
        with mock.patch.object(tokenizer, "pad", run_out_of_memory) if poor else nullcontext():
            answered.append(trl_answers.answers_of(trainer, plan, prompts))
        return answered[-1]

    trl_engine.answers_of = recorded
    return answered


def run_out_of_memory(*_given, **_named):
    raise RuntimeError("out of memory\nand a long story")


def main():
    model, out, settings_json = sys.argv[1:]
    settings = json.loads(settings_json)
    sharded, stop_in = "FSDP_VERSION" in os.environ, settings.pop("stop_in", None)
    if sharded:
        announce_cpus_as_devices()
    if settings.get("rollout_engine"):
        announce_sender_as_cuda()
    trainers = trace(scripted=settings.pop("scripted", False), stop_in=stop_in)
    from small_models import small_plan

    from unswayed.training import trl_answers
    from unswayed.training.processes import joined
    from unswayed.training.run import train

    answered = record_answers(fails=settings.pop("fails", False))
    trl_answers.TOKENS = settings.pop("tokens", trl_answers.TOKENS)
    sync_at_end = settings.pop("sync_at_end", False)
    plan = small_plan(model, **settings)
    with joined(plan.recipe):
        result = train(plan, out)
        if sharded and not answered:  # answers need whole weights
            check_shards(trainers)
        if sync_at_end:  # the server gets what was saved
            trainers[0].vllm_generation.sync_weights()
    weights = [] if sharded else [w for t in trainers for w in t.model.state_dict().values()]
    record = {
        "batches": [batch for trainer in trainers for batch in trainer.trace],
        "weights": math.fsum(value.double().sum().item() for value in weights),
        "answered": answered,
        "steps": result.steps,
        "after": dict(result.after),
    }
    Path(out, f"rank{os.environ.get('RANK', '0')}.json").write_text(json.dumps(record))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # the threads of an open process group can abort Python as it shuts down
