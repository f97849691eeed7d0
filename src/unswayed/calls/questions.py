"""Questions, their settings, and the requests that ask them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from unswayed.backends.protocol import Backend
from unswayed.base.errors import ItemError
from unswayed.calls.drafts import Draft, ReplyLayout, read_by
from unswayed.calls.keys import KeyBook, Question
from unswayed.model.calls import Frame, Request, Response, escaped, key_of
from unswayed.model.decisions import Decision
from unswayed.model.items import Item, Message
from unswayed.model.parsing import is_unread
from unswayed.model.presentation import Ask
from unswayed.prompts import PromptSettings, Terms, Wording, plain_texts, render, wording_of
from unswayed.store import Pool, prompt_bytes

MOST_KEPT: Final = 64 << 20
"""Bytes of prompts kept between pricing and asking; the rest is rendered again."""
DRAFT_BYTES: Final = 800
"""Size of a draft without its prompt."""
MOST_FRAMES: Final = 4096
"""Frames kept, about 2 kB each: candidates sorted by content have as many as there are orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Settings of a run's calls."""

    prompts: PromptSettings
    sample_temperature: float = 1.0  # of repeated samples (`Ask.sample` > 0); sample 0 is greedy
    budget_usd: float | None = None  # for all calls recorded in the run directory, earlier runs too
    reask: bool = True  # once more for the label of a reply that could not be read


class Drafter:
    """Builds the requests of one model under one run's settings.

    One that remembers serves one set of items, since a question is known by its item's id: it keeps the keys of
    all questions, and the drafts it is asked to keep as long as there is room. Whether label logprobs are asked
    for is part of every key, so it is settled once per run directory (`agreed_logprobs`).
    """

    def __init__(
        self,
        model: str,
        gives_logprobs: bool,
        settings: RunSettings,
        *,
        keyed_by_item: bool,
        converses: Callable[[Request], bool] = lambda request: True,
        remembers: bool = True,
    ) -> None:
        self.model = model
        self.keyed_by_item = keyed_by_item
        self.gives_logprobs = gives_logprobs
        self.settings = settings
        self._keys = KeyBook()
        self._frames: dict[tuple[Wording, int], Frame] = {}
        self._converses = converses
        self._seconds: dict[bytes, bytes] = {}
        self._layouts: dict[tuple[str, str, int], ReplyLayout] = {}
        self._kept: dict[bytes, Draft] = {}
        self._room = MOST_KEPT if remembers else 0
        self._remembers = remembers

    @classmethod
    def of(
        cls, backend: Backend, store: Pool, settings: RunSettings, *, remembers: bool = True
    ) -> Drafter:
        """Return the drafter of what a backend is asked beside these recorded calls."""
        return cls(
            backend.model,
            agreed_logprobs(store, backend.model, backend),
            settings,
            keyed_by_item=backend.keyed_by_item,
            converses=backend.converses,
            remembers=remembers,
        )

    def draft(self, question: Question, key: bytes | None = None) -> Draft:
        """Render a question and address its call by its key, if that is known, or take the draft that was kept."""
        if key is None:
            (key,) = self._keys.get((question,))
        if key is not None and (kept := self._take(key)) is not None:
            return kept
        return self._drafted(question, key)

    def _drafted(self, question: Question, key: bytes | None) -> Draft:
        item, ask = question
        rendered = render(item, ask, self.settings.prompts)
        request = self._request(ask, rendered, rendered.messages, self._nonce(question))
        if key is None:
            try:
                key = key_of(request)
            except UnicodeEncodeError as error:
                raise _not_unicode(item, error) from None
            self._enter(question, key)
        return Draft(question, request, key, self._layout(question, rendered))

    def addresses(self, questions: Sequence[Question]) -> list[tuple[bytes, Draft | None]]:
        """Return the key of each question, and its draft where the key depends on it."""
        addresses: list[tuple[bytes, Draft | None]] = []
        last: Item | None = None
        texts: list[bytes] | None = None
        keys = self._keys.get(questions) if self._remembers else [None] * len(questions)
        for question, entered in zip(questions, keys, strict=True):
            if entered is not None:
                addresses.append((entered, None))
                continue
            item, ask = question
            if item is not last:  # the questions about an item come one after the other
                last, texts = item, _escaped_texts(item)
            wording = None if texts is None else wording_of(item, ask, self.settings.prompts)
            if texts is None or wording is None:
                draft = self._drafted(question, None)
                addresses.append((draft.key, draft))
                continue
            try:
                key = self._frame(question, wording).key(texts, self._nonce(question))
            except UnicodeEncodeError as error:
                raise _not_unicode(item, error) from None
            self._enter(question, key)
            addresses.append((key, None))
        return addresses

    def _frame(self, question: Question, wording: Wording) -> Frame:
        ask = question.ask
        frame = self._frames.get((wording, ask.sample))
        if frame is None:
            self._layout(question, wording)
            messages = (*wording.before, Message("user", ""))
            request = self._request(ask, wording, messages, None)
            frame = Frame.of(request, wording.outline.parts, wording.outline.holes)
            if len(self._frames) < MOST_FRAMES:
                self._frames[wording, ask.sample] = frame
        return frame

    def _request(
        self,
        ask: Ask,
        prompt: Terms,
        messages: tuple[Message, ...],
        nonce: str | None,
    ) -> Request:
        return Request(
            model=self.model,
            messages=messages,
            labels=prompt.labels,
            max_tokens=prompt.max_tokens,
            temperature=self.settings.sample_temperature if ask.sample else 0.0,
            top_logprobs=prompt.top_logprobs if self.gives_logprobs else 0,
            sample=ask.sample,
            nonce=nonce,
            schema=msgspec.UNSET if prompt.schema is None else prompt.schema,
            extra_body=self.settings.prompts.extra_body or msgspec.UNSET,
        )

    def _nonce(self, question: Question) -> str | None:
        """Return what an answer depends on beside the prompt; orders of equal texts are told apart by it."""
        item, ask = question
        if not self.keyed_by_item:
            return None
        distinct = len(set(item.candidates)) == item.n
        return item.asked_as if distinct else f"{item.asked_as} {ask.presentation.order}"

    def _enter(self, question: Question, key: bytes) -> None:
        if self._remembers:
            self._keys.enter(question, key)

    def _layout(self, question: Question, prompt: Terms) -> ReplyLayout:
        item, ask = question
        kind = (ask.prompt_id, item.task, item.n)
        return self._layouts.setdefault(
            kind, ReplyLayout(prompt.labels, prompt.answer_only, prompt.reask, prompt.form)
        )

    def recorded(self, question: Question, key: bytes, request: Request) -> Draft:
        """Return the draft of a question whose key is known and whose request was recorded."""
        item, ask = question
        return Draft(question, request, key, self._layouts[ask.prompt_id, item.task, item.n])

    def read(self, question: Question, response: Response) -> Decision:
        """Return the decision that an answer to a question whose key is known stands for."""
        item, ask = question
        layout = self._layouts[ask.prompt_id, item.task, item.n]
        return read_by(layout, question, response, self.model)

    def second(self, draft: Draft, response: Response, decision: Decision) -> Draft | None:
        """Return the one call that follows an answer without a verdict, even if the settings leave it out."""
        if draft.after is not None or not is_unread(response, decision):
            return None
        second = draft.second(response)
        if second is None:
            return None
        if self._remembers and not self.leaves_out(second):
            self._seconds[draft.key] = second.key
        return self._take(second.key) or second

    def second_key(self, key: bytes) -> bytes | None:
        """Return the key of the second call after a call, if one was drafted."""
        return self._seconds.get(key)

    def leaves_out(self, second: Draft) -> bool:
        """Return True if the settings leave a second call out, recorded or not."""
        return second.is_reask and not self.settings.reask

    def cannot_ask(self, second: Draft) -> bool:
        """Return True if the backend has no judge to ask again."""
        return second.is_reask and not self._converses(second.request)

    def may_reask(self, draft: Draft) -> bool:
        """Return True if a future answer to the draft may be asked for its label again."""
        return draft.may_be_reasked and self.settings.reask and self._converses(draft.request)

    def keep(self, draft: Draft) -> None:
        """Keep a draft until it is asked for, if there is room."""
        size = DRAFT_BYTES + prompt_bytes(draft.request)
        if size <= self._room and draft.key not in self._kept:
            self._room -= size
            self._kept[draft.key] = draft

    def _take(self, key: bytes) -> Draft | None:
        draft = self._kept.pop(key, None)
        if draft is not None:
            self._room += DRAFT_BYTES + prompt_bytes(draft.request)
        return draft


def _escaped_texts(item: Item) -> list[bytes] | None:
    """Return the plain texts of an item as JSON has them; None where they are not plain."""
    texts = plain_texts(item)
    try:
        return None if texts is None else list(map(escaped, texts))
    except UnicodeEncodeError as error:
        raise _not_unicode(item, error) from None


def _not_unicode(item: Item, error: UnicodeEncodeError) -> ItemError:
    return ItemError(
        f"{item.id}: its text has half a character (a lone surrogate, {error.reason}). "
        "Fix the text."
    )


def agreed_logprobs(store: Pool, model: str, backend: Backend | None = None) -> bool:
    """Return True if the calls of this store ask for logprobs: the first run settles it.

    A server may turn out not to give logprobs, halfway or in a later run. Asking differently from
    then on would change the keys and so pay again for everything recorded.
    """
    settled = store.noted(logprobs_note(model))
    if settled is not None:
        return settled == "asked"
    return True if backend is None else backend.gives_logprobs


def settle_logprobs(store: Pool, drafter: Drafter) -> None:
    """Let the calls of this store ask for logprobs as they do now."""
    if store.noted(logprobs_note(drafter.model)) is None:
        said = "asked" if drafter.gives_logprobs else "not asked"
        store.note(logprobs_note(drafter.model), said)


def logprobs_note(model: str) -> str:
    """Return the name under which a store notes whether the calls of a model ask for logprobs."""
    return f"logprobs of {model}"
