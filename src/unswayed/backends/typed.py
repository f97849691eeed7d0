"""`systemone/MODEL` and `decisions/MODEL`: decision models, which answer typed questions about a state.

The message of a request is one JSON object that a packaged template writes, its options in display order:

    {"kind": "choice" or "score", "state": ..., "ask": "...", "options": [[label, text], ...]}

`packed.py` puts several of them into one request.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from unswayed.backends import BackendSettings
from unswayed.backends.addresses import Service
from unswayed.backends.openai_compatible import OPENAI
from unswayed.backends.own_prompts import OwnPrompt
from unswayed.backends.packed import Packed, TypedDialect
from unswayed.backends.typed_apis import Decisions, SystemOne
from unswayed.base.errors import UsageError
from unswayed.model.calls import Query
from unswayed.model.items import Item, Task
from unswayed.model.presentation import Ask, canonical

if TYPE_CHECKING:
    from unswayed.prompts import PromptSettings

TYPESAFE: Final = Service("TYPESAFE", "https://api.typesafe.ai/v1")
TEMPLATES: Final = {
    name: str(files("unswayed.prompts") / f"{name.replace('-', '_')}.jinja")
    for name in ("typed", "typed-choice")
}


class TypedPrompt(OwnPrompt, frozen=True):
    """The packaged templates: `typed`, and `typed-choice`, which asks about levels as about any options."""

    def settings(self, given: PromptSettings) -> PromptSettings:
        """Return the prompt settings of a run.

        Raises:
            UsageError: If another prompt, a template or examples are given.
        """
        name = given.prompt or "typed"
        own = TEMPLATES.get(name)
        if own is None or given.template not in (None, own) or given.shots:
            raise UsageError(
                "decision models answer typed questions and read no other prompt. Leave out prompt, template "
                "and shots; only --prompt typed-choice is possible."
            )
        return replace(given, prompt=name, template=own)


class DecisionModel(Packed):
    """A model that answers typed questions: it chooses among options or scores on a scale."""

    most_local = 4  # such servers mostly answer one by one
    own_prompt = TypedPrompt(template=TEMPLATES["typed"], only_template=True)

    def refusal(self, item: Item, asks: Iterable[Ask], prompts: PromptSettings) -> str | None:
        """Return why these cannot be asked; see `Backend.refusal`."""
        if item.task in (Task.LISTWISE, Task.CRITERIA) or item.criteria:
            return "decision models choose or score one thing. Write the items as mcq"
        asks, own = tuple(asks), canonical(item.n)
        ways = (own, own._replace(order=own.order[::-1]))
        moved = any(ask.presentation not in ways or ask.arranged == "content" for ask in asks)
        if item.task == Task.RUBRIC and prompts.prompt != "typed-choice" and moved:
            return (
                "a score question shows its levels forwards or backwards. Use --orders reverse and "
                "average:orders=reverse, or --prompt typed-choice"
            )
        return super().refusal(item, asks, prompts)

    def forecast(self, queries: Iterable[Query]) -> tuple[str, ...]:
        """Describe how far the price may be off."""
        return ("The cost is at most this: a server may bill a state once for several questions.",)


def open_systemone(model: str, settings: BackendSettings) -> DecisionModel:
    """Decision models behind `/systemone`: `systemone/<model>`, with TYPESAFE_API_KEY or a base URL."""
    return DecisionModel.open(
        TYPESAFE, f"systemone/{model}", TypedDialect(SystemOne(), model), settings
    )


def open_decisions(model: str, settings: BackendSettings) -> DecisionModel:
    """Decision models behind `/decisions`: `decisions/<model>`, with OPENAI_API_KEY or a base URL."""
    return DecisionModel.open(
        OPENAI, f"decisions/{model}", TypedDialect(Decisions(), model), settings
    )
