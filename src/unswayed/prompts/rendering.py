"""From an item and a question about it to the chat that is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from unswayed.errors import ShapeError, TemplateError
from unswayed.items import Item, Message
from unswayed.presentation import Ask
from unswayed.prompts.blocks import contents_of, user_pieces
from unswayed.prompts.settings import PromptSettings, Rendered, label_set_of
from unswayed.prompts.shots import gold_of_shot, reply_of_shot, shot_presentations
from unswayed.prompts.spans import Spans, message_of
from unswayed.prompts.styles import PROMPTS, WORDINGS, Style, Wording
from unswayed.prompts.template import Template, read_template

__all__ = ["render", "template_of"]


@dataclass(frozen=True, slots=True)
class _Frame:
    """What all prompts of one style, task, number of candidates share."""

    labels: tuple[str, ...]
    before: tuple[Message, ...]
    style: Style
    wording: Wording
    closing: str
    max_tokens: int
    top_logprobs: int


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
        wording=frame.wording,
        closing=frame.closing,
    )
    user, spans = message_of(pieces, n, place=len(frame.before), role="user")
    return Rendered(
        (*frame.before, user),
        frame.labels,
        frame.max_tokens,
        frame.top_logprobs,
        frame.style.answer_only,
        spans,
    )


def _make_frame(book: _Book, prompt: str, task: str, n: int, with_reference: bool) -> _Frame:
    settings = book.settings
    style = PROMPTS.load(prompt)
    if task not in WORDINGS:
        raise TemplateError(
            f"there is no built-in prompt for task {str(task)!r} yet (there is for "
            f"{', '.join(WORDINGS)}). Bring a template file."
        )
    wording = WORDINGS.load(task)
    labels = book.label_set(n)
    names = [*style.system, "reference"] if with_reference else list(style.system)
    system = " ".join(wording.sentence(name, labels) for name in names)
    before = [Message("system", system)]
    for shot, shown in zip(settings.shots, shot_presentations(settings.shots), strict=True):
        own = book.label_set(shot.n)
        pieces = user_pieces(
            contents_of(shot, None),
            shown.order,
            shown.symbols(own),
            wording=wording,
            closing=wording.sentence(style.closing, own),
        )
        question, _ = message_of(pieces, shot.n, place=len(before), role="user")
        symbol = own[shown.label_of_candidate(gold_of_shot(shot))]
        reply = reply_of_shot(symbol, answer_only=style.answer_only)
        before += [question, Message("assistant", reply)]
    return _Frame(
        labels=labels,
        before=tuple(before),
        style=style,
        wording=wording,
        closing=wording.sentence(style.closing, labels),
        max_tokens=settings.max_tokens or style.max_tokens,
        top_logprobs=settings.top_logprobs if style.answer_only else 0,
    )


def _render_template(item: Item, ask: Ask, book: _Book, template: Template) -> Rendered:
    settings = book.settings
    labels = book.label_set(item.n)
    messages, spans = template.chat(
        contents_of(item, ask.substitute),
        ask.presentation.order,
        ask.presentation.symbols(labels),
        labels,
        task=str(item.task),
    )
    if settings.shots:
        if not book.examples:
            book.examples.append(_template_examples(book, template))
        messages, spans = _with_examples(messages, spans, book.examples[0])
    return Rendered(
        messages,
        labels,
        settings.max_tokens or template.max_tokens,
        settings.top_logprobs if template.answer_only else 0,
        template.answer_only,
        spans,
    )


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
        rendered = template.messages(
            contents_of(shot, None),
            shown.order,
            shown.symbols(labels),
            labels,
            task=str(shot.task),
        )
        symbol = labels[shown.label_of_candidate(gold_of_shot(shot))]
        examples += [message for message in rendered if message.role != "system"]
        reply = reply_of_shot(symbol, answer_only=template.answer_only)
        examples.append(Message("assistant", reply))
    return tuple(examples)
