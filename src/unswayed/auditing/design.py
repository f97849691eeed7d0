"""Assign questions to items: strata, views, folds and estimation sets.

An audit evaluates a method under every *view* of an item (each presentation of the coupled
protocol): the method stays a black box that sees the item relabelled, so the consistency of a
debiased judge is measured exactly as that of a plain one.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unswayed.auditing.settings import ESTIMATION_LIMIT, ESTIMATION_SHARE, FOLDS, AuditSettings
from unswayed.base.counts import plural
from unswayed.base.digests import digest
from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.base.registry import did_you_mean
from unswayed.calls import Question
from unswayed.methods import BASE, Method
from unswayed.methods.names import parse_method, spec_name
from unswayed.metrics.outcomes import Outcomes
from unswayed.metrics.recorded import answered, with_gold
from unswayed.model.decisions import BoolArray, DecisionTable, Subjects
from unswayed.model.decisions.clusters import Clusters
from unswayed.model.items import Item, ItemSet
from unswayed.model.presentation import (
    Ask,
    Presentation,
    Protocol,
    askable,
    label_symbols,
    presentations,
    settled_by,
    through,
)

FREE_CANDIDATES: Final = 4
"""Up to so many candidates `all` asks whatever its methods want: at most 37 calls per item."""

CALLS_PER_CANDIDATE: Final = 3
"""Questions about an item with more, to be scored; fitting and samples of each come on top."""


@dataclass(frozen=True, eq=False)
class Stratum:
    """Items with the same number of candidates, the ways they are shown, and what was answered."""

    n: int
    items: Sequence[Item]  # with gold
    # The presentations of each protocol; the coupled ones are the views. Those of `criteria` are
    # all the item's own, one for each rotation of the criteria.
    protocols: Mapping[Protocol, tuple[Presentation, ...]]
    folds: NDArray[np.int8]  # fold of each item, shape (I,)
    # items in estimation order (a seeded shuffle that does not change as data grow)
    rank: NDArray[np.intp]
    clusters: Clusters | None = None  # items of the same unit; None where no two share one
    group_by: str = "group"  # what names the group of an item; see `group_of`

    @property
    def views(self) -> tuple[Presentation, ...]:
        """The coupled presentations, the item's own first."""
        return self.protocols["coupled"]

    def protocol_asks(self, protocol: Protocol) -> tuple[Ask, ...]:
        """Return the single calls of a protocol."""
        shown = self.protocols[protocol]
        if protocol == "criteria":
            return tuple(Ask(own, turned=turn) for turn, own in enumerate(shown))
        return tuple(map(Ask, shown))

    @cached_property
    def subjects(self) -> Subjects:
        """The items as methods are given them, blind."""
        return Subjects.blind(self.items)

    @cached_property
    def unanswered(self) -> Outcomes:
        """The items with their gold, under no presentation yet."""
        joined = with_gold(
            self.items,
            shown=(),
            label_set=label_symbols(self.n),
            choices=np.empty((len(self.items), 0), dtype=np.int16),
            clusters=self.clusters,
        )
        if self.group_by == "group":
            return joined
        return replace(joined, groups=tuple(group_of(item, self.group_by) for item in self.items))

    @cached_property
    def table(self) -> DecisionTable:
        """The answers as columns, one for each question; there are none before `with_table`."""
        return DecisionTable.of(self.items, [])

    def with_table(self, table: DecisionTable) -> Stratum:
        """Return the stratum with its answers; what was made of its items is kept."""
        own = replace(self)
        own.__dict__.update(subjects=self.subjects, unanswered=self.unanswered, table=table)
        return own

    @cached_property
    def single_calls(self) -> Mapping[Protocol, Outcomes]:
        """Single calls under every presentation of each protocol."""
        return {
            protocol: answered(self.unanswered, self.table.select(self.protocol_asks(protocol)))
            for protocol in self.protocols
        }

    @property
    def permutable(self) -> BoolArray:
        """True for items that may be shown in other orders."""
        return self.subjects.permutable


def strata_of(
    items: Sequence[Item],
    *,
    orders: str,
    protocols: Iterable[Protocol],
    seed: int,
    group_by: str = "group",
) -> tuple[Stratum, ...]:
    """Group items by their number of candidates, fewest first; an error about a set of orders that
    does not exist for some number names an item.
    """
    named = tuple(protocols)
    turns: dict[int, int] = {}
    for item in items:
        turns[item.n] = max(turns.get(item.n, 0), len(item.criteria or ()))

    def shown(n: int, first: Item) -> dict[Protocol, tuple[Presentation, ...]]:
        try:
            return {
                # sorted, as those of recorded answers are
                p: tuple(sorted(presentations(orders, n, protocol=p, seed=seed)))
                * (turns[n] if p == "criteria" else 1)
                for p in named
            }
        except UnknownNameError:
            raise
        except UsageError as error:
            raise UsageError(f"{first.id}: {error}") from None

    return group_items(items, shown, seed=seed, group_by=group_by)


def group_items(
    items: Sequence[Item],
    shown: Callable[[int, Item], Mapping[Protocol, tuple[Presentation, ...]]],
    *,
    seed: int,
    group_by: str = "group",
) -> tuple[Stratum, ...]:
    """Strata with the presentations that `shown` gives for n candidates (and a first item)."""
    whole = items if isinstance(items, ItemSet) else ItemSet("", items, "")
    by_n: dict[int, list[int]] = defaultdict(list)
    for place, n in enumerate([item.n for item in whole.items]):
        by_n[n].append(place)
    strata = []
    for n, places in sorted(by_n.items()):
        members = tuple(whole.items[place] for place in places)
        marks = [digest(str(seed), whole.units[place]) for place in places]
        words = np.frombuffer(b"".join(marks), dtype=">u4").reshape(len(marks), -1)
        rank, clusters = _shuffled(members, marks, words)
        strata.append(
            Stratum(
                n=n,
                items=members,
                protocols=shown(n, members[0]),
                folds=(words[:, 0] % FOLDS).astype(np.int8),
                rank=rank,
                clusters=clusters,
                group_by=group_by,
            )
        )
    return tuple(strata)


def _shuffled(
    items: Sequence[Item], marks: Sequence[bytes], words: NDArray[np.uint32]
) -> tuple[NDArray[np.intp], Clusters | None]:
    """Items sorted by their marks, whose words are given as well, and those with the same mark."""
    first = words[:, 0].astype(np.uint64) << 32 | words[:, 1]
    rank = first.argsort(kind="stable")
    if (first[rank][1:] != first[rank][:-1]).all():
        return rank, None
    # the id orders duplicates, so that the order of the file does not matter
    named = list(zip(marks, [item.id for item in items], strict=True))
    order = sorted(range(len(items)), key=named.__getitem__)
    return np.array(order, dtype=np.intp), Clusters.of(marks)


def estimation_size(n_items: int, asked: int | None) -> int:
    """Items a fitted method learns from: what was asked for, else 20% and at most 200."""
    if asked is not None:
        return asked
    return min(ESTIMATION_LIMIT, max(1, round(ESTIMATION_SHARE * n_items)))


def estimation_rows(stratum: Stratum, *, size: int, fold: int | None) -> NDArray[np.intp]:
    """Return the first `size` permutable items in estimation order outside a fold (None: of all)."""
    allowed = stratum.permutable[stratum.rank]
    if fold is not None:
        allowed &= stratum.folds[stratum.rank] != fold
    return stratum.rank[allowed][:size]


def asks_under_views(method: Method, stratum: Stratum) -> tuple[Ask, ...]:
    """Every question the method may ask about an item under any view, distinct."""
    asked = method.asks(stratum.n)
    return tuple(dict.fromkeys(through(outer, ask) for outer in stratum.views for ask in asked))


def stratum_asks(stratum: Stratum, methods: Iterable[Method]) -> tuple[Ask, ...]:
    """Every distinct question about each item: all protocols, all methods, all views."""
    protocols = [ask for protocol in stratum.protocols for ask in stratum.protocol_asks(protocol)]
    asked = [ask for method in methods for ask in asks_under_views(method, stratum)]
    return tuple(dict.fromkeys([*protocols, *asked]))


def with_samples(asks: Iterable[Ask], samples: int | None) -> Iterator[Ask]:
    """Yield the calls behind questions: with `sampled:R` each needs R samples too."""
    for ask in asks:
        for sample in range(ask.sample, 1 + (ask.sample or samples or 0)):
            yield ask._replace(sample=sample)


def too_costly(
    methods: Mapping[str, Method], names: Set[str], strata: Iterable[Stratum], samples: int | None
) -> dict[str, str]:
    """Return the methods, in their order, for whose calls `all` has no room, each with the reason.

    What is named beside it, methods as well as protocols, is asked in any case and takes no room.
    """
    named = {spec_name(parse_method(name)) for name in {BASE, *names} - {"all"}}
    skipped: dict[str, str] = {}
    for own in (stratum for stratum in strata if stratum.n > FREE_CANDIDATES):
        asks = stratum_asks(own, [methods[name] for name in methods if name in named])
        asked = set(with_samples(asks, samples))
        room = (CALLS_PER_CANDIDATE * own.n - len(own.views)) * (1 + (samples or 0))
        for name, method in methods.items():
            added = set(with_samples(asks_under_views(method, own), samples)) - asked
            if len(added) > max(0, room):
                calls = plural(len(added), "call")
                reason = f"not part of --methods all for {own.n} candidates, because it adds {calls} per item"
                skipped.setdefault(name, f"{reason}; name it to run it")
            elif name not in skipped:
                room, asked = room - len(added), asked | added
    return skipped


def stratum_questions(stratum: Stratum, asks: Sequence[Ask]) -> Iterator[Question]:
    """Yield the questions about every item; one that may not be permuted is asked in its own order."""
    settled = all(ask.is_settled for ask in asks)
    for seen in stratum.subjects:
        for ask in asks if settled and seen.permutable else askable(seen, asks):
            yield Question(seen, ask)


def asked_rows(stratum: Stratum, asks: Iterable[Ask]) -> Iterator[tuple[Ask, NDArray[np.intp]]]:
    """Yield the same questions as `stratum_questions`, each with the rows of the items it is asked of.

    A question may come more than once.
    """
    subjects = stratum.subjects
    for ask in asks:
        alike = subjects.alike_by_content if ask.arranged == "content" else subjects.alike
        for (order, _, permutable), rows in alike.items():
            own = settled_by(ask, order, subjects[rows[0]])
            if permutable or own.as_given:
                yield own, rows


def estimation_questions(
    methods: Iterable[Method], stratum: Stratum, settings: AuditSettings
) -> Iterator[Question]:
    """List the questions for fitting, over all methods, folds and sizes; each question once.

    Every size is planned by itself: a method may ask about its estimation set as a whole (random
    texts of its average length), so that a smaller set is not a part of a larger one.
    """
    asked: set[tuple[str, Ask]] = set()
    usual = estimation_size(len(stratum.items), settings.estimation_items)
    sizes = (usual, *settings.estimation_sizes)
    for size, fold in itertools.product(dict.fromkeys(sizes), range(FOLDS)):
        rows = estimation_rows(stratum, size=size, fold=fold)
        chosen = [stratum.subjects[row] for row in rows]
        for method in methods:
            for item, ask in method.plan_fit(chosen):
                if (item.id, ask) not in asked:
                    asked.add((item.id, ask))
                    yield Question(item, ask)


def check_group_by(items: Sequence[Item], group_by: str) -> None:
    """Check that items have the field they are to be grouped by, before any call is made."""
    if group_by == "group" or any(group_of(item, group_by) is not None for item in items):
        return
    if group_by == "criterion":
        raise UsageError("--group-by criterion: the items have no criteria. Leave it out.")
    fields = {f"meta.{name}" for item in items for name in item.meta}
    end = did_you_mean(group_by, fields) if fields else "The items have no meta fields."
    raise UsageError(f"--group-by {group_by}: no item has this field. {end}")


def group_of(item: Item, group_by: str) -> str | None:
    """Return the group of an item: its `group`, its `criterion`, or a field of `meta` as `meta.source`."""
    if group_by == "group":
        return item.group
    if group_by == "criterion":
        return item.criterion
    if group_by.startswith("meta."):
        value: object = item.meta
        for part in group_by.split(".")[1:]:
            value = value.get(part) if isinstance(value, dict) else None
        return None if value is None else str(value)
    raise UsageError(
        f"--group-by {group_by!r}: give group, criterion, or meta.FIELD such as meta.source."
    )
