"""What every task must do, and what one registered from outside gets without an edit."""

import json
import random
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from unswayed.api import audit
from unswayed.calls import Response
from unswayed.cli import main
from unswayed.decisions import Evidence
from unswayed.errors import ItemError, UnknownNameError, UsageError
from unswayed.items import TASKS, BadFieldError, Item, Task, blind, items_of, load_items
from unswayed.parsing import ReplySpec
from unswayed.permutations import compose, invert
from unswayed.presentation import Ask, Presentation, presentations
from unswayed.prompts import PROMPTS, PromptSettings, render
from unswayed.tasks import TaskSpec, task_of
from unswayed.training.checks import check_task
from unswayed.training.data import build_groups
from unswayed.training.pif import PIF
from unswayed.training.recipe_parts import Data, Prompt, Recipe
from unswayed.training.responses import reader

BUILT_IN = tuple(TASKS)
EVERY = pytest.mark.parametrize("name", [*BUILT_IN, "best-worst"])
STYLES = pytest.mark.parametrize("style", list(PROMPTS))
LABEL_SETS = (
    None,
    ("1", "2", "3", "4", "5"),
    ("m", "M", "n", "N", "o"),
    ("first", "second", "third", "fourth", "fifth"),
    ("甲", "乙", "丙", "丁", "戊"),
    ("Option 1", "Option 2", "Option 3", "Option 10", "Option 11"),
)


@pytest.fixture(scope="module", autouse=True)
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A package of somebody else that registers a task: one file, one line."""
    package = tmp_path_factory.mktemp("site")
    information = package / "outside-1.0.dist-info"
    information.mkdir()
    shutil.copy(Path(__file__).with_name("outside_task.py"), package)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        "[unswayed.tasks]\nbest-worst = outside_task:TASK\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(package))
        vars(TASKS).pop("_all", None)  # entry points are read once
        try:
            yield
        finally:
            vars(TASKS).pop("_all", None)
            sys.modules.pop("outside_task", None)
            Task._value2member_map_.pop("best-worst", None)


def test_every_task_is_tried() -> None:
    assert {*TASKS} == {*BUILT_IN, "best-worst"}


def sizes(task: TaskSpec) -> list[int]:
    """Numbers of candidates that the task takes."""
    numbers = []
    for n in (2, 3, 4, 5):
        try:
            task.check(item_of(task.name, n))
        except ItemError:
            continue
        numbers.append(n)
    return numbers


def item_of(name: str, n: int, gold: int | None = 0) -> Item:
    item = Item(
        id=f"{name}-{n}",
        task=Task(name),
        prompt="Which?",
        candidates=tuple(f"qz{candidate}" for candidate in range(n)),
        gold=gold,
    )
    if not task_of(name).scaled:
        return item
    values = tuple(float(level) for level in range(n))  # so that gold is the level's own index
    item = msgspec.structs.replace(item, values=values, response="The response.")
    if task_of(name).points is None:
        return item
    return msgspec.structs.replace(item, criteria=("style", "tone"), criterion="tone")


def shuffled(n: int, seed: str) -> Presentation:
    draw = random.Random(seed)
    return Presentation(tuple(draw.sample(range(n), n)), tuple(draw.sample(range(n), n)))


@EVERY
@STYLES
def test_a_prompt_shows_every_candidate_once_under_its_label(name: str, style: str) -> None:
    task = task_of(name)
    for n in sizes(task):
        item = msgspec.structs.replace(item_of(name, n), reference="qzreference")
        shown = shuffled(n, f"{name}{style}{n}")
        for label_set in LABEL_SETS:
            rendered = render(item, Ask(shown, style), PromptSettings(label_set=label_set))
            text = "\n".join(message.content for message in rendered.messages)
            for candidate in item.candidates:
                assert text.count(str(candidate)) == 1
            assert [len(spans) for spans in rendered.spans] == [1] * n
            starts = [rendered.spans[candidate][0].start for candidate in shown.order]
            assert starts == sorted(starts)
            user = rendered.messages[-1].content
            for position, candidate in enumerate(shown.order):
                label = rendered.labels[shown.labels[position]]
                start = rendered.spans[candidate][0].start
                assert user[:start].rstrip("=. \n").endswith(label)
            phrase = f"{', '.join(rendered.labels[:-1])} or {rendered.labels[-1]}"
            assert phrase in user
            assert not re.search(r"\{\w*\}", text)  # every field of the words is filled in
            assert text.count("qzreference") == 1
            assert task.noun.capitalize() in user


@EVERY
@pytest.mark.parametrize("style", ["direct", "reasoning", "structured", "structured-reasoning"])
def test_what_a_reply_asks_for_can_be_read_back(name: str, style: str) -> None:
    task = task_of(name)
    for n in sizes(task):
        for label_set in LABEL_SETS:
            settings = PromptSettings(label_set=label_set)
            for gold in range(n):
                ask = Ask(shuffled(n, f"{gold}{label_set}"), style)
                item = item_of(name, n, gold)
                rendered = render(item, ask, settings)
                assert rendered.max_tokens > 0
                wish = PROMPTS.load(style).reply
                text = task.reply.example(item, ask.presentation, rendered.labels, wish)
                decision = task.reply.read(
                    blind(item), ask, rendered.labels, Response(text=text),
                    model="m", answer_only=rendered.answer_only,
                )  # fmt: skip
                assert decision.choice == gold
                assert (decision.ask, decision.label_set) == (ask, rendered.labels)
                assert (decision.item_id, decision.text, decision.model) == (item.id, text, "m")


@EVERY
def test_relabelled_candidates_give_the_relabelled_decision(name: str) -> None:
    task = task_of(name)
    for n in sizes(task):
        item, shown = item_of(name, n, n - 1), shuffled(n, name)
        moved = shuffled(n, "moved").order  # candidate j of the other item is candidate moved[j]
        twin = msgspec.structs.replace(
            item,
            candidates=tuple(item.candidates[candidate] for candidate in moved),
            gold=item.gold if task.scaled else invert(moved)[n - 1],
            values=item.values and tuple(item.values[candidate] for candidate in moved),
        )
        seen = Presentation(compose(invert(moved), shown.order), shown.labels)
        first, second = (
            render(*asked, PromptSettings()) for asked in ((item, Ask(shown)), (twin, Ask(seen)))
        )
        assert first.messages == second.messages
        wish = PROMPTS.load("direct").reply
        text = task.reply.example(item, shown, first.labels, wish)
        one, other = (
            task.reply.read(
                thing, ask, first.labels, Response(text=text),
                model="m", answer_only=first.answer_only,
            )
            for thing, ask in ((item, Ask(shown)), (twin, Ask(seen)))
        )  # fmt: skip
        assert one.choice == n - 1
        assert moved[other.choice] == n - 1


@EVERY
@pytest.mark.parametrize("reason", ["refusal", "content_filter"])
def test_a_refusal_is_no_verdict(name: str, reason: str) -> None:
    task = task_of(name)
    item = item_of(name, 2, 1)
    ask = Ask(shuffled(2, "x"))
    wish = PROMPTS.load("direct").reply
    for text in ("", "no", task.reply.example(item, ask.presentation, ("A", "B"), wish)):
        response = Response(text=text, finish_reason=reason)
        decision = task.reply.read(item, ask, ("A", "B"), response, model="m", answer_only=True)
        assert (decision.choice, decision.probs) == (None, None)


@EVERY
def test_gold_is_checked_and_named(name: str) -> None:
    task = task_of(name)
    n = max(sizes(task))
    row = json.loads(msgspec.json.encode(item_of(name, n, None))) | {"task": name}
    if task.scaled:
        pytest.skip("gold is a score: tests/tasks/test_rubric_task.py")
    for gold, right in ((0, (0,)), (n - 1, (n - 1,)), ([0, 1], (0, 1)), ("tie", ()), (None, ())):
        (item,) = items_of([{**row, "gold": gold}])
        assert item.gold_candidates() == task.gold(item) == right
    for gold in (n, -1, [0, 0], [], "A", 0.5, {"x": 1.0}, [n]):
        with pytest.raises(ItemError, match="gold: "):
            items_of([{**row, "gold": gold}])


@EVERY
def test_its_orders_exist_for_every_size_and_begin_with_the_given_one(name: str) -> None:
    task = task_of(name)
    for n in sizes(task):
        own = tuple(range(n))
        asked = presentations(task.orders, n)
        assert (asked[0], len(asked) > 1) == (Presentation(own, own), True)
        if task.train_orders is not None:
            assert len(presentations(task.train_orders, n)) > 1


@EVERY
def test_its_words_suit_every_style(name: str) -> None:
    task = task_of(name)
    assert task.name == name
    assert Evidence.CHOICE in task.reply.gives
    assert task.noun == task.noun.lower()
    for style in map(PROMPTS.load, PROMPTS):
        assert {*style.system, *style.closing, "reference"} <= {*task.sentences, *style.words}


ROWS = [
    {
        "id": f"q{number}",
        "task": "best-worst",
        "prompt": f"question {number}",
        "candidates": [f"text {candidate} of {number}" for candidate in range(3)],
        "gold": number % 3,
    }
    for number in range(30)
]


@EVERY
def test_item_with_named_task_is_audited(name: str) -> None:
    n = sizes(task_of(name))[0]
    items = [
        msgspec.structs.replace(item_of(name, n), id=f"{k}", prompt=f"Which, {k}?")
        for k in range(4)
    ]
    named = [
        Item(**{**msgspec.structs.asdict(item), "task": name})  # type: ignore[arg-type]
        for item in items
    ]
    assert named == items
    assert all(item.task is Task(name) for item in named)
    result = audit("simulated/judge?slot=0.8", named, resamples=100)
    assert result.metrics["data"]["task"] == name


def test_item_of_unknown_task_is_refused() -> None:
    with pytest.raises(
        BadFieldError, match=r"there is no task 'pair' \(Did you mean 'pairwise'"
    ) as raised:
        Item(id="q", prompt="p", candidates=("a", "b"), task="pair")  # type: ignore[arg-type]
    assert raised.value.field == "task"
    with pytest.raises(BadFieldError, match="there is no task 3"):
        Item(id="q", prompt="p", candidates=("a", "b"), task=3)  # type: ignore[arg-type]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "items.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    monkeypatch.chdir(tmp_path)
    return path


def test_items_of_a_task_from_outside_load_and_keep_their_task(data: Path) -> None:
    loaded = load_items(data)
    assert loaded.task == "best-worst"
    assert loaded.task is Task("best-worst")
    assert loaded.task.value == "best-worst"
    assert [item.gold_candidates() for item in loaded][:3] == [(0,), (1,), (2,)]
    assert load_items(data).fingerprint == loaded.fingerprint
    with pytest.raises(ItemError, match=r"1 mcq|30 best-worst"):
        items_of([*ROWS, {**ROWS[0], "id": "m", "task": "mcq"}])
    with pytest.raises(UnknownNameError, match="Did you mean 'best-worst'"):
        audit("simulated/judge", data, task="best-wurst")


def test_a_permutation_group_of_a_task_from_outside_has_its_own_orders(data: Path) -> None:
    groups = build_groups(load_items(data), Data(held_out=0), Prompt(style="direct"))
    assert groups.views[3] == presentations("cyclic", 3)
    assert groups.rows[0].answer_only is False


def test_training_rewards_the_candidate_that_a_reply_of_its_own_puts_first(data: Path) -> None:
    recipe = Recipe("r", Task("best-worst"))
    groups = build_groups(load_items(data), Data(held_out=0), Prompt(style="direct"))
    check_task(groups.items, recipe)
    read = reader(recipe.prompt, answer_only=groups.answer_only, task=recipe.task)
    assert read("best B, worst C", groups.symbols) == (1, True, 0)
    assert read("B", groups.symbols) == (None, False, 0)
    with pytest.raises(UsageError, match=r"pif teaches .* replies of task best-worst"):
        PIF.check(recipe, groups, None)


def test_a_method_that_reads_probabilities_is_refused_before_any_call_where_replies_give_none(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class AnswerOnly(type(task_of("best-worst").reply)):  # type: ignore[misc]
        def request(self, labels: Sequence[str], style: ReplySpec) -> ReplySpec:
            return style

    task = replace(task_of("best-worst"), reply=AnswerOnly())
    monkeypatch.setitem(TASKS._loaded, "best-worst", task)
    model = ("--model", "simulated/judge?slot=0.8")
    assert main(["calibrate", "pride", str(data), *model, "--out", "fitted.json"]) == 2
    assert "it needs label probabilities" in capsys.readouterr().err
    assert not list(Path().rglob("calls.sqlite"))


def test_a_task_from_outside_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "tasks"]) == 0
    assert ["best-worst", "text", "cyclic"] in [
        line.split() for line in capsys.readouterr().out.splitlines()
    ]


def test_a_task_from_outside_is_audited_priced_judged_and_exported(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ("--model", "simulated/judge?slot=0.8&logprobs=0")
    assert main(["audit", str(data), *model, "--dry-run"]) == 0
    assert "90 distinct calls" in capsys.readouterr().out
    everything = ("--methods", "all", "--resamples", "100")
    assert main(["audit", str(data), *model, *everything, "--out", "run"]) == 0
    metrics = json.loads(Path("run/metrics.json").read_text(encoding="utf-8"))
    assert metrics["calls"]["unparsed"] == 0
    assert metrics["protocol"]["name"] == "cyclic"
    assert {"direct", "vote"} <= metrics["methods"].keys()
    assert "average" not in metrics["methods"]  # the reply has no label probabilities
    sampled = ("--probs", "sampled:5", "--methods", "average", "--resamples", "100")
    assert main(["audit", str(data), *model, *sampled, "--out", "sampled"]) == 0
    metrics_sampled = json.loads(Path("sampled/metrics.json").read_text(encoding="utf-8"))
    assert metrics_sampled["methods"]["average"]["accuracy"]["n"] == 30
    assert metrics["methods"]["direct"]["accuracy"]["n"] == 30
    capsys.readouterr()
    assert main(["export", "run", "--out", "decisions.jsonl"]) == 0
    lines = Path("decisions.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["choice"] for line in lines} == {0, 1, 2}
    assert main(["judge", str(data), *model, "--method", "vote", "--out", "verdicts.jsonl"]) == 0
    verdicts = Path("verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(verdicts) == 30
    assert {json.loads(line)["n_calls"] for line in verdicts} == {3}
