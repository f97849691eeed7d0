"""Formats of texts that were scored on a scale, in one order; why each is read so stands above it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from statistics import fmean
from typing import Any, Final

import msgspec

from unswayed.data.importers.protocol import (
    Entry,
    Part,
    Record,
    Source,
    changed,
    decision,
    importer,
    short_name,
)
from unswayed.model.items import BadFieldError, Item, Task

# Prometheus' rubric benchmarks with recorded scores of GPT-4 (`mt_bench_eval.json` and the like): a record holds the whole
# prompt, from which the question, the response, the reference answer and the levels of the scale are read by their headings;
# a heading that is missing or occurs twice is refused, since the texts between could be anything's. The scale is always
# shown from its lowest level to its highest, each level behind its score, so the recorded scores are repetitions in one
# order: they tell how far GPT-4 agrees with itself, and nothing about the order of the levels. There are no human scores.
# The question that the scale asks goes into `meta.criterion`.
# Source: prometheus-eval/prometheus-eval, `eval/benchmark/data/{mt_bench,vicuna}_eval.json`.

_QUESTION: Final = "The instruction to evaluate"
_RESPONSE: Final = "Response to evaluate"
_REFERENCE: Final = "Reference Answer"
_SCALE: Final = "Score Rubric"

_HEADING: Final = re.compile(
    rf"^###\s*({_QUESTION}|{_RESPONSE}|{_REFERENCE}|{_SCALE}|Feedback)s?\b[^\n:]*:", re.MULTILINE
)
_SCORED_LINE: Final = re.compile(r"^Score (-?\d+(?:\.\d+)?):", re.MULTILINE)


class _Prometheus(msgspec.Struct):
    instruction: str
    gpt4_score: list[float | None]
    gpt4_feedback: list[str | None] = []
    idx: int | str | None = None
    response_source: str | None = None
    category: str | None = None


def _prometheus(row: _Prometheus, source: Source) -> Iterator[Part]:
    parts = _parts(row.instruction)
    criterion, levels = _scale(parts[_SCALE])
    number = source.number if row.idx is None else row.idx
    values = tuple(map(float, levels))
    item = Item(
        id="-".join(filter(None, (short_name(source.file), str(number), row.response_source))),
        task=Task.RUBRIC,
        prompt=parts[_QUESTION],
        candidates=tuple(levels.values()),
        values=values,
        response=parts[_RESPONSE],
        reference=parts.get(_REFERENCE),
        group=row.category,
        unit=None if row.idx is None else f"{short_name(source.file)}-{row.idx}",
        meta={"criterion": criterion, "response_source": row.response_source},
    )
    yield item
    for sample, score in enumerate(row.gpt4_score):
        if score is not None and score not in values:
            scale = ", ".join(f"{value:g}" for value in values)
            raise BadFieldError(
                f"gpt4_score[{sample}]", f"{score:g} is not a score of the scale ({scale})"
            )
        yield decision(
            item,
            tuple(range(item.n)),
            tuple(levels),
            sample=sample,
            choice=None if score is None else values.index(score),
            text=row.gpt4_feedback[sample] if sample < len(row.gpt4_feedback) else None,
            model="gpt-4",
        )


def _parts(instruction: str) -> dict[str, str]:
    _, sections = _sections(_HEADING, instruction)
    parts = dict(sections)
    if len(parts) < len(sections):
        ((name, _),) = Counter(name for name, _ in sections).most_common(1)
        raise BadFieldError("instruction", f"has two headings {name!r}: the texts are unclear")
    lacking = [name for name in (_QUESTION, _RESPONSE, _SCALE) if name not in parts]
    if lacking:
        raise BadFieldError("instruction", f"has no heading '###{lacking[0]}:'")
    return parts


def _scale(text: str) -> tuple[str, dict[str, str]]:
    criterion, lines = _sections(_SCORED_LINE, text)
    if len(lines) < 2:
        raise BadFieldError("instruction", f"its scale has {len(lines)} lines such as 'Score 1:'")
    levels = dict(lines)
    if len(levels) < len(lines):
        raise BadFieldError("instruction", "its scale describes one score twice")
    return criterion.removeprefix("[").removesuffix("]"), levels


def _sections(heading: re.Pattern[str], text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return what stands before the first heading, and what each has for its group and behind it."""
    first, *parts = map(str.strip, heading.split(text))
    return first, list(zip(parts[::2], parts[1::2], strict=True))


PROMETHEUS: Final = importer(
    "Prometheus' rubric benchmarks: responses on scales, with repeated scores of GPT-4.",
    _Prometheus,
    _prometheus,
    left_out="no score was recorded",
    answer="gpt4_score",
)

# SummEval as scored by a model (G-Eval's result files), one criterion per file, twenty samples per summary: a record has the
# experts' means (`scores`), the summary and `all_responses`, the model's replies to one prompt; each reply is a sample, its
# level the number that it begins with. The project averages the replies and counts one without a number as 0, below the
# scale: here it is unparsed. Fluency is asked for on 1 to 3 while experts rate it on 1 to 5, so only correlations compare
# the two. Which criterion a file is about stands in its prompt (or its name: `coh`, `con`, `flu`, `rel`), nowhere else.
# Source: nlpyang/geval, `results/gpt4_{coh,con,flu,rel}_detailed.json`; experts: Yale-LILY/SummEval.

_ASPECTS: Final = {
    "coh": "coherence",
    "con": "consistency",  # of a summary with its document
    "flu": "fluency",
    "rel": "relevance",
}
_TOPS: Final = {"flu": 3}
"""The top of the scale that is asked for, where it is not 5 and no prompt says it."""

_ASPECT: Final = "|".join(name.capitalize() for name in _ASPECTS.values())
_ASKED: Final = re.compile(rf"\b({_ASPECT})\b(?:\s*\(1\s*-\s*(\d)\))?")
_FORM: Final = re.compile(rf"^\s*-\s*({_ASPECT})\b", re.MULTILINE)
_LEVEL: Final = re.compile(
    rf"[\s*-]*(?:(?:{_ASPECT})\s*(?:\([^)]*\))?[^\d\n]{{0,24}})?(\d+(?:\.\d+)?)(?!\d)",
    re.IGNORECASE,
)


class _SummEval(msgspec.Struct):
    doc_id: str
    system_id: str
    system_output: str
    all_responses: list[Any]
    source: str = ""
    reference: Any = None
    scores: dict[str, float | None] = {}
    prompt: str = ""


def _summeval(row: _SummEval, source: Source) -> Iterator[Part]:
    short, highest = _criterion(row, source)
    criterion = _ASPECTS[short]
    labels = tuple(str(level + 1) for level in range(highest))
    item = Item(
        id=f"{row.doc_id}/{row.system_id}/{criterion}",
        task=Task.RUBRIC,
        prompt=row.source,
        candidates=labels,
        values=tuple(map(float, labels)),
        response=row.system_output,
        reference=row.reference if isinstance(row.reference, str) else None,
        gold=row.scores.get(criterion),
        group=criterion,
        meta={"document": row.doc_id, "system": row.system_id},
    )
    yield item
    model = short_name(source.file).partition(f"_{short}")[0]
    for sample, reply in enumerate(row.all_responses):
        match = _LEVEL.match(str(reply))
        value = float(match[1]) if match else 0.0
        yield decision(
            item,
            tuple(range(highest)),
            labels,
            sample=sample,
            choice=int(value) - 1 if value in range(1, highest + 1) else None,
            text=reply if isinstance(reply, str) else None,
            model=model,
        )


def _criterion(row: _SummEval, source: Source) -> tuple[str, int]:
    shorts = {name.capitalize(): short for short, name in _ASPECTS.items()}
    forms = _FORM.findall(row.prompt)
    named = [part for part in short_name(source.file).split("_") if part in _ASPECTS]
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
    return short, scales[0] if scales else _TOPS.get(short, 5)


SUMMEVAL: Final = importer(
    "SummEval scored by a model (G-Eval results): replies as samples, experts' means as gold.",
    _SummEval,
    _summeval,
    left_out="no reply was recorded",
    answer="all_responses",
)

# HANNA's scores of language models, six criteria per story, five judges with four prompts each: a recorded score is the mean
# of up to three tries, so it is no level that a call chose: the scale of an item has the values that occur in the files
# given, and each score is the one level it is. A try that failed was averaged in as -1 by the project (a story may have
# 0.33, or -1): such scores are kept, because the project's own figures contain them, and counted. One order was asked, so
# nothing is known about the order of levels; what these files are for is the correlation with the mean of three raters, by
# criterion (the group). Judges are named `<judge>/prompt<k>`. The file in its own form has one row per system, whose cells
# are lists with one number per story; the same with one row per story is read too.
# Source: dig-team/hanna-benchmark-asg, `hanna_metric_scores_llm.csv`.

_QUALITIES: Final = {
    "RE": "Relevance",
    "CH": "Coherence",
    "EM": "Empathy",
    "SU": "Surprise",
    "EG": "Engagement",
    "CX": "Complexity",
}
_LOWEST, _HIGHEST = 1.0, 5.0
"""What a judge could have answered."""

_QUALITY: Final = "|".join(_QUALITIES)
_SCORE: Final = re.compile(
    rf"(?:(?P<long>.+)_p(?P<prompt>\d+)_(?P<of>{_QUALITY}))|(?P<wide>.+) (?P<by>{_QUALITY}) (?P<variant>\d+)"
)
_RATER: Final = re.compile(rf"(?:human(\d+)_|Human (\d+) )(?P<of>{_QUALITY})")


class _Judgement(msgspec.Struct):
    story: str
    system: str
    criterion: str
    human: list[float]
    scores: dict[str, float | None]
    levels: list[float]


def _hanna(row: _Judgement, source: Source) -> Iterator[Part]:
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
    yield item
    order = tuple(range(item.n))
    labels = tuple(str(level + 1) for level in order)
    given = {judge: score for judge, score in row.scores.items() if score is not None}
    yield from ("scores that were not recorded",) * (len(row.scores) - len(given))
    for judge, score in given.items():
        yield decision(item, order, labels, choice=row.levels.index(score), model=judge)
        if not _LOWEST <= score <= _HIGHEST:
            yield "scores outside 1 to 5 (failed tries averaged in), kept"


def _stories(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield rows of one story: the rows of systems, whose cells are lists, taken apart and numbered."""
    first = 0
    for source, record in entries:
        if isinstance(record, BadFieldError) or "story_id" in record:
            yield source, record
            continue
        names = [name for name in record if _RATER.fullmatch(name) or _SCORE.fullmatch(name)]
        try:
            columns = [_list(record[name], name) for name in names]
            lengths = sorted({len(column) for column in columns})
            if len(lengths) != 1:
                raise BadFieldError("row", f"its lists have {lengths} numbers")
        except BadFieldError as error:
            yield source, error
            continue
        for story, cells in enumerate(zip(*columns, strict=True), start=first):
            own = dict(zip(names, cells, strict=True))
            yield source, {"system": record.get("Model"), "story_id": story, **own}
        first += lengths[0]


def _of_all(files: Sequence[tuple[str, Iterator[Entry]]]) -> Iterator[Entry]:
    """Yield each story by criterion, with all scores that occur as the levels."""
    judged: list[tuple[Source, dict[str, Any] | BadFieldError]] = []
    for source, record in chain.from_iterable(_stories(entries) for _, entries in files):
        try:
            if isinstance(record, BadFieldError):
                raise record
            judged += [(source, own) for own in _by_criterion(record)]
        except BadFieldError as error:
            judged.append((source, error))
    given = (own["scores"].values() for _, own in judged if isinstance(own, dict))
    occurring = set(chain.from_iterable(given))
    levels = sorted((occurring - {None}) | {_LOWEST, _HIGHEST})
    return changed(judged, lambda own: {**own, "levels": levels})


def _by_criterion(record: Record) -> list[dict[str, Any]]:
    scores: dict[str, dict[str, float | None]] = {name: {} for name in _QUALITIES}
    raters: dict[str, list[float]] = {name: [] for name in _QUALITIES}
    for name, cell in record.items():
        if match := _RATER.fullmatch(name):
            rating = _number(cell, name)
            if rating is not None:
                raters[match["of"]].append(rating)
        elif match := _SCORE.fullmatch(name):
            judge = match["long"] or match["wide"]
            variant = match["prompt"] or match["variant"]
            scores[match["of"] or match["by"]][f"{judge}/prompt{variant}"] = _number(cell, name)
    return [
        {
            "story": str(record["story_id"]),
            "system": str(record.get("system")),
            "criterion": criterion,
            "human": raters[short],
            "scores": scores[short],
        }
        for short, criterion in _QUALITIES.items()
        if scores[short]
    ]


def _list(cell: object, name: str) -> list[object]:
    text = re.sub(r"\b(nan|None)\b", "null", str(cell))
    try:
        return msgspec.json.decode(text, type=list[object])
    except (msgspec.DecodeError, RecursionError):
        raise BadFieldError(name, "is not a list of numbers") from None


def _number(cell: object, name: str) -> float | None:
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    try:
        number = float(str(cell))
    except ValueError:
        raise BadFieldError(name, f"{cell!r} is not a number") from None
    return number if math.isfinite(number) else None


def _is_hanna(record: Record) -> bool:
    judged = any(_SCORE.fullmatch(name) for name in record)
    return judged and (record.keys() >= {"story_id", "human1_RE"} or "Human 1 RE" in record)


HANNA: Final = importer(
    "HANNA's model scores: six criteria per story, judges by prompt, with three raters.",
    _Judgement,
    _hanna,
    detects=_is_hanna,
    left_out="no score was recorded",
    join=_of_all,
)
