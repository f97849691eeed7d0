"""Answers that were recorded earlier: `replay/<decisions.jsonl or run directory>`.

Never touches the network: what was not recorded is a failed call. From a run directory the very
calls come back, under the name of the model that made them. From decisions, whose prompts are not
known, an answer is found by item and question, and says what the decision said.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from unswayed.backends import BackendSettings, open_backend
from unswayed.backends.protocol import Backend, Outcome, ranked
from unswayed.base.errors import ItemError, RunDirectoryError, UnswayedError, UsageError
from unswayed.data.importers import read_decisions_file
from unswayed.model.calls import Failure, Query, Request, Response, key_of
from unswayed.model.decisions import Decision
from unswayed.model.items import iter_lines, suffix
from unswayed.model.presentation import Ask
from unswayed.model.tasks import task_of
from unswayed.store import CallStore

IMPOSSIBLE: Final = -9999.0
"""Logprob of a label with probability 0, as OpenAI's API writes it."""
NOT_RECORDED: Final = "(not recorded)"
"""Stands for the first reply of a question that was asked again: decisions hold the second alone."""


def open_replay(model: str, settings: BackendSettings) -> ReplayBackend:
    """Answers recorded earlier: `replay/<decisions.jsonl or run directory>`."""
    path = Path(model).expanduser()
    if path.is_dir():
        return _from_run(path, settings)
    if path.is_file():
        return _from_decisions(path)
    raise UsageError(
        f"replay/{model}: there is no such file or directory. Give a decisions.jsonl or a run "
        "directory."
    )


class ReplayBackend(Backend):
    """Looks answers up.

    `find` gives the recorded answer to a query, `has` says whether a call that asks again was
    recorded, and `original` is the backend whose calls they are, if it is on this machine.
    """

    offline = True

    def __init__(
        self,
        model: str,
        find: Callable[[Query], Response | None],
        *,
        source: str,
        gives_logprobs: bool,
        keyed_by_item: bool = False,
        original: Backend | None = None,
        release: Callable[[], None] = lambda: None,
        has: Callable[[Request], bool] = lambda request: False,
        extra_body: str | msgspec.UnsetType | None = None,
    ) -> None:
        self.model = model
        self.extra_body = extra_body or None
        self.gives_logprobs = gives_logprobs
        self.keyed_by_item = keyed_by_item
        if original is not None:
            self.own_prompt = original.own_prompt
            self.planted = original.planted
            self.writes = original.writes
        self._find = find
        self._has = has
        self._source = source
        self._release = release

    def respond(self, query: Query) -> Outcome:
        """Return the recorded answer, or a failure."""
        return self._find(query) or self._missing(query)

    def converses(self, request: Request) -> bool:
        """Return True if the call was recorded."""
        return self._has(request)

    async def close(self) -> None:
        """Close the file."""
        self._release()

    def _missing(self, query: Query) -> Failure:
        order, labels = query.ask.presentation
        symbols = [query.request.labels[label] for label in labels]
        return Failure(
            error="BackendError",
            message=f"{query.item.id}: {self._source} has no answer for order {list(order)}, "
            f"labels {symbols}, prompt {query.ask.prompt_id!r}, sample {query.ask.sample}. "
            "Replay asks no model: record it with the model itself, or ask what was recorded.",
        )


def _from_run(path: Path, settings: BackendSettings) -> ReplayBackend:
    store = CallStore.open(path, read_only=True)
    model = store.model
    if model is None:
        store.close()
        raise RunDirectoryError(f"{path} holds no calls: no run was made in it.")

    def find(query: Query) -> Response | None:
        call = store.get(key_of(query.request))
        return None if call is None else msgspec.structs.replace(call[1], cost_usd=0.0)

    first = next(store.calls(), None)
    return ReplayBackend(
        model,
        find,
        source=str(path),
        gives_logprobs=first is None or first.request.top_logprobs > 0,
        keyed_by_item=store.keyed_by_item,
        original=_original(model, settings),
        release=store.close,
        has=lambda request: bool(store.recorded([key_of(request)])),
        extra_body=settings.extra_body or (first and first.request.extra_body),
    )


def _original(model: str, settings: BackendSettings) -> Backend | None:
    """Return the recorded model, for what its calls depend on beside their prompts; nothing asks it."""
    try:
        return open_backend(model, replace(settings, pricing_only=True))
    except UnswayedError:
        return None  # it is on this machine no more, or wants a key


def _from_decisions(path: Path) -> ReplayBackend:
    recorded: dict[tuple[str, Ask, tuple[str, ...]], Decision] = {}
    for decision in read_decisions_file(path):
        first = recorded.setdefault((decision.item_id, decision.ask, decision.label_set), decision)
        if first is not decision:
            raise ItemError(
                f"{path}: {decision.item_id}: the same question was answered twice, by {first.model} "
                f"and by {decision.model}. Replay the decisions of one model."
            )
    digest = hashlib.sha256()
    for _, line in iter_lines(path):
        digest.update(line)

    def asks_again(request: Request) -> bool:
        return any(message.content == NOT_RECORDED for message in request.messages)

    def find(query: Query) -> Response | None:
        item = query.item
        points = task_of(item.task).points
        if points is None:
            decision = recorded.get((item.id, query.ask, query.request.labels))
            if decision is not None and decision.reasked and not asks_again(query.request):
                return Response(text=NOT_RECORDED, cost_usd=0.0, model=decision.model)
            return None if decision is None else _as_response(decision)
        said = {
            name: decision
            for name in points.names(item, query.ask)
            if (
                decision := recorded.get(
                    (item.asked_as + suffix(name), query.ask, query.request.labels)
                )
            )
        }
        if not said:
            return None
        texts = {name: _as_response(decision).text for name, decision in said.items()}
        first = _as_response(next(iter(said.values())))
        return msgspec.structs.replace(first, text=points.joined(texts))

    return ReplayBackend(
        f"replay/{path}@sha256:{digest.hexdigest()[:16]}",
        find,
        source=str(path),
        gives_logprobs=any(decision.probs is not None for decision in recorded.values()),
        has=asks_again,
    )


def _as_response(decision: Decision) -> Response:
    """Return a response that reads back as the decision."""
    shown = decision.presentation
    if isinstance(decision.choice, int):
        text = decision.label_set[shown.label_of_candidate(decision.choice)]
    else:
        text = decision.choice or decision.text or ""
    tops = None
    if decision.probs is not None:
        mass = 1.0 if decision.label_mass is None else decision.label_mass
        by_label = [decision.probs[candidate] for candidate in shown.candidates_by_label()]
        tops = ranked(decision.label_set, [_log(mass * share) for share in by_label])
    return Response(
        text=text,
        tokens=None if tops is None else (tops[0].token,),
        top_logprobs=None if tops is None else (tops,),
        exact=tops is not None,
        finish_reason=(decision.finish_reason if decision.choice is None else None) or "stop",
        input_tokens=decision.input_tokens,
        output_tokens=decision.output_tokens,
        cost_usd=0.0,
        latency_s=decision.latency_s or 0.0,
        model=decision.model,
    )


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else IMPOSSIBLE
