"""Planted biases come back on the log scale; unbalanced designs are refused."""

import numpy as np
import pytest
from metric_builders import outcomes

from unswayed.metrics import measure
from unswayed.model.presentation import X0, X1, X2, X3, Presentation, presentations


def planted(shown: tuple[Presentation, ...], position: float, label: float, items: int = 30):
    """Judges without noise: content + `position` logits for the first + `label` for label A."""
    generator = np.random.default_rng(1)
    n = shown[0].n
    content = generator.normal(size=(items, n))
    probs = np.empty((items, len(shown), n))
    for v, view in enumerate(shown):
        for c in range(n):
            probs[:, v, c] = content[:, c] + position * (view.position_of_candidate(c) == 0)
            probs[:, v, c] += label * (view.label_of_candidate(c) == 0)
    probs = np.exp(probs)
    probs /= probs.sum(axis=2, keepdims=True)
    return outcomes(probs.argmax(axis=2).tolist(), shown=shown, probs=probs)


def values(made, name: str) -> list[float]:
    return [cell.value for cell in measure([made], names=[name], resamples=0).values[name]]


def test_four_presentations_separate_position_from_label() -> None:
    made = planted((X0, X1, X2, X3), position=1.2, label=0.4)
    first, second = values(made, "position_bias")
    assert first - second == pytest.approx(1.2)  # the bias in logits
    first, second = values(made, "label_bias")
    assert first - second == pytest.approx(0.4)


def test_coupled_presentations_measure_the_sum_of_both() -> None:
    made = planted(presentations("cyclic", 4), position=0.8, label=0.4)
    # 1.2 for the first of four, centred: 1.2 * (1 - 1/4) and -1.2 / 4
    assert values(made, "position_bias") == pytest.approx([0.9, -0.3, -0.3, -0.3])
    assert values(made, "label_bias") == pytest.approx([0.9, -0.3, -0.3, -0.3])


def test_unbalanced_presentations_leave_it_undefined() -> None:
    made = planted(presentations("structured", 4), position=0.8, label=0.0)
    row = measure([made], names=["position_bias"], resamples=0)
    cells = row.values["position_bias"]
    assert all(cell.value is None and "equally often" in cell.reason for cell in cells)
