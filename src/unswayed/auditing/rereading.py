"""Read recorded calls again under newer rules and count the verdicts that change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from unswayed.auditing.comparison import load_answers
from unswayed.auditing.records import Reread
from unswayed.base.counts import plural
from unswayed.base.errors import RunDirectoryError
from unswayed.calls import Caller, CallPlan, Question
from unswayed.model.decisions import MISSING, UNPARSED, Decision, code_of
from unswayed.model.parsing import READER
from unswayed.model.presentation import Ask, Presentation
from unswayed.store import Pool


def reread(caller: Caller, questions: Iterable[Question], directory: Path | None) -> Reread | None:
    """Read calls that older rules read once more, before any new call is made.

    Return the changes against the single calls that the directory keeps. Return None if the present
    rules have read the calls already, or there is nothing to compare.
    """
    store = caller.pool
    if directory is None or store.noted("reader") == str(READER):
        return None
    changes = None
    if store.totals().calls:
        store.index()
        changes = _compared(caller.read(questions), directory)
    if not store.read_only:
        store.note("reader", str(READER))
        if changes is not None:
            store.note("reread", msgspec.json.encode(changes).decode())
    return changes


def changes_of(store: Pool) -> Reread | UnsetType:
    """Return the changes that `reread` noted for these calls, if any."""
    noted = store.noted("reread")
    try:
        return UNSET if noted is None else msgspec.json.decode(noted, type=Reread)
    except msgspec.MsgspecError:  # a damaged note
        return UNSET


def said(changes: Reread | None, priced: CallPlan, *, reask: bool) -> tuple[str, ...]:
    """Describe changed verdicts and the calls that ask again; empty if no verdict changed."""
    changed = changes and changes.now_unread + changes.now_read + changes.to_another
    if not changes or not changed:
        return ()
    sentence = (
        f"Newer reading rules changed {changed:,} of {plural(changes.of, 'verdict')} "
        f"({changes.now_unread:,} now unparsed, {changes.now_read:,} now read, "
        f"{changes.to_another:,} to another label)."
    )
    if not reask or not priced.n_reasks:
        return (sentence,)
    most = priced.most_reasks_usd
    calls = f"{plural(priced.n_reasks, 'call')}{'' if most is None else f', at most ${most:,.2f}'}"
    return (f"{sentence} Asking again takes {calls}. Add --no-reask to leave replies unparsed.",)


def _compared(decisions: Iterable[Decision], directory: Path) -> Reread | None:
    try:
        parts = load_answers(directory)
    except RunDirectoryError:  # no run was finished in it
        parts = ()
    before = {
        item_id: dict(zip(map(Ask, map(Presentation, part.orders, part.labels)), row, strict=True))
        for part in parts
        for item_id, row in zip(part.item_ids, part.choices, strict=True)
    }
    counts: Counter[str] = Counter()
    for decision in decisions if before else ():
        old = before.get(decision.item_id, {}).get(decision.ask, MISSING)
        new = code_of(decision.choice)
        counts["of"] += old != MISSING
        if old not in (MISSING, new):
            read = "now_read" if old == UNPARSED else "to_another"
            counts["now_unread" if new == UNPARSED else read] += 1
    return Reread(**counts) if counts["of"] else None
