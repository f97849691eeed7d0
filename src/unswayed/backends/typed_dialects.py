"""Typed questions (`typed.py`) about one state in one request, in the words of an API (`typed_apis.py`).

The response holds all answers as they came; `read` reads one of them.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from unswayed.backends.dialect import Dialect, Traits, merged, token_count
from unswayed.backends.typed_apis import Json, SystemOne, TypedQuestion
from unswayed.base.errors import BadResponseError
from unswayed.model.calls import Request, Response, TokenLogprob

MALFORMED: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


def is_cut(usage: Json) -> bool:
    """Return True if the server cut the state; the answers then belong to a part of it."""
    return bool(usage.get("truncated") or usage.get("state_tokens_dropped"))


class TypedDialect(Dialect):
    """An API of decision models, for one model."""

    traits = Traits(temperature=False, seed=False)

    def __init__(self, api: SystemOne, model: str) -> None:
        self._api, self._model, self.path = api, model, api.path
        self.fields = ("model", api.state, "questions")

    def encode(self, request: Request, traits: Traits) -> bytes:
        """Return the body that asks every message of a request as a question."""
        asked = [json.loads(message.content) for message in request.messages]
        questions = {f"q{place}": self._question(own, place).raw for place, own in enumerate(asked)}
        state = self._api.text(asked[0]["state"])
        body = {"model": self._model, self._api.state: state}
        body["questions"] = self._api.collect(questions)
        return merged(json.dumps(body).encode(), request)

    def _question(self, asked: Any, place: int) -> TypedQuestion:
        return self._api.asked(f"q{place}", asked["kind"], asked["ask"], asked["options"])

    def decode(self, body: bytes) -> Response:
        """Return all answers of a 200 body as they are, as the text of one response."""
        try:
            said = json.loads(body)
            usage = said.get("usage") or {}
            details = usage.get("input_tokens_details") or {}
            read, written = map(
                token_count, (usage.get("input_tokens"), usage.get("output_tokens", 0))
            )
            return Response(
                text=json.dumps(None if is_cut(usage) else said["answers"]),
                input_tokens=read or 0,
                cached_tokens=token_count(details.get("cached_tokens")) or 0,
                output_tokens=written or 0,
                usage_known=read is not None and written is not None,
                model=None if said.get("model") is None else str(said["model"]),
            )
        except MALFORMED as error:
            raise BadResponseError(f"not an answer to typed questions: {error!r:.200}") from None

    def read(
        self, asked: Any, place: int, answers: Any, count: int
    ) -> tuple[tuple[TokenLogprob, ...], bool]:
        """Return the distribution of one of `count` answers; True with it if it is rounded to two decimals.

        Raises:
            BadResponseError: If it is not a distribution over the options that were asked.
        """
        question = self._question(asked, place)
        try:
            if answers is None:
                raise ValueError("the server cut the state")
            if isinstance(answers, list) and len(answers) != count:
                raise ValueError(f"{count} questions, {len(answers)} answers")
            answer = self._api.one(answers, f"q{place}", place)
            shares = self._api.probabilities(question, answer)
        except MALFORMED as error:
            raise BadResponseError(f"no answer to the question: {error!r:.200}") from None
        if shares is None:
            return (), False
        places = ((option.value, p) for option, p in zip(question.options, shares[0], strict=True))
        labels = ((v if isinstance(v, str) else asked["options"][v][0], p) for v, p in places)
        tops = (TokenLogprob(label, math.log(p)) for label, p in labels)
        return tuple(sorted(tops, key=lambda top: (-top.logprob, top.token))), shares[1]
