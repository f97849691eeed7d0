"""Rules for every task, prompt and skip."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from unswayed.base.errors import ItemError
from unswayed.model.calls import Response
from unswayed.model.decisions import Decision, Evidence
from unswayed.model.items import Item, Task, blind, items_of
from unswayed.model.permutations import compose, invert
from unswayed.model.presentation import Ask, Presentation, canonical, presentations
from unswayed.model.tasks import TaskSpec, task_of
from unswayed.prompts import PROMPTS, PromptSettings, Style, candidate_spans, render
from unswayed.testing.rules import hold, refuses

LABEL_SETS: Final = (
    None,
    ("1", "2", "3", "4", "5"),
    ("m", "M", "n", "N", "o"),
    ("first", "second", "third", "fourth", "fifth"),
    ("甲", "乙", "丙", "丁", "戊"),
    ("Option 1", "Option 2", "Option 3", "Option 10", "Option 11"),
)
REPLIES: Final = ("direct", "reasoning", "structured", "structured-reasoning")
WISH: Final = PROMPTS.load("direct").reply


def check_task(task: TaskSpec) -> None:
    """Check a task that is registered.

    Raises:
        AssertionError: Naming the broken rule.
    """
    hold(f"task {task.name}", RULES, task)


def check_prompt(style: Style) -> None:
    """Check a prompt that is registered: built-in tasks are asked with it in full.

    Raises:
        AssertionError: Naming the broken rule.
    """
    hold(f"prompt {style.name}", [shows_every_candidate], style)


def check_skip(skip: Callable[[Item], bool]) -> None:
    """Check a skip rule of `apoc`: a pure function of a blind item to True or False.

    Raises:
        AssertionError: Naming the broken rule.
    """
    hold(f"skip {getattr(skip, '__name__', skip)}", [is_a_function_of_blind_items], skip)


def shows_every_candidate(style: Style) -> None:
    """Check that a prompt of every task that shares its words shows each candidate once, under its label."""
    for task in (task_of("pairwise"), task_of("mcq")):
        for n in sizes(task):
            _shows(item_of(task, n), canonical(n), style.name, None)


def is_a_function_of_blind_items(skip: Callable[[Item], bool]) -> None:
    """Check that a skip reads blind items, and answers the same each time."""
    for number in range(5):
        item = Item(id=f"q{number}", prompt=f"What is {number}?", candidates=("one", "two"))
        said = [skip(item), skip(item)]
        assert said in ([True, True], [False, False]), said


def sizes(task: TaskSpec) -> list[int]:
    """Numbers of candidates that the task takes."""
    numbers = []
    for n in (2, 3, 4, 5):
        try:
            task.check(item_of(task, n))
        except ItemError:
            continue
        numbers.append(n)
    return numbers


def item_of(task: TaskSpec, n: int, gold: int | None = 0) -> Item:
    """Return an item of the task, with values and criteria where its candidates are levels."""
    fields: dict[str, Any] = {}
    if task.scaled:
        values = tuple(float(level) for level in range(n))  # so that gold is the level's own index
        fields = {"values": values, "response": "The response."}
    if task.points is not None:
        fields |= {"criteria": ("style", "tone"), "criterion": "tone"}
    return Item(
        id=f"{task.name}-{n}",
        task=Task(task.name),
        prompt="Which?",
        candidates=tuple(f"qz{candidate}" for candidate in range(n)),
        gold=gold,
        **fields,
    )


def shuffled(n: int, seed: object) -> Presentation:
    """Any order and any labels, the same for one seed."""
    draw = random.Random(f"{seed}")
    return Presentation(tuple(draw.sample(range(n), n)), tuple(draw.sample(range(n), n)))


def _read(item: Item, ask: Ask, labels: tuple[str, ...], only: bool, **said: Any) -> Decision:
    reply = task_of(item.task).reply
    return reply.read(blind(item), ask, labels, Response(**said), model="m", answer_only=only)


def _shows(item: Item, shown: Presentation, style: str, labels: tuple[str, ...] | None) -> str:
    """Return the text of one prompt, after a check."""
    asked = item, Ask(shown, style), PromptSettings(label_set=labels)
    rendered, places = render(*asked), candidate_spans(*asked)
    text = "\n".join(message.content for message in rendered.messages)
    assert [text.count(str(candidate)) for candidate in item.candidates] == [1] * item.n
    assert [len(spans) for spans in places] == [1] * item.n
    starts = [places[candidate][0].start for candidate in shown.order]
    assert starts == sorted(starts)
    user = rendered.messages[-1].content
    for label, start in zip(shown.labels, starts, strict=True):
        assert user[:start].rstrip("=. \n").endswith(rendered.labels[label])
    assert f"{', '.join(rendered.labels[:-1])} or {rendered.labels[-1]}" in text
    assert not re.search(r"\{\w*\}", text), "a field of the words is not filled in"
    return text


def is_shown_in_full(task: TaskSpec) -> None:
    """Every prompt shows each candidate once, under its label, with the reference and the task's noun."""
    for n in sizes(task):
        item = msgspec.structs.replace(item_of(task, n), reference="qzreference")
        for style in PROMPTS:
            for labels in LABEL_SETS:
                text = _shows(item, shuffled(n, task.name), style, labels)
                assert text.count("qzreference") == 1
                assert task.noun.capitalize() in text


def reads_what_it_asks_for(task: TaskSpec) -> None:
    """Check that the example that a prompt would show reads back as the gold candidate."""
    cases = [(n, gold, labels) for n in sizes(task) for gold in range(n) for labels in LABEL_SETS]
    for n, gold, labels in cases:
        for style in REPLIES:
            item, ask = item_of(task, n, gold), Ask(shuffled(n, (gold, labels)), style)
            asked = render(item, ask, PromptSettings(label_set=labels))
            assert asked.max_tokens > 0
            wish = PROMPTS.load(style).reply
            text = task.reply.example(item, ask.presentation, asked.labels, wish)
            decision = _read(item, ask, asked.labels, asked.answer_only, text=text)
            assert decision.choice == gold, text
            assert (decision.ask, decision.label_set) == (ask, asked.labels)
            assert (decision.item_id, decision.text, decision.model) == (item.id, text, "m")


def relabels_with_the_candidates(task: TaskSpec) -> None:
    """Renumbered candidates give the same prompt and the renumbered decision."""
    for n in sizes(task):
        item, shown, moved = item_of(task, n, n - 1), shuffled(n, n), shuffled(n, "moved").order
        twin = msgspec.structs.replace(
            item,
            candidates=tuple(item.candidates[candidate] for candidate in moved),
            values=item.values and tuple(item.values[candidate] for candidate in moved),
        )
        seen = Presentation(compose(invert(moved), shown.order), shown.labels)
        asked = render(item, Ask(shown), PromptSettings())
        assert asked.messages == render(twin, Ask(seen), PromptSettings()).messages
        text = task.reply.example(item, shown, asked.labels, WISH)
        own = _read(item, Ask(shown), asked.labels, asked.answer_only, text=text)
        other = _read(twin, Ask(seen), asked.labels, asked.answer_only, text=text)
        assert (own.choice, other.choice) == (n - 1, invert(moved)[n - 1])


def decides_nothing_of_a_refusal(task: TaskSpec) -> None:
    """Check that a refused or filtered reply gives no verdict, whatever its text."""
    item, ask, labels = item_of(task, 2, 1), Ask(shuffled(2, "x")), ("A", "B")
    right = task.reply.example(item, ask.presentation, labels, WISH)
    for reason in ("refusal", "content_filter"):
        for text in ("", "no", right):
            decision = _read(item, ask, labels, True, text=text, finish_reason=reason)
            assert (decision.choice, decision.probs) == (None, None)


def checks_gold(task: TaskSpec) -> None:
    """Right candidates, a tie or nothing are gold; anything else is refused with the field's name."""
    if task.scaled:
        return  # gold is a score
    n = max(sizes(task))
    row = msgspec.to_builtins(item_of(task, n, None)) | {"task": task.name}
    for gold, right in ((0, (0,)), (n - 1, (n - 1,)), ([0, 1], (0, 1)), ("tie", ()), (None, ())):
        (item,) = items_of([{**row, "gold": gold}])
        assert item.gold_candidates() == task.gold(item) == right
    for wrong in (n, -1, [0, 0], [], "A", 0.5, {"x": 1.0}, [n]):
        assert "gold: " in refuses(ItemError, items_of, [{**row, "gold": wrong}])


def has_orders_of_every_size(task: TaskSpec) -> None:
    """Its orders exist for every size, begin with the given one, and are several."""
    for n in sizes(task):
        asked = presentations(task.orders, n)
        assert (asked[0], len(asked) > 1) == (canonical(n), True)
        if task.train_orders is not None:
            assert len(presentations(task.train_orders, n)) > 1


def has_words_for_every_style(task: TaskSpec) -> None:
    """Check that a task names every sentence that a registered prompt uses, and its replies give a choice."""
    assert task_of(task.name) is task, "it is registered under another name"
    assert Evidence.CHOICE in task.reply.gives
    assert task.noun == task.noun.lower()
    for style in map(PROMPTS.load, PROMPTS):
        lacking = {*style.system, *style.closing, "reference"} - {*task.sentences, *style.words}
        assert not lacking, sorted(lacking)


RULES: Final[tuple[Callable[[TaskSpec], None], ...]] = (
    is_shown_in_full,
    reads_what_it_asks_for,
    relabels_with_the_candidates,
    decides_nothing_of_a_refusal,
    checks_gold,
    has_orders_of_every_size,
    has_words_for_every_style,
)
