"""What a judge is asked to reply, and how that is read; most tasks ask for one label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from unswayed.calls import Response
from unswayed.decisions import Decision, Evidence
from unswayed.items import Item
from unswayed.parsing.reading import read_decision
from unswayed.presentation import Ask, Presentation

__all__ = ["LABEL", "Reply", "ReplySpec", "ReplyStyle"]


class ReplySpec(NamedTuple):
    """What a reply asks of the server.

    Attributes:
        max_tokens: Cap on generated tokens.
        answer_only: The first token of the reply is the verdict, so that its log-probabilities
            are those of the labels.
    """

    max_tokens: int
    answer_only: bool


class ReplyStyle(Protocol):
    """How a style or a template wants a label: alone or after reasoning, in how many tokens."""

    @property
    def answer_only(self) -> bool:
        """The reply is the answer itself, without reasoning before it."""
        ...

    @property
    def max_tokens(self) -> int:
        """Cap on generated tokens for one label."""
        ...


class Reply(Protocol):
    """What is asked for, and how it is read.

    Attributes:
        gives: What its decisions can hold.
    """

    gives: ClassVar[frozenset[Evidence]]

    def request(self, labels: Sequence[str], style: ReplyStyle) -> ReplySpec:
        """What the server is asked for."""
        ...

    def example(
        self, item: Item, shown: Presentation, labels: Sequence[str], style: ReplyStyle
    ) -> str:
        """The right reply about an item whose gold is known, as a worked example shows it."""
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
    ) -> Decision:
        """The decision that a response stands for.

        Args:
            item: What was judged; its gold is never read.
            ask: How it was shown.
            labels: The label set in canonical order, one per candidate.
            response: What came back.
            model: Full model name of the request.
            answer_only: As the request's `ReplySpec` has it.
        """
        ...


@dataclass(frozen=True, slots=True)
class LabelReply:
    """The label of the chosen candidate: alone, or tagged behind reasoning."""

    gives: ClassVar[frozenset[Evidence]] = frozenset({Evidence.CHOICE, Evidence.PROBS})

    def request(self, labels: Sequence[str], style: ReplyStyle) -> ReplySpec:
        """As many tokens as the style wants, whatever the labels."""
        return ReplySpec(style.max_tokens, style.answer_only)

    def example(
        self, item: Item, shown: Presentation, labels: Sequence[str], style: ReplyStyle
    ) -> str:
        """The label of the (first) right candidate."""
        label = labels[shown.label_of_candidate(item.gold_candidates()[0])]
        if style.answer_only:
            return label
        return f"<think>(left out in this example)</think><answer>{label}</answer>"

    def read(
        self,
        item: Item,
        ask: Ask,
        labels: Sequence[str],
        response: Response,
        *,
        model: str,
        answer_only: bool,
    ) -> Decision:
        """See `read_decision`."""
        return read_decision(item, ask, labels, response, model=model, answer_only=answer_only)


LABEL = LabelReply()
