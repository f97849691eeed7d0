"""The user's own prompt: one text file in the Jinja language.

The file is the user message. Lines of the form `--- system ---`, `--- user ---` and
`--- assistant ---` divide it into several messages. It may begin with settings between two `---`
lines: `answer: direct` (the reply is the label; the default) or `answer: reasoning` (the reply is
reasoning and a tagged label), `max_tokens: 64`, and `reask: Name one label, {labels}.`, the sentence
that asks once more for the label of a reply that could not be read; `{labels}`, its only field,
becomes "A or B" (in English).

A template may use
    question     the prompt as text (a conversation: role before each turn)
    turns        the prompt's turns, each with `.role` and `.text` (one turn for a plain prompt)
    system       text of the system messages of the prompt, "" if there are none
    candidates   in display order, each with `.label`, `.text`, `.turns`
    labels       the labels in canonical order
    reference    the reference answer or none
    response     the text that is scored or none
    criteria     names of what is scored at once, in display order; empty for one thing
    n, task      number of candidates, name of the task

White space stays as written, except for the line break before a section line and one more at the
very end of a message. Texts are inserted as they are, without escaping. Nothing inside a
text is read as a template or as a section line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

from unswayed.base.errors import TemplateError
from unswayed.base.files import read_whole
from unswayed.base.registry import did_you_mean
from unswayed.model.items import Item, Message, Text, text_of
from unswayed.model.parsing import ReplySpec
from unswayed.model.presentation import Presentation
from unswayed.prompts.blocks import Layout, Outline
from unswayed.prompts.limits import check_limits
from unswayed.prompts.spans import Spans, mark_beside, marked, spans_of, unmarked
from unswayed.prompts.styles import LABEL_ALONE, REASK, REASONED

if TYPE_CHECKING:
    import jinja2

_SECTION: Final = re.compile(r"---[ \t]*(system|user|assistant)[ \t]*---[ \t]*")
_SETTINGS: Final = ("answer", "max_tokens", "reask")

RENDERING_ERRORS: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What templates raise beside jinja2's own."""

_PROBE: Final = {
    "question": "Which?",
    "turns": [{"role": "user", "text": "Which?"}],
    "system": "",
    "candidates": [{"label": label, "text": "One.", "turns": []} for label in "AB"],
    "labels": ["A", "B"],
    "reference": None,
    "response": None,
    "criteria": (),
    "n": 2,
    "task": "pairwise",
}
"""The fields of a small prompt."""


@dataclass(frozen=True, slots=True)
class Template:
    """A template that has been read and compiled."""

    path: str  # where it came from, for messages
    source: str  # the whole file
    reply: ReplySpec  # what it asks of the server for one label
    sections: tuple[tuple[str, jinja2.Template], ...]  # role and compiled text of each message

    def messages(self, layout: Layout) -> tuple[Message, ...]:
        """Render every message."""
        fields = _fields(layout)
        return tuple(Message(role, self._render(text, fields)) for role, text in self.sections)

    def outline(
        self, item: Item, shown: Presentation, labels: tuple[str, ...]
    ) -> tuple[tuple[Message, ...], Outline] | None:
        """None: a template may do anything with the texts."""
        return None

    def spans(self, layout: Layout) -> Spans:
        """Find the candidates in the messages.

        They are rendered again with the candidates' texts between marks. Where taking the marks
        out does not give the message, the template looked into the texts: no place is known there.
        """
        n = len(layout.order)
        mark = mark_beside([self.source, *layout.strings()])
        fields = _fields(layout, mark)
        spans: Spans = ((),) * n
        sections = zip(self.messages(layout), self.sections, strict=True)
        for place, (message, (_, text)) in enumerate(sections):
            try:
                pieces = unmarked(self._render(text, fields), mark)
            except TemplateError:
                continue
            if "".join(piece for piece, _ in pieces) == message.content:
                more = spans_of(pieces, n, place=place)
                spans = tuple(own + new for own, new in zip(spans, more, strict=True))
        return spans

    def _render(self, text: jinja2.Template, fields: dict[str, object]) -> str:
        import jinja2

        try:
            return text.render(fields)
        except (jinja2.TemplateError, *RENDERING_ERRORS) as error:
            problem = (str(error) or type(error).__name__).rstrip(".")
            remedy = "Correct the expression."
            if isinstance(error, jinja2.UndefinedError):
                remedy = (
                    "It may use question, turns, system, candidates (.label, .text, .turns), "
                    "labels, reference, response, criteria, n and task."
                )
            raise TemplateError(f"template {self.path}: {problem}. {remedy}") from None


def _fields(layout: Layout, mark: str | None = None) -> dict[str, object]:
    """Return the values for a template; with a mark, the candidates' texts between marks."""

    def candidate(symbol: str, number: int) -> SimpleNamespace:
        def text(bare: str) -> str:
            return bare if mark is None else marked(bare, number, mark=mark)

        content = layout.candidates[number]
        turns = _turns(content, "assistant", text)
        return SimpleNamespace(label=symbol, text=text(_plain(content)), turns=turns)

    turns = _turns(layout.question, "user")
    return {
        "question": _plain(layout.question),
        "turns": turns,
        "system": "\n\n".join(turn.text for turn in turns if turn.role == "system"),
        "candidates": list(map(candidate, layout.symbols, layout.order)),
        "labels": layout.labels,
        "reference": layout.reference,
        "response": layout.response,
        "criteria": layout.criteria,
        "n": len(layout.labels),
        "task": layout.task,
    }


def _plain(text: Text) -> str:
    return text_of(text) if isinstance(text, str) or len(text) != 1 else text[0].content


def _turns(text: Text, role: str, mark: Callable[[str], str] = str) -> list[SimpleNamespace]:
    messages = (Message(role, text),) if isinstance(text, str) else text
    return [SimpleNamespace(role=own.role, text=mark(own.content)) for own in messages]


def read_template(path: str) -> Template:
    """Read and compile a template file; a `TemplateError` says what is wrong with it."""
    try:
        source = read_whole(path).decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise TemplateError(
            f"template {path}: cannot be read ({error.strerror}). Correct its path."
        ) from None
    except UnicodeDecodeError:
        raise TemplateError(f"template {path}: is not UTF-8 text. Save it as UTF-8.") from None
    settings, body, first_line = _front_matter(path, source)
    reply = _reply(path, settings)
    compiled = []
    for role, start, text in _sections(path, body, first_line):
        check_limits(text, _PROBE, where=f"template {path}")  # compiling computes constants
        compiled.append((role, _compiled(path, text, start)))
    return Template(path, source, reply, tuple(compiled))


def _reply(path: str, settings: dict[str, str]) -> ReplySpec:
    """Return the reply form that the settings ask of the server."""
    answer, limit = settings.get("answer", "direct"), settings.get("max_tokens")
    if answer not in {"direct", "reasoning"}:
        raise TemplateError(f"template {path}: answer is {answer!r}; write direct or reasoning.")
    if limit is not None and not (limit.isdecimal() and int(limit) > 0):
        raise TemplateError(f"template {path}: max_tokens is {limit!r}; write a whole number.")
    reask = settings.get("reask", REASK)
    if not reask or set(re.findall(r"{(\w*)}", reask)) - {"labels"}:
        raise TemplateError(f"template {path}: reask is {reask!r}; write words, {{labels}}.")
    reply = LABEL_ALONE if answer == "direct" else REASONED
    return reply._replace(reask=reask, max_tokens=int(limit or reply.max_tokens))


def _compiled(path: str, text: str, first_line: int) -> jinja2.Template:
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined, autoescape=False)
    try:
        return environment.from_string(text)
    except (RecursionError, MemoryError):
        raise TemplateError(
            f"template {path}: is nested too deeply. Remove some of its loops or brackets."
        ) from None
    except jinja2.TemplateSyntaxError as error:
        line = first_line + (error.lineno or 1) - 1
        problem = f"template {path}, line {line}: {(error.message or 'no Jinja').rstrip('.')}"
        raise TemplateError(f"{problem}. Correct the line.") from None


def _front_matter(path: str, source: str) -> tuple[dict[str, str], str, int]:
    """Return the settings, the rest of the file, and the line it begins on."""
    lines = source.split("\n")
    if lines[0].rstrip() != "---":
        return {}, source, 1
    end = next((k for k, line in enumerate(lines) if k and line.rstrip() == "---"), 0)
    if not end:
        raise TemplateError(
            f"template {path}: the settings that begin on line 1 have no closing `---` line. Add it."
        )
    settings: dict[str, str] = {}
    for number, line in enumerate(lines[1:end], start=2):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if colon and name in _SETTINGS:
            settings[name] = value
        elif line.strip():
            raise TemplateError(
                f"template {path}, line {number}: {line.strip()!r} is not a setting. "
                f"{did_you_mean(name, _SETTINGS)}"
            )
    return settings, "\n".join(lines[end + 1 :]), end + 2


def _sections(path: str, body: str, first_line: int) -> list[tuple[str, int, str]]:
    """Role, first line and source of each message."""
    if not body.strip():
        raise TemplateError(
            f"template {path}: is empty. Write {{{{ question }}}} and a loop over candidates."
        )
    lines = body.split("\n")
    marks = [
        (number, match[1])
        for number, line in enumerate(lines)
        if (match := _SECTION.fullmatch(line)) is not None
    ]
    if not marks:
        return [("user", first_line, body)]
    if "\n".join(lines[: marks[0][0]]).strip():
        raise TemplateError(
            f"template {path}: there is text before the first section line "
            f"(--- {marks[0][1]} ---). Put a section line above it."
        )
    if marks[-1][1] != "user":
        raise TemplateError(
            f"template {path}: the last message must be the user's, but it is the "
            f"{marks[-1][1]} message. Move a user section to the end."
        )
    ends = [number for number, _ in marks[1:]] + [len(lines)]
    return [
        (role, first_line + start + 1, "\n".join(lines[start + 1 : end]))
        for (start, role), end in zip(marks, ends, strict=True)
    ]
