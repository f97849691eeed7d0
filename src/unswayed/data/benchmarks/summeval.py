"""SummEval: 100 articles, 16 summaries each, the mean of three experts on four criteria.

A row is an article with all its summaries and, by criterion, their scores; scores are thirds. Consistency
and fluency are nearly constant: an article whose summaries all have the same score has no correlation
there, so such articles are left out of averages and counted, never NaN. Groups are the
criteria; the published summary-level correlation of one is the macro average of `summeval:coherence`
by `meta.article`.

Source: Fabbri et al., arXiv 2007.12626; `mteb/summeval`, where the experts are averaged already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, Place
from unswayed.data.benchmarks.scale import LEVELS, VALUES
from unswayed.model.items import BadFieldError, Item, Task

CRITERIA: Final = ("coherence", "consistency", "fluency", "relevance")


class _Row(msgspec.Struct):
    id: str
    text: str
    machine_summaries: list[str]
    human_summaries: list[str]
    coherence: list[float]
    consistency: list[float]
    fluency: list[float]
    relevance: list[float]


def _items(rows: Sequence[_Row], place: Place) -> Iterator[Item]:
    for row in rows:
        scores = dict(
            zip(CRITERIA, (row.coherence, row.consistency, row.fluency, row.relevance), strict=True)
        )
        for name, values in scores.items():
            if len(values) != len(row.machine_summaries):
                raise BadFieldError(
                    name, f"{len(values)} scores of {len(row.machine_summaries)} summaries"
                )
            if not all(VALUES[0] <= value <= VALUES[-1] for value in values):
                raise BadFieldError(name, "has scores that are not 1 to 5")
        for number, summary in enumerate(row.machine_summaries):
            yield Item(
                id=f"{row.id};{number}",
                task=Task.RUBRIC,
                prompt=f"Summarise this article.\n\n{row.text}",
                response=summary,
                candidates=LEVELS,
                values=VALUES,
                criteria=CRITERIA,
                gold={name: values[number] for name, values in scores.items()},
                reference=row.human_summaries[0] if row.human_summaries else None,
                meta={"article": row.id, "summary": number},
            )


SUMMEVAL: Final = Benchmark(
    title="Summaries of news scored by experts on four criteria.",
    hub="huggingface",
    repository="mteb/summeval",
    revision="cda12ad7615edc362dbf25a00fdd61d3b1eaf93c",
    files={"test": ("data/test-*.parquet",)},
    schema=_Row,
    items=_items,
    task="rubric",
    rows=100,
    licence="annotations MIT; articles are CNN/DailyMail's",
    paper="2007.12626",
    note="Rows are articles, with 16 summaries each. Gold is the mean of three experts.",
)
