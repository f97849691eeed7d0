"""A prompt registered from outside the package: one file, one line, no other edit."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from unswayed.cli import main
from unswayed.errors import TemplateError, UnknownNameError
from unswayed.items import Item, Task
from unswayed.presentation import X1, Ask, canonical
from unswayed.prompts import PROMPTS, PromptSettings, prompt_fingerprint, render

FILE = '''
"""A prompt of one sentence."""

from unswayed.parsing import ReplySpec
from unswayed.prompts import Style

BRIEF = Style(
    name="brief",
    title="one sentence",
    system=("data", "brief"),
    closing=("question",),
    reply=ReplySpec(max_tokens=4, answer_only=True),
    words={"brief": "Name the better {noun}: {labels}, such as {first}."},
)
'''
# files of calibrate hold these: they change with the words, and fitted files are worthless then
FINGERPRINTS = {
    "debias": "sha256:b2950d653df019da74a7de96848b4f003ce6df279a93d12e591777f5265c1be6",
    "debias-reasoning": "sha256:e4f2405e18f7abdd718847b59989a03380152b9429954b55a1600b0b6f9f9aa8",
    "direct": "sha256:b6e6403d47beb81c9de1858c83ba89aa0d141d2e4b7ea39606657c06546f876e",
    "keyed": "sha256:ec79397fd2157b941f8074c3ceba5d8bcac3f0b0142b302ddd36e8763ce1f527",
    "modified": "sha256:88e21fde3bb6aadaa96e1607c8c0041cd8af272b749381a24bb15dcbf940e435",
    "modified-direct": "sha256:19f005a6ac644b30ef0b6a20f7891d6374c308ee86b2b93deca2bae5b8eac5df",
    "reasoning": "sha256:9ce29a297fa0e99d311d84043f38675c307c931bbedd24a9b675ead57cb46ed4",
}
PAIR = Item(id="q1", prompt="Why?", candidates=("one", "two"), gold=0)
OPTIONS = Item(id="q2", task=Task.MCQ, prompt="Why?", candidates=("one", "two", "three"), gold=0)


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of somebody else that registers a prompt."""
    package = tmp_path / "site"
    information = package / "outside-1.0.dist-info"
    information.mkdir(parents=True)
    (package / "outside_prompt.py").write_text(FILE, encoding="utf-8")
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        "[unswayed.prompts]\nbrief = outside_prompt:BRIEF\n"
    )
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.chdir(tmp_path)
    vars(PROMPTS).pop("_all", None)  # entry points are read once
    try:
        yield tmp_path
    finally:
        vars(PROMPTS).pop("_all", None)
        sys.modules.pop("outside_prompt", None)


def test_its_own_words_speak_of_every_task() -> None:
    for item, phrase in (
        (PAIR, "Name the better answer: A or B, such as A."),
        (OPTIONS, "Name the better option: A, B or C, such as A."),
    ):
        rendered = render(item, Ask(canonical(item.n), "brief"), PromptSettings())
        assert rendered.messages[0].content.endswith(phrase)
        assert (rendered.max_tokens, rendered.answer_only, rendered.top_logprobs) == (4, True, 20)
        assert [len(spans) for spans in rendered.spans] == [1] * item.n


def test_it_has_a_fingerprint_of_its_own_and_changes_no_other() -> None:
    prints = {name: prompt_fingerprint(PromptSettings(prompt=name)) for name in PROMPTS}
    assert len(set(prints.values())) == len(prints) > len(FINGERPRINTS)
    assert {name: prints[name] for name in FINGERPRINTS} == FINGERPRINTS


def test_a_sentence_that_nobody_has_is_named() -> None:
    style = PROMPTS.load("brief")
    style.words.clear()
    with pytest.raises(TemplateError, match=r"q1: .*task 'pairwise'.*no 'brief' sentence"):
        render(PAIR, Ask(X1, "brief"), PromptSettings())
    with pytest.raises(UnknownNameError, match="Did you mean 'brief'"):
        render(PAIR, Ask(X1, "brif"), PromptSettings())


def test_audits_ask_with_it(outside: Path) -> None:
    path = outside / "items.jsonl"
    rows = [
        {"id": f"q{k}", "prompt": f"question {k}", "candidates": [f"one {k}", f"two {k}"]}
        for k in range(12)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    asked = ("--model", "simulated/judge", "--prompt", "brief", "--resamples", "100")
    assert main(["audit", str(path), *asked, "--out", "run"]) == 0
    run = json.loads((outside / "run" / "run.json").read_text(encoding="utf-8"))
    assert run["prompt"]["name"] == "brief"
