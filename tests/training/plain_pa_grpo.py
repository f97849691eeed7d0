"""Eq. 6-12 of PA-GRPO in plain Python, one sample at a time: the oracle of every engine's tests.

`python tests/training/plain_pa_grpo.py` rewrites `golden.json` from it.
"""

import json
import math
import random
from collections import Counter
from pathlib import Path

GOLDEN = Path(__file__).with_name("golden.json")


def plain_consistency(choices, kind):
    presentations, samples = len(choices), len(choices[0])
    if kind == "none":
        return [[0.0] * samples for _ in choices]
    if kind == "con" and presentations == 2:  # Eq. 8
        pairs = zip(choices[0], choices[1], strict=True)
        agree = [1.0 if first == second and first >= 0 else -1.0 for first, second in pairs]
        return [agree, list(agree)]
    if kind == "con":  # Eq. 9-10
        counts = Counter(z for row in choices for z in row if z >= 0).most_common()
        unique = counts and (len(counts) == 1 or counts[0][1] > counts[1][1])
        mode = counts[0][0] if unique else None
        return [[1.0 if z == mode else -1.0 for z in row] for row in choices]
    result = [[-1.0] * samples for _ in choices]  # columnwise
    for i in range(samples):
        counts = Counter(row[i] for row in choices if row[i] >= 0)
        for t, row in enumerate(choices):
            if row[i] >= 0 and 2 * counts[row[i]] > presentations:
                result[t][i] = 1.0
    return result


def plain_total(case):
    settings, choices = case["settings"], case["choices"]
    band = settings.get("length_band")
    agreement = plain_consistency(choices, settings["consistency"])
    total = []
    for t, row in enumerate(choices):
        total.append([])
        for i, z in enumerate(row):
            r_acc = 1.0 if z in case["gold"] else -1.0
            r_fmt = 0.3 if case["well_formed"][t][i] and z >= 0 else -0.3
            if band is None:
                r_len = 0.0 if z >= 0 else -0.1
            else:
                inside = band[0] <= case["reasoning_chars"][t][i] <= band[1]
                r_len = 0.1 if inside and z >= 0 else -0.1
            total[t].append(r_acc + r_len + r_fmt + settings["lam"] * agreement[t][i])
    return total


def plain_advantages(total, settings):  # Eq. 11-12
    if settings["advantage"] == "prompt":
        return [plain_standardise(row, settings) for row in total]
    flat = plain_standardise([r for row in total for r in row], settings)
    n_samples = len(total[0])
    return [flat[t * n_samples : (t + 1) * n_samples] for t in range(len(total))]


def plain_standardise(values, settings):
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    deviation = math.sqrt(squares / (len(values) - settings["ddof"]))
    if deviation < settings["delta"]:
        return [0.0] * len(values)
    return [(value - mean) / (deviation + settings["epsilon"]) for value in values]


def case(name, choices, gold, n, *, well_formed=None, reasoning_chars=None, **settings):
    made = {
        "name": name,
        "choices": choices,
        "gold": gold,
        "n": n,
        "well_formed": well_formed or [[True] * len(row) for row in choices],
        "reasoning_chars": reasoning_chars or [[0] * len(row) for row in choices],
        "settings": {
            "consistency": "con",
            "advantage": "group",
            "lam": 1.0,
            "epsilon": 1e-6,
            "delta": 1e-6,
            "ddof": 1,
            **settings,
        },
    }
    made["total"] = plain_total(made)
    made["advantages"] = plain_advantages(made["total"], made["settings"])
    return made


JUDGE = [[1, 1, 0, -1], [1, 0, 0, -1]]
MCQ = [[2, 2], [2, 0], [2, 3], [-1, 2], [1, 2]]
TIED = [[0, 0], [1, 1], [0, 1], [2, 3], [3, 2]]


def cases():
    worked = [[1, 1], [0, 1]]
    band = {
        "length_band": [500, 5000],
        "reasoning_chars": [[499, 500, 5000, 900], [5001, 0, 1200, 700]],
    }
    return [
        case("worked example, ddof 1", worked, [1], 2),
        case("worked example, ddof 0", worked, [1], 2, ddof=0),
        case("worked example, GRPO", worked, [1], 2, consistency="none", advantage="prompt"),
        case("judge, two unparsed", JUDGE, [1], 2),
        case("judge, two unparsed, ddof 0", JUDGE, [1], 2, ddof=0),
        case("judge, reasoning inside and outside the band", JUDGE, [0], 2, **band),
        case(
            "judge, badly formed answers",
            JUDGE,
            [0],
            2,
            well_formed=[[True, False, True, True], [False, True, True, False]],
        ),
        case("judge, + r_con only", JUDGE, [1], 2, advantage="prompt"),
        case("judge, + A_PA only", JUDGE, [1], 2, consistency="none"),
        case("judge, everyone agrees", [[1, 1], [1, 1]], [0], 2),
        case("judge, nobody is parsed", [[-1, -1], [-1, -1]], [0], 2),
        case("mcq, unique mode", MCQ, [2], 4),
        case("mcq, lambda 0.25", MCQ, [2], 4, lam=0.25),
        case("mcq, two right answers", MCQ, [0, 3], 4),
        case("mcq, two modes", TIED, [0], 4),
        case("mcq, column by column", MCQ, [2], 4, consistency="columnwise"),
        case("judge, column by column", JUDGE, [1], 2, consistency="columnwise"),
        case("mcq, GRPO", MCQ, [2], 4, consistency="none", advantage="prompt"),
    ]


def incomplete(made, count):
    """A golden case of which that many samples were kept, in any order."""
    choices, settings = made["choices"], made["settings"]
    draw = random.Random(f"{made['name']} {count}")
    rows = draw.sample([(t, i) for t, row in enumerate(choices) for i in range(len(row))], count)
    seen = [
        [z if (t, i) in rows else -1 for i, z in enumerate(row)] for t, row in enumerate(choices)
    ]
    total = plain_total({**made, "choices": seen})
    advantages = {}
    for t in range(len(choices)) if settings["advantage"] == "prompt" else [None]:
        compared = [row for row in rows if t in (None, row[0])]
        values = [total[at][i] for at, i in compared]
        enough = len(values) > settings["ddof"]
        found = plain_standardise(values, settings) if enough else [0.0] * len(values)
        advantages |= dict(zip(compared, found, strict=True))
    return {
        "name": f"{made['name']}, {count} of its samples",
        "case": made["name"],
        "rows": [list(row) for row in rows],
        "total": [total[t][i] for t, i in rows],
        "advantages": [advantages[row] for row in rows],
    }


def incomplete_cases():
    for made in cases():
        size = len(made["choices"]) * len(made["choices"][0])
        for count in (1, size - 1, size):
            yield incomplete(made, count)


if __name__ == "__main__":
    parts = {"cases": cases(), "incomplete": incomplete_cases()}
    lines = {name: ",\n".join(json.dumps(made) for made in part) for name, part in parts.items()}
    texts = (f'"{name}": [\n{text}\n]' for name, text in lines.items())
    GOLDEN.write_text(f"{{{', '.join(texts)}}}\n")
