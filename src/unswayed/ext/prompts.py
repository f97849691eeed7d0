"""Prompts: the words of a question and the wanted reply."""

from unswayed.model.parsing import ReplySpec as ReplySpec
from unswayed.prompts import Style as Style
