"""HANNA: 1 056 stories, three raters, six criteria on a scale of one to five.

Three rows are one story. Gold is the mean of the raters for each criterion; their own scores are in
`meta.ratings`. The raters' forms named the levels in words of their own; these are neutral ones. Groups
are the criteria; `meta.system` is who wrote the story.

Source: Chhun et al., arXiv 2208.11646; dig-team/hanna-benchmark-asg, `hanna_stories_annotations.csv`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from unswayed.data.benchmarks.benchmark import Benchmark, Place
from unswayed.data.benchmarks.scale import LEVELS, VALUES
from unswayed.model.items import BadFieldError, Item, Task

CRITERIA: Final = ("Relevance", "Coherence", "Empathy", "Surprise", "Engagement", "Complexity")
RATERS: Final = 3


class _Rating(msgspec.Struct):
    story_id: int = msgspec.field(name="Story ID")
    prompt: str = msgspec.field(name="Prompt")
    story: str = msgspec.field(name="Story")
    model: str = msgspec.field(name="Model")
    relevance: float = msgspec.field(name="Relevance")
    coherence: float = msgspec.field(name="Coherence")
    empathy: float = msgspec.field(name="Empathy")
    surprise: float = msgspec.field(name="Surprise")
    engagement: float = msgspec.field(name="Engagement")
    complexity: float = msgspec.field(name="Complexity")

    @property
    def scores(self) -> tuple[float, ...]:
        """In the order of the criteria."""
        return (
            self.relevance,
            self.coherence,
            self.empathy,
            self.surprise,
            self.engagement,
            self.complexity,
        )


def _items(ratings: Sequence[_Rating], place: Place) -> Iterator[Item]:
    first = ratings[0]
    if len(ratings) != RATERS:
        raise BadFieldError(
            "Story ID", f"{first.story_id} has {len(ratings)} ratings, not {RATERS}"
        )
    if len({(rating.prompt, rating.story, rating.model) for rating in ratings}) > 1:
        raise BadFieldError("Story", f"the ratings of story {first.story_id} are of several texts")
    by_criterion = dict(
        zip(CRITERIA, zip(*(rating.scores for rating in ratings), strict=True), strict=True)
    )
    for name, scores in by_criterion.items():
        if not set(scores) <= set(VALUES):
            raise BadFieldError(name, f"{list(scores)} are not scores of 1 to 5")
    yield Item(
        id=f"hanna-{first.story_id}",
        task=Task.RUBRIC,
        prompt=f"Write a story for this prompt.\n\n{first.prompt}",
        response=first.story,
        candidates=LEVELS,
        values=VALUES,
        criteria=CRITERIA,
        gold={name: sum(scores) / RATERS for name, scores in by_criterion.items()},
        meta={
            "system": first.model,
            "prompt": first.prompt,
            "ratings": {name: list(scores) for name, scores in by_criterion.items()},
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
    items=_items,
    task="rubric",
    rows=3168,
    licence="MIT; prompts are those of WritingPrompts",
    paper="2208.11646",
    note="Rows are ratings: three of each story. Gold is their mean.",
)
