"""Decisions (one judge call), verdicts (a method's answer) and estimates, singly and as columns."""

from __future__ import annotations

from unswayed.model.decisions.clusters import Clusters
from unswayed.model.decisions.codes import (
    ABSTAINED,
    DISAGREES,
    MISSING,
    REASKED,
    TIE,
    UNPARSED,
    BoolArray,
    Choice,
    FloatArray,
    IntArray,
    choice_of,
    code_of,
    sd_of_rows,
    value_of_choices,
)
from unswayed.model.decisions.decision import RANK, SCORE, Decision, Evidence, check_decision
from unswayed.model.decisions.estimate import Estimate
from unswayed.model.decisions.places import criterion_places
from unswayed.model.decisions.recorder import Recorder, are_usual, record
from unswayed.model.decisions.recording import Originals, Recording
from unswayed.model.decisions.subjects import Subjects, tie_rank
from unswayed.model.decisions.table import DecisionTable, argmax_by_tie_rule, leaders_of
from unswayed.model.decisions.verdict import Verdict, VerdictTable

__all__ = [
    "ABSTAINED",
    "DISAGREES",
    "MISSING",
    "RANK",
    "REASKED",
    "SCORE",
    "TIE",
    "UNPARSED",
    "BoolArray",
    "Choice",
    "Clusters",
    "Decision",
    "DecisionTable",
    "Estimate",
    "Evidence",
    "FloatArray",
    "IntArray",
    "Originals",
    "Recorder",
    "Recording",
    "Subjects",
    "Verdict",
    "VerdictTable",
    "are_usual",
    "argmax_by_tie_rule",
    "check_decision",
    "choice_of",
    "code_of",
    "criterion_places",
    "leaders_of",
    "record",
    "sd_of_rows",
    "tie_rank",
    "value_of_choices",
]
