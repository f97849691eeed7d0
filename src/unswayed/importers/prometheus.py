"""Prometheus' rubric benchmarks with recorded scores of GPT-4: `mt_bench_eval.json` and the like.

A record holds the whole prompt, from which the question, the response, the reference answer and the
levels of the scale are read by their headings; a heading that is missing or occurs twice is refused,
since the texts between could be anything's. The scale is always shown from its lowest level to its
highest, each level behind its score, so the recorded scores are repetitions in one order: they tell
how far GPT-4 agrees with itself, and nothing about the order of the levels. There are no human
scores. The question that the scale asks goes into `meta.criterion`.

Source: prometheus-eval/prometheus-eval, `eval/benchmark/data/{mt_bench,vicuna}_eval.json`.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from unswayed.decisions import Decision
from unswayed.importers.protocol import Importer, Judged, Source, has, short_name
from unswayed.items import BadFieldError, Item, Task

MODEL: Final = "gpt-4"
QUESTION: Final = "The instruction to evaluate"
RESPONSE: Final = "Response to evaluate"
REFERENCE: Final = "Reference Answer"
SCALE: Final = "Score Rubric"

_HEADING: Final = re.compile(
    rf"^###\s*({QUESTION}|{RESPONSE}|{REFERENCE}|{SCALE}|Feedback)s?\b[^\n:]*:", re.MULTILINE
)
_LEVEL: Final = re.compile(r"^Score (-?\d+(?:\.\d+)?):", re.MULTILINE)


class _Row(msgspec.Struct):
    instruction: str
    gpt4_score: list[float | None]
    gpt4_feedback: list[str | None] = []
    idx: int | str | None = None
    response_source: str | None = None
    category: str | None = None


def _read(row: _Row, source: Source) -> Judged:
    """One response and the scores that it was given."""
    parts = _parts(row.instruction)
    criterion, levels = _scale(parts[SCALE])
    number = source.number if row.idx is None else row.idx
    name = "-".join(filter(None, (short_name(source.file), str(number), row.response_source)))
    item = Item(
        id=name,
        task=Task.RUBRIC,
        prompt=parts[QUESTION],
        candidates=tuple(levels.values()),
        values=tuple(map(float, levels)),
        response=parts[RESPONSE],
        reference=parts.get(REFERENCE),
        group=row.category,
        meta={"criterion": criterion, "response_source": row.response_source},
    )
    decisions = tuple(
        Decision(
            item_id=name,
            order=tuple(range(item.n)),
            labels=tuple(levels),
            label_set=tuple(levels),
            sample=sample,
            choice=_level(item, score, f"gpt4_score[{sample}]"),
            text=row.gpt4_feedback[sample] if sample < len(row.gpt4_feedback) else None,
            model=MODEL,
        )
        for sample, score in enumerate(row.gpt4_score)
    )
    return Judged(item, decisions, left_out=None if decisions else "no score was recorded")


def _level(item: Item, score: float | None, field: str) -> int | None:
    """The level that has this score; None where none was recorded."""
    values = item.values or ()
    if score is None:
        return None
    if score not in values:
        scale = ", ".join(f"{value:g}" for value in values)
        raise BadFieldError(field, f"{score:g} is no score of the scale ({scale})")
    return values.index(score)


def _parts(instruction: str) -> dict[str, str]:
    """The texts of a prompt by their headings."""
    headings = list(_HEADING.finditer(instruction))
    ends = [*(heading.start() for heading in headings[1:]), len(instruction)]
    parts: dict[str, str] = {}
    for heading, end in zip(headings, ends, strict=False):  # without headings an end is left
        name = heading[1]
        if name in parts:
            raise BadFieldError("instruction", f"has two headings {name!r}: the texts are unclear")
        parts[name] = instruction[heading.end() : end].strip()
    lacking = [name for name in (QUESTION, RESPONSE, SCALE) if name not in parts]
    if lacking:
        raise BadFieldError("instruction", f"has no heading '###{lacking[0]}:'")
    return parts


def _scale(text: str) -> tuple[str, dict[str, str]]:
    """The question that a scale asks, and its descriptions by score as written."""
    starts = list(_LEVEL.finditer(text))
    if len(starts) < 2:
        raise BadFieldError("instruction", f"its scale has {len(starts)} lines such as 'Score 1:'")
    ends = [*(start.start() for start in starts[1:]), len(text)]
    levels = {
        start[1]: text[start.end() : end].strip() for start, end in zip(starts, ends, strict=True)
    }
    if len(levels) < len(starts):
        raise BadFieldError("instruction", "its scale describes one score twice")
    return text[: starts[0].start()].strip().removeprefix("[").removesuffix("]"), levels


PROMETHEUS: Final = Importer(
    title="Prometheus' rubric benchmarks: responses on scales, with repeated scores of GPT-4.",
    detects=has("instruction", "gpt4_score"),
    schema=_Row,
    read=_read,
)
