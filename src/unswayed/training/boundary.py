"""The moment between two steps: what a step changes besides weights, optimiser and schedule."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from unswayed.training.processes import process_count


@dataclass(frozen=True, slots=True)
class Boundary:
    """The moment between two steps that a run can be resumed at."""

    step: int  # optimiser steps done
    random: dict[str, Any]  # state of this process's random numbers, as transformers keeps it
    # tokens, flos: what transformers counts as it goes
    tokens: float
    flos: float
    written: Any  # on a GPU, the event after which the weights are those of the step

    @classmethod
    def of(cls, trainer: Any, random: dict[str, Any]) -> Boundary:
        """The moment that a trainer is at, with the random numbers that the next step begins with."""
        import torch

        on_gpu = torch.cuda.is_available()
        return cls(
            step=trainer.state.global_step,
            random=random,
            tokens=trainer.state.num_input_tokens_seen,
            flos=trainer.current_flos,
            written=torch.cuda.current_stream().record_event() if on_gpu else None,
        )


def random_states() -> dict[str, Any]:
    """This process's random numbers, in the form in which transformers keeps them."""
    import numpy as np
    import torch

    states = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # the state that others draw from
        "cpu": torch.random.get_rng_state(),
    }
    if torch.cuda.is_available():
        cuda = torch.cuda.random
        states["cuda"] = cuda.get_rng_state_all() if process_count() > 1 else cuda.get_rng_state()
    return states
