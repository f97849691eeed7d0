"""Group the prompts of a local model into passes: side by side, or as a tree.

Prompts of a group (presentations of one item) begin alike. Three forms give the same numbers:

- *plain*: every prompt is a row;
- *prefix*: what all begin with is read once, and each goes on from there by itself;
- *trie*: whatever any two of them begin with alike is read once. A small tree is one row of its
  own and trees of several items share a pass; a large one is walked: a trunk is read and kept, and
  what grows from it follows, until what is left is cheaper as one pass.

What the prompts of all groups begin with (system prompt, examples) is read once as well, and every group
goes on from there, where that is cheaper than to let groups share passes.

What is cheapest by predicted operations is taken, among what fits into the budget of memory. Prompts
are sorted within a group, so equal beginnings are adjacent. Nothing is timed: equal prompts of equal
models run alike.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from unswayed.backends.local_costs import PassCosts
from unswayed.backends.local_trees import shared_lengths

Form = Literal["plain", "prefix", "trie"]

WINDOW: Final = 4096
"""Queries taken at once, so that prompts of like length or beginning can share a batch."""

GAIN: Final = 0.9
"""A tree is taken if it costs at most this share of plain rows, by prediction; a beginning that all
groups share, if it costs at most this share of the groups by themselves."""

SPREAD: Final = 8
"""Over how many times its own tokens a beginning of all groups is spread before it is read again: a
batch is answered as a whole."""


class Step(NamedTuple):
    """One pass of a model over trees; see `Tree`."""

    # Which prompts of the batch each tree holds: from, up to. More than one only without a cache.
    trees: tuple[tuple[int, int], ...]
    kept: int = 0  # leading tokens of these prompts that are in the cache
    # where a beginning ends that is read and kept in the cache; 0 for prompts read to their ends,
    # whose last tokens are scored
    trunk: int = 0

    def moved(self, by: int) -> Step:
        """Return the same pass where prompts stand before these."""
        return self._replace(trees=tuple((begin + by, end + by) for begin, end in self.trees))


class PromptBatch(NamedTuple):
    """Prompts that run together."""

    rows: list[int]  # their indices; those of a tree in lexicographic order
    tokens: int  # that are read, padding left out
    memory: float  # most bytes that its passes are predicted to take at a time
    steps: tuple[Step, ...] = ()  # the passes that make up a tree; none where every prompt is a row

    @property
    def form(self) -> Form:
        """Form of sharing: nothing, one beginning, or every beginning."""
        if not self.steps:
            return "plain"
        trunks = sum(step.trunk > 0 for step in self.steps)
        alone = all(end - begin == 1 for step in self.steps for begin, end in step.trees)
        return "prefix" if alone and trunks == 1 else "trie"


def plan(
    prompts: Sequence[list[int]],
    groups: Sequence[Hashable],
    *,
    costs: PassCosts,
    cap: int,
    cap_apart: int,
    pads: bool,
    trees: bool,
) -> Iterator[PromptBatch]:
    """Every prompt in one batch.

    Prompts of one group are likely to begin alike (presentations of one item). A pass over one tree
    has at most `cap` tokens (a longer prompt runs alone), one over rows or several trees at most
    `cap_apart` padded ones. `pads` says whether prompts of different lengths may run together.
    """
    members: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    grown = [
        _tree(prompts, rows, costs, cap, cap_apart) if trees else _GroupTree(rows, 0, 0.0, False)
        for rows in members.values()
    ]
    if trees and len(grown) > 1 and (common := _from_one_trunk(prompts, grown, costs, cap)):
        yield from common
        return
    alone: list[int] = []
    whole: list[_GroupTree] = []
    for tree in grown:
        if not tree.shared:
            alone += tree.rows
        elif tree.steps:
            yield PromptBatch(tree.rows, tree.nodes, tree.memory, tree.steps)
        else:
            whole.append(tree)

    def memory(count: int, longest: int, *, masked: bool = False) -> float:
        return costs.memory(longest, masked=masked, rows=count, scored=count)

    def fits(count: int, longest: int, *, masked: bool = False) -> bool:
        return memory(count, longest, masked=masked) <= costs.budget

    nodes = [tree.nodes for tree in whole]
    for part in by_length(nodes, cap=cap_apart, fits=partial(fits, masked=True)):
        yield _together([whole[index] for index in part], costs)
    lengths = [len(prompts[row]) for row in alone]
    for part in by_length(lengths, cap=cap_apart, same=not pads, fits=fits):
        own = [lengths[index] for index in part]
        yield PromptBatch([alone[index] for index in part], sum(own), memory(len(own), max(own)))


def by_length(
    lengths: Sequence[int],
    *,
    cap: int,
    same: bool = False,
    fits: Callable[[int, int], bool] | None = None,
) -> Iterator[list[int]]:
    """Yield indices in batches of at most `cap` padded tokens (at least one each), longest first.

    `same` puts only equal lengths together; `fits` says whether so many rows of such a length do.
    """
    batch: list[int] = []
    longest = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        count = len(batch) + 1
        full = count * longest > cap or (fits is not None and not fits(count, longest))
        if batch and (full or (same and lengths[index] != longest)):
            yield batch
            batch = []
        if not batch:
            longest = lengths[index]
        batch.append(index)
    if batch:
        yield batch


class _GroupTree(NamedTuple):
    """Plan for reading one group."""

    rows: list[int]  # its prompts, in lexicographic order
    nodes: int  # tokens of its tree
    # operations that it takes, its share of the start-up cost of common passes included
    work: float
    shared: bool  # whether it is read as a tree; by rows otherwise
    memory: float = 0.0  # bytes of the largest pass of a walk
    # the passes of a walk; none for a tree that is one row of a pass, or for rows
    steps: tuple[Step, ...] = ()


def _tree(
    prompts: Sequence[list[int]], rows: list[int], costs: PassCosts, cap: int, cap_apart: int
) -> _GroupTree:
    """Return the cheapest tree of a group, or its rows where they are cheaper or nothing else fits."""
    growth, order = _Growth.of(prompts, rows, costs, cap)

    def share(tokens: int) -> float:
        """Return the start-up cost to count for prompts that share a pass; it falls to 0 at `cap_apart` tokens."""
        return costs.call * (1 - min(1.0, tokens / cap_apart))

    plain = sum(costs.work(length) - share(length) for length in growth.lengths)
    nodes = growth.nodes(0, len(order), 0)
    by_rows = _GroupTree(rows, nodes, plain, False)
    # no tree has fewer tokens: most groups that share little are done here
    if len(order) == 1 or nodes * costs.token > GAIN * plain:
        return by_rows
    whole = _INFINITE
    at_once = costs.memory(nodes, masked=True, scored=len(order))
    if nodes <= cap_apart and at_once <= costs.budget:
        whole = costs.work(nodes, masked=True) - share(nodes)
    walk = growth.cheapest(0, len(order), 0, 0)
    if min(whole, walk.work) > GAIN * plain:
        return by_rows
    if whole <= walk.work:
        return _GroupTree(order, nodes, whole, True)
    return _GroupTree(order, nodes, walk.work, True, walk.memory, walk.steps)


def _from_one_trunk(
    prompts: Sequence[list[int]], grown: Sequence[_GroupTree], costs: PassCosts, cap: int
) -> list[PromptBatch]:
    """Batches that read what all groups begin with once; none where that gains little or does not fit."""
    extremes = min(prompts), max(prompts)  # what these two share, all share
    trunk = min(shared_lengths(extremes)[1], min(map(len, prompts)) - 1)
    once = costs.work(trunk)
    bound = GAIN * sum(tree.work for tree in grown)
    # no walk reads fewer tokens: most windows are done here
    if not trunk or once + sum(tree.nodes - trunk for tree in grown) * costs.token > bound:
        return []
    kept = costs.memory(trunk, caches=True)
    if kept > costs.budget:
        return []
    batches: list[PromptBatch] = []
    work = 0.0
    for part in _spread(grown, trunk, max(cap, SPREAD * trunk)):
        rows, steps, memory = list[int](), [Step(((0, 1),), 0, trunk)], kept
        for tree in part:
            growth, order = _Growth.of(prompts, tree.rows, costs, cap)
            walk = growth.cheapest(0, len(order), trunk, trunk)
            steps += [step.moved(len(rows)) for step in walk.steps]
            rows += order
            work += walk.work
            memory = max(memory, walk.memory)
        work += once
        nodes = trunk + sum(tree.nodes - trunk for tree in part)
        batches.append(PromptBatch(rows, nodes, memory, tuple(steps)))
    return batches if work <= bound else []


def _spread(grown: Sequence[_GroupTree], trunk: int, tokens: int) -> Iterator[list[_GroupTree]]:
    """Yield groups in parts of at least so many tokens beyond a trunk; the last takes the rest."""
    part: list[_GroupTree] = []
    nodes = 0
    for tree in grown:
        part.append(tree)
        nodes += tree.nodes - trunk
        if nodes >= tokens:
            yield part
            part, nodes = [], 0
    if part:
        yield part


def _together(trees: Sequence[_GroupTree], costs: PassCosts) -> PromptBatch:
    """Trees of several groups in one pass."""
    ends = [0]
    for tree in trees:
        ends.append(ends[-1] + len(tree.rows))
    nodes = [tree.nodes for tree in trees]
    memory = costs.memory(max(nodes), masked=True, rows=len(trees), scored=ends[-1])
    rows = [row for tree in trees for row in tree.rows]
    return PromptBatch(rows, sum(nodes), memory, (Step(tuple(pairwise(ends))),))


_INFINITE: Final = float("inf")


class _Walk(NamedTuple):
    """Passes that read some prompts to their ends: all operations, and the bytes of the largest."""

    work: float
    memory: float
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class _Growth:
    """Ways to walk the tree of sorted prompts."""

    lengths: list[int]  # tokens of each
    shared: list[int]  # tokens that each shares with the one before it
    costs: PassCosts  # of the model
    cap: int  # most tokens of a pass over more than one prompt

    @classmethod
    def of(
        cls, prompts: Sequence[list[int]], rows: Sequence[int], costs: PassCosts, cap: int
    ) -> tuple[_Growth, list[int]]:
        """Return the growth of some prompts, and these in lexicographic order."""
        order = sorted(rows, key=lambda row: prompts[row])
        own = [prompts[row] for row in order]
        return cls([len(prompt) for prompt in own], shared_lengths(own), costs, cap), order

    def nodes(self, begin: int, end: int, kept: int) -> int:
        """Nodes of the tree of some prompts beyond a beginning."""
        return sum(self.lengths[begin:end]) - sum(self.shared[begin + 1 : end]) - kept

    def cheapest(self, begin: int, end: int, kept: int, held: int) -> _Walk:
        """Return the cheapest way to read some prompts.

        `kept` of their leading tokens are in the cache, and the caches that are kept meanwhile hold
        `held` tokens.
        """
        nodes, alone = self.nodes(begin, end, kept), end - begin == 1
        masked = not alone or kept > 0
        memory = self.costs.memory(
            nodes, kept, masked=masked, caches=kept > 0, scored=end - begin, held=held
        )
        work = _INFINITE
        if memory <= self.costs.budget and (alone or nodes <= self.cap):
            work = self.costs.work(nodes, kept, masked=masked)
        at_once = _Walk(work, memory, (Step(((begin, end),), kept),))
        if alone:
            return at_once
        trunk = min(*self.shared[begin + 1 : end], min(self.lengths[begin:end]) - 1)
        parts = [place for place in range(begin + 1, end) if self.shared[place] == trunk]
        if not parts:
            return at_once
        branched = self._branched(begin, end, kept, held, trunk, parts)
        return min(at_once, branched, key=lambda walk: walk.work)

    def _branched(
        self, begin: int, end: int, kept: int, held: int, trunk: int, parts: list[int]
    ) -> _Walk:
        """Walk the common beginning first, then each branch from there."""
        work, memory, steps = 0.0, 0.0, list[Step]()
        if trunk > kept:
            tokens, masked = trunk - kept, kept > 0
            memory = self.costs.memory(tokens, kept, masked=masked, caches=True, held=held)
            if memory > self.costs.budget:
                return _Walk(_INFINITE, memory, ())
            work = self.costs.work(tokens, kept, masked=masked)
            steps.append(Step(((begin, begin + 1),), kept, trunk))
            held += trunk
        for first, behind in pairwise([begin, *parts, end]):
            walk = self.cheapest(first, behind, trunk, held)
            work += walk.work
            memory = max(memory, walk.memory)
            steps += walk.steps
        return _Walk(work, memory, tuple(steps))
