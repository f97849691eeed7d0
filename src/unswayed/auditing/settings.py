"""Settings of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Literal, Self

import msgspec
from msgspec import Meta

from unswayed.base.arguments import Settings
from unswayed.base.errors import UsageError, field_and_reason
from unswayed.base.registry import did_you_mean
from unswayed.methods import AUDITED, BASE
from unswayed.model.permutations import check_name
from unswayed.model.presentation import PROTOCOLS, Protocol
from unswayed.prompts import PromptSettings

FOLDS = 5
"""Cross-fitting folds: a fitted method is scored only on items it was not fitted on."""

ESTIMATION_SHARE = 0.2
ESTIMATION_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings(Settings):
    """Settings of one audit's measurement."""

    methods: Annotated[  # names with parameters, such as `pride:prior=group`
        tuple[str, ...],
        Meta(
            description="Methods, separated by commas, or all; see `unswayed list methods`.",
            extra={"text": str, "typed": ",".join(AUDITED), "value": str | Sequence[object]},
        ),
    ] = AUDITED
    orders: Annotated[
        str | None,
        Meta(
            description="Orders: identity, swap, reverse, cyclic, structured, balanced, williams, full, graeco-latin, "
            "random:K [default: swap for pairs, balanced for rubrics, else cyclic]"
        ),
    ] = None
    design: Annotated[
        Literal["both", "balanced"],
        Meta(
            description="Ask pairs in both orders, or, for `unswayed rank`, once: each model first in half of the questions."
        ),
    ] = "both"
    # added to the coupled one; "all" adds the others that the items have, None nothing
    protocol: Annotated[
        str | None,
        Meta(
            description="Parts that move: coupled (order and labels), label, order, criteria or all "
            "[default: coupled; all for built-in sets]"
        ),
    ] = None
    probs: Annotated[
        str,
        Meta(description="Source of label probabilities: logprobs, or sampled:R for R samples."),
    ] = "logprobs"
    estimation_items: (  # per fold
        Annotated[
            int,
            Meta(ge=0, description="Items that methods are fitted on [default: 20%, at most 200]"),
        ]
        | None
    ) = None
    estimation_sizes: Annotated[
        tuple[int, ...],
        Meta(
            description="Also fit on these numbers of items, such as 10,50,200.",
            extra={"text": str, "typed": None, "value": Sequence[int]},
        ),
    ] = ()
    group_by: Annotated[
        str, Meta(description="Report figures for each value of this field: group or meta.FIELD.")
    ] = "group"
    seed: Annotated[
        int, Meta(ge=0, description="Seed of folds, orders, resamples and --sample.")
    ] = 0
    resamples: Annotated[int, Meta(ge=100, description="Bootstrap resamples for intervals.")] = 1000
    gold_ties: Annotated[
        Literal["exclude", "class"],
        Meta(
            description="Items with a tie as gold: exclude them from accuracy, or score ties as a class."
        ),
    ] = "exclude"
    batch: Annotated[
        str | None,
        Meta(
            description="Call the model in batches at half price: read results from this folder, write "
            "requests into it.",
            extra={"text": Path, "value": str | Path | None},
        ),
    ] = None
    prompts: PromptSettings = field(default_factory=PromptSettings)
    sample_temperature: float = 1.0  # of repeated samples
    reask: bool = True  # ask once more for the label of a reply that could not be read
    margin: Annotated[  # or .01 of rank correlation
        float, Meta(description="Smallest difference that matters, in points of accuracy.")
    ] = 1.0

    def valid(self) -> Self:
        """Return the same, with lists read from text, and checked.

        Raises:
            UsageError: If a value is of another kind or out of range, or a name is unknown.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if isinstance(self.batch, Path):
            values["batch"] = str(self.batch)
        if isinstance(self.methods, str):
            values["methods"] = [part.strip() for part in self.methods.split(",") if part.strip()]
        elif not all(isinstance(method, str) for method in self.methods):
            from unswayed.methods.names import named

            values["methods"] = list(map(named, self.methods))
        if isinstance(self.estimation_sizes, str):
            values["estimation_sizes"] = _numbers(self.estimation_sizes)
        try:
            settings = msgspec.convert(values, type(self))
        except msgspec.ValidationError as error:
            option, reason = field_and_reason(error)
            raise UsageError(f"{option or 'settings'}: {reason}.") from None
        if not settings.methods:
            raise UsageError("methods names no method. Give all, or names separated by commas.")
        for size in settings.estimation_sizes:
            if size < 1:
                raise UsageError(f"estimation size {size}: give at least 1, such as 10,50,100.")
        if not 0.1 <= settings.margin <= 20:
            raise UsageError(f"margin {settings.margin:g}: give points of accuracy from 0.1 to 20.")
        if settings.design == "balanced":
            free = settings.orders in (None, "identity") and settings.methods in (AUDITED, (BASE,))
            if not free or settings.protocol not in (None, "coupled"):
                raise UsageError(
                    "--design balanced asks once. Leave out --orders, --methods and --protocol."
                )
            settings = replace(settings, orders="identity", methods=(BASE,))
        if settings.orders not in (None, "graeco-latin"):  # it has labels as well
            check_name(settings.orders)
        protocols_of(settings.protocol)
        samples_per_call(settings.probs)
        return settings


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise UsageError(
            f"{text!r}: write whole numbers separated by commas, such as 10,50,100."
        ) from None


def protocols_of(name: str | None, *, criteria: bool = True) -> tuple[Protocol, ...]:
    """Return the protocols that `--protocol` measures; the coupled one always, because headlines use it.

    Args:
        name: One of them, or "all"; None for the coupled one.
        criteria: Whether the items have criteria, which can be moved.

    Raises:
        UsageError: If there is no such protocol, or not for these items.
    """
    if name == "criteria" and not criteria:
        raise UsageError(
            "--protocol criteria: the items have no criteria that could be moved. Choose another "
            "--protocol."
        )
    if name == "all":
        return tuple(p for p in PROTOCOLS if criteria or p != "criteria")
    if name is None or name == "coupled":
        return ("coupled",)
    for protocol in PROTOCOLS:
        if name == protocol:
            return ("coupled", protocol)
    raise UsageError(f"unknown protocol {name!r}. {did_you_mean(name, (*PROTOCOLS, 'all'))}")


def samples_per_call(probs: str) -> int | None:
    """R of `sampled:R`; None for `logprobs`.

    Raises:
        UsageError: If `probs` is neither, or R is below 5.
    """
    if probs == "logprobs":
        return None
    count = probs.removeprefix("sampled:")
    if not probs.startswith("sampled:") or not count.isdigit():
        raise UsageError(f"--probs {probs!r}: write logprobs, or sampled:R such as sampled:10.")
    if int(count) < 5:
        raise UsageError(f"--probs {probs}: fewer than 5 samples say too little; give at least 5.")
    return int(count)
