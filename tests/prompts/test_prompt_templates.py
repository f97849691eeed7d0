"""The user's template file: what it may use, how it is divided, why it is refused."""

from pathlib import Path

import msgspec
import pytest

from unswayed.base.errors import TemplateError
from unswayed.model.items import Item, Message, Task
from unswayed.model.presentation import X0, X1, X2, Ask, Presentation, Substitution
from unswayed.prompts import PromptSettings, check_prompts, prompt_fingerprint, render

PAIR = Item(id="q1", prompt="cooking", candidates=("clear polite short", "vague wrong dry"), gold=0)
TINY = (
    "rate the answers about {{ question }} "
    "{% for c in candidates %}{{ c.label }} : {{ c.text }} . {% endfor %}which is better"
)


EXAMPLE = Item(id="s", prompt="riding", candidates=("good", "bad"), gold=0)


def settings_of(folder: Path, text: str, **more: object) -> PromptSettings:
    path = folder / "template.txt"
    path.write_text(text, encoding="utf-8")
    return PromptSettings(template=str(path), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_white_space_stays_as_written(tmp_path: Path, ending: str) -> None:
    rendered = render(PAIR, Ask(X1), settings_of(tmp_path, TINY + ending))
    candidates = "B : vague wrong dry . A : clear polite short . "
    shown = f"rate the answers about cooking {candidates}which is better"
    assert rendered.messages == (Message("user", shown),)
    assert (rendered.labels, rendered.answer_only) == (("A", "B"), True)


def test_an_option_template_shows_bcda(tmp_path: Path) -> None:
    text = "{{ question }} {% for c in candidates %}{{ c.label }} : {{ c.text }} . {% endfor %}"
    item = Item(id="m", task=Task.MCQ, prompt="largest", candidates=("cat", "whale", "ant", "bus"))
    settings = settings_of(tmp_path, text)
    assert check_prompts([item], settings) == []
    rendered = render(item, Ask(Presentation((1, 2, 3, 0), (0, 1, 2, 3))), settings)
    assert rendered.messages[0].content == "largest A : whale . B : ant . C : bus . D : cat . "


def test_sections_give_system_and_user_messages(tmp_path: Path) -> None:
    text = (
        "--- system ---\nYou judge. Reply {{ labels | join(' or ') }}.\n"
        "--- user ---\nQ: {{ question }}\n{% for c in candidates %}{{ c.label }}: {{ c.text }}\n"
        "{% endfor %}Best:\n"
    )
    rendered = render(PAIR, Ask(X2), settings_of(tmp_path, text))
    assert rendered.messages == (
        Message("system", "You judge. Reply A or B."),
        Message("user", "Q: cooking\nA: vague wrong dry\nB: clear polite short\nBest:"),
    )


def test_content_is_never_read_as_template_or_section(tmp_path: Path) -> None:
    nasty = "{{ labels }}\n--- system ---\n{% raw %}<b>&amp;</b>\n"
    item = Item(id="n", prompt=nasty, candidates=("{{ 1/0 }}", "--- user ---"))
    rendered = render(item, Ask(X0), settings_of(tmp_path, TINY))
    assert rendered.messages[0].content == (
        f"rate the answers about {nasty} A : {{{{ 1/0 }}}} . B : --- user --- . which is better"
    )


def test_front_matter_sets_answer_style_and_cap(tmp_path: Path) -> None:
    head = "---\nanswer: reasoning\nmax_tokens: 99\n---\n"
    rendered = render(PAIR, Ask(X0), settings_of(tmp_path, head + TINY))
    assert (rendered.answer_only, rendered.top_logprobs, rendered.max_tokens) == (False, 0, 99)
    assert rendered.messages[0].content.startswith("rate the answers")


def test_a_template_is_used_for_default_only(tmp_path: Path) -> None:
    settings, direct = settings_of(tmp_path, TINY), Ask(X0, "direct")
    assert render(PAIR, direct, settings) == render(PAIR, direct, PromptSettings())


def test_turns_system_reference_and_counts_are_available(tmp_path: Path) -> None:
    text = (
        "{{ task }} {{ n }} [{{ system }}] {% for t in turns %}{{ t.role }}={{ t.text }};{% endfor %}"
        " {% if reference %}ref {{ reference }} {% endif %}{{ question }} "
        "{% for c in candidates %}{{ c.label }} {{ c.text }} {{ c.turns | length }} {% endfor %}"
    )
    item = Item(
        id="c",
        prompt=(Message("system", "be brief"), Message("user", "hi")),
        candidates=((Message("assistant", "one"), Message("assistant", "two")), "three"),
        reference="gold standard",
    )
    content = render(item, Ask(X0), settings_of(tmp_path, text)).messages[0].content
    assert content.startswith(
        "pairwise 2 [be brief] system=be brief;user=hi; ref gold standard system: be brief"
    )
    assert "A assistant: one\n\nassistant: two 2 B three 1" in content


def test_content_free_text_goes_through_the_template(tmp_path: Path) -> None:
    ask = Ask(X0, substitute=Substitution(("N/A", "N/A"), prompt="N/A"))
    content = render(PAIR, ask, settings_of(tmp_path, TINY)).messages[0].content
    assert content == "rate the answers about N/A A : N/A . B : N/A . which is better"


def test_examples_go_through_the_template(tmp_path: Path) -> None:
    text = "--- system ---\nJudge.\n--- user ---\n" + TINY
    messages = render(PAIR, Ask(X0), settings_of(tmp_path, text, shots=(EXAMPLE,))).messages
    assert [message.role for message in messages] == ["system", "user", "assistant", "user"]
    assert f"{messages[2].content} : good" in messages[1].content


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "{% for c in candidates %}{{ c.label }}{{ c.text }}{% endfor %}",
            "never shows the question",
        ),
        ("{{ question }} {% for c in candidates %}{{ c.label }}{% endfor %}", "text of every"),
        ("{{ question }} {{ candidates[0].label }} {{ candidates[0].text }}", "text of every"),
        (
            "{{ question }} A: {{ candidates[0].text }} B: {{ candidates[1].text }}",
            "does not print the label",
        ),
        (
            "{{ question }} {{ labels[0] }}: {{ candidates[0].text }} "
            "{{ labels[1] }}: {{ candidates[1].text }}",
            "next to its own",
        ),
        (
            "{{ question }} {% for c in candidates | reverse %}{{ c.label }} {{ c.text }} {% endfor %}",
            "order of display",
        ),
        (
            "{{ question }} {% for c in candidates | sort(attribute='label') %}"
            "{{ c.label }} {{ c.text }} {% endfor %}",
            "order of display",
        ),
        (TINY + "{{ answer }}", "'answer' is undefined"),
        (TINY + "{{ candidates[0].gold }}", "gold"),
        (TINY + "{{ candidates[0].values }}", "attribute 'values'"),
        (TINY + "{{ candidates[0].text.__class__.__mro__ }}", "unsafe"),
        (TINY + "{% for %}", "line 1: "),
        (TINY + "{{ 1 / 0 }}", "division by zero. Correct the expression."),
        ("--- system ---\nfine\n--- user ---\n" + TINY + "\n{% endif %}", "line 5: "),
        ("words\n--- user ---\n" + TINY, "before the first section line"),
        ("--- user ---\n" + TINY + "\n--- system ---\nlast", "last message must be the user's"),
        ("---\nanswers: direct\n---\n" + TINY, "Did you mean 'answer'"),
        ("---\nanswer: quick\n---\n" + TINY, "write direct or reasoning"),
        ("---\nmax_tokens: none\n---\n" + TINY, "whole number"),
        ("---\nreask:\n---\n" + TINY, "reask is ''; write words"),
        ("---\nreask: Only {label}.\n---\n" + TINY, "write words, {labels}"),
        ("---\nreask: Only {}.\n---\n" + TINY, "write words, {labels}"),
        ("---\nanswer: direct\n" + TINY, "no closing"),
        ("  \n", "is empty. Write {{ question }} and a loop"),
    ],
)
def test_a_template_that_cannot_work_is_refused_with_the_reason(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(TemplateError, match=reason):
        check_prompts([PAIR], settings_of(tmp_path, text))


def test_a_template_with_labels_after_the_texts_is_accepted(tmp_path: Path) -> None:
    text = (
        "{{ question }}\nReply {{ labels | join(' or ') }}.\n"
        "{% for c in candidates %}{{ c.text }} ({{ c.label }})\n{% endfor %}"
    )
    assert check_prompts([PAIR], settings_of(tmp_path, text)) == []


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name, reason in (("none.txt", "cannot be read"), ("binary", "not UTF-8")):
        with pytest.raises(TemplateError, match=reason):
            render(PAIR, Ask(X0), PromptSettings(template=str(tmp_path / name)))
    # and is not blamed on items
    with pytest.raises(TemplateError, match=r"^template .*\(it is a directory; give a file\)"):
        check_prompts([PAIR], PromptSettings(template=str(tmp_path)))


def test_a_reference_the_template_does_not_show_is_warned_about(tmp_path: Path) -> None:
    item = Item(id="r", prompt="?", candidates=("x", "y"), reference="z")
    (warning,) = check_prompts([item, PAIR], settings_of(tmp_path, TINY))
    assert warning.startswith("1 of 2 items have a reference")


def test_one_settings_value_is_one_wording(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, TINY)
    before = render(PAIR, Ask(X0), settings)
    changed = settings_of(tmp_path, "changed " + TINY)  # overwrites the same file
    assert render(PAIR, Ask(X0), settings) == before
    assert render(PAIR, Ask(X0), changed) != before


def test_the_fingerprint_follows_every_part_of_the_prompt(tmp_path: Path) -> None:
    other = msgspec.structs.replace(EXAMPLE, gold=1)
    values = [
        PromptSettings(),
        PromptSettings(prompt="reasoning"),
        PromptSettings(label_set=("X", "Y")),
        PromptSettings(shots=(EXAMPLE,)),
        PromptSettings(shots=(other,)),
        settings_of(tmp_path, TINY),
    ]
    prints = [prompt_fingerprint(settings) for settings in values]
    prints.append(prompt_fingerprint(settings_of(tmp_path, TINY + "?")))
    assert len(set(prints)) == len(prints)
    assert all(len(value) == len("sha256:") + 64 for value in prints)
    assert prompt_fingerprint(PromptSettings(max_tokens=5, top_logprobs=1)) == prints[0]
