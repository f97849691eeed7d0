"""The frontier chart: which dots are filled, the shared scale, and labels that can be read."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges import est, figures, fixed, method, plain_run, sample_run
from unswayed.report.data import RunData
from unswayed.report.findings import Finding
from unswayed.report.frontier import FRAMES, dots_of, panels, scale_of, shortened
from unswayed.report.labels import CHARACTER, Box, Label, LabelBox, Spot, covers, place
from unswayed.report.page import render_report
from unswayed.report.table import main_table


def finding(recommended: str = "", **methods: dict[str, object]) -> Finding:
    return Finding(advising(recommended or None, methods))


def advising(recommended: str | None, methods: dict[str, Any]) -> RunData:
    """A run in which a method is better."""
    state = "none" if recommended is None else "better"
    advice = {"state": state, "method": recommended, "most_accurate": recommended}
    advice["gain"] = est(0.1, 0.05, 0.15)
    return plain_run(methods=methods, recommendation=advice)


def test_a_dot_is_filled_where_nothing_cheaper_is_better() -> None:
    dots = dots_of(
        finding(
            direct=method((0.70, 0.68, 0.72), 1.0),
            good=method((0.85, 0.83, 0.87), 1.2),
            dear=method((0.84, 0.82, 0.86), 3.0),  # dearer than good and worse
            batch=method((0.65, 0.63, 0.67), 1.0),  # as cheap as direct and worse
            best=method((0.88, 0.86, 0.90), 4.0),
        ),
        "accuracy",
    )
    assert [dot.name for dot in dots if dot.on_frontier] == ["direct", "good", "best"]
    steady = finding(
        direct=method((0.70, 0.68, 0.72), 1.0, (0.43, 0.40, 0.46)),
        average=method((0.87, 0.85, 0.89), 2.0, None),  # 100% by construction
        repeat=method((0.70, 0.68, 0.72), 3.0, (0.47, 0.44, 0.50)),
    )
    filled = [dot.name for dot in dots_of(steady, "consistency") if dot.on_frontier]
    assert filled == ["direct", "repeat"]


def test_unparsed_answers_do_not_put_a_method_on_the_frontier() -> None:
    vote = {
        **method((0.70, 0.68, 0.72), 2.0, (0.92, 0.9, 0.94)),
        "recall_difference": fixed(0, 900),
    }
    run = finding(direct=method((0.70, 0.68, 0.72), 1.0, (0.43, 0.40, 0.46)), vote=vote)
    dots = {dot.name: dot for dot in dots_of(run, "consistency")}
    assert (dots["vote"].on_frontier, dots["vote"].estimate.by_construction) == (False, True)
    cells = {row.name: row.cells for row in main_table(run).rows}
    (marked,) = (cell for cell in cells["vote"] if cell.text == "92.0")
    assert (marked.by_construction, marked.best) == (True, "")


def test_the_scale_reaches_the_lowest_interval_end_in_fives() -> None:
    rows = {"direct": method((0.44, 0.413, 0.47), 1.0), "average": method((0.87, 0.85, 0.89), 2.0)}
    scale = scale_of(FRAMES[0], dots_of(finding(**rows), "accuracy"))
    assert scale.bottom == 0.40
    assert (scale.y(1.0), scale.y(0.40)) == (FRAMES[0].plot.top, FRAMES[0].plot.bottom)


def test_all_panels_share_one_scale() -> None:
    run = sample_run(n_items=200)
    shown = panels([Finding(run, "a"), Finding(run, "b")]).panels
    drawings = [panel.drawings[0] for panel in shown]
    assert len(drawings) == 4
    assert len({drawing.scale for drawing in drawings}) == 1


def test_the_chart_says_every_value_aloud() -> None:
    run = sample_run(n_items=200)
    said, *_ = re.findall(r'role="img" aria-label="([^"]*)"', render_report([run]))
    assert said.startswith("Accuracy against calls per item.")
    for name in ("direct", "average", "additive"):
        assert f"{name}: " in said
    assert said.endswith(f"Recommended: {figures(run)['recommendation']['method']}.")


def test_a_long_name_is_shortened_beside_its_dot() -> None:
    assert shortened("x" * 26) == "x" * 26
    assert shortened("x" * 27) == "x" * 25 + "…"


def boxes_of(labels: tuple[Label, ...]) -> list[Box]:
    """The boxes that placed labels cover, from their own coordinates."""
    made = []
    for label in labels:
        text = ", ".join(name for name, _ in label.spot.names)
        width = len(f"{text} {label.spot.value}".strip()) * CHARACTER
        left = label.x - {"start": 0, "middle": width / 2, "end": width}[label.anchor]
        made.append(Box(left, label.y - 11, left + width, label.y + 3))
    return made


PLACES = st.tuples(st.floats(60, 480), st.floats(60, 360))


@settings(max_examples=40, deadline=None)
@given(st.lists(PLACES, min_size=1, max_size=20, unique=True), st.booleans())
def test_labels_stay_inside_and_apart_or_vanish(
    places: list[tuple[float, float]], numbered: bool
) -> None:
    spots = [
        Spot(((str(i) if numbered else f"method-{i}", i == 0),), "", x, y, y - 8, y + 8)
        for i, (x, y) in enumerate(places)
    ]
    labels = place(spots, FRAMES[0], [])
    if labels is None:
        return
    assert len(labels) == len(spots)
    boxes = boxes_of(labels)
    plot = FRAMES[0].plot
    for number, box in enumerate(boxes):
        assert plot.left - 2 <= box.left < box.right <= FRAMES[0].width + 11
        assert 0 <= box.top < box.bottom <= plot.bottom + 1
        assert not any(covers(box, other) for other in boxes[number + 1 :])


CROWD = {  # twelve methods as they usually lie: most of them near one call and one accuracy
    "direct": (0.71, 1.0), "batch": (0.848, 1.0), "domain-contextual": (0.842, 1.02),
    "contextual": (0.808, 1.03), "pride": (0.846, 1.05), "additive": (0.846, 1.15),
    "pride-by-group": (0.867, 1.2), "calibraeval": (0.845, 1.6), "vote": (0.428, 2.0),
    "average": (0.874, 2.0), "repeat": (0.701, 3.0), "average-of-4": (0.877, 4.0),
}  # fmt: skip


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.kind or "screen")
def test_a_crowd_is_numbered_once_without_overlap(frame: LabelBox) -> None:
    methods = {k: method((v, v - 0.02, v + 0.02), calls) for k, (v, calls) in CROWD.items()}
    shown = panels([Finding(advising("average", methods))])
    assert {dot.name for dot in shown.key} == set(CROWD)
    assert shown.key[0].name in ("direct", "batch")  # cheapest first
    assert [entry.name for entry in shown.key if entry.recommended] == ["average"]
    drawing = next(one for one in shown.panels[0].drawings if one.scale.frame == frame)
    assert drawing.labels is not None
    written = [name for label in drawing.labels for name, _ in label.spot.names]
    assert sorted(map(int, written)) == list(range(1, len(CROWD) + 1))
    place_of_average = [dot.name for dot in shown.key].index("average") + 1
    advised = [name for label in drawing.labels for name, chosen in label.spot.names if chosen]
    assert advised == [str(place_of_average)]
    boxes = boxes_of(drawing.labels)
    for number, box in enumerate(boxes):
        assert not any(covers(box, other) for other in boxes[number + 1 :])


def test_few_methods_carry_their_names_and_values() -> None:
    methods = {
        "direct": method((0.7, 0.68, 0.72), 1.0),
        "vote": method((0.42, 0.4, 0.44), 2.0),
        "average": method((0.87, 0.85, 0.89), 2.0),
    }
    shown = panels([Finding(plain_run(methods=methods))])
    assert shown.key == ()
    labels = shown.panels[0].drawings[0].labels
    assert labels is not None
    assert {name for label in labels for name, _ in label.spot.names} == set(methods)


def test_coinciding_dots_share_a_label() -> None:
    methods = {
        "direct": method((0.7, 0.68, 0.72), 1.0),
        "vote": method((0.42, 0.4, 0.44), 2.0, None),
        "average": method((0.87, 0.85, 0.89), 2.0, None),
    }
    labels = panels([Finding(plain_run(methods=methods))]).panels[1].drawings[0].labels
    assert labels is not None
    shared = next(label.spot for label in labels if len(label.spot.names) > 1)
    assert [name for name, _ in shared.names] == ["vote", "average"]
    assert shared.value == "100\u2009†"


def test_one_method_draws_nothing() -> None:
    assert panels([Finding(plain_run())]).panels == ()


def test_without_gold_the_accuracy_panel_is_gone() -> None:
    rows = {
        name: {k: v for k, v in method((0.7, 0.6, 0.8), calls).items() if "accuracy" not in k}
        for name, calls in (("direct", 1.0), ("average", 2.0))
    }
    for row in rows.values():
        row["agreement"] = est(0.8, 0.7, 0.9)
    shown = panels([Finding(plain_run(methods=rows))])
    assert [panel.title for panel in shown.panels] == ["Agreement with every order", "Consistency"]
