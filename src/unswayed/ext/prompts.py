"""Prompts: the words of a question and the wanted reply."""

from unswayed.parsing import ReplySpec as ReplySpec
from unswayed.prompts import Style as Style
