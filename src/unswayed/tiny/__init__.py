"""The built-in tiny judges: real language models small enough to ship, and the items they judge.

`items` holds their world (words, latent weights, generators), `answers` what they were trained on,
`formats` the two models, `train` the script that made the shipped weights, `forward` the same
models in numpy, `backend` the models `tiny/judge` and `tiny/rubric`.

What they are not: evidence about large models. Their bias was planted, as additive logits plus a
part that depends on the topic, which favours methods that divide out a prior; their answers are one
token without reasoning; and they know 121 and 129 words, so prompts that instruct them cannot be
tried on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["DEFAULT_SET", "SETS", "is_built_in", "judge_of", "sets_of"]

DEFAULT_SET: Final = "tiny-judge"

SETS: Final[Mapping[str, str]] = {
    "tiny-judge": "tiny/judge",
    "tiny-judge-train": "tiny/judge",
    "tiny-mcq": "tiny/judge",
    "tiny-mcq-train": "tiny/judge",
    "tiny-rubric": "tiny/rubric",
    "tiny-rubric-train": "tiny/rubric",
}
"""The built-in sets and who judges them unless told otherwise, told without loading any."""


def is_built_in(data: object) -> bool:
    """Return True if data are the name of a built-in set, or missing, which stands for `tiny-judge`."""
    return data is None or (isinstance(data, str | Path) and str(data) in SETS)


def judge_of(data: object) -> str:
    """Return the built-in model of a built-in set; None stands for `tiny-judge`."""
    return SETS[DEFAULT_SET if data is None else str(data)]


def sets_of(model: str) -> list[str]:
    """Return the built-in sets of a built-in model."""
    return [name for name, judge in SETS.items() if judge == model]
