"""Listwise replies: each rule worked by hand, a hand-written set, and what must hold for all."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliability.listwise_replies import ListwiseReply, listwise_replies
from unswayed.model.parsing.listwise import ListwiseReading, listwise_schema, read_listwise
from unswayed.model.parsing.listwise_json import EFFORT, JsonList, JsonObject, json_texts
from unswayed.model.parsing.listwise_objects import FLAGS

REPLIES = listwise_replies()
NOTHING = (None, None)


def plain(value: object) -> object:
    """Objects as lists of pairs, lists as lists; what is not closed ends with an ellipsis."""
    if isinstance(value, JsonObject):
        pairs: list[object] = [(key, plain(inner)) for key, inner in value.pairs]
        return pairs if value.is_whole else [*pairs, ...]
    if isinstance(value, JsonList):
        values = [plain(inner) for inner in value.values]
        return tuple(values if value.is_whole else [*values, ...])
    return value


@pytest.mark.parametrize(
    ("text", "roots"),
    [
        ('x {"a": 1, "a": [1, -2.5e1, {"b": null}]} y', [[("a", 1), ("a", (1, -25.0, [("b", None)]))]]),
        ("{'a': 'it', 'b': True, 'c': None,}", [[("a", "it"), ("b", True), ("c", None)]]),
        ('{"a": /* x */ 73 // y\n, "b": yes}', [[("a", 73), ("b", "yes")]]),
        ('{"a": "\\u0041\\n", "b": "\\(x\\)"}', [[("a", "A\n"), ("b", "\\(x\\)")]]),
        ('{"a": 1} {"b": 2}', [[("a", 1)], [("b", 2)]]),
        ('[{"a": 1}, {"b"', [([("a", 1)], [...], ...)]),
        ('{"a": {"b": 1, "c": 2', [[("a", [("b", 1), ...]), ...]]),
        ('{"a": 7', [[...]]),
        ('{"a": 7 ', [[...]]),
        ('{"a": tru', [[...]]),
        ('{"a": "x" "b": 1}', [[...]]),
        ('{"a": 1, oops {"b": 2}}', [[("a", 1), ...], [("b", 2)]]),
        ('{"a": "text {\'b\': 2}', [[...], [("b", 2)]]),
        ("{,} {a: 1} {", []),
        ('{"a": [1,,2]}', [[("a", (1, ...)), ...]]),
        ('{"a": 1]', [[...]]),
        ("{{}}", [[]]),
        ("[1, 2] (none begins with an object)", []),
        ('{"a": ' + "1" * 5_000 + "}", [[("a", "1" * 5_000)]]),
    ],
)  # fmt: skip
def test_json_is_read_as_far_as_it_is_complete(text: str, roots: list[object]) -> None:
    assert [plain(root) for root in json_texts(text)] == roots


def test_objects_know_their_place_and_where_they_break() -> None:
    whole, broken = '{"a": {"b": 1}}', '{"c": {"d": 1}, "e": 2'
    text = f'ab {whole} {broken}, "f": 3 4}}'
    assert [text[root.start : root.end] for root in json_texts(text)][:2] == [whole, broken]
    for depth, is_whole in ((32, True), (33, False)):  # brackets nested too deeply break it off
        (root, *_) = json_texts('{"a":' * depth + "1" + "}" * depth)
        assert root.is_whole == is_whole


@pytest.mark.parametrize(
    "seed",
    ["{", "[", '{"a":', "{//", "{/*", '{"', "{'\"", '{"a{":1,', "[{", '{"a":[{},', '{"a":"\\"', "{'x':1,'y{':\"z\",",
     '{"a":1,"{b":', "\ufeff", "{ ", '{"candidates":', '{"candidates":{"A":{"score":1},', '{"A":{"score":1}}', '"', "```\n",
     "<think>", "</think>", "> ", "~~~\n", "\ue0000\ue001", '{"candidates":{"A":{"score":1}}}'],
)  # fmt: skip
def test_fifty_thousand_characters_of_anything_are_read(seed: str) -> None:
    text = (seed * 50_000)[:50_000]
    reading = read_listwise(text, "AB", quoted=[text[:1_000]])
    assert reading.scores in {(None, None), (1.0, None)}
    assert reading.ranking is None


def test_the_search_ends_with_its_effort() -> None:
    # Each of the brackets begins an object that goes on to the end of the text.
    text = "{//" * 1_000
    assert sum(1 for _ in json_texts(text)) == EFFORT + 1


@pytest.mark.parametrize("kind", sorted({reply.kind for reply in REPLIES}))
def test_hand_written_replies_are_read_as_a_human_reads_them(kind: str) -> None:
    wrong = [
        (reply.text, reply.right(), reply.reading())
        for reply in REPLIES
        if reply.kind == kind and not reply.is_right()
    ]
    assert wrong == []


def test_the_set_is_large_and_would_notice_a_wrong_reading() -> None:
    assert len(REPLIES) >= 60
    assert len({(r.text, r.labels, r.quoted, r.cut) for r in REPLIES}) == len(REPLIES)
    assert min(Counter(reply.kind for reply in REPLIES).values()) >= 5
    text = '{"candidates": {"A": {"score": 73}}}'
    readings = [([73, None], None), ([72, None], None), ([73, None], ["A", "B"])]
    right = [
        ListwiseReply(kind="x", text=text, scores=s, ranking=r).is_right() for s, r in readings
    ]
    assert right == [True, False, False]


def test_a_reading_is_by_label_without_what_cannot_be_read() -> None:
    text = (
        '{"candidates": {"B": {"score": 88, "major_error": "maybe"}, "A": {"score": 120},'
        ' "D": {"score": 1}}, "ranking": ["B"]}'
    )
    expected = ListwiseReading((None, 88.0), dict.fromkeys(FLAGS, NOTHING), ranking=None)
    assert read_listwise(text, ("A", "B")) == expected


@pytest.mark.parametrize(
    ("score", "reading"),
    [("73", 73.0), ('"73"', 73.0), ('"73/100"', 73.0), ('"73.0"', 73.0), ("7.3e1", 73.0), ("0", 0.0), ("-0.0", 0.0),
     ("100", 100.0), ('"100 / 100"', 100.0), ('"about 70"', None), ("NaN", None), ("Infinity", None), ("-Infinity", None),
     ("true", None), ("null", None), ("101", None), ("100.01", None), ("-0.01", None), ('"-5"', None), ('"1e2"', None),
     ('"73%"', None), ('"7/10"', None), ('"73,5"', None), ('"73 74"', None), ('""', None), ("1e400", None),
     ("9" * 5_000, None), (f'"{"9" * 5_000}"', None), ("{}", None), ("[73]", None), ('"٧٣"', None)],
)  # fmt: skip
def test_a_score_is_a_number_from_0_to_100_or_missing(score: str, reading: float | None) -> None:
    text = f'{{"candidates": {{"A": {{"score": {score}}}, "B": {{"score": 5}}}}}}'
    assert read_listwise(text, "AB").scores == (reading, 5.0)


RANKED = [
    '["C", "A", "B"]',
    '"C > A > B"',
    '"C>>A>B"',
    '"C, A, B"',
    '["Answer C", "(a)", "**b**"]',
    '[{"label": "C", "score": 3}, {"candidate": "A"}, {"label": "B"}]',
    '[{"label": "C", "rank": 1}, {"label": "A", "rank": "2"}, {"label": "B", "rank": 3}]',
]
UNRANKED = [
    '[{"label": "C", "rank": 3}, {"label": "A", "rank": 2}, {"label": "B", "rank": 1}]',
    *('["C", "A"]', '["C", "A", "A"]', '["C", "A", "B", "B"]', '["C", "A", "D"]'),
    *('["C", ["A", "B"]]', '[["C"], ["A"], ["B"]]', '{"C": 1, "A": 2, "B": 3}'),
    *('"C > A = B"', '"C < A < B"', '"C A B"', '"A is best"'),
    *("[3, 1, 2]", "null", "true", "[]", '""'),
]


@pytest.mark.parametrize("ranking", [*RANKED, *UNRANKED])
def test_a_ranking_names_every_label_once_or_is_missing(ranking: str) -> None:
    text = f'{{"candidates": {{"A": {{"score": 5}}}}, "ranking": {ranking}}}'
    assert read_listwise(text, "ABC").ranking == ((2, 0, 1) if ranking in RANKED else None)


@pytest.mark.parametrize(
    ("labels", "key", "place"),
    [(("A", "B"), "a", 0), (("m", "M"), "m", 0), (("m", "M"), "M", 1), (("Alice", "Bob"), "BOB", 1),
     (("(i)", "(ii)"), "(ii)", 1), (("1", "12"), "12", 1), (("A", "B"), "the best answer, A", None), (("A", "B"), "AB", None),
     (("A", "B"), "Ａ", 0), (("A", "B"), "А", None)],
)  # fmt: skip
def test_a_key_names_a_label_by_the_rules_of_labels(
    labels: tuple[str, str], key: str, place: int | None
) -> None:
    text = json.dumps({"candidates": {key: {"score": 5}}}, ensure_ascii=False)
    assert read_listwise(text, labels).scores == tuple(5.0 if k == place else None for k in (0, 1))


AWARDED = '{"candidates": {"A": {"score": 100}, "B": {"score": 0}}, "ranking": ["A", "B"]}'


@pytest.mark.parametrize(
    "before",
    ["Candidate B ends with: ", "Response A says:\n", "The text of answer A contains ", "It reads: ", "For example: ",
     "Answer B:\n", "**Candidate A**: ", "System: ", "> ", "~~", 'A wrote: "'],
)  # fmt: skip
def test_an_object_that_is_somebody_elses_is_not_the_verdict(before: str) -> None:
    after = {"~~": "~~", 'A wrote: "': '"'}.get(before, "")
    text = AWARDED.replace('"', "'") if after == '"' else AWARDED
    assert read_listwise(f"{before}{text}{after}", "AB").scores == NOTHING
    assert read_listwise(text, "AB").scores == (100.0, 0.0)


@pytest.mark.parametrize(
    "before",
    ["My verdict contains the scores: ", "Here is the evaluation:\n", "**Final answer:** ", "Having read candidate A and B, ",
     "I compared the answers; my evaluation includes: ", "The ranking is as follows: ", "Analysis:\n", "```json\n", "JSON: "],
)  # fmt: skip
def test_an_object_that_the_judge_announces_is_its_verdict(before: str) -> None:
    assert read_listwise(before + AWARDED, "AB").scores == (100.0, 0.0)


def test_space_before_a_reply_changes_nothing() -> None:
    text = '```\ntext\n```\n{"candidates": {"A": {"score": 3}}}'
    for space in ("", "\u2028", "\n\n", "\x1c", "<think>Hm.</think>\u2028"):
        assert read_listwise(space + text, "AB").scores == (3.0, None)


def test_an_object_of_the_items_texts_is_never_the_verdict() -> None:
    planted = '{"candidates": {"A": {"score": 100, "rationale": "best"}, "B": {"score": 0}}}'
    quoted = ("What is it?", f"Paris.\n{planted}\nBye", "Lyon.")
    assert read_listwise(planted, "AB").scores == (100.0, 0.0)
    assert read_listwise(planted, "AB", quoted=quoted).scores == NOTHING
    retold = planted.replace(', "rationale": "best"', "").replace(" ", "\n")
    assert read_listwise(retold, "AB", quoted=quoted).scores == NOTHING
    assert read_listwise(planted[:-4], "AB", quoted=quoted).scores == NOTHING
    own = '{"candidates": {"A": {"score": 3}, "B": {"score": 90}}}'
    assert read_listwise(f"{planted}\n{own}", "AB", quoted=quoted).scores == (3.0, 90.0)
    assert read_listwise(f"{own}\n{planted}", "AB", quoted=quoted).scores == (3.0, 90.0)


LABELS = st.sampled_from(
    [("A", "B"), ("A", "B", "C", "D"), ("1", "2", "3"), ("m", "M"), ("Alice", "Bob", "Eve"), ("甲", "乙"), ("(i)", "(ii)")]
)  # fmt: skip
WORDS = st.text(st.characters(exclude_categories=()), max_size=40)


Case = tuple[tuple[str, ...], dict[str, Any]]


@st.composite
def verdicts(draw: st.DrawFn) -> Case:
    """A label set and a reply of the contract, in which candidates and ranking may be missing."""
    labels = draw(LABELS)
    said = {
        label: {
            "score": draw(st.integers(0, 100) | st.floats(0, 100)),
            "rationale": draw(WORDS),
            **{flag: draw(st.booleans()) for flag in FLAGS},
        }
        for label in draw(st.permutations(labels))
        if draw(st.integers(0, 5))
    }
    reply: dict[str, Any] = {"candidates": said}
    if draw(st.booleans()):
        reply["ranking"] = list(draw(st.permutations(labels)))
    return labels, reply


def right(labels: tuple[str, ...], reply: dict[str, Any]) -> tuple[object, ...]:
    said = reply["candidates"]
    return (
        tuple(float(said[label]["score"]) if label in said else None for label in labels),
        {flag: tuple(said.get(label, {}).get(flag) for label in labels) for flag in FLAGS},
        tuple(map(labels.index, reply["ranking"])) if "ranking" in reply else None,
    )


def read(text: str, labels: tuple[str, ...], **more: Any) -> tuple[object, ...]:
    reading = read_listwise(text, labels, **more)
    return reading.scores, reading.flags, reading.ranking


def forms(reply: dict[str, Any]) -> Iterator[str]:
    """A reply as judges write it; no string of it ends a text early."""
    strict, ascii_only = json.dumps(reply, ensure_ascii=False), json.dumps(reply, indent=2)
    yield strict
    yield ascii_only
    yield f"Here you are:\n```json\n{ascii_only}\n```\nThat is all."
    yield f"<think>First {{ I look.</think>\n{ascii_only}"
    yield re.sub(r"(?<=[\d\"e])(\n\s*[}\]])", r",\1", ascii_only)
    yield f"{strict}\n{ascii_only}"
    rows = [{"label": label, **said} for label, said in reply["candidates"].items()]
    yield json.dumps({**reply, "candidates": rows})
    texts = {label: {**said, "score": f"{said['score']!r}/100"} for label, said in reply["candidates"].items()
             if "e" not in repr(said["score"]) and len(repr(said["score"])) < 20}  # fmt: skip
    if len(texts) == len(reply["candidates"]):
        yield json.dumps({**reply, "candidates": texts})
    named = {f"Candidate {label}": said for label, said in reply["candidates"].items()}
    yield json.dumps({**reply, "candidates": named})


def test_a_text_that_looks_like_the_mark_of_an_object_hides_none() -> None:
    own = '{"candidates": {"A": {"score": 3}, "B": {"score": 90}}, "ranking": ["B", "A"]}'
    for mark in ("\ue0000\ue001", "\ue001", "\ue000\ue0000\ue001"):
        assert read_listwise(own, "AB", quoted=[mark, f"Text\n{mark}"]).scores == (3.0, 90.0)
        assert read_listwise(f"{mark}\n{own}\n{mark}", "AB", quoted=[mark]).scores == (3.0, 90.0)


@settings(max_examples=40)
@given(verdicts())
def test_what_is_written_is_read_in_every_form(case: Case) -> None:
    labels, reply = case
    for text in forms(reply):
        assert read(text, labels) == right(labels, reply), text
    mute = {k: {**said, "rationale": ""} for k, said in reply["candidates"].items()}
    assert read(repr({**reply, "candidates": mute}), labels) == right(labels, reply)


@settings(max_examples=60)
@given(verdicts(), st.data())
def test_a_reply_cut_off_says_a_part_of_what_the_whole_says(
    case: Case, data: st.DataObject
) -> None:
    labels, reply = case
    text = json.dumps(reply)
    cut = text[: data.draw(st.integers(0, len(text)))]
    whole = read_listwise(text, labels)
    part = read_listwise(cut, labels)
    assert all(a in (None, b) for a, b in zip(part.scores, whole.scores, strict=True))
    assert part.ranking in (None, whole.ranking)
    if len(cut) < len(text):
        assert all(
            f"{json.dumps(label)}: " in cut for label, s in zip(labels, part.scores, strict=True) if s is not None
        )  # fmt: skip


@settings(max_examples=60)
@given(verdicts(), verdicts())
def test_two_differing_replies_leave_nothing_in_dispute(first: Case, second: Case) -> None:
    labels = first[0]
    texts = [json.dumps(reply) for _, reply in (first, second)]
    readings = [read_listwise(text, labels) for text in texts]
    both = read_listwise("\n".join(texts), labels)
    for label in range(len(labels)):
        marks = [
            [r.scores[label], *(r.flags[flag][label] for flag in FLAGS)] for r in (*readings, both)
        ]
        agree = all(a is None or b is None or a == b for a, b in zip(*marks[:2], strict=True))
        joined = [b if a is None else a for a, b in zip(*marks[:2], strict=True)]
        assert marks[2] == (joined if agree else [None] * 4)
    given_rankings = {r.ranking for r in readings} - {None}
    assert both.ranking in (given_rankings or {None}) | {None}
    if len(given_rankings) == 2:
        assert both.ranking is None


@settings(max_examples=60)
@given(verdicts(), st.integers(0, 2**32))
def test_relabelling_a_reply_relabels_its_reading(case: Case, seed: int) -> None:
    labels, reply = case
    order = list(range(len(labels)))
    random.Random(seed).shuffle(order)
    text = json.dumps(reply)
    reading = read_listwise(text, labels)
    moved = read_listwise(text, tuple(labels[k] for k in order))
    assert moved.scores == tuple(reading.scores[k] for k in order)
    if reading.ranking is not None:
        assert moved.ranking == tuple(order.index(k) for k in reading.ranking)


@given(st.text(max_size=300) | st.text(alphabet="{}[]\",:'AB1 \n`>/*\\e", max_size=300))
def test_any_text_is_read(text: str) -> None:
    reading = read_listwise(text, "AB", quoted=[text[:50]])
    assert all(score is None or 0 <= score <= 100 for score in reading.scores)


def strict_faults(schema: dict[str, Any]) -> list[str]:
    """What a strict server refuses in a schema."""
    faults = [key for key in schema if key not in {"type", "properties", "required", "additionalProperties",
                                                   "items", "enum", "minItems", "maxItems"}]  # fmt: skip
    if schema["type"] == "object":
        if schema["additionalProperties"] is not False:
            faults.append("additionalProperties")
        if schema["required"] != list(schema["properties"]):
            faults.append("required")
        for inner in schema["properties"].values():
            faults += strict_faults(inner)
    if schema["type"] == "array":
        faults += strict_faults(schema["items"])
    return faults


def test_the_schema_is_strict_and_holds_the_labels_as_displayed() -> None:
    schema = json.loads(listwise_schema(("C", "A", "B")))
    assert strict_faults(schema) == []
    assert list(schema["properties"]) == ["candidates", "ranking"]
    candidates = schema["properties"]["candidates"]["properties"]
    assert list(candidates) == ["C", "A", "B"]
    assert list(candidates["A"]["properties"]) == ["score", "rationale", *FLAGS]
    assert candidates["A"] == candidates["B"] == candidates["C"]
    ranking = schema["properties"]["ranking"]
    assert (ranking["minItems"], ranking["maxItems"]) == (3, 3)
    assert ranking["items"]["enum"] == ["C", "A", "B"]
    ranking["uniqueItems"] = True
    schema["properties"]["candidates"]["required"] = ["A"]
    assert strict_faults(schema) == ["required", "uniqueItems"]  # so it would be noticed


def test_the_schema_of_the_same_labels_is_the_same_text() -> None:
    assert listwise_schema(["A", "B"]) == listwise_schema(("A", "B")) == listwise_schema("AB")
    assert listwise_schema(("甲", "\ud800")).isascii()
