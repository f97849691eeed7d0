"""How a model says it is to be asked: what is read, what goes before it, what is refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest
from local_asking import CPU
from random_llama import CHAT_TEMPLATE, make_random_llama

from unswayed import Item
from unswayed.api import audit
from unswayed.backends import open_backend
from unswayed.backends.model_folders import locate
from unswayed.backends.own_prompts import PROMPT_FILE, TEMPLATE_FILE, OwnPrompt, own_prompt_of
from unswayed.base.errors import UnswayedError, UsageError
from unswayed.model.presentation import X0, Ask
from unswayed.prompts import PromptSettings, render

REASONING = OwnPrompt(style="reasoning", labels=("X", "Y"), max_response_tokens=7)
TEMPLATED = OwnPrompt(style="direct", template="own.jinja", max_response_tokens=7)


@pytest.mark.parametrize(
    ("own", "given", "asked"),
    [
        (OwnPrompt(), {}, ("direct", None, None, None)),
        (OwnPrompt(), {"prompt": "modified"}, ("modified", None, None, None)),
        (REASONING, {}, ("reasoning", None, ("X", "Y"), 7)),
        (REASONING, {"prompt": "reasoning"}, ("reasoning", None, ("X", "Y"), 7)),
        (REASONING, {"prompt": "direct"}, ("direct", None, ("X", "Y"), None)),
        (REASONING, {"label_set": ("C", "D")}, ("reasoning", None, ("C", "D"), 7)),
        (REASONING, {"template": "mine.jinja"}, ("direct", "mine.jinja", ("X", "Y"), None)),
        (TEMPLATED, {}, ("direct", "own.jinja", None, 7)),
        (TEMPLATED, {"prompt": "direct"}, ("direct", None, None, None)),
        (TEMPLATED, {"template": "mine.jinja"}, ("direct", "mine.jinja", None, None)),
        (
            OwnPrompt(template="own.jinja", only_template=True),
            {"prompt": "reasoning"},
            ("reasoning", "own.jinja", None, None),
        ),
    ],
)
def test_what_is_given_goes_before_the_models_own(
    own: OwnPrompt, given: dict[str, object], asked: tuple[object, ...]
) -> None:
    settings = own.settings(PromptSettings(**given))  # type: ignore[arg-type]
    found = settings.prompt, settings.template, settings.label_set
    assert (*found, settings.default_max_tokens) == asked
    assert own.settings(settings) == settings  # laid over once more it changes nothing


def test_the_models_own_cap_holds_for_its_own_prompt_alone() -> None:
    item = Item(id="q", prompt="?", candidates=("a", "b"))
    own = OwnPrompt(max_response_tokens=2).settings(PromptSettings())
    assert render(item, Ask(X0), own).max_tokens == 2
    assert render(item, Ask(X0, "keyed"), own).max_tokens == 2048
    capped = OwnPrompt(max_response_tokens=2).settings(PromptSettings(max_tokens=5))
    assert render(item, Ask(X0), capped).max_tokens == 5


def test_what_is_written_is_read(tmp_path: Path) -> None:
    template = tmp_path / "mine.jinja"
    template.write_text("{{ question }}")
    folder = tmp_path / "model"
    folder.mkdir()
    own = OwnPrompt(
        style="modified",
        labels=("1", "2"),
        template=str(template),
        only_template=True,
        think_tags=("[r]", "[/r]"),
        answer_tags=("[[", "]]"),
        max_response_tokens=9,
        enable_thinking=False,
    )
    own.write(folder)
    template.unlink()
    read = msgspec.structs.replace(own, template=str(folder / TEMPLATE_FILE))
    assert own_prompt_of([folder]) == read
    assert str(tmp_path) not in (folder / PROMPT_FILE).read_text()


def test_an_adapters_own_prompt_goes_before_its_bases(tmp_path: Path) -> None:
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    base.mkdir()
    adapter.mkdir()
    (base / TEMPLATE_FILE).write_text("{{ question }}")
    assert own_prompt_of([adapter, base]).template == str(base / TEMPLATE_FILE)
    (adapter / TEMPLATE_FILE).write_text("{{ question }}")
    assert own_prompt_of([adapter, base]).template == str(adapter / TEMPLATE_FILE)
    (adapter / TEMPLATE_FILE).unlink()
    REASONING.write(adapter)  # trained without a template
    assert own_prompt_of([adapter, base]) == REASONING


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "truncated"),
        ("[]", "Expected `object`"),
        ("null", "Expected `object`"),
        ('{"style": 3}', "style: Expected text"),
        ('{"style": "resoning"}', "Did you mean 'reasoning'"),
        ('{"labels": "AB"}', "labels: Expected `array | null`"),
        ('{"labels": ["A"]}', "labels: give at least 2"),
        ('{"labels": ["A", "A"]}', "occurs twice"),
        ('{"labels": ["A", "<b>"]}', "contains a bracket"),
        ('{"think_tags": ["<think>"]}', "think_tags: Expected `array` of length 2"),
        ('{"max_response_tokens": 0}', "max_response_tokens: Expected `int` >= 1"),
        ('{"max_response_tokens": 1e99}', "max_response_tokens: Expected `int | null`"),
        (f'{{"max_response_tokens": {10**30}}}', "max_response_tokens"),
        ('{"enable_thinking": "no"}', "enable_thinking: Expected `bool | null`"),
        ('{"trust_remote_code": true}', "unknown field `trust_remote_code`"),
        ('{"template": "../../secret"}', "template: '../../secret' is not"),
        ('{"template": "prompt_template.jinja"}', "there is no prompt_template.jinja next to it"),
        ('{"only_template": true}', "only_template: there is no template"),
        ('{"style": "' + "a" * (1 << 17) + '"}', "larger than 64 KiB"),
        ("[" * 60_000, "Expected `object`"),
        ('{"style": "\\ud800"}', "truncated"),
    ],
)
def test_a_damaged_or_hostile_file_is_refused_by_name(
    tmp_path: Path, text: str, reason: str
) -> None:
    (tmp_path / PROMPT_FILE).write_text(text)
    with pytest.raises(UsageError) as refused:
        own_prompt_of([tmp_path])
    assert str(refused.value).startswith(f"{tmp_path / PROMPT_FILE}: ")
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 600


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / PROMPT_FILE
    path.write_bytes(b'{"style": "\xff"}')
    with pytest.raises(UsageError, match=PROMPT_FILE):
        own_prompt_of([tmp_path])
    path.unlink()
    path.symlink_to(tmp_path / "gone")
    with pytest.raises(UsageError, match="is not a file"):
        own_prompt_of([tmp_path])
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UsageError, match="is not a file"):
        own_prompt_of([tmp_path])


def test_a_model_asked_in_another_mode_is_another_model(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    template = CHAT_TEMPLATE + "{% if enable_thinking is false %}<think></think>{% endif %}"
    folder = make_random_llama(tmp_path / "model", chat_template=template)
    items = [Item(id="q", prompt="Which?", candidates=("a", "b"))]
    names = [open_backend(f"hf/{folder}", CPU).model]
    run = tmp_path / "run"
    audit(f"hf/{folder}", items, methods="direct", out=run, backend=CPU, resamples=100)
    for thinking in (False, True):
        OwnPrompt(enable_thinking=thinking).write(folder)
        names.append(open_backend(f"hf/{folder}", CPU).model)
        with pytest.raises(UnswayedError, match="sha256"):  # not its calls
            audit(f"hf/{folder}", items, methods="direct", out=run, backend=CPU, resamples=100)
    assert len(set(names)) == 3


def test_the_own_prompt_of_an_adapter_is_part_of_its_name(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    folder = make_random_llama(tmp_path / "model")
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    shutil.copyfile(folder / "model.safetensors", adapter / "adapter_model.safetensors")
    before = locate(f"{folder}+lora={adapter}").name
    OwnPrompt(enable_thinking=True).write(adapter)
    after = locate(f"{folder}+lora={adapter}")
    assert after.name != before
    assert after.prompt.enable_thinking is True
    assert json.loads((adapter / PROMPT_FILE).read_text())["template"] is None
