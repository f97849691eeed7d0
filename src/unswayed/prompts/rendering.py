"""Render an item and a question about it as a chat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from unswayed.base.errors import ShapeError, TemplateError
from unswayed.model.items import Item, Message
from unswayed.model.parsing import ReplySpec
from unswayed.model.presentation import Ask, Presentation
from unswayed.model.tasks import TaskSpec, points_of, task_of
from unswayed.prompts.blocks import (
    Layout,
    Outline,
    are_lines,
    layout_of,
    outline_of,
    plain_texts,
    user_pieces,
)
from unswayed.prompts.settings import PromptSettings, Rendered, Wording, label_set_of
from unswayed.prompts.shots import shot_presentations
from unswayed.prompts.spans import Piece, Spans, spans_of
from unswayed.prompts.styles import PROMPTS, Style, phrase, sentences
from unswayed.prompts.template import Template, read_template

Chat = tuple[Message, ...]

MOST_WORDINGS: Final = 1024
"""Kept of one form: questions about candidates sorted by content have as many as there are orders."""


@dataclass(frozen=True, slots=True)
class _Words:
    style: Style
    task: TaskSpec
    sentences: dict[tuple[tuple[str, ...], bool], tuple[Message, str]] = field(default_factory=dict)

    @property
    def reply(self) -> ReplySpec:
        return self.style.reply

    def messages(self, layout: Layout) -> Chat:
        system, _ = self._sentences(layout.labels, layout.reference is not None)
        user = "".join([text for text, _ in self._pieces(layout)])
        return (system, Message("user", user))

    def outline(
        self, item: Item, shown: Presentation, labels: tuple[str, ...]
    ) -> tuple[Chat, Outline] | None:
        system, closing = self._sentences(labels, item.reference is not None)
        return (system,), outline_of(item, shown, labels, self.task, closing)

    def spans(self, layout: Layout) -> Spans:
        return spans_of(self._pieces(layout), len(layout.order), place=1)

    def _pieces(self, layout: Layout) -> list[Piece]:
        closing = self._sentences(layout.labels, layout.reference is not None)[1]
        return user_pieces(layout, self.task, closing)

    def _sentences(self, labels: tuple[str, ...], referring: bool) -> tuple[Message, str]:
        key = (labels, referring)
        if key not in self.sentences:
            style, task = self.style, self.task
            names = (*style.system, "reference") if referring else style.system
            system = Message("system", sentences(names, style, task, labels))
            self.sentences[key] = system, sentences(style.closing, style, task, labels)
        return self.sentences[key]


_Prompt = _Words | Template
"""A style in the words of a task, or a template: they answer alike."""


class _Same:
    """A settings value as a cache key by identity (its examples are not hashable)."""

    __slots__ = ("settings",)

    def __init__(self, settings: PromptSettings) -> None:
        self.settings = settings

    def __hash__(self) -> int:
        return id(self.settings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.settings is self.settings


_Shape = tuple[Presentation, bool, bool, bool]
"""Presentation, no reference, no response, candidates in a list."""


@dataclass(frozen=True, slots=True)
class _Form:
    """Common part of all prompts of one name about items of one task and size."""

    prompt: _Prompt
    task: TaskSpec
    examples: Chat
    asked: Mapping[str, Any]  # the fields of `Terms`
    wordings: dict[_Shape, Wording | None] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        labels: tuple[str, ...] = self.asked["labels"]
        return labels

    def wording(self, item: Item, shown: Presentation) -> Wording | None:
        """Return the wording that all plain items in this presentation share."""
        lines = self.task.listed and are_lines(item.candidates)
        shape = (shown, item.reference is None, item.response is None, lines)
        if shape in self.wordings:
            return self.wordings[shape]
        outlined = self.prompt.outline(item, shown, self.labels)
        wording = None
        if outlined is not None:
            before, outline = outlined
            wording = Wording(before=(*before, *self.examples), outline=outline, **self.asked)
        if len(self.wordings) < MOST_WORDINGS:
            self.wordings[shape] = wording
        return wording


@dataclass(frozen=True, slots=True)
class _Book:
    """Everything about one settings value that does not depend on the item; filled as needed."""

    settings: PromptSettings
    shot_ids: frozenset[str]
    words: dict[tuple[str, str], _Words] = field(default_factory=dict)
    templates: dict[str, Template] = field(default_factory=dict)
    turns: dict[tuple[str, str], Chat] = field(default_factory=dict)
    forms: dict[tuple[str, str, int], _Form] = field(default_factory=dict)

    def template(self, path: str) -> Template:
        if path not in self.templates:
            self.templates[path] = read_template(path)
        return self.templates[path]

    def prompt(self, name: str, task: str) -> _Prompt:
        if name == "default" and self.settings.template is not None:
            return self.template(self.settings.template)
        if (name, task) not in self.words:
            style = PROMPTS.load(self.settings.style if name == "default" else name)
            self.words[name, task] = _Words(style, task_of(task))
        return self.words[name, task]

    def form(self, name: str, task: str, n: int, points: tuple[str, ...] = ()) -> _Form:
        """Return the common part of a prompt; remembered, but for those about points, which are the item's."""
        prompt, settings, spec = self.prompt(name, task), self.settings, task_of(task)
        labels = label_set_of(n, settings)
        reply = spec.reply.request(labels, prompt.reply._replace(points=points))
        own_cap = settings.default_max_tokens if name == "default" else None
        asked = {
            "labels": labels,
            "max_tokens": settings.max_tokens or own_cap or reply.max_tokens,
            "top_logprobs": settings.top_logprobs if reply.answer_only else 0,
            "answer_only": reply.answer_only,
            "schema": reply.schema,
            "reask": reply.reask and reply.reask.replace("{labels}", phrase(labels)),
            "form": reply.form,
        }
        examples = self.examples(name, task) if settings.shots else ()
        form = _Form(prompt, spec, examples, asked)
        if not points:
            self.forms[name, task, n] = form
        return form

    def examples(self, name: str, task: str) -> Chat:
        """Return the examples as earlier turns of the chat."""
        if (name, task) not in self.turns:
            prompt, shots = self.prompt(name, task), self.settings.shots
            turns: list[Message] = []
            for shot, shown in zip(shots, shot_presentations(shots), strict=True):
                labels = label_set_of(shot.n, self.settings)
                messages = prompt.messages(layout_of(shot, shown, labels))
                reply = task_of(shot.task).reply.example(shot, shown, labels, prompt.reply)
                turns += [message for message in messages if message.role != "system"]
                turns.append(Message("assistant", reply))
            self.turns[name, task] = tuple(turns)
        return self.turns[name, task]


@lru_cache(maxsize=16)
def _book(same: _Same) -> _Book:
    settings = same.settings
    return _Book(settings, frozenset(shot.id for shot in settings.shots))


def template_of(settings: PromptSettings) -> Template | None:
    """Return the user's template, read once per settings value; None if there is none."""
    return None if settings.template is None else _book(_Same(settings)).template(settings.template)


def render(item: Item, ask: Ask, settings: PromptSettings) -> Rendered:
    """Return the chat that asks `ask` about `item`, whose gold is never read.

    Labels and candidates stand exactly where the presentation says. What does not fit is a
    `TemplateError` that names the item; a presentation for another number of candidates a `ShapeError`.
    """
    try:
        form, points = _form(item, ask, _book(_Same(settings)))
        texts = plain_texts(item)
        wording = None if texts is None else _wording(form, points, item, ask)
        if texts is not None and wording is not None:
            messages = (*wording.before, Message("user", wording.outline.filled(texts)))
        else:
            layout = layout_of(item, ask.presentation, form.labels, ask.substitute, points)
            messages = _with_examples(form.prompt.messages(layout), form.examples)
    except TemplateError as error:
        raise TemplateError(f"{item.id}: {error}") from None
    return Rendered(messages=messages, **form.asked)


def wording_of(item: Item, ask: Ask, settings: PromptSettings) -> Wording | None:
    """`render` an item whose texts are all plain (`plain_texts`), without the texts; None for templates and the like."""
    try:
        return _wording(*_form(item, ask, _book(_Same(settings))), item, ask)
    except TemplateError as error:
        raise TemplateError(f"{item.id}: {error}") from None


def _wording(form: _Form, points: tuple[str, ...], item: Item, ask: Ask) -> Wording | None:
    if points or ask.substitute is not None:
        return None
    return form.wording(item, ask.presentation)


def _form(item: Item, ask: Ask, book: _Book) -> tuple[_Form, tuple[str, ...]]:
    """Return the form of a prompt, and the points that it is about."""
    order = ask.presentation.order
    n = len(item.candidates)
    if len(order) != n:
        raise ShapeError(f"{item.id}: {n} candidates cannot be shown in the order {order}")
    if ask.substitute is not None and len(ask.substitute.candidates) != n:
        raise ShapeError(
            f"{item.id}: {n} candidates, but {len(ask.substitute.candidates)} content-free texts"
        )
    if item.id in book.shot_ids:
        raise TemplateError(
            "is both an example and an item to judge, which would show its gold. Remove it from "
            "one of the two."
        )
    form = book.forms.get((ask.prompt_id, item.task, n))
    if form is not None and form.task.points is None:
        return form, ()
    points = points_of(item, ask)
    return book.form(ask.prompt_id, item.task, n, points), points


def _with_examples(messages: Chat, examples: Chat) -> Chat:
    """Return a chat with examples behind its system messages; itself without examples."""
    if not examples:
        return messages
    system = [message for message in messages if message.role == "system"]
    rest = [message for message in messages if message.role != "system"]
    return (*system, *examples, *rest)


def candidate_spans(item: Item, ask: Ask, settings: PromptSettings) -> Spans:
    """List, by candidate, every place of its text (or each turn of it) in the rendered prompt.

    A template that makes another text of it, by cutting it for example, has no place for it.
    """
    book = _book(_Same(settings))
    prompt = book.prompt(ask.prompt_id, item.task)
    labels, points = label_set_of(item.n, settings), points_of(item, ask)
    layout = layout_of(item, ask.presentation, labels, ask.substitute, points)
    spans = prompt.spans(layout)
    n_examples = len(book.examples(ask.prompt_id, item.task)) if settings.shots else 0
    if not n_examples:
        return spans
    messages = prompt.messages(layout)
    places = sorted(range(len(messages)), key=lambda place: messages[place].role != "system")
    moved = {
        place: after if messages[place].role == "system" else after + n_examples
        for after, place in enumerate(places)
    }
    return tuple(
        tuple(sorted(span._replace(message=moved[span.message]) for span in own)) for own in spans
    )
