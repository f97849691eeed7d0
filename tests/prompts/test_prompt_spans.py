"""A rendered prompt says exactly where each candidate's text stands in it."""

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unswayed.model.items import Item, Message, Task, Text, text_of
from unswayed.model.presentation import X0, X1, Ask, Presentation, Substitution
from unswayed.prompts import PROMPTS, PromptSettings, Span, candidate_spans, render

SHOTS = (
    Item(id="s1", task=Task.MCQ, prompt="aa", candidates=("a", "b", "a"), gold=1),
    Item(id="s2", task=Task.MCQ, prompt="a", candidates=("", "a", "b"), gold=2),
)
TEMPLATES = (
    "{{ question }}{% for c in candidates %}{{ c.label }}{{ c.text }}{% endfor %}",
    "--- system ---\n{% for c in candidates %}{{ c.label }}: {{ c.text }}{% endfor %}\n"
    "--- assistant ---\nA\n--- user ---\n{{ question }}"
    "{% for c in candidates | reverse %}[{{ c.text }}|{{ c.text }}]{% endfor %}",
    "{% macro one(c) %}{{ c.label }} {{ c.text }}{% endmacro %}{{ question }}"
    "{% for c in candidates %}{% if c.text %}{{ one(c) ~ '.' }}{% else %}none{{ c.text }}"
    "{% endif %}{{ c.text | length > 99 }}{{ c.text == '' }}{% endfor %}",
)
# short texts over few characters: most are empty, repeated or contained in one another
TEXTS = st.text("aA=.\n \ue000{", max_size=4)
CONTENTS = TEXTS | st.lists(st.builds(Message, st.just("user"), TEXTS), min_size=1, max_size=3).map(
    tuple
)


@st.composite
def asked(draw: st.DrawFn) -> tuple[Item, Ask]:
    n = draw(st.integers(2, 4))
    task = draw(st.sampled_from([Task.PAIRWISE, Task.MCQ])) if n == 2 else Task.MCQ
    item = Item(
        id="i",
        task=task,
        prompt=draw(CONTENTS),
        candidates=tuple(draw(CONTENTS) for _ in range(n)),
        reference=draw(st.none() | TEXTS),
    )
    shown = Presentation(*(tuple(draw(st.permutations(range(n)))) for _ in range(2)))
    return item, Ask(shown, draw(st.sampled_from(["default", *PROMPTS])))


def cut(item: Item, ask: Ask, prompts: PromptSettings) -> tuple[list[str], list[tuple[int, str]]]:
    """The chat without the candidates, and the candidates as they come in it."""
    spans = candidate_spans(item, ask, prompts)
    places = sorted((span, candidate) for candidate, own in enumerate(spans) for span in own)
    assert all(
        one.message < two.message or one.end <= two.start for (one, _), (two, _) in pairwise(places)
    )
    frame, texts = [], []
    for number, message in enumerate(render(item, ask, prompts).messages):
        end = 0
        for span, candidate in places:
            if span.message == number:
                frame.append(message.content[end : span.start])
                texts.append((candidate, message.content[span.start : span.end]))
                end = span.end
        frame.append(message.content[end:])
    return frame, texts


def twin(item: Item) -> Item:
    """The item with candidates that nothing else contains, of as many lines and turns."""

    def other(text: str, name: str) -> str:
        return f"qz{name}zq" + "\n" * (len(text.splitlines()) - 1) + "." if text else ""

    def of(text: Text, name: str) -> Text:
        if isinstance(text, str):
            return other(text, name)
        return tuple(Message(m.role, other(m.content, f"{name}.{k}")) for k, m in enumerate(text))

    candidates = tuple(of(text, str(c)) for c, text in enumerate(item.candidates))
    return msgspec.structs.replace(item, candidates=candidates)


def contents(text: Text) -> list[str]:
    return [text] if isinstance(text, str) else [message.content for message in text]


def plain(text: Text) -> str:
    """What a template shows as a candidate's text."""
    turns = contents(text)
    return turns[0] if len(turns) == 1 else text_of(text)


@settings(max_examples=50)
@given(asked(), st.booleans())
def test_the_spans_hold_the_candidates_and_nothing_else(
    case: tuple[Item, Ask], with_shots: bool
) -> None:
    item, ask = case
    shots = SHOTS if with_shots and item.task is Task.MCQ else ()
    prompts = PromptSettings(shots=shots)
    frame, texts = cut(item, ask, prompts)
    assert texts == [
        (candidate, text)
        for candidate in ask.presentation.order
        for text in contents(item.candidates[candidate])
    ]
    if not any("=" in text for _, text in texts):  # runs of it lengthen the headings
        assert frame == cut(twin(item), ask, prompts)[0]


@settings(max_examples=50)
@given(case=asked(), text=st.sampled_from(TEMPLATES), with_shots=st.booleans())
def test_template_spans_hold_the_candidates_alone(
    tmp_path_factory: pytest.TempPathFactory,
    case: tuple[Item, Ask],
    text: str,
    with_shots: bool,
) -> None:
    item, ask = case
    path = tmp_path_factory.mktemp("template") / "template.txt"
    path.write_text(text, encoding="utf-8")
    shots = SHOTS if with_shots and item.task is Task.MCQ else ()
    prompts = PromptSettings(template=str(path), shots=shots)
    ask = ask._replace(prompt_id="default")
    frame, texts = cut(item, ask, prompts)
    order = ask.presentation.order
    twice = [candidate for candidate in reversed(order) for _ in range(2)]
    expected = [*order, *twice] if text == TEMPLATES[1] else list(order)
    assert texts == [(candidate, plain(item.candidates[candidate])) for candidate in expected]
    assert frame == cut(twin(item), ask, prompts)[0]


@pytest.mark.parametrize(
    ("text", "shown", "spans"),
    [
        (
            "aa {% for c in candidates %}{{ c.label }}{{ c.text | trim }}.{% endfor %}",
            "aa Baa.Aa.",
            ((Span(0, 8, 9),), (Span(0, 4, 6),)),
        ),
        # one that cuts the texts has no place for them
        (
            "{% for c in candidates %}{{ c.label }} {{ c.text[:2] }}.{% endfor %}",
            "B aa.A  a.",
            ((), ()),
        ),
    ],
)
def test_the_spans_of_a_template_are_where_the_eye_sees_them(
    text: str, shown: str, spans: object, tmp_path: Path
) -> None:
    path = tmp_path / "template.txt"
    path.write_text(text)
    item = Item(id="i", prompt="?", candidates=(" a", "aa "))
    prompts = PromptSettings(template=str(path))
    assert render(item, Ask(X1), prompts).messages == (Message("user", shown),)
    assert candidate_spans(item, Ask(X1), prompts) == spans


def test_content_free_texts_have_places() -> None:
    item = Item(id="i", prompt="?", candidates=("one", "two"))
    ask = Ask(X0, substitute=Substitution(("N/A", "N/A")))
    assert cut(item, ask, PromptSettings())[1] == [(0, "N/A"), (1, "N/A")]
