"""Prompts that begin alike as one tree of tokens: each beginning is computed once.

The prompts of one item in every order share their question, and every two orders share what stands
before they part. In a tree each token sees its own ancestors alone, at the position it has in its
prompt, so every prompt's last hidden state is the one it has when read by itself. What the model is
given is the tokens depth first, their positions, and who sees whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def shared_lengths(prompts: Sequence[Sequence[int]]) -> list[int]:
    """Leading tokens that each prompt shares with the one before it; 0 for the first."""
    arrays = [np.asarray(prompt, dtype=np.int64) for prompt in prompts]
    lengths = [0] if arrays else []
    for before, prompt in pairwise(arrays):
        limit = min(len(before), len(prompt))
        differs = before[:limit] != prompt[:limit]
        lengths.append(int(differs.argmax()) if differs.any() else limit)
    return lengths


class Branch(NamedTuple):
    """The tokens that one prompt adds to a tree."""

    first: int  # its first node
    length: int  # its nodes, which follow each other
    ancestors: IntArray  # the nodes it grows from, those in the cache left out


@dataclass(frozen=True, slots=True)
class Tree:
    """Tokens of sorted prompts beyond a beginning that is in the cache."""

    kept: int  # leading tokens that are in the cache; every node sees them
    ids: IntArray  # tokens, depth first, shape (nodes,)
    positions: IntArray  # where each stands in its prompt, shape (nodes,)
    last: IntArray  # the node of each prompt's last token, shape (prompts,)
    branches: tuple[Branch, ...]  # of prompts that add something

    @classmethod
    def of(cls, prompts: Sequence[Sequence[int]], kept: int = 0) -> Tree:
        """Return the tree of prompts in lexicographic order, all alike up to `kept` tokens, which are left out."""
        path = np.zeros(max(map(len, prompts)), dtype=np.int64)
        ids: list[int] = []
        positions: list[IntArray] = []
        last: list[int] = []
        branches: list[Branch] = []
        for prompt, shared in zip(prompts, shared_lengths(prompts), strict=True):
            begin, end = max(shared, kept), len(prompt)
            if begin < end:
                branches.append(Branch(len(ids), end - begin, path[kept:begin].copy()))
                path[begin:end] = np.arange(len(ids), len(ids) + end - begin)
                positions.append(np.arange(begin, end))
                ids += prompt[begin:]
            last.append(int(path[end - 1]))
        return cls(kept, np.array(ids), np.concatenate(positions), np.array(last), tuple(branches))

    @property
    def is_chain(self) -> bool:
        """True if no two prompts part."""
        return self.kept + len(self.ids) == int(self.positions.max()) + 1

    def sees(self) -> NDArray[np.bool_]:
        """Mark the cached tokens and nodes that each node sees, shape (nodes, kept + nodes)."""
        nodes, kept = len(self.ids), self.kept
        sees = np.zeros((nodes, kept + nodes), dtype=np.bool_)
        sees[:, :kept] = True
        below = np.tri(max(branch.length for branch in self.branches), dtype=np.bool_)
        for first, length, ancestors in self.branches:
            own = slice(first, first + length)
            sees[own, kept + ancestors] = True
            sees[own, kept + first : kept + first + length] = below[:length, :length]
        return sees
