"""SummEval as scored by a model: G-Eval's result files, one criterion per file, twenty samples per summary.

A record has the experts' means (`scores`), the summary and `all_responses`, the model's replies to one
prompt; each reply is a sample, its level the number that it begins with. The project averages the
replies and counts one without a number as 0, below the scale: here it is unparsed. Fluency is asked for on
1 to 3 while experts rate it on 1 to 5, so only correlations compare the two. Which criterion a file is about
stands in its prompt (or its name: `coh`, `con`, `flu`, `rel`), nowhere else. One order was asked.

Source: nlpyang/geval, `results/gpt4_{coh,con,flu,rel}_detailed.json`; experts: Yale-LILY/SummEval.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from unswayed.decisions import Decision
from unswayed.importers.protocol import Importer, Judged, Source, has, short_name
from unswayed.items import BadFieldError, Item, Task

CRITERIA: Final = {
    "coh": "coherence",
    "con": "consistency",  # of a summary with its document
    "flu": "fluency",
    "rel": "relevance",
}
HIGHEST: Final = {"flu": 3}
"""The top of the scale that is asked for, where it is not 5 and no prompt says it."""

_NAMES: Final = "|".join(name.capitalize() for name in CRITERIA.values())
_ASKED: Final = re.compile(rf"\b({_NAMES})\b(?:\s*\(1\s*-\s*(\d)\))?")
_FORM: Final = re.compile(rf"^\s*-\s*({_NAMES})\b", re.MULTILINE)
_LEVEL: Final = re.compile(
    rf"[\s*-]*(?:(?:{_NAMES})\s*(?:\([^)]*\))?[^\d\n]{{0,24}})?(\d+(?:\.\d+)?)(?!\d)", re.IGNORECASE
)


class _Row(msgspec.Struct):
    doc_id: str
    system_id: str
    system_output: str
    all_responses: list[Any]
    source: str = ""
    reference: Any = None
    scores: dict[str, float | None] = {}
    prompt: str = ""


def _read(row: _Row, source: Source) -> Judged:
    """One summary and the replies about it."""
    short, highest = _criterion(row, source)
    criterion = CRITERIA[short]
    levels = tuple(range(1, highest + 1))
    item = Item(
        id=f"{row.doc_id}/{row.system_id}/{criterion}",
        task=Task.RUBRIC,
        prompt=row.source,
        candidates=tuple(map(str, levels)),
        values=tuple(map(float, levels)),
        response=row.system_output,
        reference=row.reference if isinstance(row.reference, str) else None,
        gold=row.scores.get(criterion),
        group=criterion,
        meta={"document": row.doc_id, "system": row.system_id},
    )
    labels = tuple(map(str, levels))
    decisions = tuple(
        Decision(
            item_id=item.id,
            order=tuple(range(item.n)),
            labels=labels,
            sample=sample,
            choice=_level(reply, levels),
            text=reply if isinstance(reply, str) else None,
            model=short_name(source.file).partition(f"_{short}")[0],
        )
        for sample, reply in enumerate(row.all_responses)
    )
    return Judged(item, decisions, left_out=None if decisions else "no reply was recorded")


def _criterion(row: _Row, source: Source) -> tuple[str, int]:
    """What was asked, and the highest level of its scale."""
    shorts = {name.capitalize(): short for short, name in CRITERIA.items()}
    forms = _FORM.findall(row.prompt)
    named = [part for part in short_name(source.file).split("_") if part in CRITERIA]
    if forms:
        short = shorts[forms[-1]]
    elif named:
        short = named[0]
    else:
        raise BadFieldError(
            "prompt", "names no criterion, and neither does the file's name (_coh_, _flu_, ...)"
        )
    scales = [
        int(highest)
        for name, highest in _ASKED.findall(row.prompt)
        if highest and shorts[name] == short
    ]
    return short, scales[0] if scales else HIGHEST.get(short, 5)


def _level(reply: object, levels: tuple[int, ...]) -> int | None:
    """The level that a reply begins with."""
    match = _LEVEL.match(str(reply))
    value = float(match[1]) if match else 0.0
    return levels.index(int(value)) if value in levels else None


SUMMEVAL: Final = Importer(
    title="SummEval scored by a model (G-Eval results): replies as samples, experts' means as gold.",
    detects=has("doc_id", "system_id", "system_output", "all_responses"),
    schema=_Row,
    read=_read,
)
