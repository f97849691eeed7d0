"""Forms of a judge's reply and how each is read; most tasks ask for one label."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple, Protocol

from unswayed.model.calls import Response
from unswayed.model.decisions import Decision, Evidence
from unswayed.model.items import Item
from unswayed.model.parsing.listwise import closed
from unswayed.model.parsing.reading import read_decision
from unswayed.model.presentation import Ask, Presentation

READER: Final = 2
"""Version number of the reading rules; it grows when recorded replies are read differently."""


class ReplySpec(NamedTuple):
    """Form of a reply, as the server is asked for it.

    Attributes:
        max_tokens: Cap on generated tokens.
        answer_only: The reply is the verdict itself, so that the log-probabilities of its first
            token are those of the labels.
        schema: JSON schema, as text, that the reply is to fit; None where it is not JSON. Servers
            that cannot hold to one answer freely, so a reply is read tolerantly all the same.
        points: What one reply answers, in displayed order (`TaskSpec.points`); empty for one thing.
        keys: Keys of the JSON object that the prompt asks for; the last one holds the label. Empty if
            the label stands alone or in a tag.
        reask: Sentence that asks once more for the label of a reply that could not be read, with
            `{labels}` for the labels; None to ask nothing.
        form: Where the prompt wants the label: `tag`, `mark` or `json`; None for no special place.
            `Reply.read` receives it unless it is None.
    """

    max_tokens: int
    answer_only: bool
    schema: str | None = None
    points: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    reask: str | None = None
    form: str | None = None

    def of_object(self, room: int, schema: str) -> ReplySpec:
        """Return the same for an object of so many tokens, behind reasoning where the style asks for some."""
        if self.answer_only:
            return ReplySpec(room, answer_only=False, schema=schema, points=self.points)
        return ReplySpec(room + self.max_tokens, answer_only=False, points=self.points)

    def example(self, reply: str) -> str:
        """Return a reply behind the reasoning that an example leaves out."""
        return reply if self.answer_only else f"<think>(left out in this example)</think>{reply}"


class Reply(Protocol):
    """Form of a task's reply, and how it is read.

    Attributes:
        gives: What its decisions can hold.
    """

    gives: ClassVar[frozenset[Evidence]]

    def request(self, labels: Sequence[str], style: ReplySpec) -> ReplySpec:
        """Return the form to ask of the server, for a style that asks for one label."""
        ...

    def example(
        self, item: Item, shown: Presentation, labels: Sequence[str], style: ReplySpec
    ) -> str:
        """Return the right reply about an item whose gold is known, as a worked example shows it."""
        ...

    def written(
        self, labels: Sequence[str], verdict: str, scores: Sequence[float], *, answer_only: bool
    ) -> str:
        """Return the reply of a judge, as simulated judges write it.

        Args:
            labels: The labels in canonical order.
            verdict: The chosen label, "tie", or other words.
            scores: What the judge makes of each label, 0 to 100.
            answer_only: As `ReplySpec` says.
        """
        ...

    def read(
        self,
        item: Item,
        ask: Ask,
        labels: Sequence[str],
        response: Response,
        *,
        model: str,
        answer_only: bool,
        form: str | None = None,
    ) -> Decision:
        """Return the decision that a response stands for; see `read_decision` for the arguments."""
        ...


class LabelReply:
    """Label of the chosen candidate: alone, in a tag after reasoning, or in a JSON object."""

    gives: ClassVar[frozenset[Evidence]] = frozenset({Evidence.CHOICE, Evidence.PROBS})
    read = staticmethod(read_decision)

    def request(self, labels: Sequence[str], style: ReplySpec) -> ReplySpec:
        """Return what the style asks for. An object is held to its schema and gives no probabilities."""
        if not style.keys:
            return style
        texts: dict[str, object] = {key: {"type": "string"} for key in style.keys}
        texts[style.keys[-1]] = {"type": "string", "enum": list(labels)}
        return style._replace(answer_only=False, schema=json.dumps(closed(texts)))

    def example(
        self, item: Item, shown: Presentation, labels: Sequence[str], style: ReplySpec
    ) -> str:
        """Return the label of the (first) right candidate."""
        label = labels[shown.label_of_candidate(item.gold_candidates()[0])]
        reasoning = "(left out in this example)"
        return _said(label, reasoning, answer_only=style.answer_only, keys=style.keys)

    def written(
        self,
        labels: Sequence[str],
        verdict: str,
        scores: Sequence[float],
        *,
        answer_only: bool,
        schema: str | None = None,
    ) -> str:
        """Write the verdict as it is, or in an object if `request` has a schema."""
        keys = () if schema is None else tuple(json.loads(schema)["properties"])
        return _said(verdict, "It is simulated.", answer_only=answer_only, keys=keys)


def _said(verdict: str, reasoning: str, *, answer_only: bool, keys: Sequence[str]) -> str:
    if keys:
        return json.dumps({**dict.fromkeys(keys, reasoning), keys[-1]: verdict}, ensure_ascii=False)
    if answer_only:
        return verdict
    return f"<think>{reasoning}</think><answer>{verdict}</answer>"


LABEL = LabelReply()
