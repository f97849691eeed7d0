"""Recorded calls without a file: those used last, as many as fit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from unswayed.calls import Request, Response
from unswayed.store.records import Recorded, Totals, prompt_bytes

ENTRY_BYTES: Final = 220
"""What a key and its answer take besides the answer's own bytes (measured: 173 to 212)."""
LOST: Final = b""
"""Stands for the answer of a call that failed."""

_ENCODER: Final = msgspec.json.Encoder()
_RESPONSE: Final = msgspec.json.Decoder(Response)


class Memory:
    """The answers used last, by key; the ones not used for longest are forgotten.

    Answers are kept as JSON, whose size is known: one label with five logprobs counts about 0.5 kB
    and with twenty 0.8 kB, `ENTRY_BYTES` included. Requests are not kept. All methods may be called
    from any thread.

    Args:
        most_bytes: What keys and answers may take together.

    Attributes:
        n_bytes: What they take.
    """

    def __init__(self, most_bytes: int) -> None:
        self.n_bytes = 0
        self._most_bytes = most_bytes
        self._answers: OrderedDict[bytes, bytes] = OrderedDict()
        self._notes: dict[str, str] = {}
        self._totals = Totals(0, 0, 0, 0, 0.0, 0, 0)
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._answers)

    def recorded(self, keys: Iterable[bytes]) -> dict[bytes, Recorded]:
        """Return the answered `keys` that are not forgotten, without row or unread mark."""
        with self._guard:
            return {key: Recorded(None, unread=False) for key in keys if self._answers.get(key)}

    def known(self, keys: Iterable[bytes]) -> set[bytes]:
        """Those of `keys` that were answered and are not forgotten."""
        return set(self.recorded(keys))

    def failed(self, keys: Iterable[bytes]) -> set[bytes]:
        """Those of `keys` that failed and were not answered since."""
        with self._guard:
            return {key for key in keys if self._answers.get(key) == LOST}

    def responses(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, Response]]:
        """The responses of those of `keys` that are not forgotten, which they are then used last."""
        for key in keys:
            with self._guard:
                answer = self._answers.get(key)
                if not answer:
                    continue
                self._answers.move_to_end(key)
            yield key, _RESPONSE.decode(answer)

    def get(self, key: bytes) -> None:
        """No call can be given whole: requests are not kept."""

    def totals(self) -> Totals:
        """What all calls have cost so far, those that are forgotten included."""
        return self._totals

    def noted(self, name: str) -> str | None:
        """What was noted under a name."""
        return self._notes.get(name)

    def note(self, name: str, value: str) -> None:
        """Note something about the calls."""
        self._notes[name] = value

    def put(self, key: bytes, request: Request, response: Response) -> None:
        """Keep an answer that is `readable`, and count what it cost.

        Args:
            key: Of the call.
            request: Counted only.
            response: The answer.
        """
        answer = bytes(bytearray(_ENCODER.encode(response)))  # as encoded it has room to spare
        with self._guard:
            before = self._totals
            self._totals = Totals(
                before.calls + 1,
                before.input_tokens + response.input_tokens,
                before.cached_tokens + response.cached_tokens,
                before.output_tokens + response.output_tokens,
                before.cost_usd + (response.cost_usd or 0.0),
                before.prompt_bytes + prompt_bytes(request),
                before.max_tokens + request.max_tokens,
            )
            self._keep(key, answer)

    def put_failure(self, key: bytes) -> None:
        """Keep that a call failed; a later answer clears it."""
        with self._guard:
            self._keep(key, LOST)

    def close(self) -> None:
        """Forget everything but the totals."""
        with self._guard:
            self._answers.clear()
            self.n_bytes = 0

    def _keep(self, key: bytes, answer: bytes) -> None:
        self._drop(key)
        self._answers[key] = answer
        self.n_bytes += len(answer) + ENTRY_BYTES
        while self.n_bytes > self._most_bytes:
            self._drop(next(iter(self._answers)))

    def _drop(self, key: bytes) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self.n_bytes -= len(answer) + ENTRY_BYTES
