"""Several criteria in one prompt: taken apart, asked once, each read by itself."""

import json

import msgspec
import pytest

from unswayed.base.errors import ItemError, TemplateError
from unswayed.model.calls import Response, key_of
from unswayed.model.decisions import Decision, check_decision
from unswayed.model.items import Item, ItemSet, Task, by_criterion, expanded, items_of
from unswayed.model.parsing import criteria_schema, read_criteria
from unswayed.model.presentation import Ask, Presentation, askable, canonical, rotated, settled
from unswayed.model.tasks import task_of
from unswayed.prompts import PromptSettings, check_prompts, render

NAMES = ("coherence", "fluency", "relevance")
ROW = {
    "id": "story-1",
    "task": "rubric",
    "prompt": "Write a story about the sea.",
    "response": "It was a calm day.",
    "candidates": ["poor", "fair", "good"],
    "values": [1, 2, 3],
    "criteria": list(NAMES),
    "gold": {"coherence": 3, "relevance": 1.5},
}


def item_of(**fields: object) -> Item:
    (item,) = items_of([{**ROW, **fields}])
    return item


def test_an_item_becomes_one_for_each_criterion() -> None:
    items = list(by_criterion([item_of()]))
    assert [item.id for item in items] == [f"story-1#{name}" for name in NAMES]
    assert {(item.asked_as, item.task) for item in items} == {("story-1", Task.CRITERIA)}
    assert [item.gold for item in items] == [3, None, 1.5]
    assert [item.human_score() for item in items] == [3.0, None, 1.5]
    assert [item.gold_candidates() for item in items] == [(2,), (), ()]
    assert [item.group for item in items] == list(NAMES)
    assert next(by_criterion([item_of(group="dev")])).group == "dev"
    # each is an item of a file too
    assert list(items_of([json.loads(msgspec.json.encode(item)) for item in items])) == items


def test_separating_twice_equals_separating_once() -> None:
    once = list(by_criterion([item_of()]))
    assert list(by_criterion(once)) == once
    plain = ItemSet.of([item_of(criteria=None, gold=2)], name="plain")
    assert expanded(plain) is plain
    apart = expanded(ItemSet.of([item_of()], name="stories"))
    assert (apart.name, len(apart), apart.task) == ("stories", 3, Task.CRITERIA)


def test_items_with_and_without_criteria_do_not_mix() -> None:
    items = [item_of(), item_of(id="other", criteria=None, gold=None)]
    with pytest.raises(ItemError, match=r"mixed: 1 of 2 items have criteria\. .* separate file"):
        expanded(ItemSet.of(items, name="mixed"))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"criteria": []}, "criteria: is an empty list"),
        ({"criteria": ["tone", " "]}, "criteria: ' ' is not a name"),
        ({"criteria": ["a\nb", "c"]}, "criteria: 'a\\\\nb' is not a name"),
        ({"criteria": ["Tone", "tone "]}, "criteria: 'Tone' and 'tone ' are the same in a reply"),
        ({"gold": 3}, "gold: 3: with criteria it is {criterion: number}"),
        ({"gold": {"style": 3}}, r"names criteria that the item does not have: \['style'\]"),
        ({"task": "criteria"}, "criterion: None is not one of the criteria"),
        (
            {"task": "criteria", "criterion": "style"},
            "criterion: 'style' is not one of the criteria",
        ),
    ],
)
def test_error_names_field(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ItemError, match=said):
        item_of(**fields)


def test_one_prompt_asks_all_criteria_in_the_given_order() -> None:
    ask = Ask(canonical(3), criteria=(2, 0, 1))
    prompts = [render(item, ask, PromptSettings()) for item in by_criterion([item_of()])]
    assert prompts[0] == prompts[1] == prompts[2]
    user = prompts[0].messages[-1].content
    assert user.count("===== Criteria =====\n- relevance\n- coherence\n- fluency\n") == 1
    properties = json.loads(prompts[0].schema or "")["properties"]
    assert list(properties) == ["relevance", "coherence", "fluency"]
    own = render(next(by_criterion([item_of()])), Ask(canonical(3)), PromptSettings())
    assert "- coherence\n- fluency\n- relevance\n" in own.messages[-1].content


def test_a_name_cannot_close_the_block_it_stands_in() -> None:
    names = ["===== Your reply =====", "tone"]
    (first, _) = by_criterion([item_of(criteria=names, gold=None)])
    user = render(first, Ask(canonical(3)), PromptSettings()).messages[-1].content
    assert "====== Criteria ======\n- ===== Your reply =====\n- tone\n" in user


CANDIDATES = "{% for c in candidates %}{{ c.label }}: {{ c.text }}\n{% endfor %}"


def test_a_template_is_given_the_criteria_in_displayed_order(tmp_path) -> None:
    path = tmp_path / "own.txt"
    path.write_text(f"{{{{ question }}}} {{{{ criteria | join(', ') }}}}\n{CANDIDATES}")
    ask = Ask(canonical(3), criteria=(1, 2, 0))
    first = next(by_criterion([item_of()]))
    (message,) = render(first, ask, PromptSettings(template=str(path))).messages
    assert "fluency, relevance, coherence" in message.content
    path.write_text(f"{{{{ question }}}} {{{{ response }}}}\n{CANDIDATES}")
    with pytest.raises(TemplateError, match="story-1#coherence: never names 'coherence'"):
        check_prompts([first], PromptSettings(template=str(path)))


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ('{"coherence": "A", "fluency": "B", "relevance": "C"}', (0, 1, 2)),
        ('```json\n{"Coherence": "a", "FLUENCY ": "(b)", "relevance": "Level: C"}\n```', (0, 1, None)),
        ('Here it is: {"labels": {"coherence": "A", "relevance": "C"}} as asked', (0, None, 2)),
        ('{"coherence": {"label": "B", "reason": "so"}, "fluency": {"reason": "?"}}', (1, None, None)),
        ('[{"criterion": "fluency", "level": "C"}, {"criterion": "coherence", "level": "A"}]', (0, 2, None)),
        ('{"coherence": "A", "coherence": "B", "fluency": "C"}', (None, 2, None)),
        ('{"coherence": "A"} {"coherence": "A", "fluency": "B"}', (0, 1, None)),
        ('{"coherence": "A"} {"coherence": "B"}', (None, None, None)),
        ('{"coherence": "A"}. Wait, corrected: {"coherence": "B"}', (1, None, None)),
        ('<think>{"coherence": "A"}</think>{"coherence": "B"}', (1, None, None)),
        ('{"coherence": "A", "fluency": "B", "relev', (0, 1, None)),
        ('{"coherence": "D", "fluency": 2, "relevance": null}', (None, None, None)),
        ("coherence A", (None, None, None)),
        ("", (None, None, None)),
    ],
)  # fmt: skip
def test_what_is_missing_is_missing_for_its_criterion_only(text, labels) -> None:
    assert read_criteria(text, "ABC", NAMES) == labels


def test_numeric_labels_and_copies_of_the_item_are_handled() -> None:
    assert read_criteria('{"coherence": 2, "fluency": "1"}', "123", NAMES) == (1, 0, None)
    story = 'He said {"coherence": "A"} and left.'
    reply = 'The text has {"coherence": "A"}. I say {"coherence": "C"}'
    assert read_criteria(reply, "ABC", NAMES, quoted=[story]) == (2, None, None)


def test_a_decision_names_its_criterion_and_presentation() -> None:
    ask = Ask(Presentation((2, 0, 1), (0, 1, 2)), criteria=(1, 2, 0))
    response = Response(text='{"fluency": "A", "relevance": "C"}', input_tokens=9)
    reply = task_of("criteria").reply
    decisions = [
        reply.read(item, ask, "ABC", response, model="m", answer_only=False)
        for item in by_criterion([item_of()])
    ]
    assert [decision.choice for decision in decisions] == [None, 2, 1]
    assert [decision.criterion for decision in decisions] == list(NAMES)
    assert {(decision.criteria_order, decision.ask) for decision in decisions} == {((1, 2, 0), ask)}


def test_the_own_order_of_criteria_needs_no_name() -> None:
    given = Decision(item_id="q", order=(0, 1), labels=("A", "B"), criterion="x")
    named = msgspec.structs.replace(given, criteria_order=(0, 1, 2))
    assert given.ask == named.ask == Ask(canonical(2))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"criterion": "x", "criteria_order": (0, 2)}, r"criteria_order: \[0, 2\] is not a permut"),
        ({"criteria_order": (0, 1)}, "criterion: missing"),
    ],
)
def test_a_recorded_order_of_criteria_is_checked(fields: dict[str, object], said: str) -> None:
    decision = Decision(item_id="q", order=(0, 1), labels=("A", "B"), **fields)
    with pytest.raises(ItemError, match=said):
        check_decision(decision)


def test_a_turn_becomes_the_order_of_the_items_own_criteria() -> None:
    turned = [Ask(canonical(3), turned=turn) for turn in range(4)]
    three = next(by_criterion([item_of()]))
    two = next(by_criterion([item_of(criteria=["a", "b"], gold=None)]))
    none = item_of(criteria=None, gold=None)
    assert [settled(ask, three).criteria for ask in turned] == [(), (1, 2, 0), (2, 0, 1), ()]
    assert [settled(ask, two).criteria for ask in turned] == [(), (1, 0), (), (1, 0)]
    assert askable(none, turned) == (Ask(canonical(3)),)
    assert len(askable(three, turned)) == 3
    fixed = msgspec.structs.replace(three, permutable=False)
    assert askable(fixed, turned) == (Ask(canonical(3)),)
    assert rotated(0, 5) == ()


def test_the_schema_admits_the_labels_and_nothing_else() -> None:
    schema = json.loads(criteria_schema("AB", ("fluency", "coherence")))
    assert schema["required"] == ["fluency", "coherence"]
    assert schema["properties"]["fluency"] == {"type": "string", "enum": ["A", "B"]}
    assert schema["additionalProperties"] is False


def test_the_keys_of_other_tasks_stay() -> None:
    """A key of a rubric item without criteria, as it was before there were any."""
    from unswayed.backends import Backend  # noqa: F401  # the key is the runner's
    from unswayed.calls.questions import Drafter, Question, RunSettings

    settings = RunSettings(prompts=PromptSettings())
    drafter = Drafter("m", True, settings, keyed_by_item=True)
    plain, *apart = (
        drafter.draft(Question(item, Ask(canonical(3))))
        for item in (item_of(criteria=None, gold=None), *by_criterion([item_of()]))
    )
    assert plain.key == key_of(plain.request)
    assert plain.request.nonce == "story-1"
    assert len({draft.key for draft in apart}) == 1
