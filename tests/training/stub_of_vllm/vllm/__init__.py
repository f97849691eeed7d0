"""The names that trl imports from vLLM, so that trl's client runs where vLLM cannot be installed.

Nothing here samples. The transfer of weights, NCCL in vLLM, is a file that `fake_vllm.py` reads.
"""

__version__ = "0.31.0"


class LLM:
    """vLLM in the training process: needs a GPU."""

    def __init__(self, **_arguments):
        raise NotImplementedError("colocated vLLM cannot be tested on a CPU")


class RequestOutput:
    """Named in trl's annotations."""


class SamplingParams:
    """Of colocated vLLM."""
