"""Correct questions that are asked once with a fitted method, and watch the model for drift."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unswayed.backends import Backend
from unswayed.backends.typed_apis import SIDES
from unswayed.base.errors import UsageError
from unswayed.calls.calibration import prompts_for
from unswayed.calls.judging import Judging
from unswayed.calls.shadow import Shadow
from unswayed.methods.fitted_file import FittedFile
from unswayed.methods.protocol import learned_sizes
from unswayed.methods.sets import canonical_ask
from unswayed.model.decisions import Decision
from unswayed.model.faces import named
from unswayed.model.items import Item, Task
from unswayed.model.permutations import Order
from unswayed.model.presentation import Ask
from unswayed.prompts import PromptSettings, label_set_of


class Correction:
    """A fitted method for questions with its labels.

    Args:
        file: The fitted file.
        backend: The model, which the file must have been fitted for.
        shadow: Share of the questions, drawn by a hash, to ask in all orders that the fit needs.

    Raises:
        UsageError: If one call does not decide, or there is nothing to shadow.
        MethodError: If the file belongs to another model or prompt.
    """

    def __init__(self, file: FittedFile, backend: Backend, shadow: float = 0.0) -> None:
        self.labels, own = file.label_set, PromptSettings(label_set=file.label_set)
        if {*self.labels} == SIDES:
            raise UsageError(
                "--method corrects choices, and this file is of yes-no questions. Use --polarity."
            )
        usual = label_set_of(len(self.labels), PromptSettings()) == self.labels
        prompts = prompts_for(backend, PromptSettings() if usual else own)
        self.method = Judging.by(file, backend, prompts).method
        self.sizes = learned_sizes(self.method)
        self.shadow = Shadow(self.method, shadow)
        for n in self.sizes:
            again = self.method.estimation_asks(n) if shadow else ()
            plain = all(ask == Ask(ask.presentation) for ask in again)
            if self.method.asks(n) != (canonical_ask(n),) or not plain:
                raise UsageError(
                    f"{self.method.name} needs other calls than one order of the options. Use --orders, or pride."
                )

    def order(self, names: Sequence[str]) -> Order | None:
        """Return options with these names in the order of the file's labels; None if they are not its labels."""
        labels = self.labels[: len(names)]
        if len(names) not in self.sizes or sorted(names) != sorted(labels):
            return None
        return tuple(map(names.index, labels))

    def item(self, content: str, n: int) -> Item:
        """Return the item of a question with n options."""
        return named(Item(id="", task=Task.MCQ, prompt=content, candidates=self.labels[:n]))

    def asks(self, item: Item) -> tuple[Ask, ...]:
        """Return the one question, and for a drawn item the questions that a fit asks."""
        own = self.method.asks(item.n)
        drawn = self.method.estimation_asks(item.n) if self.shadow.draw([item]) else ()
        return tuple(dict.fromkeys((*own, *drawn)))

    def corrected(
        self, item: Item, asks: Sequence[Ask], said: Sequence[Sequence[float]]
    ) -> Sequence[float]:
        """Return the corrected probabilities by option, from probabilities by place."""
        decisions = []
        for (order, labels), probs in zip((ask.presentation for ask in asks), said, strict=True):
            rows = np.empty(item.n)
            rows[list(order)] = probs
            decisions.append(
                Decision(
                    item_id=item.id,
                    order=order,
                    labels=tuple(self.labels[label] for label in labels),
                    label_set=self.labels[: item.n],
                    choice=int(rows.argmax()),
                    probs=tuple(rows.tolist()),
                )
            )
        if len(asks) > 1:
            self.shadow.add([item], decisions)
            self.shadow.look()
        return self.method.decide(item, decisions).scores or ()
