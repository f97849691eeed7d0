"""Benchmarks of texts that humans scored on a scale of five levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, Place
from unswayed.model.items import BadFieldError, Item, Task

LEVELS: Final = ("Very low", "Low", "Medium", "High", "Very high")
VALUES: Final = (1.0, 2.0, 3.0, 4.0, 5.0)
"""Values of the levels, in the same order."""

# HANNA: 1 056 stories, three raters, six criteria on a scale of one to five. Three rows are one story. Gold is the
# mean of the raters for each criterion; their own scores are in `meta.ratings`. The raters' forms named the levels in
# words of their own; these are neutral ones. Groups are the criteria; `meta.system` is who wrote the story.
# Source: Chhun et al., arXiv 2208.11646; dig-team/hanna-benchmark-asg, `hanna_stories_annotations.csv`.

_QUALITIES: Final = ("Relevance", "Coherence", "Empathy", "Surprise", "Engagement", "Complexity")
_RATERS: Final = 3


class _Rating(msgspec.Struct, rename=str.title):
    story_id: int = msgspec.field(name="Story ID")
    prompt: str
    story: str
    model: str
    relevance: float
    coherence: float
    empathy: float
    surprise: float
    engagement: float
    complexity: float


def _hanna(ratings: Sequence[_Rating], place: Place) -> Iterator[Item]:
    first = ratings[0]
    if len(ratings) != _RATERS:
        raise BadFieldError(
            "Story ID", f"{first.story_id} has {len(ratings)} ratings, not {_RATERS}"
        )
    if len({(rating.prompt, rating.story, rating.model) for rating in ratings}) > 1:
        raise BadFieldError("Story", f"the ratings of story {first.story_id} are of several texts")
    by_criterion = {
        name: [getattr(rating, name.lower()) for rating in ratings] for name in _QUALITIES
    }
    for name, scores in by_criterion.items():
        if not set(scores) <= set(VALUES):
            raise BadFieldError(name, f"{scores} are not scores of 1 to 5")
    yield Item(
        id=f"hanna-{first.story_id}",
        task=Task.RUBRIC,
        prompt=f"Write a story for this prompt.\n\n{first.prompt}",
        response=first.story,
        candidates=LEVELS,
        values=VALUES,
        criteria=_QUALITIES,
        gold={name: sum(scores) / _RATERS for name, scores in by_criterion.items()},
        meta={
            "system": first.model,
            "prompt": first.prompt,
            "ratings": by_criterion,
        },
    )


HANNA: Final = Benchmark(
    title="Stories scored by three raters on six criteria.",
    hub="github",
    repository="dig-team/hanna-benchmark-asg",
    revision="41a8056161f39918dad0efff8eb1a037d2cba66b",
    files={"stories": ("hanna_stories_annotations.csv",)},
    schema=_Rating,
    key=lambda rating: rating.story_id,
    items=_hanna,
    task="rubric",
    rows=3168,
    licence="MIT; prompts come from WritingPrompts",
    paper="2208.11646",
    note="Rows are ratings: three of each story. Gold is their mean.",
)

# SummEval: 100 articles, 16 summaries each, the mean of three experts on four criteria. A row is an article with all
# its summaries and, by criterion, their scores; scores are thirds. Consistency and fluency are nearly constant: an
# article whose summaries all have the same score has no correlation there, so such articles are left out of averages
# and counted, never NaN. Groups are the criteria; the published summary-level correlation of one is the macro average
# of `summeval:coherence` by `meta.article`.
# Source: Fabbri et al., arXiv 2007.12626; `mteb/summeval`, where the experts are averaged already.

_CRITERIA: Final = ("coherence", "consistency", "fluency", "relevance")


class _Article(msgspec.Struct):
    id: str
    text: str
    machine_summaries: list[str]
    human_summaries: list[str]
    coherence: list[float]
    consistency: list[float]
    fluency: list[float]
    relevance: list[float]


def _summeval(rows: Sequence[_Article], place: Place) -> Iterator[Item]:
    for row in rows:
        scores: dict[str, list[float]] = {name: getattr(row, name) for name in _CRITERIA}
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
                criteria=_CRITERIA,
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
    schema=_Article,
    items=_summeval,
    task="rubric",
    rows=100,
    licence="annotations MIT; articles are CNN/DailyMail's",
    paper="2007.12626",
    note="Rows are articles, with 16 summaries each. Gold is the mean of three experts.",
)
