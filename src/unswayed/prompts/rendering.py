"""From an item and a question about it to the chat that is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from unswayed.errors import ShapeError, TemplateError
from unswayed.items import Item, Message
from unswayed.parsing import ReplySpec
from unswayed.presentation import Ask
from unswayed.prompts.blocks import contents_of, user_pieces
from unswayed.prompts.settings import PromptSettings, Rendered, label_set_of
from unswayed.prompts.shots import shot_presentations
from unswayed.prompts.spans import Spans, message_of
from unswayed.prompts.styles import PROMPTS, sentences
from unswayed.prompts.template import Template, read_template
from unswayed.tasks import TaskSpec, task_of

__all__ = ["render", "template_of"]


@dataclass(frozen=True, slots=True)
class _Frame:
    """What all prompts of one style, task, number of candidates share."""

    labels: tuple[str, ...]
    before: tuple[Message, ...]
    task: TaskSpec
    closing: str
    reply: ReplySpec


class _Same:
    """A settings value as a cache key by identity (its examples are not hashable)."""

    __slots__ = ("settings",)

    def __init__(self, settings: PromptSettings) -> None:
        self.settings = settings

    def __hash__(self) -> int:
        return id(self.settings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.settings is self.settings


@dataclass(frozen=True, slots=True)
class _Book:
    """Everything about one settings value that does not depend on the item; filled as needed."""

    settings: PromptSettings
    shot_ids: frozenset[str]
    frames: dict[tuple[str, str, int, bool], _Frame] = field(default_factory=dict)
    labels: dict[int, tuple[str, ...]] = field(default_factory=dict)
    templates: list[Template] = field(default_factory=list)
    examples: list[tuple[Message, ...]] = field(default_factory=list)

    def label_set(self, n: int) -> tuple[str, ...]:
        if n not in self.labels:
            self.labels[n] = label_set_of(n, self.settings)
        return self.labels[n]

    def template(self, path: str) -> Template:
        if not self.templates:
            self.templates.append(read_template(path))
        return self.templates[0]

    def frame(self, prompt: str, task: str, n: int, with_reference: bool) -> _Frame:
        key = (prompt, task, n, with_reference)
        frame = self.frames.get(key)
        if frame is None:
            frame = self.frames[key] = _make_frame(self, prompt, task, n, with_reference)
        return frame


@lru_cache(maxsize=16)
def _book(same: _Same) -> _Book:
    settings = same.settings
    return _Book(settings, frozenset(shot.id for shot in settings.shots))


def template_of(settings: PromptSettings) -> Template | None:
    """The user's template, read once per settings value; None if there is none.

    Raises:
        TemplateError: If the file cannot be used.
    """
    return None if settings.template is None else _book(_Same(settings)).template(settings.template)


def render(item: Item, ask: Ask, settings: PromptSettings) -> Rendered:
    """The chat that asks `ask` about `item`.

    The item's gold is never read. Labels and candidates stand exactly where the presentation says.

    Raises:
        TemplateError: If the prompt, the label set or the template does not fit the item.
        UnknownNameError: If there is no prompt of that name.
        ShapeError: If the presentation is for another number of candidates.
    """
    order = ask.presentation.order
    n = len(item.candidates)
    if len(order) != n:
        raise ShapeError(f"{item.id}: {n} candidates cannot be shown in the order {order}")
    if ask.substitute is not None and len(ask.substitute.candidates) != n:
        raise ShapeError(
            f"{item.id}: {n} candidates, but {len(ask.substitute.candidates)} content-free texts"
        )
    book = _book(_Same(settings))
    if item.id in book.shot_ids:
        raise TemplateError(
            f"{item.id}: is one of the examples and is to be judged as well, which would show its "
            "gold. Leave it out of one of the two."
        )
    try:
        if settings.template is not None and ask.prompt_id == "default":
            return _render_template(item, ask, book, book.template(settings.template))
        prompt = settings.prompt if ask.prompt_id == "default" else ask.prompt_id
        frame = book.frame(prompt, item.task, n, item.reference is not None)
    except TemplateError as error:
        raise TemplateError(f"{item.id}: {error}") from None
    pieces = user_pieces(
        contents_of(item, ask.substitute),
        order,
        ask.presentation.symbols(frame.labels),
        task=frame.task,
        closing=frame.closing,
    )
    user, spans = message_of(pieces, n, place=len(frame.before), role="user")
    return _rendered((*frame.before, user), spans, frame.labels, frame.reply, settings)


def _rendered(
    messages: tuple[Message, ...],
    spans: Spans,
    labels: tuple[str, ...],
    reply: ReplySpec,
    settings: PromptSettings,
) -> Rendered:
    return Rendered(
        messages,
        labels,
        settings.max_tokens or reply.max_tokens,
        settings.top_logprobs if reply.answer_only else 0,
        reply.answer_only,
        spans,
    )


def _make_frame(book: _Book, prompt: str, name: str, n: int, with_reference: bool) -> _Frame:
    settings = book.settings
    style, task = PROMPTS.load(prompt), task_of(name)
    labels = book.label_set(n)
    names = [*style.system, "reference"] if with_reference else style.system
    before = [Message("system", sentences(names, style, task, labels))]
    for shot, shown in zip(settings.shots, shot_presentations(settings.shots), strict=True):
        own = book.label_set(shot.n)
        pieces = user_pieces(
            contents_of(shot, None),
            shown.order,
            shown.symbols(own),
            task=task,
            closing=sentences(style.closing, style, task, own),
        )
        question, _ = message_of(pieces, shot.n, place=len(before), role="user")
        reply = task.reply.example(shot, shown, own, style)
        before += [question, Message("assistant", reply)]
    return _Frame(
        labels=labels,
        before=tuple(before),
        task=task,
        closing=sentences(style.closing, style, task, labels),
        reply=task.reply.request(labels, style),
    )


def _render_template(item: Item, ask: Ask, book: _Book, template: Template) -> Rendered:
    labels = book.label_set(item.n)
    messages, spans = template.chat(
        contents_of(item, ask.substitute),
        ask.presentation.order,
        ask.presentation.symbols(labels),
        labels,
        task=str(item.task),
    )
    if book.settings.shots:
        if not book.examples:
            book.examples.append(_template_examples(book, template))
        messages, spans = _with_examples(messages, spans, book.examples[0])
    reply = task_of(item.task).reply.request(labels, template)
    return _rendered(messages, spans, labels, reply, book.settings)


def _with_examples(
    messages: Sequence[Message], spans: Spans, examples: Sequence[Message]
) -> tuple[tuple[Message, ...], Spans]:
    """A chat with examples behind its system messages."""
    system = [place for place, message in enumerate(messages) if message.role == "system"]
    rest = [place for place, message in enumerate(messages) if message.role != "system"]
    chat = [messages[place] for place in system] + [*examples] + [messages[p] for p in rest]
    moved = {place: after for after, place in enumerate(system)}
    moved |= {place: len(system) + len(examples) + after for after, place in enumerate(rest)}
    by_candidate = (
        sorted(span._replace(message=moved[span.message]) for span in own) for own in spans
    )
    return tuple(chat), tuple(tuple(own) for own in by_candidate)


def _template_examples(book: _Book, template: Template) -> tuple[Message, ...]:
    shots = book.settings.shots
    examples: list[Message] = []
    for shot, shown in zip(shots, shot_presentations(shots), strict=True):
        labels = book.label_set(shot.n)
        messages = template.messages(
            contents_of(shot, None),
            shown.order,
            shown.symbols(labels),
            labels,
            task=str(shot.task),
        )
        examples += [message for message in messages if message.role != "system"]
        reply = task_of(shot.task).reply.example(shot, shown, labels, template)
        examples.append(Message("assistant", reply))
    return tuple(examples)
