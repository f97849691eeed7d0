"""Answers that were recorded earlier: `replay/<decisions.jsonl or run directory>`.

Never touches the network: what was not recorded is a failed call. From a run directory the very
calls come back, under the name of the model that made them. From decisions, whose prompts are not
known, an answer is found by item and question, and says what the decision said.
"""

from __future__ import annotations

import hashlib
import math
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from unswayed.backends import BackendSettings, open_backend
from unswayed.backends.protocol import Backend, Outcome, failed, ranked
from unswayed.base.errors import ItemError, RunDirectoryError, UnswayedError, UsageError
from unswayed.data.importers import read_decisions_file
from unswayed.model.calls import REPLAYED, Query, Request, Response, key_of
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
        return RunReplay(path, settings)
    if path.is_file():
        return DecisionReplay(path)
    raise UsageError(
        f"replay/{model}: there is no such file or directory. Give a decisions.jsonl or a run "
        "directory."
    )


class ReplayBackend(Backend):
    """Looks answers up; a subclass finds them."""

    offline = True

    def __init__(self, model: str, path: Path, *, gives_logprobs: bool) -> None:
        self.model = model
        self.gives_logprobs = gives_logprobs
        self._path = path

    def respond(self, query: Query) -> Outcome:
        """Return the recorded answer, or a failure."""
        order, labels = query.ask.presentation
        symbols = [query.request.labels[label] for label in labels]
        return self.find(query) or failed(
            query,
            f"{self._path} has no answer for order {list(order)}, "
            f"labels {symbols}, prompt {query.ask.prompt_id!r}, sample {query.ask.sample}. "
            "Replay asks no model: name what was recorded (--labels, --prompt), or record this with the model.",
        )

    def find(self, query: Query) -> Response | None:
        """Return the recorded answer; None if there is none."""
        raise NotImplementedError


class RunReplay(ReplayBackend):
    """Calls of a run directory."""

    def __init__(self, path: Path, settings: BackendSettings) -> None:
        self._store = CallStore.open(path, read_only=True)
        model = self._store.model
        if model is None:
            self._store.close()
            raise RunDirectoryError(f"{path} holds no calls. Give a run directory.")
        first = next(self._store.calls(), None)
        logprobs = first is None or first.request.top_logprobs > 0
        super().__init__(model, path, gives_logprobs=logprobs)
        self.keyed_by_item = self._store.keyed_by_item
        self.extra_body = settings.extra_body or (first and first.request.extra_body) or None
        # the recorded model, for what its calls depend on beside their prompts; nothing asks it
        with suppress(UnswayedError):  # it is on this machine no more, or wants a key
            original = open_backend(model, replace(settings, pricing_only=True))
            self.own_prompt = original.own_prompt
            self.planted = original.planted
            self.writes = original.writes

    def find(self, query: Query) -> Response | None:
        """Return the answer to the very call."""
        call = self._store.get(key_of(query.request))
        return None if call is None else msgspec.structs.replace(call[1], cost_usd=0.0)

    def converses(self, request: Request) -> bool:
        """Return True if the call was recorded."""
        return bool(self._store.recorded([key_of(request)]))

    async def close(self) -> None:
        """Close the file."""
        self._store.close()


class DecisionReplay(ReplayBackend):
    """Decisions of a file, found by item and question."""

    keyed_by_item = True  # items of a log may have no text, or the same

    def __init__(self, path: Path) -> None:
        self._recorded: dict[tuple[str, Ask, tuple[str, ...]], Decision] = {}
        for decision in read_decisions_file(path):
            key = decision.item_id, decision.ask, decision.label_set
            first = self._recorded.setdefault(key, decision)
            if first is not decision:
                raise ItemError(
                    f"{path}: {decision.item_id}: the same question was answered twice, by {first.model} "
                    f"and by {decision.model}. Replay the decisions of one model."
                )
        digest = hashlib.sha256()
        for _, line in iter_lines(path):
            digest.update(line)
        probs = any(decision.probs is not None for decision in self._recorded.values())
        name = f"{REPLAYED}{path}@sha256:{digest.hexdigest()[:16]}"
        super().__init__(name, path, gives_logprobs=probs)

    def converses(self, request: Request) -> bool:
        """Return True if it asks again."""
        return any(message.content == NOT_RECORDED for message in request.messages)

    def find(self, query: Query) -> Response | None:
        """Return a response that says what the decision said."""
        item, recorded = query.item, self._recorded
        points = task_of(item.task).points
        if points is None:
            decision = recorded.get((item.id, query.ask, query.request.labels))
            if decision is not None and decision.reasked and not self.converses(query.request):
                return Response(text=NOT_RECORDED, cost_usd=0.0, model=decision.model)
            return None if decision is None else _as_response(decision)
        said = {
            name: _as_response(recorded[key])
            for name in points.names(item, query.ask)
            if (key := (item.asked_as + suffix(name), query.ask, query.request.labels)) in recorded
        }
        if not said:
            return None
        texts = {name: response.text for name, response in said.items()}
        return msgspec.structs.replace(next(iter(said.values())), text=points.joined(texts))


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
