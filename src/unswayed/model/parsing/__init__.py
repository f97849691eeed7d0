"""Replies -> decisions: text to label, top-k log-probabilities to label probabilities.

Pure and re-run whenever recorded calls are read, so a better parser costs no new call.
"""

from __future__ import annotations

from unswayed.model.parsing.criteria import criteria_schema, criterion_key, read_criteria
from unswayed.model.parsing.endings import Ending, ending, is_failed_attempt
from unswayed.model.parsing.labels import parse_label
from unswayed.model.parsing.listwise import listwise_schema, read_listwise
from unswayed.model.parsing.listwise_objects import FLAGS
from unswayed.model.parsing.logprobs import LabelProbs, label_probs
from unswayed.model.parsing.reading import decision_of, is_unread, read_decision
from unswayed.model.parsing.replies import LABEL, READER, LabelReply, Reply, ReplySpec

__all__ = [
    "FLAGS",
    "LABEL",
    "READER",
    "Ending",
    "LabelProbs",
    "LabelReply",
    "Reply",
    "ReplySpec",
    "criteria_schema",
    "criterion_key",
    "decision_of",
    "ending",
    "is_failed_attempt",
    "is_unread",
    "label_probs",
    "listwise_schema",
    "parse_label",
    "read_criteria",
    "read_decision",
    "read_listwise",
]
