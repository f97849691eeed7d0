"""The two APIs of decision models, `POST systemone` and `POST decisions`: their questions and answers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from unswayed.backends.function import LEAST
from unswayed.base.digests import digest
from unswayed.base.errors import UnswayedError
from unswayed.model.permutations import Order

Json = dict[str, Any]  # Any: a JSON value

JOINT: Final = "\x1f"
"""Separates the name of a question from the number of its order."""
SIDES: Final = {"true", "false"}
"""Names of the described sides of a yes-no question."""
EQUAL: Final = 1e-12
"""Mean probabilities closer than this are equal."""
HALF_STEP: Final = 0.005
"""Probability in place of 0 where the server rounds to two decimals."""
SLACK: Final = 1e-6
"""Excess below 0 or above 1 that the arithmetic of a server explains."""


class ServeError(UnswayedError):
    """A request without an answer: the status and the words for the client."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class TypedOption(NamedTuple):
    """An option: its value (of a level its place), its text, and the client's entry."""

    value: str | bool | int
    text: Any
    entry: Any

    @property
    def name(self) -> str:
        """The value as a name in System One."""
        return name_of(self.value)


class TypedQuestion(NamedTuple):
    """A question: its API and kind, the options to rearrange, and the client's object."""

    api: SystemOne
    kind: str  # choice, score, noul (yes or no), or a type that is passed on
    options: tuple[TypedOption, ...]
    raw: Json

    def arranged(self, order: Order, labels: Order | None = None) -> TypedQuestion:
        """Return the question with option `order[p]` at place p, under the name of option `labels[p]`."""
        options = [self.options[c] for c in order]
        for place, label in enumerate(labels or ()):
            value = self.options[label].value
            entry = options[place].entry
            if self.api.path == Decisions.path:
                entry = {**entry, "value": value}
            options[place] = TypedOption(value, options[place].text, entry)
        return self._replace(options=tuple(options))


def name_of(value: str | bool | int) -> str:
    """Return a value as a name in System One."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def need(valid: object, status: int, words: str) -> None:
    """Refuse a request that is not valid."""
    if not valid:
        raise ServeError(status, words)


def parsed(raw: bytes) -> Any:
    """Return the value of JSON without repeated names, NaN and infinite numbers.

    Raises:
        ValueError: If it is anything else.
    """

    def unique(pairs: list[tuple[str, Any]]) -> Json:
        if len(named := dict(pairs)) < len(pairs):
            raise ValueError("a name occurs twice in an object")
        return named

    def constant(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    def finite(digits: str) -> float:
        if math.isinf(value := float(digits)):
            raise ValueError("a number is too large")
        return value

    try:
        return json.loads(
            raw, object_pairs_hook=unique, parse_constant=constant, parse_float=finite
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


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


def figures(question: TypedQuestion, probs: Sequence[float]) -> Json:
    """Return choice or score, and confidence as System One defines it.

    Equal probabilities are decided by a hash of the name, never by the place.
    """
    n, most = len(probs), max(probs)
    equal = [place for place in range(n) if probs[place] >= most - EQUAL]
    best = min(equal, key=lambda place: digest(question.options[place].name))
    if question.kind == "choice":
        sure = (most - 1 / n) / (1 - 1 / n) if n > 1 else 1.0
        named: Json = {"choice": question.options[best].value}
    else:
        even = sum(abs(level - (n - 1) / 2) for level in range(n)) / n
        spread = sum(p * abs(level - best) for level, p in enumerate(probs))
        sure = 1 - spread / even if n > 1 else 1.0
        named = {"score": sum(level * p for level, p in enumerate(probs))}
    return {"type": question.kind, **named, "confidence": max(0.0, sure)}


SHARED: Final = frozenset({"model", "questions"})
"""Fields of both APIs."""


class SystemOne:
    """`POST /v1/systemone`: questions and answers by name."""

    path, state, binary, invalid = "systemone", "state", "noul", 422
    fields = SHARED | {"state"}

    def body(self, raw: bytes, model: str) -> Json:
        """Return the body of a request to a model; an empty name accepts any."""
        try:
            body = parsed(raw)
        except ValueError as error:
            raise ServeError(self.invalid, f"the body is not JSON: {error}") from None
        need(isinstance(body, dict), self.invalid, "the body is not a JSON object")
        need(not body.get("stream"), self.invalid, "stream: decisions are not streamed")
        need(body.get("model") == model or not model, 404, f"model: only {model} is served here")
        return dict(body)

    def read(self, body: Json) -> dict[str, TypedQuestion]:
        """Return the questions of a request."""
        asked = body.get("questions")
        need(isinstance(asked, dict) and asked, self.invalid, "questions: empty or not an object")
        need(JOINT not in "".join(asked or ()), self.invalid, "questions: a name contains U+001F")
        return {name: self._question(raw) for name, raw in (asked or {}).items()}

    def _question(self, raw: Json) -> TypedQuestion:
        need(isinstance(raw, dict), self.invalid, "questions: a question is not an object")
        kind, criteria, bad = str(raw.get("type")), raw.get("criteria"), self.invalid
        if kind == "choice":
            need(isinstance(criteria, dict) and criteria, bad, "criteria: empty or not an object")
        elif kind == "score":
            need(isinstance(criteria, list) and criteria, bad, "criteria: empty or not a list")
            criteria = dict(enumerate(criteria or ()))
        elif kind != "noul" or not isinstance(criteria, dict) or set(criteria) != SIDES:
            criteria = {}
        options = ((value, text, text) for value, text in (criteria or {}).items())
        return TypedQuestion(self, kind, tuple(TypedOption(*option) for option in options), raw)

    def asked(
        self, name: str, kind: str, ask: str, options: Sequence[tuple[str, str]]
    ) -> TypedQuestion:
        """Return a question about options, each with its label and text; `true` and `false` are a yes-no question."""
        criteria: Any = dict(options)
        if kind == "score":
            criteria = [text for _, text in options]
        elif criteria.keys() == SIDES:
            kind, criteria = "noul", {side: criteria[side] for side in ("true", "false")}
        return self._question({"type": kind, "instructions": ask, "criteria": criteria})

    def write(self, body: Json, asked: Mapping[str, TypedQuestion], client: SystemOne) -> Json:
        """Return the body of a request with these questions, from a body of the client's API."""
        if client is not self:
            rest = ", ".join(sorted(body.keys() - client.fields))
            need(not rest, client.invalid, f"{rest}: unknown to the API of the model")
            body = {"model": body.get("model"), self.state: self.text(body.get(client.state))}
        questions = {name: self._written(name, question) for name, question in asked.items()}
        return {**body, "questions": self.collect(questions)}

    def _written(self, name: str, question: TypedQuestion) -> Json:
        kind, options, raw = question.kind, question.options, question.raw
        if question.api is not self:
            shared = kind in ("choice", "score") or (kind == "noul" and not options)
            need(shared, question.api.invalid, f"{kind}: unknown to the API of the model")
            raw = {"type": self.binary if kind == "noul" else kind}
            raw["instructions"] = self.text(question.raw.get("instructions"))
        return {**raw, **self.choices(question)} if options else raw

    def choices(self, question: TypedQuestion) -> Json:
        """Return the field of a question with its options."""
        texts = [option.text for option in question.options]
        if question.kind == "score":
            return {"criteria": texts}
        names = [option.name for option in question.options]
        need(len(set(names)) == len(names), 400, 'choices: true and "true" are one name here')
        sides = ("true", "false") if question.kind == "noul" else names
        return {"criteria": dict(zip(sides, texts, strict=True))}

    def text(self, content: object) -> object:
        """Return a content as this API takes it."""
        return content

    def collect(self, parts: Mapping[str, Json]) -> object:
        """Return questions or answers as a body holds them."""
        return parts

    def answers(self, said: Json, names: Sequence[str]) -> list[Json]:
        """Return the answers of a response in the order of the questions."""
        if len(said["answers"]) != len(names):
            raise ValueError(f"{len(said['answers'])} answers to {len(names)} questions")
        return [self.one(said["answers"], name, place) for place, name in enumerate(names)]

    def one(self, answers: Any, name: str, place: int) -> Json:
        """Return the answer to a question, which is found by its name in an object, by its place in a list."""
        return dict(answers[place if isinstance(answers, list) else name])

    def probabilities(
        self, question: TypedQuestion, answer: Json
    ) -> tuple[list[float], bool] | None:
        """Return the probability of each option of a question as asked; None for a refusal.

        The second value tells whether they are rounded to two decimals.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: If it is no distribution over the options.
        """
        if answer["type"] == "refusal":
            return None
        if question.kind == "noul":
            yes = answer["noul" if self.binary == "noul" else "probability"]
            return distribution([yes, 1 - yes])
        scale = question.kind == "score"  # its answer names levels by place
        rows, key = answer["probabilities"], str if scale else self.key
        if isinstance(rows, dict):
            rows = [{"value": value, "probability": p} for value, p in rows.items()]
        values = {key(row["value"]): row["probability"] for row in rows}
        names = [key(place if scale else o.value) for place, o in enumerate(question.options)]
        if values.keys() != set(names) or len(values) < len(rows):
            raise ValueError(f"options {sorted(values)}, asked were {sorted(names)}")
        return distribution([values[name] for name in names])

    def key(self, value: str | bool | int) -> str:
        """Return the key of an option among the probabilities of an answer, which also sorts the options."""
        return name_of(value)

    def answer(self, question: TypedQuestion, probs: Sequence[float] | None, raw: Json) -> Json:
        """Return an answer with these probabilities, or the refusal, with the other fields of `raw`."""
        if probs is None:
            need(raw, 502, "the model refused a question")
            return raw
        if question.kind == "noul":
            return {**raw, "type": "noul", "noul": probs[0]}
        reply = {**raw, **figures(question, probs)}
        if question.kind == "score":
            reply["legend"] = {option.name: option.text for option in question.options}
        else:
            reply["choice"] = name_of(reply["choice"])
        named = {o.name: p for o, p in zip(question.options, probs, strict=True)}
        return {**reply, "probabilities": named}

    def usage(self, tokens: Json) -> Json:
        """Return the token counts of the other API in this one's form."""
        return {key: tokens.get(key, 0) for key in ("input_tokens", "output_tokens")}

    def error(self, status: int, words: str) -> Json:
        """Return the body of an error."""
        if status != self.invalid:
            return {"detail": words}
        return {"detail": [{"loc": ["body"], "msg": words, "type": "value_error"}]}


LISTS: Final = {"choice": "choices", "score": "levels"}
"""Fields of OpenAI's questions that hold their options."""


class Decisions(SystemOne):
    """`POST /v1/decisions`, OpenAI's form: questions and answers by place."""

    path, state, binary, invalid = "decisions", "input", "predicate", 400
    fields = SHARED | {"input", "safety_identifier", "prompt_cache_key", "prompt_cache_options"}

    def read(self, body: Json) -> dict[str, TypedQuestion]:
        """Return the questions of a request."""
        asked = body.get("questions")
        need(isinstance(asked, list) and asked, self.invalid, "questions: empty or not a list")
        return {str(place): self._question(raw) for place, raw in enumerate(asked or ())}

    def _question(self, raw: Json) -> TypedQuestion:
        need(isinstance(raw, dict), self.invalid, "questions: a question is not an object")
        kind, options = str(raw.get("type")), tuple[TypedOption, ...]()
        if field := LISTS.get(kind):
            rows = raw.get(field)
            valid = isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows)
            need(valid, self.invalid, f"{field}: empty or not a list of objects")
            options = tuple(self._option(kind, *row) for row in enumerate(rows or ()))
            values = {json.dumps(option.value) for option in options}
            need(len(values) == len(options), self.invalid, f"{field}: a value occurs twice")
        return TypedQuestion(self, "noul" if kind == "predicate" else kind, options, raw)

    def asked(
        self, name: str, kind: str, ask: str, options: Sequence[tuple[str, str]]
    ) -> TypedQuestion:
        """Return a question about options, each with its label and text."""
        own = "label" if kind == "score" else "value"
        rows = [{own: label, "description": text} for label, text in options]
        return self._question({"name": name, "type": kind, "instructions": ask, LISTS[kind]: rows})

    def _option(self, kind: str, place: int, row: Json) -> TypedOption:
        name, text = row.get("value" if kind == "choice" else "label"), row.get("description")
        if not isinstance(name, str | bool):
            raise ServeError(self.invalid, "questions: an option has no name")
        if kind == "choice":
            return TypedOption(name, text, row)
        return TypedOption(place, f"{name}: {text}" if text else name, row)

    def _written(self, name: str, question: TypedQuestion) -> Json:
        reply = super()._written(name, question)
        # names are optional here, and no two questions may share one
        return {k: v for k, v in reply.items() if k != "name" or JOINT not in name}

    def choices(self, question: TypedQuestion) -> Json:
        """Return the field of a question with its options."""
        own, entries = question.api is self, []
        for option in question.options:
            told: Json = {"label": self.text(option.text)}
            if question.kind == "choice":
                told = {"value": option.value}
                if option.text is not None:
                    told["description"] = self.text(option.text)
            entries.append(option.entry if own else told)
        return {LISTS[question.kind]: entries}

    def text(self, content: object) -> object:
        """Return a content as this API takes it."""
        return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)

    def collect(self, parts: Mapping[str, Json]) -> object:
        """Return questions or answers as a body holds them."""
        return list(parts.values())

    def key(self, value: str | bool | int) -> str:
        """Return the key of an option or a level: `true` and `"true"` are two."""
        return json.dumps(value)

    def answer(self, question: TypedQuestion, probs: Sequence[float] | None, raw: Json) -> Json:
        """Return an answer with these probabilities, or the refusal, with the other fields of `raw`."""
        reply = {**raw, "name": question.raw.get("name")}
        if probs is None:
            return {**reply, "type": "refusal"}
        if question.kind == "noul":
            return {**reply, "type": "predicate", "probability": probs[0]}
        rows = zip(question.options, probs, strict=True)
        ranked: list[Json] = [{"value": option.value, "probability": p} for option, p in rows]
        if question.kind == "score":
            for row, option in zip(ranked, question.options, strict=True):
                row["label"] = option.entry["label"]
        return {**reply, **figures(question, probs), "probabilities": ranked}

    def usage(self, tokens: Json) -> Json:
        """Return the token counts of the other API in this one's form."""
        totals = super().usage(tokens)
        more = {"input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}}
        more["output_tokens_details"] = {"reasoning_tokens": 0}
        return {**totals, **more, "total_tokens": sum(totals.values())}

    def error(self, status: int, words: str) -> Json:
        """Return the body of an error."""
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": words, "type": kind, "param": None, "code": None}}


APIS: Final = {f"/v1/{api.path}": api for api in (SystemOne(), Decisions())}
"""The APIs by their routes."""
