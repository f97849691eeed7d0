"""HANNA's scores of language models: six criteria per story, five judges with four prompts each.

A recorded score is the mean of up to three tries, so it is no level that a call chose: the scale of
an item has the values that occur in the files given, and each score is the one level it is. A try that
failed was averaged in as -1 by the project (a story may have 0.33, or -1): such scores are kept, because the
project's own figures contain them, and counted. One order was asked, so nothing is known about the
order of levels; what these files are for is the correlation with the mean of three raters, by criterion
(the group). Judges are named `<judge>/prompt<k>`. The file in its own form has one row per system, whose
cells are lists with one number per story; the same with one row per story is read too.

Source: dig-team/hanna-benchmark-asg, `hanna_metric_scores_llm.csv`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Final

import msgspec

from unswayed.decisions import Decision
from unswayed.importers.protocol import Entry, Importer, Judged, Record, Source
from unswayed.items import BadFieldError, Item, Task

CRITERIA: Final = {
    "RE": "Relevance",
    "CH": "Coherence",
    "EM": "Empathy",
    "SU": "Surprise",
    "EG": "Engagement",
    "CX": "Complexity",
}
LOWEST, HIGHEST = 1.0, 5.0
"""What a judge could have answered."""

MISSING: Final = "scores that were not recorded"
OUTSIDE: Final = "scores outside 1 to 5 (failed tries averaged in), kept"

_NAMES: Final = "|".join(CRITERIA)
_SCORE: Final = re.compile(
    rf"(?:(?P<long>.+)_p(?P<prompt>\d+)_(?P<of>{_NAMES}))|(?P<wide>.+) (?P<by>{_NAMES}) (?P<variant>\d+)"
)
_RATER: Final = re.compile(rf"(?:human(\d+)_|Human (\d+) )(?P<of>{_NAMES})")


class _Judgement(msgspec.Struct):
    story: str
    system: str
    criterion: str
    human: list[float]
    scores: dict[str, float | None]
    levels: list[float]


def _read(row: _Judgement, source: Source) -> Judged:
    """One criterion of one story: what the raters and all judges gave."""
    item = Item(
        id=f"hanna-{row.story}/{row.criterion}",
        task=Task.RUBRIC,
        prompt="",
        candidates=tuple(map(repr, row.levels)),
        values=tuple(row.levels),
        response="",
        gold=fmean(row.human) if row.human else None,
        group=row.criterion,
        meta={"system": row.system, "story": row.story, "raters": row.human},
    )
    order = tuple(range(item.n))
    labels = tuple(str(level + 1) for level in order)
    place = {value: level for level, value in enumerate(row.levels)}
    given = {judge: score for judge, score in row.scores.items() if score is not None}
    decisions = tuple(
        Decision(
            item_id=item.id,
            order=order,
            labels=labels,
            choice=place[score],
            model=judge,
        )
        for judge, score in given.items()
    )
    outside = sum(not LOWEST <= score <= HIGHEST for score in given.values())
    lacking = len(row.scores) - len(given)
    left_out = None if decisions else "no score was recorded"
    return Judged(item, decisions, left_out, (MISSING,) * lacking + (OUTSIDE,) * outside)


def _unfold(record: Record, source: Source) -> Iterator[Entry]:
    """The stories of a system whose cells are lists; a row of one story stays."""
    if "story_id" in record:
        yield source, record
        return
    cells = {name: _list(cell, name) for name, cell in record.items() if _is_read(name)}
    lengths = {len(cell) for cell in cells.values()}
    if len(lengths) != 1:
        raise BadFieldError("row", f"its lists have {sorted(lengths)} numbers")
    (n,) = lengths
    for k in range(n):
        story = {name: cell[k] for name, cell in cells.items()}
        yield source, {"system": record.get("Model"), "place": k, "of": n, **story}


def _join(files: Sequence[tuple[str, Iterator[Entry]]]) -> Iterator[Entry]:
    """One record per story and criterion, whose scale has every value that occurs in the files."""
    rows: list[Entry] = []
    for _, entries in files:
        first = 0
        for source, record in entries:
            if not isinstance(record, BadFieldError) and "story_id" not in record:
                first, record = _numbered(record, first)
            rows.append((source, record))
    judged = [entry for source, record in rows for entry in _by_criterion(source, record)]
    occurring = {score for scores in map(_scores, judged) for score in scores if score is not None}
    levels = sorted(occurring | {LOWEST, HIGHEST})
    for source, record in judged:
        yield source, {**record, "levels": levels} if isinstance(record, dict) else record


def _scores(entry: Entry) -> Iterable[float | None]:
    _, record = entry
    scores = {} if isinstance(record, BadFieldError) else record["scores"]
    return scores.values() if isinstance(scores, dict) else ()


def _numbered(record: Record, first: int) -> tuple[int, Record]:
    """A story of a wide file with its number there: systems follow each other."""
    place, n = record["place"], record["of"]
    assert isinstance(place, int)
    assert isinstance(n, int)
    after = first + n if place == n - 1 else first
    return after, {**record, "story_id": first + place}


def _by_criterion(
    source: Source, record: Record | BadFieldError
) -> Iterator[tuple[Source, dict[str, object] | BadFieldError]]:
    if isinstance(record, BadFieldError):
        yield source, record
        return
    try:
        scores: dict[str, dict[str, float | None]] = {name: {} for name in CRITERIA}
        raters: dict[str, list[float]] = {name: [] for name in CRITERIA}
        for name, cell in record.items():
            if match := _RATER.fullmatch(name):
                rating = _number(cell, name)
                if rating is not None:
                    raters[match["of"]].append(rating)
            elif match := _SCORE.fullmatch(name):
                judge = match["long"] or match["wide"]
                variant = match["prompt"] or match["variant"]
                scores[match["of"] or match["by"]][f"{judge}/prompt{variant}"] = _number(cell, name)
    except BadFieldError as error:
        yield source, error
        return
    for short, criterion in CRITERIA.items():
        if scores[short]:
            yield (
                source,
                {
                    "story": str(record["story_id"]),
                    "system": str(record.get("system")),
                    "criterion": criterion,
                    "human": raters[short],
                    "scores": scores[short],
                },
            )


def _is_read(name: str) -> bool:
    return bool(_RATER.fullmatch(name) or _SCORE.fullmatch(name))


def _list(cell: object, name: str) -> list[object]:
    text = re.sub(r"\b(nan|None)\b", "null", str(cell))
    try:
        return msgspec.json.decode(text, type=list[object])
    except (msgspec.DecodeError, RecursionError):
        raise BadFieldError(name, "is no list of numbers") from None


def _number(cell: object, name: str) -> float | None:
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    try:
        number = float(str(cell))
    except ValueError:
        raise BadFieldError(name, f"{cell!r} is no number") from None
    return number if math.isfinite(number) else None


def _detects(record: Record) -> bool:
    judged = any(_SCORE.fullmatch(name) for name in record)
    return judged and (record.keys() >= {"story_id", "human1_RE"} or "Human 1 RE" in record)


HANNA: Final = Importer(
    title="HANNA's model scores: six criteria per story, judges by prompt, with three raters.",
    detects=_detects,
    schema=_Judgement,
    read=_read,
    join=_join,
    unfold=_unfold,
)
