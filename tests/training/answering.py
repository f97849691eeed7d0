"""One process of several that answers held-out prompts while it trains: see `test_answers.py`.

accelerate shards on accelerators only; here it takes gloo processes on CPUs for them, and all else
(sharding, gathering, generating) is that of torch, accelerate and transformers.
"""

import json
import os
import sys
from functools import partial
from pathlib import Path

from several import announce_cpus_as_devices


def failing_on_one(answers_of, trainer, plan, prompts, *, greedy):
    """Answers for which memory runs out on the second process, before its first forward pass."""
    if os.environ["RANK"] == "1":

        class Poor(type(trainer.processing_class)):
            def pad(self, *arguments, **keywords):
                raise RuntimeError("out of memory\nand a long story")

        trainer.processing_class.__class__ = Poor
    try:
        return answers_of(trainer, plan, prompts, greedy=greedy)
    finally:
        if os.environ["RANK"] == "1":
            trainer.processing_class.__class__ = trainer.processing_class.__class__.__mro__[1]


def main():
    model, out, settings_json = sys.argv[1:]
    settings = json.loads(settings_json)
    if settings.pop("sharded", False):
        announce_cpus_as_devices()
    fails = settings.pop("fails", False)
    from small_models import small_plan

    from unswayed.training import trl_answers, trl_engine
    from unswayed.training.run import train

    trl_answers.TOKENS = settings.pop("tokens", trl_answers.TOKENS)
    answered = []
    original = trl_answers.answers_of
    asking = partial(failing_on_one, original) if fails else original

    def recorded(trainer, plan, prompts, *, greedy):
        answers = asking(trainer, plan, prompts, greedy=greedy)
        answered.append(answers)
        return answers

    trl_engine.answers_of = recorded
    plan = small_plan(model, **settings)
    result = train(plan, out)
    record = {"answered": answered, "steps": result.steps, "after": dict(result.after)}
    Path(out, f"rank{os.environ.get('RANK', '0')}.json").write_text(json.dumps(record))
    sys.stdout.flush()
    os._exit(0)  # the threads of an open process group can abort Python as it shuts down


if __name__ == "__main__":
    main()
