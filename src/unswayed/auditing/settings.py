"""What an audit asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from unswayed.errors import UsageError, field_and_reason
from unswayed.methods import AUDITED
from unswayed.permutations import check_name
from unswayed.presentation import PROTOCOLS, Protocol
from unswayed.prompts import PromptSettings
from unswayed.registry import did_you_mean

FOLDS = 5
"""Cross-fitting folds: a fitted method is scored only on items it was not fitted on."""

ESTIMATION_SHARE = 0.2
ESTIMATION_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """Settings of one audit; the names are those of the command line.

    Attributes:
        methods: Method names with parameters (`pride:prior=group`), or ("all",).
        orders: Set of orders; None for the task's default.
        protocol: Protocol to add to the coupled one; "all" adds the others that the items have.
        probs: "logprobs", or "sampled:R" to estimate probabilities from R samples a presentation.
        estimation_items: Items a fitted method learns from, per fold; None: 20 %, at most 200.
        estimation_sizes: Sizes of the estimation-set curve; empty for none.
        group_by: "group", "criterion" or a field of meta, as `meta.source`.
        resamples: Bootstrap resamples.
        gold_ties: "exclude" leaves items with gold "tie" out of accuracy; "class" scores ties.
        seed: Seed of folds, orders and resamples.
        prompts: How items are put into words.
        sample_temperature: Temperature of repeated samples.
        margin: Smallest difference that matters, in points of accuracy or .01 of rank correlation.
        reask: If True, ask once more for the label of a reply that could not be read.
    """

    methods: tuple[str, ...] = AUDITED
    orders: str | None = None
    protocol: str = "coupled"
    probs: str = "logprobs"
    estimation_items: Annotated[int, Meta(ge=0)] | None = None
    estimation_sizes: tuple[int, ...] = ()
    group_by: str = "group"
    seed: Annotated[int, Meta(ge=0)] = 0
    resamples: Annotated[int, Meta(ge=100)] = 1000
    gold_ties: Literal["exclude", "class"] = "exclude"
    prompts: PromptSettings = field(default_factory=PromptSettings)
    sample_temperature: float = 1.0
    reask: bool = True
    margin: float = 1.0


def audit_settings(**given: object) -> AuditSettings:
    """Settings whose values are checked.

    Raises:
        UsageError: If a value is of another kind or out of range, or a name is unknown.
    """
    names = given.get("methods")
    if isinstance(names, str):
        given["methods"] = tuple(part.strip() for part in names.split(",") if part.strip())
    try:
        settings = msgspec.convert(given, AuditSettings)
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
    if settings.orders is not None and settings.orders != "graeco-latin":  # it has labels as well
        check_name(settings.orders)
    protocols_of(settings.protocol)
    samples_per_call(settings.probs)
    return settings


def protocols_of(name: str, *, criteria: bool = True) -> tuple[Protocol, ...]:
    """The protocols that `--protocol` measures; the coupled one always, because headlines use it.

    Args:
        name: One of them, or "all".
        criteria: Whether the items have criteria, which can be moved.

    Raises:
        UsageError: If there is no such protocol, or not for these items.
    """
    if name == "criteria" and not criteria:
        raise UsageError("--protocol criteria: the items have no criteria that could be moved.")
    if name == "all":
        return tuple(p for p in PROTOCOLS if criteria or p != "criteria")
    for protocol in PROTOCOLS:
        if name == protocol:
            return ("coupled",) if protocol == "coupled" else ("coupled", protocol)
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
