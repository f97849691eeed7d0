"""Griffe extension: show functions that decorators complete as `help()` shows them.

Everything else in the Python reference is read from the sources.
"""

from __future__ import annotations

import inspect
from typing import Any

import griffe

import unswayed
from unswayed.base.arguments import written

ASKING = ("compare", "acompare", "answer", "aanswer", "rank", "arank", "score", "ascore")


class Signatures(griffe.Extension):
    """Replaces functions of the public names by those of the imported package."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Replace the functions of a loaded package."""
        for name in ("audit", "calibrate", "load_data"):
            home: Any = pkg[name].final_target.parent
            _replace(home, name, getattr(unswayed, name))
        judge: Any = pkg["Judge"].final_target
        for name in ("__init__", *ASKING):
            _replace(judge, name, getattr(unswayed.Judge, name))
        judge.members = dict(sorted(judge.members.items(), key=lambda member: member[1].lineno))


def _replace(home: griffe.Module | griffe.Class, name: str, live: Any) -> None:
    place = home.members.get(name, home)
    signature = inspect.signature(live)
    function = griffe.Function(
        name,
        lineno=place.lineno,
        parameters=griffe.Parameters(*map(_parameter, signature.parameters.values())),
        returns=_text(signature.return_annotation),
        docstring=griffe.Docstring(
            f"\n{inspect.getdoc(live)}",
            parser="google",
            parser_options={"returns_multiple_items": False},
        ),
    )
    home.set_member(name, function)


def _parameter(parameter: inspect.Parameter) -> griffe.Parameter:
    return griffe.Parameter(
        parameter.name,
        annotation=None if parameter.name == "self" else _text(parameter.annotation),
        kind=griffe.ParameterKind(parameter.kind.description),
        default=None if parameter.default is parameter.empty else repr(parameter.default),
    )


def _text(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else written(annotation)
