"""The two APIs of decision models: `POST systemone` and `POST decisions`.

A dialect turns typed questions (`typed.py`) about one state into one request. Its response holds all answers
as they came; `read` reads one of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final

from unswayed.backends.dialect import Traits, merged, token_count
from unswayed.backends.function import LEAST
from unswayed.base.errors import BadResponseError
from unswayed.model.calls import Request, Response, TokenLogprob

POLES: Final = {"true", "false"}
"""Labels of two options that System One is asked about as a yes-no question."""
HALF_STEP: Final = 0.005
"""Probability in place of 0 where the server rounds to two decimals."""
SLACK: Final = 1e-6
"""Excess below 0 or above 1 that the arithmetic of a server explains."""
MALFORMED: Final = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


def distribution(values: Sequence[Any]) -> tuple[list[float], bool]:
    """Return probabilities above 0 that sum to 1; True with them if they are rounded to two decimals.

    Raises:
        ValueError: If they are none, or their sum is further from 1 than rounding explains.
    """
    inside = all(type(p) in (int, float) and -SLACK <= p <= 1 + SLACK for p in values)
    if not inside or abs(math.fsum(values) - 1) > 0.01 * len(values) + 0.001:
        raise ValueError(f"{values} is not a distribution")
    probs = [max(float(p), 0.0) for p in values]
    rounded = all(abs(100 * p - round(100 * p)) < 1e-6 for p in probs)
    probs = [p or (HALF_STEP if rounded else LEAST) for p in probs]
    total = math.fsum(probs)
    return [p / total for p in probs], rounded


class SystemOneDialect:
    """`POST systemone`: questions and options are JSON objects, whose order is the order of display."""

    path = "systemone"
    fields: tuple[str, ...] = ("model", "state", "questions")
    traits = Traits(temperature=False, seed=False)

    def __init__(self, model: str) -> None:
        self._model = model

    def headers(self, key: str) -> dict[str, str]:
        """Headers of every request."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def adapt(self, traits: Traits, words: str, request: Request) -> None:
        """None: nothing about a request can be put otherwise."""

    def encode(self, request: Request, traits: Traits) -> bytes:
        """Return the body that asks every message of a request as a question."""
        asked = [json.loads(message.content) for message in request.messages]
        return merged(json.dumps(self.body(asked)).encode(), request)

    def body(self, asked: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the body that asks questions about one state."""
        questions = {f"q{place}": self.question(own) for place, own in enumerate(asked)}
        return {"model": self._model, "state": asked[0]["state"], "questions": questions}

    def question(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return a question in the words of the API."""
        options: list[list[str]] = asked["options"]
        kind, criteria = asked["kind"], dict(options)
        if kind == "score":
            return {"type": kind, "instructions": asked["ask"], "criteria": [*criteria.values()]}
        if criteria.keys() == POLES:
            kind, criteria = "noul", {label: criteria[label] for label in ("true", "false")}
        return {"type": kind, "instructions": asked["ask"], "criteria": criteria}

    def decode(self, body: bytes) -> Response:
        """Return all answers of a 200 body as they are, as the text of one response."""
        try:
            said = json.loads(body)
            usage = said.get("usage") or {}
            is_cut = usage.get("truncated") or usage.get("state_tokens_dropped")
            details = usage.get("input_tokens_details") or {}
            read, written = map(
                token_count, (usage.get("input_tokens"), usage.get("output_tokens", 0))
            )
            return Response(
                text=json.dumps(None if is_cut else said["answers"]),
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
        labels = [label for label, _ in asked["options"]]
        names = [*map(str, range(len(labels)))] if asked["kind"] == "score" else labels
        try:
            if answers is None:
                raise ValueError("the server cut the state")
            answer = self.answer(answers, place, count)
            if answer["type"] == "refusal":
                return (), False
            shares = self.shares(answer)
            if shares.keys() != {*names}:
                raise ValueError(f"options {sorted(shares)}, asked were {sorted(names)}")
            probs, rounded = distribution([shares[name] for name in names])
        except MALFORMED as error:
            raise BadResponseError(f"no answer to the question: {error!r:.200}") from None
        tops = (TokenLogprob(k, math.log(p)) for k, p in zip(labels, probs, strict=True))
        return tuple(sorted(tops, key=lambda top: (-top.logprob, top.token))), rounded

    def answer(self, answers: Any, place: int, count: int) -> Any:
        """Return the answer to a question, which is found by its name."""
        return answers[f"q{place}"]

    def shares(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return the probabilities by the name that the server gives an option."""
        if answer["type"] == "noul":
            return {"true": answer["noul"], "false": 1 - answer["noul"]}
        return dict(answer["probabilities"])


class DecisionsDialect(SystemOneDialect):
    """`POST decisions`: questions and options are lists."""

    path = "decisions"
    fields: tuple[str, ...] = ("model", "input", "questions")

    def body(self, asked: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the body; a state that is not text is written as JSON."""
        state = asked[0]["state"]
        text = state if isinstance(state, str) else json.dumps(state, ensure_ascii=False)
        questions = [{"name": f"q{k}", **self.question(own)} for k, own in enumerate(asked)]
        return {"model": self._model, "input": text, "questions": questions}

    def question(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return a question in the words of the API."""
        kind = asked["kind"]
        name, field = ("label", "levels") if kind == "score" else ("value", "choices")
        options = [{name: label, "description": text} for label, text in asked["options"]]
        return {"type": kind, "instructions": asked["ask"], field: options}

    def answer(self, answers: Any, place: int, count: int) -> Any:
        """Return the answer to a question, which is found by its place."""
        if len(answers) != count:
            raise ValueError(f"{count} questions, {len(answers)} answers")
        return answers[place]

    def shares(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return the probabilities by value: the option's, or the place of a level."""
        rows = answer["probabilities"]
        shares = {str(row["value"]): row["probability"] for row in rows}
        if len(shares) < len(rows):
            raise ValueError("an option occurs twice")
        return shares
