"""Fitted methods as JSON files: what was learned, and the model, prompt and labels it belongs to.

A fitted method is a plain value, so a file is plain JSON: it can be read, compared and shipped.
Loading it for another model, prompt or label set is refused, because a prior of one judge is not
the prior of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import msgspec

from unswayed.base.digests import digest
from unswayed.base.errors import MethodError, UnknownNameError, UnswayedError, UsageError
from unswayed.base.files import read_whole
from unswayed.methods import METHODS
from unswayed.methods.names import spec_name
from unswayed.methods.protocol import Method, is_fitted, learned_fields, learned_values
from unswayed.model.items import Item

FILE_FORMAT: Final = 1
"""Version of the file layout; a reader refuses newer ones."""

AGAIN: Final = "Make it again with `unswayed calibrate`."

Json = dict[str, Any]  # Any: a JSON value


class FittedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fitted method with what it may be used for."""

    unswayed_method: int  # version of the file layout
    method: Json  # the method as JSON: `name`, its parameters and what it learned
    model: str  # full model name with revision
    prompt_fingerprint: str  # fingerprint of the prompt template and its settings
    # the label symbols, in label order (of the item with most candidates)
    label_set: tuple[str, ...]
    estimation_fingerprint: str  # fingerprint of the estimation items
    # one short hash per estimation item's id, to notice items that are judged by what was
    # learned from them
    estimation_marks: tuple[str, ...] = ()
    # most questions in one request; 1 if they influence each other, left out if no probe was made
    pack: int | msgspec.UnsetType = msgspec.UNSET
    diagnostics: Json = {}  # anything worth knowing about the fit: counts, warnings, loss
    version: str = ""  # version of the package that wrote it

    def __repr__(self) -> str:
        return f"<FittedFile: {self.method.get('name')} for {self.model}>"

    def load(self) -> Method:
        """Return the method itself."""
        return from_json(self.method)

    def check(
        self,
        *,
        model: str | None = None,
        prompt_fingerprint: str | None = None,
        label_set: Sequence[str] | None = None,
    ) -> None:
        """Refuse another model, prompt or label set; what is None is not compared."""
        name = self.method.get("name", "method")
        if model is not None and model != self.model:
            raise MethodError(
                f"this {name} file was fitted for {self.model}, not for {model}. A correction is "
                f"valid for one model only: run `unswayed calibrate` with {model}."
            )
        if prompt_fingerprint is not None and prompt_fingerprint != self.prompt_fingerprint:
            raise MethodError(
                f"this {name} file was fitted for another prompt ({self.prompt_fingerprint}, not "
                f"{prompt_fingerprint}). Use the same template and extra_body, or calibrate again."
            )
        if label_set is not None:
            ours, theirs = self.label_set, tuple(label_set)
            shared = min(len(ours), len(theirs))
            if ours[:shared] != theirs[:shared]:
                raise MethodError(
                    f"this {name} file was fitted for the labels {' '.join(ours)}, not for "
                    f"{' '.join(theirs)}. Use the same labels, or calibrate again."
                )

    def overlap(self, items: Iterable[Item]) -> tuple[str, ...]:
        """Ids of the items that the method was fitted on: verdicts on them flatter it."""
        marks = set(self.estimation_marks)
        return tuple(item.id for item in items if item_mark(item.id) in marks)


def item_mark(item_id: str) -> str:
    """Return a short hash of an item's id."""
    return digest(item_id).hex()[:16]


def to_json(method: Method) -> Json:
    """Return a method, its parameters and what it learned, as JSON values."""
    values = msgspec.to_builtins(method)
    if not isinstance(values, dict):
        raise MethodError(f"{method.name}: its fields are not JSON values.")
    return {"name": method.name, **values}


def from_json(data: Json) -> Method:
    """Return the method that `to_json` wrote, checked field by field."""
    values = dict(data)
    name = values.pop("name", None)
    if not isinstance(name, str) or name not in METHODS:
        raise UnknownNameError(
            f"the file is for a method {name!r} that is missing. Install its package."
        )
    kind = METHODS.load(name)
    unknown = sorted(set(values) - {field.name for field in fields(kind)})
    if unknown:
        raise MethodError(f"{name}: unknown fields in the file: {', '.join(unknown)}. {AGAIN}")
    try:
        loaded = msgspec.convert(values, kind)
    except (msgspec.ValidationError, UsageError) as error:
        fault = str(error).removesuffix(".")
        raise MethodError(f"{name}: the file is damaged: {fault}. {AGAIN}") from None
    empty = _empty_field(loaded)
    if empty is not None:
        raise MethodError(f"{name}: the file is damaged: {empty} is empty. {AGAIN}")
    return loaded


def _empty_field(method: Method) -> str | None:
    empty = [field for field in learned_fields(method) if getattr(method, field) == ()]
    return next(iter(empty), None) if method.learns else None


def save_method(
    path: str | Path,
    method: Method,
    *,
    model: str,
    prompt_fingerprint: str,
    label_set: Sequence[str],
    estimation_fingerprint: str,
    estimation_ids: Iterable[str] = (),
    pack: int | msgspec.UnsetType = msgspec.UNSET,
    diagnostics: Json | None = None,
    version: str = "",
    force: bool = False,
) -> FittedFile:
    """Write a fitted method with what it belongs to; returns the record written.

    `force` writes a map that corrects nothing all the same.
    """
    if not is_fitted(method):
        raise MethodError(f"{spec_name(method)} has not been fitted. Fit it before saving.")
    if _empty_field(method) is not None:
        raise MethodError(
            f"{spec_name(method)} learned nothing: no item was usable. Give other items."
        )
    if not force and any(value.is_constant for value in learned_values(method)):
        raise MethodError(
            f"{spec_name(method)} learned a constant map, which corrects nothing. Raise its "
            "weight, use pride, or write the file anyway with --force."
        )
    record = FittedFile(
        unswayed_method=FILE_FORMAT,
        method=to_json(method),
        model=model,
        prompt_fingerprint=prompt_fingerprint,
        label_set=tuple(label_set),
        estimation_fingerprint=estimation_fingerprint,
        estimation_marks=tuple(item_mark(item_id) for item_id in estimation_ids),
        pack=pack,
        diagnostics=diagnostics or {},
        version=version,
    )
    text = msgspec.json.format(msgspec.json.encode(record), indent=1)
    try:
        Path(path).write_bytes(text + b"\n")
    except OSError as error:
        raise UsageError.cannot(f"write {path}", error) from None
    return record


def load_method(
    path: str | Path,
    *,
    model: str | None = None,
    prompt_fingerprint: str | None = None,
    label_set: Sequence[str] | None = None,
) -> FittedFile:
    """Read a fitted method and check what it is going to be used for; what is None is not checked."""
    try:
        data = read_whole(path)
    except OSError as error:
        raise UsageError.cannot(f"read {path}", error, "Give a calibration file.") from None
    try:
        record = msgspec.json.decode(data, type=FittedFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a calibration file ({error}). {AGAIN}") from None
    if record.unswayed_method > FILE_FORMAT:
        raise UsageError(
            f"{path} was written by a newer unswayed ({record.version}). Upgrade unswayed to read "
            "it."
        )
    try:
        record.load()
    except UnswayedError as error:
        raise type(error)(f"{path}: {error}") from None
    record.check(model=model, prompt_fingerprint=prompt_fingerprint, label_set=label_set)
    return record
