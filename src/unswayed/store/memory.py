"""Recorded calls without a file: all of them, or those used last, as many as fit."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import add
from typing import Final, Self

import msgspec

from unswayed.model.calls import Failure, Request, Response
from unswayed.model.items import ItemSet
from unswayed.store.records import Recorded, Totals, written

ENTRY_BYTES: Final = 220
"""Bytes of a key and its answer, without the answer's own bytes (measured: 173 to 212)."""
LOST: Final = b""
"""Stands for the answer of a call that failed."""

_REQUEST: Final = msgspec.json.Decoder(Request)
_RESPONSE: Final = msgspec.json.Decoder(Response)


class Memory:
    """The answers used last, by key; the ones not used for longest are forgotten.

    Keys and answers take at most `most_bytes` together. Answers are kept as JSON, whose size is known: one label
    with five logprobs counts about 0.5 kB and with twenty 0.8 kB, `ENTRY_BYTES` included. Requests, which are
    not counted, are for `get` alone. All methods are those of a `CallStore`, and may be called from any thread.
    """

    read_only: Final = False
    damaged: Final = 0

    def __init__(self, most_bytes: float = math.inf, *, keeps_requests: bool = True) -> None:
        self.n_bytes = 0
        self._most_bytes = most_bytes
        self._answers: OrderedDict[bytes, bytes] = OrderedDict()
        self._unread: set[bytes] = set()
        self._requests: dict[bytes, bytes] | None = {} if keeps_requests else None
        self._notes: dict[str, str] = {}
        self._totals = Totals.of(())
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._answers)

    def bind(self, *, model: str, items: ItemSet) -> None:
        """Do nothing: memory is of one model and its data."""

    def index(self) -> None:
        """Do nothing: every key is found at once."""

    def recorded(self, keys: Iterable[bytes]) -> dict[bytes, Recorded]:
        """Return the answered `keys` that are not forgotten."""
        with self._guard:
            return {
                key: Recorded(None, unread=key in self._unread)
                for key in keys
                if self._answers.get(key)
            }

    def failed(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return the `keys` that failed and were not answered since."""
        with self._guard:
            return {key for key in keys if self._answers.get(key) == LOST}

    def responses(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, Response]]:
        """Yield the responses of those of `keys` that are not forgotten; they are then used last."""
        for key in keys:
            with self._guard:
                answer = self._answers.get(key)
                if not answer:
                    continue
                self._answers.move_to_end(key)
            yield key, _RESPONSE.decode(answer)

    def get(self, key: bytes) -> tuple[Request, Response] | None:
        """Return one call, or None if its request or its answer is not kept."""
        request = (self._requests or {}).get(key)
        answers = dict(self.responses((key,)))
        return (_REQUEST.decode(request), answers[key]) if request and answers else None

    def totals(self) -> Totals:
        """Return what all calls have cost so far, those that are forgotten included."""
        return self._totals

    def noted(self, name: str) -> str | None:
        """Return what was noted under a name."""
        return self._notes.get(name)

    def note(self, name: str, value: str) -> None:
        """Note something about the calls."""
        self._notes[name] = value

    def put_many(
        self, rows: Sequence[tuple[bytes, Request, Response]], *, unread: Collection[bytes] = ()
    ) -> None:
        """Keep answers, and count what they cost."""
        for key, request, response in rows:
            encoded, response = written(response)
            with self._guard:
                # as encoded it has room to spare
                self._keep(key, bytes(bytearray(encoded)), is_unread=key in unread)
                if self._requests is not None and key in self._answers:
                    self._requests[key] = msgspec.json.encode(request)
                new = Totals.of(((key, request, response),))
                self._totals = Totals(*map(add, self._totals, new))

    def put_failures(self, rows: Sequence[tuple[bytes, Request, Failure]]) -> None:
        """Keep that calls failed; a later answer clears it."""
        with self._guard:
            for key, _, _ in rows:
                self._keep(key, LOST, is_unread=False)

    def close(self) -> None:
        """Forget everything but the totals."""
        with self._guard:
            self._answers.clear()
            self._unread.clear()
            self._requests = None
            self.n_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _keep(self, key: bytes, answer: bytes, *, is_unread: bool) -> None:
        self._drop(key)
        self._answers[key] = answer
        if is_unread:
            self._unread.add(key)
        self.n_bytes += len(answer) + ENTRY_BYTES
        while self.n_bytes > self._most_bytes:
            self._drop(next(iter(self._answers)))

    def _drop(self, key: bytes) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self.n_bytes -= len(answer) + ENTRY_BYTES
            self._unread.discard(key)
            if self._requests is not None:
                self._requests.pop(key, None)
