"""The built-in tiny judge: a real language model small enough to ship, and the items it judges.

`items` holds its world (words, latent weights, generators), `answers` what it was trained on,
`train` the script that made the shipped weights, `forward` the same model in numpy, `backend` the
model `tiny/judge`.

What it is not: evidence about large models. Its bias was planted, as additive logits plus a part
that depends on the topic, which favours methods that divide out a prior; its answers are one token
without reasoning; and it knows 121 words, so prompts that instruct it cannot be tried on it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["SETS", "is_built_in"]

SETS: Final = ("tiny-judge", "tiny-mcq", "tiny-judge-train", "tiny-mcq-train")
"""Names of the built-in sets, told without loading any."""


def is_built_in(data: object) -> bool:
    """Whether data are the name of a built-in set, or missing, which stands for `tiny-judge`."""
    return data is None or (isinstance(data, str | Path) and str(data) in SETS)
