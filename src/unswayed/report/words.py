"""The report's sentences: the macros of `templates/words/*.j2`, said over typed findings.

A sentence is HTML with no markup but `<b>` around what is emphasised and `<bdi>` around names from
data; everything else in it is escaped. Places without markup take its `spans` or `plain` text.
"""

from __future__ import annotations

import functools
import html
import inspect
import re
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from unswayed.base.visible import one_line
from unswayed.report import findings, numerals
from unswayed.report.intervals import above, below
from unswayed.report.template_code import KeptCode

_TAG = re.compile(r"(</?b>)|</?bdi>")
_BREAK_BEFORE = re.compile(r"[ \n]*\n[ \n]*(?=[.,;:)])")
_GAP = re.compile(r"[ \n]+")


@functools.cache
def environment() -> Environment:
    """Return the templates of page and words, with the report's ways to write numbers as filters."""
    templates = Environment(
        loader=PackageLoader("unswayed.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        optimized=False,  # folding constants takes longer than it saves
        bytecode_cache=KeptCode(Path(__file__)),
    )
    templates.filters.update(dict(inspect.getmembers(numerals, inspect.isfunction)))
    templates.filters.update(
        name=lambda text: Markup("<bdi>%s</bdi>") % one_line(text),
        strong=lambda text: Markup("<b><bdi>%s</bdi></b>") % one_line(text),
        listed=_listed,
        line=one_line,
        clause=clause,
    )
    templates.tests.update(above=above, below=below)
    constants = {name: value for name, value in vars(findings).items() if name.isupper()}
    templates.globals.update(constants)
    return templates


def say(macro: str, *given: object) -> tuple[Markup, ...]:
    """Return the paragraphs of a macro, `lead.headline` in `words/lead.j2`; none if it has none."""
    subject, _, name = macro.partition(".")
    text = str(getattr(environment().get_template(f"words/{subject}.j2").module, name)(*given))
    paragraphs = (_BREAK_BEFORE.sub("", part) for part in re.split(r"\n[ ]*\n\s*", text))
    return tuple(
        Markup(_GAP.sub(" ", part).strip(" \n")) for part in paragraphs if part.strip(" \n")
    )


def sentence(macro: str, *given: object) -> Markup:
    """Return the paragraphs of a macro as one."""
    return joined(say(macro, *given))


@functools.lru_cache(maxsize=4096)
def phrase(macro: str, *given: object) -> Markup:
    """Return a sentence that is said again and again over the same values."""
    return sentence(macro, *given)


def joined(sentences: Sequence[Markup]) -> Markup:
    """Sentences as one paragraph."""
    return Markup(" ").join(sentences)


@functools.lru_cache(maxsize=4096)
def spans(sentence: Markup) -> tuple[tuple[str, bool], ...]:
    """Return the pieces of a sentence with whether each is emphasised."""
    strong, pieces = False, []
    for piece in _TAG.split(sentence):
        if piece in ("<b>", "</b>"):
            strong = piece == "<b>"
        elif piece:
            pieces.append((html.unescape(piece), strong))
    return tuple(pieces)


def plain(sentence: Markup) -> str:
    """Return the sentence without emphasis."""
    return "".join(text for text, _ in spans(sentence))


def clause(text: str) -> str:
    """Return a reason or an idea from elsewhere, as part of a sentence."""
    return one_line(text).rstrip(".")


def _listed(words: Sequence[str], joint: str = "and") -> Markup:
    """Join words: "a", "a and b", "a, b and c"."""
    last = Markup(" %s ") % joint
    return last.join(part for part in (Markup(", ").join(words[:-1]), *words[-1:]) if part)
