"""Blocks of P presentations x N samples: their shapes, their keys, what is counted in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unswayed.base.errors import ShapeError
from unswayed.model.decisions import UNPARSED

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class SampleKey(NamedTuple):
    """Key of a batch row: item, presentation and sample."""

    item_id: str  # the item
    presentation: int  # index of the presentation, 0 to P-1
    sample: int  # index of the sample of that presentation, 0 to N-1


def right_mask(gold: Sequence[int], n: int) -> BoolArray:
    """Mark which of n candidates are right, shape (n,); `ShapeError` if there is none."""
    mask = np.zeros(n, dtype=np.bool_)
    for candidate in gold:
        if not 0 <= candidate < n:
            raise ShapeError(f"gold {candidate} is out of range: there are {n} candidates")
        mask[candidate] = True
    if not mask.any():
        raise ShapeError("gold names no candidate; training needs at least one right candidate")
    return mask


def block_rows(
    keys: Sequence[SampleKey], *, n_presentations: int, n_samples: int, whole: bool = True
) -> NDArray[np.intp]:
    """Return the rows of each item's samples in a batch, whatever the order of the batch.

    Shape (G, P, N), the G items in order of first appearance: `values[rows]` are blocks, and `out[rows] = blocks` puts results back in batch order. `ShapeError`
    names the item of a sample that is repeated, out of range or missing; unless groups have to be
    `whole`, the row of a missing sample is -1.
    """
    items: dict[str, int] = {}
    for key in keys:
        items.setdefault(key.item_id, len(items))
    rows = np.full((len(items), n_presentations, n_samples), -1, dtype=np.intp)
    for row, key in enumerate(keys):
        if not (0 <= key.presentation < n_presentations and 0 <= key.sample < n_samples):
            raise ShapeError(
                f"{key.item_id}: presentation {key.presentation}, sample {key.sample} is outside "
                f"a group of {n_presentations} presentations x {n_samples} samples"
            )
        place = (items[key.item_id], key.presentation, key.sample)
        if rows[place] >= 0:
            raise ShapeError(
                f"{key.item_id}: presentation {key.presentation}, sample {key.sample} is in the "
                "batch twice"
            )
        rows[place] = row
    missing = np.argwhere(rows < 0)
    if whole and len(missing):
        group, presentation, sample = (int(value) for value in missing[0])
        raise ShapeError(
            f"{tuple(items)[group]}: presentation {presentation}, sample {sample} is not in the "
            f"batch ({len(missing)} samples missing). A permutation group must stay whole."
        )
    return rows


def choices_of(choices: ArrayLike, n: int | None = None) -> IntArray:
    """Choices, candidates or UNPARSED, as integers of shape (..., P, N); without n in any range."""
    z = np.asarray(choices)
    if z.ndim < 2 or not np.issubdtype(z.dtype, np.integer):
        raise ShapeError(f"choices must be integers of shape (..., P, N), got {z.dtype}{z.shape}")
    if n is not None and z.size and (z.min() < UNPARSED or z.max() >= n):
        raise ShapeError(
            f"choices run from {z.min()} to {z.max()}; with {n} candidates they are 0 to {n - 1}, "
            f"or {UNPARSED} for unparsed"
        )
    return z.astype(np.int64, copy=False)


def named(choices: ArrayLike, n: int) -> BoolArray:
    """Mark the candidate that each sample names, shape (..., P, N, n); none for an unparsed one."""
    result: BoolArray = choices_of(choices, n)[..., None] == np.arange(n)
    return result


def elsewhere(
    values: FloatArray | BoolArray, axis: int = -2, *, reward: str = "this reward"
) -> FloatArray:
    """Return the mean over the other presentations, which lie along `axis`, of the same shape."""
    others = values.shape[axis] - 1
    if others < 1:
        raise ShapeError(f"{reward} needs at least 2 presentations, got {others + 1}.")
    result: FloatArray = (values.sum(axis=axis, keepdims=True) - values) / others
    return result
