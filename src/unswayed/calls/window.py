"""The distinct calls behind questions, looked up lazily: what is recorded, and what is to be sent."""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from unswayed.backends.protocol import Outcome
from unswayed.calls.counts import RunCounts
from unswayed.calls.drafts import Draft
from unswayed.calls.keys import Question
from unswayed.calls.questions import Drafter
from unswayed.calls.reading import with_costs_of
from unswayed.model.calls import Failure, Response
from unswayed.model.decisions import Decision
from unswayed.model.parsing import is_unread
from unswayed.store import Pool, Recorded, readable

CHUNK: Final = 100
"""Questions drafted at a time: about 5 ms of work between two looks at the network."""
PAGE: Final = 4096


class Window:
    """The drafts to send, taken from the questions as they are needed.

    Memory holds one chunk of drafts, the keys of calls that no file has (about 100 bytes each)
    and a byte for every other, however many questions there are.

    Distinct calls are counted as they are met: recorded, left out or neither.
    """

    def __init__(
        self, questions: Iterable[Question], drafter: Drafter, pool: Pool, counts: RunCounts
    ) -> None:
        self.ready: deque[Draft] = deque()
        self.n_questions = 0
        self.n_seconds = 0
        self.exhausted = False
        self._questions = iter(questions)
        self._drafter = drafter
        self._pool = pool
        self._counts = counts
        self._keys: set[bytes] = set()
        # numbers of the file's rows that were met, a byte each where they lie close together
        self._rows = defaultdict[int, bytearray](lambda: bytearray(PAGE))

    def look(self) -> None:
        """Look at one chunk of questions; afterwards drafts may be ready."""
        chunk = list(itertools.islice(self._questions, CHUNK))
        self.exhausted = len(chunk) < CHUNK
        self.n_questions += len(chunk)
        first: dict[bytes, Question] = {}
        drafted: dict[bytes, Draft] = {}
        for question, (key, draft) in zip(chunk, self._addresses(chunk), strict=True):
            first.setdefault(key, question)
            if draft is not None:
                drafted[key] = draft
        recorded = self._recorded(first)
        for key, question in first.items():
            call = recorded.get(key)
            if not self._is_new(key, call):
                continue
            if call is None:
                self.ready.append(drafted.get(key) or self._drafter.draft(question, key))
            elif call.unread:
                # a run may have been killed between an unread answer and its second call, or older
                # rules may have read the answer
                draft = drafted.get(key) or self._drafter.draft(question, key)
                for _, response in self._pool.responses((key,)):
                    self._follow(draft, response, draft.read(response))

    def skip(self, n_cached: int, n_left_out: int) -> None:
        """Take all questions for looked at: so many distinct calls, all of them recorded."""
        self._counts.planned += n_cached
        self._counts.cached += n_cached
        self._counts.left_out += n_left_out
        self.exhausted = True

    def answered(self, draft: Draft, response: Response) -> tuple[Decision, bool]:
        """Read an answer. Return its decision, and True if a second call follows or followed."""
        decision = draft.read(response)
        return decision, self._follow(draft, response, decision) is not None

    def failed(self, draft: Draft, failure: Failure) -> None:
        """Take note of a call that failed."""

    def _addresses(self, chunk: Sequence[Question]) -> Sequence[tuple[bytes, Draft | None]]:
        return self._drafter.addresses(chunk)

    def _recorded(self, first: Mapping[bytes, Question]) -> Mapping[bytes, Recorded]:
        return self._pool.recorded(first)

    def _follow(self, draft: Draft, response: Response, decision: Decision) -> Draft | None:
        """Make the second call after an unread answer ready, unless none follows or it was met before."""
        second = self._drafter.second(draft, response, decision)
        if second is None:
            return None
        call = self._pool.recorded([second.key]).get(second.key)
        if self._drafter.leaves_out(second):
            self._counts.left_out += call is not None
            return None
        if call is None and self._drafter.cannot_ask(second):
            return None
        if self._is_new(second.key, call):
            self.n_seconds += 1
            if call is None:
                self.ready.append(second)
        return second

    def _is_new(self, key: bytes, call: Recorded | None) -> bool:
        """Return True, and count the call, if it is met for the first time.

        One that was not recorded when it was met may be by now.
        """
        if key in self._keys:
            return False
        if call is None or call.row is None:
            self._keys.add(key)
        else:
            page, place = divmod(call.row, PAGE)
            if self._rows[page][place]:
                return False
            self._rows[page][place] = 1
        self._counts.cached += call is not None
        self._counts.planned += 1
        return True


class Kept(Window):
    """A window over a few questions that keeps what came of them, for their decisions."""

    def __init__(
        self, questions: Iterable[Question], drafter: Drafter, pool: Pool, counts: RunCounts
    ) -> None:
        super().__init__(questions, drafter, pool, counts)
        self._asked: list[tuple[Question, bytes]] = []
        self._outcomes: dict[bytes, Outcome] = {}
        self._decisions: dict[bytes, Decision] = {}  # of the first question with that key
        self._seconds: dict[bytes, Draft] = {}

    def answered(self, draft: Draft, response: Response) -> tuple[Decision, bool]:
        """Keep an answer as it would be read from a file."""
        response = self._outcomes[draft.key] = readable(response)
        decision, is_followed = super().answered(draft, response)
        self._decisions[draft.key] = decision
        return decision, is_followed

    def failed(self, draft: Draft, failure: Failure) -> None:
        """Keep why a call failed."""
        self._outcomes[draft.key] = failure

    def decisions(self) -> list[Decision | None]:
        """Return the decision on each question; None where it has no answer."""
        return [self._decision(question, key) for question, key in self._asked]

    def reasons(self) -> list[str | None]:
        """Return why a question has no answer, where its call failed."""
        return [self._reason(question, key) for question, key in self._asked]

    def _addresses(self, chunk: Sequence[Question]) -> Sequence[tuple[bytes, Draft | None]]:
        addresses = super()._addresses(chunk)
        keys = (key for key, _ in addresses)
        self._asked += zip(chunk, keys, strict=True)
        return addresses

    def _recorded(self, first: Mapping[bytes, Question]) -> Mapping[bytes, Recorded]:
        recorded = {}
        new = [key for key in first if key not in self._outcomes]
        for key, response in self._pool.responses(new):
            self._outcomes[key] = response
            decision = self._decisions[key] = self._drafter.read(first[key], response)
            recorded[key] = Recorded(None, unread=is_unread(response, decision))
        return recorded

    def _follow(self, draft: Draft, response: Response, decision: Decision) -> Draft | None:
        second = super()._follow(draft, response, decision)
        if second is not None:
            self._seconds[draft.key] = second
            self._outcomes.update(self._pool.responses([second.key]))
        return second

    def _decision(self, question: Question, key: bytes) -> Decision | None:
        """Return the decision on a question, from the second call if the first answer was unread."""
        response = self._outcomes.get(key)
        if not isinstance(response, Response):
            return None
        decision = self._decisions[key]
        if (decision.item_id, decision.ask) != (question.item.id, question.ask):
            decision = self._drafter.read(question, response)
        second = self._seconds.get(key)
        if second is None:
            return decision
        later = self._outcomes.get(second.key)
        if not isinstance(later, Response):
            return None  # what it would have said may come yet
        return with_costs_of(second._replace(question=question).read(later), decision)

    def _reason(self, question: Question, key: bytes) -> str | None:
        second = self._seconds.get(key)
        outcome = self._outcomes.get(key if second is None else second.key)
        if not isinstance(outcome, Failure):
            return None
        return outcome.message.removeprefix(f"{question.item.id}: ")
