"""The key of a question is the hash of its request, told without writing it and remembered small."""

import itertools
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.base.errors import ItemError
from unswayed.calls import Question, RunSettings, questions
from unswayed.calls.keys import KeyBook
from unswayed.calls.questions import Drafter
from unswayed.model.calls import Frame, Request, escaped, key_of
from unswayed.model.items import Item, Message, Task
from unswayed.model.presentation import Ask, Presentation, Substitution, canonical
from unswayed.prompts import PROMPTS, PromptSettings

TEXT = st.text(max_size=20) | st.sampled_from(
    ['""}],"labels":', ',"nonce":null', '"nonce":null}', "\\", '"', "\x00", "é\u2028", "====="]
)
REQUESTS = st.builds(
    Request,
    model=TEXT,
    messages=st.lists(st.builds(Message, role=TEXT, content=TEXT), min_size=1, max_size=3).map(
        tuple
    ),
    labels=st.lists(TEXT, max_size=3).map(tuple),
    max_tokens=st.integers(1, 9000),
    temperature=st.floats(0, 2),
    nonce=st.none() | TEXT,
    schema=st.just(msgspec.UNSET) | TEXT,
    extra_body=st.just(msgspec.UNSET) | TEXT,
)


@given(REQUESTS)
def test_a_frame_tells_the_key_of_a_request(request: Request) -> None:
    *before, last = request.messages
    blank = msgspec.structs.replace(request, messages=(*before, Message(last.role, "")), nonce=None)
    assert Frame.of(blank).key([escaped(last.content)], request.nonce) == key_of(request)


@given(REQUESTS, st.lists(TEXT, max_size=5), st.randoms())
def test_a_frame_with_holes_is_filled_with_texts(
    request: Request, texts: list[str], rng: random.Random
) -> None:
    *before, last = request.messages
    parts = [last.content, *texts, last.content]
    holes = rng.sample(range(len(parts)), rng.randint(0, len(parts)))
    whole = msgspec.structs.replace(request, messages=(*before, Message(last.role, "".join(parts))))
    blank = msgspec.structs.replace(request, messages=(*before, Message(last.role, "")), nonce=None)
    frame = Frame.of(blank, ["" if k in holes else part for k, part in enumerate(parts)], holes)
    filled = [escaped(parts[hole]) for hole in holes]
    assert frame.key(filled, request.nonce) == key_of(whole)
    assert frame.key(filled, request.nonce) == key_of(whole)  # it can be filled again


def told_key(own: Drafter, question: Question) -> bytes:
    [(key, _)] = own.addresses([question])
    return key


def drafter(*, keyed_by_item: bool = True, **options: object) -> Drafter:
    settings = RunSettings(prompts=PromptSettings(**options), sample_temperature=0.7)  # type: ignore[arg-type]
    return Drafter("fake/one", True, settings, keyed_by_item=keyed_by_item)


@given(st.data())
def test_a_question_has_the_key_of_its_request(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 4))
    turns = st.just((Message("user", "Why?"), Message("assistant", "So.")))
    item = Item(
        id=data.draw(TEXT.filter(bool)),
        task=data.draw(st.sampled_from(list(Task)[:4])),
        prompt=data.draw(TEXT | turns),
        candidates=data.draw(st.tuples(*[TEXT | turns] * n)),
        reference=data.draw(st.none() | TEXT),
    )
    order, labels = (tuple(data.draw(st.permutations(range(n)))) for _ in range(2))
    ask = Ask(
        Presentation(order, labels),
        sample=data.draw(st.integers(0, 2)),
        substitute=data.draw(st.none() | st.just(Substitution(("N/A",) * n))),
    )
    keyed = data.draw(st.booleans())
    shots = (Item(id="a shot", task=item.task, prompt="2?", candidates=("1",) * n, gold=0),)
    own = {"shots": data.draw(st.sampled_from([(), shots]))} if item.task is Task.PAIRWISE else {}
    question = Question(item, ask)
    request = drafter(keyed_by_item=keyed, **own).draft(question).request
    told = drafter(keyed_by_item=keyed, **own)
    assert told_key(told, question) == key_of(request)
    assert told.draft(question).request == request
    assert told.draft(question).key == told_key(told, question)


@pytest.mark.parametrize("prompt", list(PROMPTS))
def test_keys_are_told_alike_in_every_prompt(prompt: str) -> None:
    item = Item(id="q", prompt="?", candidates=("a", "b"))
    question = Question(item, Ask(canonical(2), prompt))
    assert told_key(drafter(), question) == key_of(drafter().draft(question).request)


@pytest.mark.parametrize("field", ["id", "prompt"])
def test_half_a_character_names_the_item(field: str) -> None:
    item = Item(id="q", prompt="?", candidates=("a", "b"))
    broken = msgspec.structs.replace(item, **{field: "half \ud83d"})
    with pytest.raises(ItemError, match="half a character"):
        told_key(drafter(), Question(broken, Ask(canonical(2))))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=60), st.randoms())
def test_a_book_of_keys_is_a_table_by_item_and_ask(
    pairs: list[tuple[int, int]], rng: random.Random
) -> None:
    book = KeyBook()
    expected: dict[tuple[int, int], bytes] = {}

    def question(number: int, sample: int) -> Question:
        item = Item(id=f"item {number}", prompt="?", candidates=("a", "b"))
        return Question(item, Ask(canonical(2), sample=sample))

    for pair in pairs:
        assert book.get([question(*pair)]) == [expected.get(pair)]
        if pair not in expected:
            expected[pair] = rng.randbytes(32)
            book.enter(question(*pair), expected[pair])
    assert book.get([question(*pair) for pair in expected]) == list(expected.values())
    assert book.get([question(6, 0), question(0, 6)]) == [None, None]
    assert book.get([]) == []


def test_a_drafter_keeps_few_frames_for_many_orders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(questions, "MOST_FRAMES", 5)
    own, item = drafter(), Item(id="q", prompt="?", candidates=("a", "b", "c", "d"))
    for order in itertools.permutations(range(4)):
        question = Question(item, Ask(Presentation(order, (0, 1, 2, 3))))
        key = told_key(own, question)
        assert key == key_of(drafter().draft(question).request)
    assert len(own._frames) == 5
