"""Prompt that a model was trained with, kept beside its weights: the default of whoever asks it.

Training writes `unswayed_prompt.json` into the folder of its result, with `prompt_template.jinja`
where a template was used. Its fields are those of a recipe's `[prompt]` and `[chat]`. A template
without that file is the one prompt that the model understands.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from unswayed.base.errors import TemplateError, UsageError, field_and_reason
from unswayed.base.files import whole_file
from unswayed.base.registry import did_you_mean

if TYPE_CHECKING:
    from unswayed.prompts import PromptSettings

PROMPT_FILE: Final = "unswayed_prompt.json"
TEMPLATE_FILE: Final = "prompt_template.jinja"

MOST_BYTES: Final = 1 << 16
"""Largest size of the file; training writes a few hundred bytes."""
MOST_LETTERS: Final = 200
"""Longest tag."""

Tag = Annotated[str, Meta(max_length=MOST_LETTERS)]


class OwnPrompt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Default prompt of a model."""

    style: str | None = None  # a prompt of `unswayed.prompts`; None where nothing was settled
    labels: tuple[str, ...] | None = None  # the answer symbols; None for A, B,
    # path of the template that goes before the style; in the file its name alone
    template: str | None = None
    # whether the model understands no other sentences than its template's
    only_template: bool = False
    # think_tags, answer_tags: tags that well-formed reasoning answers were trained to use
    think_tags: tuple[Tag, Tag] = ("<think>", "</think>")
    answer_tags: tuple[Tag, Tag] = ("<answer>", "</answer>")
    # cap on a response; None for the prompt's own
    max_response_tokens: Annotated[int, Meta(ge=1, lt=2**31)] | None = None
    # what the chat template is told; None leaves it to the prompt: False where the reply has no
    # place for reasoning, else left out
    enable_thinking: bool | None = None

    def settings(self, given: PromptSettings) -> PromptSettings:
        """Return the prompt settings of a run: what its user gave, over the model's own.

        A style or template that is given replaces the model's wording and the cap that belongs to
        it. A style alone cannot replace a template whose words are all that the model knows.
        """
        own = replace(given, prompt=self.style, template=self.template)
        other_style = given.prompt is not None and (
            given.prompt != own.style or self.template is not None
        )
        reworded = given.template is not None or (other_style and not self.only_template)
        wording = given if reworded else own
        return replace(
            given,
            prompt=given.prompt or wording.style,
            template=wording.template,
            label_set=self.labels if given.label_set is None else given.label_set,
            default_max_tokens=(
                given.default_max_tokens
                if reworded or given.default_max_tokens is not None
                else self.max_response_tokens
            ),
        )

    def write(self, folder: Path) -> None:
        """Write the file into a model's folder, and a copy of the template."""
        if self.template is not None:
            shutil.copyfile(self.template, folder / TEMPLATE_FILE)
        name = None if self.template is None else TEMPLATE_FILE
        filed = msgspec.structs.replace(self, template=name)
        with whole_file(folder / PROMPT_FILE) as file:
            file.write(msgspec.json.format(msgspec.json.encode(filed), indent=1) + b"\n")


def own_prompt_of(folders: Sequence[Path]) -> OwnPrompt:
    """Return the prompt of the first folder that has one; an empty one if none has.

    Raises:
        UsageError: If a file is damaged, too large, or names what does not exist.
    """
    for folder in folders:
        template = folder / TEMPLATE_FILE
        if os.path.lexists(folder / PROMPT_FILE):
            return _read(folder / PROMPT_FILE, template)
        if template.is_file():
            return OwnPrompt(template=str(template), only_template=True)
    return OwnPrompt()


def asked_as(recipe: str | None, own: OwnPrompt) -> OwnPrompt:
    """Return how a recipe, or the folder of a trained model, asks; the model's own prompt without one.

    Raises:
        UsageError: If the recipe cannot be read.
    """
    if recipe is None:
        return own
    if os.path.lexists(Path(recipe) / PROMPT_FILE):
        return own_prompt_of([Path(recipe)])
    recipes = import_module("unswayed.training.recipe")  # by name, as tables name what is above
    settled: OwnPrompt = recipes.prompt_of(recipes.load_recipe(recipe), own)
    return settled


def _read(path: Path, template: Path) -> OwnPrompt:
    try:
        if not path.is_file():
            raise UsageError("is not a file")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise UsageError(f"is larger than {MOST_BYTES >> 10} KiB")
        own = msgspec.json.decode(content, type=OwnPrompt)
        _check(own, template)
    except msgspec.ValidationError as error:
        field, reason = field_and_reason(error)
        raise _refusal(path, f"{field or 'file'}: {reason}") from None
    except (UsageError, TemplateError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise _refusal(path, str(error)) from None
    except OSError as error:
        raise _refusal(path, f"cannot be read ({error.strerror or error})") from None
    return msgspec.structs.replace(own, template=None if own.template is None else str(template))


def _check(own: OwnPrompt, template: Path) -> None:
    from unswayed.prompts import PROMPTS, check_labels  # with jinja2, which --help does without

    if own.style is not None and own.style not in PROMPTS:
        raise UsageError(
            f"style: unknown prompt {own.style!r:.60}. {did_you_mean(own.style, PROMPTS)}"
        )
    if own.labels is not None:
        if len(own.labels) < 2:
            raise UsageError("labels: give at least 2, or null")
        check_labels(own.labels)
    if own.template not in (None, TEMPLATE_FILE):
        raise UsageError(f"template: {own.template!r:.60} is not {TEMPLATE_FILE!r} or null")
    if own.template is not None and not template.is_file():
        raise UsageError(f"template: there is no {TEMPLATE_FILE} next to it")
    if own.only_template and own.template is None:
        raise UsageError("only_template: there is no template")


def _refusal(path: Path, reason: str) -> UsageError:
    return UsageError(
        f"{path}: {reason.removesuffix('.')}. It records the prompt of the training: copy it again from the result "
        f"of the training, or remove it to use the default prompt."
    )
