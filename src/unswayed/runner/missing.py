"""The distinct calls that are not recorded yet, found lazily."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from typing import Final

from unswayed.calls import Response
from unswayed.decisions import Decision
from unswayed.runner.drafts import Draft
from unswayed.runner.keys import Question
from unswayed.runner.questions import Drafter
from unswayed.store import Pool, Recorded

CHUNK: Final = 100
"""Questions drafted at a time: about 5 ms of work between two looks at the network."""
PAGE_BITS: Final = 12


class MissingCalls:
    """A queue of drafts to send, filled from the questions as they are needed.

    Memory holds one chunk of drafts, the keys of calls that no file has (about 100 bytes each)
    and a byte for every other, however many questions there are.

    Attributes:
        n_questions: Questions looked at.
        n_distinct: Distinct calls among them, including second calls after unread answers.
        n_cached: Those that are recorded.
        n_seconds: Second calls among them.
        n_left_out: Recorded second calls that the settings leave out.
        exhausted: Whether all questions were looked at.
    """

    def __init__(self, questions: Iterable[Question], drafter: Drafter, store: Pool) -> None:
        self.n_questions = 0
        self.n_distinct = 0
        self.n_cached = 0
        self.n_seconds = 0
        self.n_left_out = 0
        self.exhausted = False
        self._questions = iter(questions)
        self._drafter = drafter
        self._store = store
        self._keys: set[bytes] = set()
        self._rows = _Rows()
        self._ready: deque[Draft] = deque()

    def __bool__(self) -> bool:
        """Whether a draft is ready."""
        return bool(self._ready)

    def pop(self) -> Draft:
        """The next draft.

        Raises:
            IndexError: If none is ready.
        """
        return self._ready.popleft()

    def peek(self) -> Draft:
        """The next draft, left in its place.

        Raises:
            IndexError: If none is ready.
        """
        return self._ready[0]

    def look(self) -> None:
        """Look at one chunk of questions; afterwards drafts may be ready.

        Raises:
            TemplateError: If a question cannot be rendered.
        """
        chunk = list(itertools.islice(self._questions, CHUNK))
        if not chunk:
            self.exhausted = True
            return
        self.n_questions += len(chunk)
        first: dict[bytes, Question] = {}
        drafted: dict[bytes, Draft] = {}
        addresses = self._drafter.addresses(chunk)
        for question, (key, draft) in zip(chunk, addresses, strict=True):
            first.setdefault(key, question)
            if draft is not None:
                drafted[key] = draft
        recorded = self._store.recorded(first)
        for key, question in first.items():
            call = recorded.get(key)
            if not self._is_new(key, call):
                continue
            if call is None:
                self._ready.append(drafted.get(key) or self._drafter.draft(question))
            elif call.unread:
                self._follow_recorded(key, question)

    def skip(self, n_cached: int, n_left_out: int) -> None:
        """Take all questions for looked at: so many distinct calls, all of them recorded."""
        self.n_distinct = self.n_cached = n_cached
        self.n_left_out = n_left_out
        self.exhausted = True

    def follow(self, draft: Draft, response: Response, decision: Decision) -> bool:
        """Queue the second call after an unread answer, unless none follows or it was met before.

        Returns:
            True if it is (or was) asked, so that the unread answer does not count.
        """
        second = self._drafter.second(draft, response, decision)
        if second is None:
            return False
        call = self._store.recorded([second.key]).get(second.key)
        if self._drafter.leaves_out(second):
            self.n_left_out += call is not None
            return False
        if call is None and self._drafter.cannot_ask(second):
            return False
        if self._is_new(second.key, call):
            self.n_seconds += 1
            if call is None:
                self._ready.append(second)
        return True

    def _is_new(self, key: bytes, call: Recorded | None) -> bool:
        """Whether a call is met for the first time; it is counted then.

        One that was not recorded when it was met may be by now.
        """
        if key in self._keys:
            return False
        if call is None or call.row is None:
            self._keys.add(key)
        elif not self._rows.add(call.row):
            return False
        self.n_cached += call is not None
        self.n_distinct += 1
        return True

    def _follow_recorded(self, key: bytes, question: Question) -> None:
        # a run may have been killed between an unread answer and its second call, or older rules
        # may have read the answer
        call = self._store.get(key)
        if call is None:
            return
        draft = self._drafter.recorded(question, key, call[0])
        self.follow(draft, call[1], draft.read(call[1]))


class _Rows:
    """A set of row numbers of a file, a byte each where they lie close together."""

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = {}

    def add(self, row: int) -> bool:
        """Put a number in; whether it is new."""
        page = self._pages.get(row >> PAGE_BITS)
        if page is None:
            page = self._pages[row >> PAGE_BITS] = bytearray(1 << PAGE_BITS)
        place = row & ((1 << PAGE_BITS) - 1)
        is_new = not page[place]
        page[place] = 1
        return is_new
