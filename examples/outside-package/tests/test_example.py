"""The package keeps the rules of `unswayed.testing`."""

import pytest
from unswayed_example import backend, data, metric, prompt, skip, task, training
from unswayed_example.first_two import FirstTwo
from unswayed_example.label_shift import LabelShift

from unswayed.testing import (
    check_backend,
    check_benchmark,
    check_engine,
    check_importer,
    check_method,
    check_metric,
    check_objective,
    check_prompt,
    check_reward,
    check_skip,
    check_task,
)

CASE = {"case": "c1", "left": "iron", "right": "oak", "picks": [0, 0]}
DUEL = {"name": "d1", "left": "iron", "right": "oak", "better": 1}


@pytest.mark.parametrize(
    ("check", "things"),
    [
        (check_method, [FirstTwo()]),
        (check_method, [LabelShift()]),
        (check_metric, [metric.FIRST_TWO]),
        (check_metric, [metric.SUREST]),
        (check_task, [task.TASK]),
        (check_prompt, [prompt.BRIEF]),
        (check_skip, [skip.is_short]),
        (check_backend, [backend.open_longest, "words"]),
        (check_importer, [data.CASES, [CASE]]),
        (check_benchmark, [data.DUELS, [DUEL]]),
        (check_reward, [training.UNANIMOUS]),
        (check_objective, [training.SYMBOL_ONLY]),
        (check_engine, [training.COUNTING]),
    ],
)
def test_registered_thing_keeps_the_rules(check, things):
    check(*things)
