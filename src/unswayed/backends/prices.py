"""Price of a call: a dated table of list prices, shipped with the package and overridable.

The table (`prices.toml` beside this file) will be out of date some day. A table of one's own, in
the same form as TOML or JSON, takes precedence entry by entry (`BackendSettings.prices`):

    as_of = "2026-11-20"
    [models."openai/gpt-4.1-mini"]      # USD per million tokens
    input = 0.40
    cached_input = 0.10
    output = 1.60

A model that is in neither table has no price: its cost is None, never 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import msgspec

from unswayed.base.errors import UsageError
from unswayed.base.files import read_whole

_MILLION = 1_000_000
_SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$")
"""What a provider appends to the name of a model for a dated copy of it."""


class _Rates(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    input: float  # fresh tokens
    output: float  # reasoning included
    cached_input: float | None = None  # read from the provider's cache; None prices them as fresh

    def __post_init__(self) -> None:
        for value in (self.input, self.output, self.cached_input):
            if value is not None and not 0 <= value < float("inf"):
                raise ValueError(f"{value} is not a price")

    def cost(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        cached_rate = self.input if self.cached_input is None else self.cached_input
        fresh = max(0, input_tokens - cached_tokens)
        dollars = fresh * self.input + cached_tokens * cached_rate + output_tokens * self.output
        return dollars / _MILLION


class _LongRates(_Rates, frozen=True, kw_only=True):
    above_tokens: int


class Price(_Rates, frozen=True, kw_only=True):
    """Prices of one model, USD per million tokens."""

    # other rates for prompts above a number of input tokens, on all their tokens
    long_prompt: _LongRates | None = None

    def of(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """Cost of one call in USD; `cached_tokens` is part of `input_tokens`."""
        rates: _Rates = self
        if self.long_prompt is not None and input_tokens > self.long_prompt.above_tokens:
            rates = self.long_prompt
        return rates.cost(input_tokens, min(cached_tokens, input_tokens), output_tokens)


FREE = Price(input=0.0, output=0.0)
"""Of servers on this machine."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    as_of: str
    models: dict[str, Price]
    checked: dict[str, str] = {}  # provider to the date of its prices, where that is known
    note: str = ""


@dataclass(frozen=True, slots=True)
class PriceTable:
    """List prices by full model name."""

    checked: Mapping[str, str]  # provider to the date when its shipped prices were last looked at
    shipped: Mapping[str, Price]  # valid at the providers' own addresses only
    given: Mapping[str, Price]  # the user's own, valid wherever the model is called
    source: str = ""  # the user's file, or ""

    def find(self, model: str, *, own_address: bool) -> Price | None:
        """Return the price of a model; None if unknown.

        A dated snapshot without an entry has the price of its undated name. Away from its provider's
        own address the same name may cost anything, so only the user's own table counts.
        """
        tables = (self.given, self.shipped) if own_address else (self.given,)
        for table in tables:
            for name in (model, _SNAPSHOT.sub("", model)):
                if name in table:
                    return table[name]
        return None


def load_prices(override: str | Path | None = None) -> PriceTable:
    """Return the shipped table, with the user's own above it."""
    text = files("unswayed.backends").joinpath("prices.toml").read_bytes()
    shipped = msgspec.toml.decode(text, type=_File)
    if override is None:
        return PriceTable(shipped.checked, shipped.models, {})
    path = Path(override)
    try:
        raw = read_whole(path)
        if path.suffix != ".json":  # as JSON a date of TOML is text, too
            raw = msgspec.json.encode(msgspec.toml.decode(raw))
        given = msgspec.json.decode(raw, type=_File)
    except OSError as error:
        raise UsageError.cannot(f"read the price table {path}", error, "Correct it.") from None
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise UsageError(
            f"{path} is not a price table: {error}. It needs as_of (a date) and models, each with "
            "input and output in USD per million tokens."
        ) from None
    return PriceTable(shipped.checked, shipped.models, given.models, str(path))
