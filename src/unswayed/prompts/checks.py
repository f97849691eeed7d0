"""Check the prompts of a run before any call is made."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from unswayed.base.counts import agrees
from unswayed.base.errors import TemplateError
from unswayed.model.items import Item, Task, encode_item, to_json, turns_of
from unswayed.model.permutations import compose
from unswayed.model.presentation import Ask, Presentation, canonical
from unswayed.model.tasks import points_of, task_of
from unswayed.prompts.blocks import layout_of
from unswayed.prompts.rendering import render, template_of
from unswayed.prompts.settings import PromptSettings, label_set_of
from unswayed.prompts.shots import gold_of_shot
from unswayed.prompts.styles import PROMPTS
from unswayed.prompts.template import Template

_QUESTION: Final = "qzquestionzq"
_REFERENCE: Final = "qzreferencezq"
_FINGERPRINTED: Final = (Task.MCQ, Task.PAIRWISE)
"""The tasks whose words are in every fingerprint: it must stay when another task is added."""


def check_prompts(
    items: Sequence[Item], settings: PromptSettings, *, writes: bool = True
) -> list[str]:
    """Check the prompts of a run against its items.

    The warnings, each a sentence: labels that stand in the content as labels, labels that differ only
    in case, a reference that the template does not show, unbalanced examples. What does not fit at all
    is a `TemplateError`. Labels in the content matter only if the model `writes` an answer to read.
    """
    if settings.max_tokens is not None and settings.max_tokens < 1:
        raise TemplateError(f"max_tokens is {settings.max_tokens}; give at least 1 or leave it out")
    template = template_of(settings)
    sets: dict[int, tuple[str, ...]] = {}
    for n in dict.fromkeys(item.n for item in (*items, *settings.shots)):
        try:
            sets[n] = label_set_of(n, settings)
        except TemplateError as error:
            first = next(item for item in chain(items, settings.shots) if item.n == n)
            raise TemplateError(f"{first.id}: {error}") from None
    warnings: list[str] = []
    for task in dict.fromkeys(item.task for item in items):
        asked = [item for item in items if item.task == task]
        if template is not None:
            for n in sorted({item.n for item in asked}):
                check_template(template, n, task=task)
            _check_points(asked[0], template)
        else:
            render(asked[0], Ask(canonical(asked[0].n)), replace(settings, shots=()))
    if template is not None:
        warnings += _unused_reference(items, template)
    warnings += _check_shots(items, settings)
    longest = max(sets.values(), key=len, default=())
    if len({label.casefold() for label in longest}) < len(longest):
        warnings.append(
            f"the labels {', '.join(longest)} differ only in case: answers are read "
            "case-sensitively."
        )
    if writes:
        warnings += _check_content(chain(items, settings.shots), longest)
    return warnings


def prompt_fingerprint(settings: PromptSettings) -> str:
    """`sha256:<hex>` that identifies wording, label set, template and examples.

    It changes with every change of the text that "default" prompts contain, and not with caps on
    tokens: parameters fitted under one fingerprint do not hold under another.
    """
    template = template_of(settings)
    wording: list[object] = []
    if template is not None:
        wording.append(template.source)
    else:
        style = PROMPTS.load(settings.style)
        for task in _FINGERPRINTED:
            words = task_of(task).sentences.keys() | style.words.keys()
            if not {*style.system, *style.closing} <= words:
                continue
            rendered = render(
                _probe(2, task, _REFERENCE), Ask(canonical(2)), replace(settings, shots=())
            )
            text_of_task = [[message.role, message.content] for message in rendered.messages]
            wording.append([task.value, style.name, text_of_task])
    shots = [encode_item(shot).decode("utf-8", "surrogatepass") for shot in settings.shots]
    more = [settings.extra_body] if settings.extra_body else []
    text = to_json([settings.label_set, wording, shots, *more])
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def check_template(template: Template, n: int, *, task: Task) -> None:
    """Render made-up texts in two orders and look for them where they should stand."""
    item = _probe(n, task)
    labels, texts = _labels(n), [str(candidate) for candidate in item.candidates]
    turn = tuple((p + 1) % n for p in range(n))
    # The second presentation moves labels against positions, and (n > 2) against candidates.
    for shown in (canonical(n), Presentation(turn, compose(turn, turn) if n > 2 else turn)):
        text = _text(template, item, shown)
        if wrong := _misplaced(text, [texts[c] for c in shown.order], labels, shown):
            raise TemplateError(f"template {template.path}: {wrong}")


def _misplaced(
    text: str, displayed: Sequence[str], labels: tuple[str, ...], shown: Presentation
) -> str | None:
    """Describe the fault of a prompt that shows these texts in this order, None without a fault."""
    if _QUESTION not in text:
        return "never shows the question. Use {{ question }}."
    if any(own not in text for own in displayed):
        return (
            f"does not show the text of every candidate ({len(labels)} of them). "
            "Loop over candidates and use {{ candidate.text }}."
        )
    starts = [text.index(own) for own in displayed]
    if starts != sorted(starts):
        return "does not keep the order of display. Loop over candidates as they come."
    if any(label not in text for label in labels):
        return (
            "does not print the label of every candidate. Use {{ candidate.label }} instead of a "
            "fixed letter, so that labels can be moved."
        )
    if not _labels_belong(text, starts, shown.symbols(labels)):
        return (
            "does not clearly print each label next to its own candidate's text. Print it always before the text, "
            "or always after it."
        )
    return None


def _check_points(item: Item, template: Template) -> None:
    """Raise unless a template shows all that one reply is to answer."""
    ask = Ask(canonical(item.n))
    names = points_of(item, ask)
    text = _text(template, item, ask.presentation, names)
    for name in names:
        if name not in text:
            raise TemplateError(
                f"template {template.path}: {item.id}: never names {name!r}. Use {{{{ criteria }}}}."
            )


def _labels_belong(text: str, starts: list[int], symbols: tuple[str, ...]) -> bool:
    """Return True if every text's nearest label before it, or after it, is its own."""
    places = sorted(
        (match.start(), symbol)
        for symbol in symbols
        for match in re.finditer(re.escape(symbol), text)
    )
    before = after = True
    for start, symbol in zip(starts, symbols, strict=True):
        earlier = [name for at, name in places if at < start]
        later = [name for at, name in places if at > start]
        before &= bool(earlier) and earlier[-1] == symbol
        after &= bool(later) and later[0] == symbol
    return before or after


def _probe(n: int, task: Task, reference: str | None = None) -> Item:
    """Return an item of words that occur nowhere else."""
    texts = tuple(f"qztext{k}zq" for k in range(n))
    return Item(id="probe", task=task, prompt=_QUESTION, candidates=texts, reference=reference)


def _labels(n: int) -> tuple[str, ...]:
    return tuple(f"qzlabel{k}zq" for k in range(n))


def _text(
    template: Template, item: Item, shown: Presentation, criteria: tuple[str, ...] = ()
) -> str:
    """All that a template says of an item whose labels occur nowhere else."""
    layout = layout_of(item, shown, _labels(item.n), criteria=criteria)
    return "\n".join(message.content for message in template.messages(layout))


def _unused_reference(items: Sequence[Item], template: Template) -> list[str]:
    referring = [item for item in items if item.reference is not None]
    if referring:
        probe = _probe(referring[0].n, referring[0].task, _REFERENCE)
        if _REFERENCE not in _text(template, probe, canonical(probe.n)):
            return [
                f"{len(referring)} of {len(items)} items have a reference answer, which template "
                f"{template.path} does not show."
            ]
    return []


def _check_shots(items: Sequence[Item], settings: PromptSettings) -> list[str]:
    shots = settings.shots
    if not shots:
        return []
    tasks = {item.task for item in items}
    shown = {(shot.prompt, shot.candidates) for shot in shots}
    texts = {text: item.id for item in items if (text := (item.prompt, item.candidates)) in shown}
    ids = {item.id for item in items}
    for shot in shots:
        gold_of_shot(shot)
        if tasks and shot.task not in tasks:
            raise TemplateError(
                f"{shot.id}: an example of task {str(shot.task)!r} does not fit items of task "
                f"{', '.join(sorted(tasks))}. Use examples of the same task."
            )
        twin = texts.get((shot.prompt, shot.candidates))
        if shot.id in ids or twin is not None:
            raise TemplateError(
                f"{shot.id}: is one of the examples and (as {twin or shot.id}) to be judged as "
                "well, which would show its gold. Leave it out of one of the two."
            )
    return [
        f"{count} examples with {n} candidates cannot have the right one equally often at every "
        f"position. Give a multiple of {n}."
        for n, count in Counter(shot.n for shot in shots).items()
        if count % n
    ]


def _check_content(items: Iterable[Item], labels: tuple[str, ...]) -> list[str]:
    """Refuse multi-letter labels that occur in the texts; count single ones that look like labels."""
    words = [label for label in labels if len(label) > 1 and not label.isdecimal()]
    short = [label for label in labels if label not in words]
    word, alone = _any_word(words), _as_label(short)
    # A label at the end of a word, as each pattern of `alone` has one; few texts do. One pattern for
    # each label, whose first letter is looked for without the machinery of patterns.
    mentioned = [re.compile(rf"{re.escape(label)}(?!\w)") for label in short]
    hits: list[str] = []
    total = 0
    for total, item in enumerate(items, start=1):  # noqa: B007
        texts = list(_texts_of(item))
        for where, text in texts:
            if word is not None and (match := word.search(text)) is not None:
                raise TemplateError(
                    f"{item.id}: the label {match[0]!r} occurs in the {where}, so an answer that "
                    "quotes it looks like a verdict. Choose labels that do "
                    "not occur in the texts, such as A and B."
                )
        whole = "\n".join([text for _, text in texts])
        if any(label.search(whole) for label in mentioned) and any(
            pattern.search(f"\n{text}") for _, text in texts for pattern in alone
        ):
            hits.append(item.id)
    if not hits:
        return []
    return [
        f"{len(hits)} of {total} items {agrees(len(hits), 'contains', 'contain')} text that looks like a label ({', '.join(short[:4])}"
        f"{', ...' if len(short) > 4 else ''}), such as {hits[0]}. Answers are "
        "still read by their format; other labels (--labels) are safer if the model uses them."
    ]


def _texts_of(item: Item) -> Iterator[tuple[str, str]]:
    for text in turns_of(item.prompt):
        yield "prompt", text
    for candidate, content in enumerate(item.candidates):
        for text in turns_of(content):
            yield f"text of candidate {candidate}", text
    if item.reference is not None:
        yield "reference", item.reference


def _any_word(labels: Sequence[str]) -> re.Pattern[str] | None:
    # Scripts without spaces have no word boundaries: there any occurrence counts.
    forms = [
        rf"\b{re.escape(label)}\b" if label.isascii() else re.escape(label) for label in labels
    ]
    return re.compile("|".join(forms), re.IGNORECASE) if forms else None


def _as_label(labels: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """Return a letter in brackets or tags, before a full stop or colon at a line's start, or after "answer".

    Three patterns that begin with a letter or a small class each: about ten times faster than one.
    """
    letter = f"(?:{'|'.join(map(re.escape, labels))})"
    return (
        re.compile(rf"[(\[>]{letter}[)\]<]"),
        re.compile(rf"\n[ \t]{{0,8}}\**{letter}\**[.):]\s"),
        re.compile(rf"(?:nswer|ption|hoice)(?: is)?:? \**{letter}(?!\w)"),
    )
