"""Rewards and advantages of PA-GRPO: pure functions of blocks of shape (..., P, N), in float64.

P presentations of one item, N samples of each; leading axes, if any, are items. A choice is a
candidate or UNPARSED (-1), so presentations are compared by content and never by label. Every
training engine calls these functions and nothing else, and `tests/training/golden.json` holds
them to the same numbers.

    r = r_acc + r_len + r_fmt + lam * r_con                          (Eq. 6-7)
    A = (r - mean) / (sd + epsilon) over the group, 0 if sd < delta   (Eq. 11-12)

Source: PA-GRPO (arXiv 2603.21016), section 3. The paper leaves ddof, epsilon, delta and the length
band open; the defaults here are those of the library its authors trained with (ddof 1, epsilon
1e-6), delta 1e-6, and the band of their code. Where their released code departs from the paper it
is not followed: rewards here belong to a whole response (theirs are averaged over padded tokens,
so a response's length changes every advantage of its group), samples are paired by an explicit key
(theirs by order of appearance), the consistency of more than two presentations pools all P * N
samples (theirs goes column by column, here `consistency="columnwise"`), the delta gate exists
(theirs floors the variance and clamps advantages to 5), and an unparsed answer is inconsistent
(theirs leaves the whole pair out).
"""

from unswayed.training.rewards.blocks import (
    BoolArray,
    FloatArray,
    IntArray,
    SampleKey,
    block_rows,
    right_mask,
)
from unswayed.training.rewards.consistency import (
    columnwise_reward,
    consistency_reward,
    invariance_reward,
)
from unswayed.training.rewards.response import accuracy_reward, format_reward, length_reward
from unswayed.training.rewards.score import Rewards, Samples, score, weights

__all__ = [
    "BoolArray",
    "FloatArray",
    "IntArray",
    "Rewards",
    "SampleKey",
    "Samples",
    "accuracy_reward",
    "block_rows",
    "columnwise_reward",
    "consistency_reward",
    "format_reward",
    "invariance_reward",
    "length_reward",
    "right_mask",
    "score",
    "weights",
]
