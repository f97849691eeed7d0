"""Measure rankings of models: coverage of scores and of the position effect, and certain orders that are wrong.

Simulated boards: every model has a strength and every answer a quality, `place` logits favour the first answer, and
each question shifts them; close calls are ties. The truth is that of 40 000 questions. Recorded boards: questions of
a published log are drawn with replacement, and the truth is the log itself, on both sides.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from scipy.special import expit

from claim_rates.rate import Rate
from unswayed.auditing.pairs_of_models import compared_models
from unswayed.data.importers import import_files
from unswayed.metrics.board import rank_models
from unswayed.metrics.win_rates import Comparisons, against
from unswayed.model.decisions import FloatArray, record

TRIALS: Final = 300
POPULATION: Final = 40_000
TIE: Final = 0.3
"""Logits below which the judge calls a tie."""
APART: Final = (0.0, -2.0, -1.0, 0.5, 1.0, 3.0)
ALIKE: Final = (0.0,) * 6
MANY: Final = (0.0, *np.linspace(-3, 3, 19).tolist())
WEAK: Final = (0.0, *[-3.0] * 19)
LOG: Final = (
    Path(__file__).resolve().parents[3]
    / "shared/data/mtbench/position_bias_gpt-3.5-turbo-1106_4800.jsonl.gz"
)


DESIGNS = {
    "both": "both orders",
    "balanced": "balanced design",
    "random": "random order",
    "sparse": "random order of 30% of the pairs",
    "own": "both orders of questions of its own, 30%",
}


@dataclass(frozen=True, slots=True)
class Board:
    """Board of models: all pairs, or each model with the first one.

    Attributes:
        design: "both" orders, one side "balanced" over questions, "random" sides, "sparse": these for 30% of pairs, or
            "own": both orders for 30% of pairs.
        place: Logits in favour of the first answer.
    """

    strengths: tuple[float, ...]
    design: str
    place: float
    questions: int
    pairs: bool = False

    @property
    def text(self) -> str:
        kinds = len(set(self.strengths)), len(set(self.strengths[1:]))
        kind = {(1, 1): "equal models", (2, 1): "equal weak models"}.get(kinds, "models")
        number = "" if len(self.strengths) == len(APART) else f"{len(self.strengths)} "
        models = f"{number}{kind}, " if number or kind != "models" else ""
        against_what = "all pairs" if self.pairs else "one baseline"
        shown = f"{DESIGNS[self.design]}, {self.place:g} logits for the first answer"
        return f"{models}{against_what}, {shown}, {self.questions} questions"

    @property
    def baseline(self) -> str | None:
        return None if self.pairs else "m0"

    def compared(self) -> list[tuple[int, int]]:
        every = itertools.combinations(range(len(self.strengths)), 2)
        return [pair for pair in every if self.pairs or 0 in pair]


BOARDS: Final = (
    *(
        Board(APART, design, place, 40)
        for place in (0.0, 1.5, 4.0)
        for design in ("both", "balanced", "random")
    ),
    *(Board(APART, design, 1.5, 100) for design in ("both", "balanced", "random")),
    *(Board(strengths, "own", 1.5, 40) for strengths in (APART, ALIKE)),
    *(Board(strengths, "own", 1.5, 25) for strengths in (MANY, WEAK, (0.0,) * 20)),
    *(Board((0.0,) * models, "own", 0.0, 25) for models in (6, 10)),
    Board(ALIKE, "sparse", 0.0, 60),
    *(
        Board(APART, design, place, 40, pairs=True)
        for place in (0.0, 1.5)
        for design in ("both", "balanced", "random", "sparse")
    ),
    *(Board(APART, design, 1.5, 100, pairs=True) for design in ("both", "sparse")),
    *(
        Board(APART, design, place, questions, pairs=pairs)
        for place, questions in ((1.5, 5), (7.0, 10))
        for pairs in (False, True)
        for design in ("both", "balanced")
    ),
    *(
        Board(ALIKE, design, 1.5, 60, pairs=pairs)
        for pairs in (False, True)
        for design in ("both", "balanced")
    ),
)


def logits(
    board: Board, questions: int, draw: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Quality of each answer, (Q, M), and logits for the first place, (Q,)."""
    quality = np.array(board.strengths) + draw.normal(0, 1, (questions, len(board.strengths)))
    return quality, board.place + draw.normal(0, 0.5, questions)


def judged(board: Board, draw: np.random.Generator) -> Comparisons:
    """Answers of the judge to one board."""
    number = np.arange(board.questions)
    quality, place = logits(board, board.questions, draw)
    half = draw.permutation(number) < board.questions // 2
    rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for a, b in board.compared():
        side = half if board.design == "balanced" else draw.random(board.questions) < 0.5
        first, second = np.where(side, a, b), np.where(side, b, a)
        kept = draw.random(board.questions) < (0.3 if board.design in ("sparse", "own") else 1.0)
        rows.append((number[kept], first[kept], second[kept]))
        if board.design in ("both", "own"):
            rows.append((number[kept], second[kept], first[kept]))
    question, first, second = (np.concatenate(part) for part in zip(*rows, strict=True))
    gap = quality[question, first] - quality[question, second] + place[question]
    gap += draw.logistic(size=len(gap))
    wins = np.where(np.abs(gap) < TIE, 0.5, gap > 0)
    names = tuple(f"m{model}" for model in range(len(board.strengths)))
    return Comparisons(names, question, first, second, wins)


def truth(board: Board) -> tuple[FloatArray, float]:
    """Score of each model, (M,), and the position effect."""
    quality, place = logits(board, POPULATION, np.random.default_rng(9))
    m = len(board.strengths)
    first = np.full((m, m), np.nan)  # the share of wins of the first
    for a, b in (pair for own in board.compared() for pair in (own, own[::-1])):
        gap = quality[:, a] - quality[:, b] + place
        first[a, b] = (0.5 * (expit(gap - TIE) + expit(gap + TIE))).mean()
    score, effect = (first + 1 - first.T) / 2, first - (1 - first.T)
    strengths = np.array(board.strengths)
    if board.pairs:
        right, mean = np.nanmean(score, axis=1), float(np.nanmean(effect))
    else:
        right, mean = np.append(0.5, score[1:, 0]), float(effect[1:, 0].mean())
        right[strengths == strengths[0]] = 0.5
    for strength in strengths:  # equal models have one truth; simulated ones differ by chance
        right[strengths == strength] = right[strengths == strength].mean()
    return right, mean


def rates(trials: int | None = None) -> Iterator[Rate]:
    """Simulated boards, then the recorded one if it is there."""
    for board in BOARDS:
        drawn = (judged(board, np.random.default_rng(seed)) for seed in range(trials or TRIALS))
        yield from counted(drawn, board.text, *truth(board), board.baseline)
    if LOG.exists():
        yield from recorded((trials or TRIALS) // 2)


def recorded(trials: int) -> Iterator[Rate]:
    """30 models against one on questions drawn from a published log, in both orders or on balanced sides."""
    made = import_files("auto", [LOG])
    whole = compared_models(record(made.decisions), made.items)[0]
    baseline = "vicuna-13b-v1.3"
    base, fit = whole.models.index(baseline), against(whole, baseline)
    right, effect = fit.entries.mean(axis=0), float(fit.effect.mean())

    def drawn(seed: int, *, balanced: bool) -> Comparisons:
        draw = np.random.default_rng(seed)
        places = [np.flatnonzero(whole.question == number) for number in range(whole.questions)]
        picked = draw.integers(0, whole.questions, whole.questions)
        rows = np.concatenate([places[number] for number in picked])
        question = np.repeat(np.arange(len(picked)), [len(places[number]) for number in picked])
        first, second, wins = whole.first[rows], whole.second[rows], whole.wins[rows]
        board = Comparisons(whole.models, question, first, second, wins)
        half = draw.permutation(whole.questions) < whole.questions // 2
        return board.rows((first == base) == half[question]) if balanced else board

    for balanced in (False, True):
        text = DESIGNS["balanced" if balanced else "both"]
        boards = (drawn(seed, balanced=balanced) for seed in range(trials))
        yield from counted(
            boards, f"recorded, one baseline, {text}, 80 questions", right, effect, baseline
        )


def counted(
    boards: Iterator[Comparisons], text: str, right: FloatArray, effect: float, baseline: str | None
) -> Iterator[Rate]:
    """Coverage over models and boards, and boards with a certain order that is wrong."""
    held: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for seed, board in enumerate(boards):
        ranking = rank_models(board, baseline=baseline, seed=seed)
        wrong = False
        names = [own.model for own in ranking.models]
        scores = right[[board.models.index(name) for name in names]]
        for own, score in zip(ranking.models, scores, strict=True):
            if own.score.low is not None and own.score.high is not None:
                asked["interval of a score"] += 1
                held["interval of a score"] += bool(own.score.low <= score <= own.score.high)
            below = {names[place] for place in np.flatnonzero(scores < score - 1e-9)}
            wrong |= not below.issuperset(own.certainly_above)
        low, high = ranking.position_effect.low, ranking.position_effect.high
        assert low is not None
        assert high is not None
        held["interval of the position effect"] += low <= effect <= high
        held["an order reported as certain is wrong"] += wrong
        for statement in (
            "interval of the position effect",
            "an order reported as certain is wrong",
        ):
            asked[statement] += 1
    for statement, count in asked.items():
        wrong_order = statement == "an order reported as certain is wrong"
        yield Rate(
            statement=statement,
            setting=text,
            count=held[statement],
            trials=count,
            at_most=0.05 if wrong_order else None,
            at_least=None if wrong_order else 0.93,
        )
