"""The distinct calls that are not recorded yet, found lazily."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from typing import Final

from unswayed.parsing import was_truncated
from unswayed.runner.keys import Question
from unswayed.runner.questions import Draft, Drafter
from unswayed.store import Pool, Recorded

__all__ = ["MissingCalls"]

CHUNK: Final = 100
"""Questions drafted at a time: about 5 ms of work between two looks at the network."""
PAGE_BITS: Final = 12


class MissingCalls:
    """A queue of drafts to send, filled from the questions as they are needed.

    Memory holds one chunk of drafts, the keys of calls that no file has (about 100 bytes each)
    and a byte for every other, however many questions there are.

    Attributes:
        n_questions: Questions looked at.
        n_distinct: Distinct calls among them, retries of cut-off answers included.
        n_cached: Those that are recorded.
        exhausted: Whether all questions were looked at.
    """

    def __init__(self, questions: Iterable[Question], drafter: Drafter, store: Pool) -> None:
        self.n_questions = 0
        self.n_distinct = 0
        self.n_cached = 0
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
            elif call.truncated:
                self._retry_recorded(key, question)

    def skip(self, n_cached: int) -> None:
        """Take all questions for looked at: so many distinct calls, all of them recorded."""
        self.n_distinct = self.n_cached = n_cached
        self.exhausted = True

    def add_retry(self, draft: Draft) -> bool:
        """Queue the longer retry of a cut-off answer, unless there is none or it was met before.

        Returns:
            Whether a retry is (or was) asked for, so that the cut-off answer does not count.
        """
        longer = self._drafter.longer(draft)
        if longer is None:
            return False
        call = self._store.recorded([longer.key]).get(longer.key)
        if self._is_new(longer.key, call) and call is None:
            self._ready.append(longer)
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

    def _retry_recorded(self, key: bytes, question: Question) -> None:
        # a run may have been killed between a cut-off answer and its retry
        call = self._store.get(key)
        if call is None:
            return
        draft = self._drafter.recorded(question, key, call[0])
        if self._drafter.longer_key(key) or was_truncated(call[1], draft.read(call[1])):
            self.add_retry(draft)


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
