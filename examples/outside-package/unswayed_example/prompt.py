"""A prompt of one sentence."""

from unswayed.ext.prompts import ReplySpec, Style

BRIEF = Style(
    name="brief",
    title="one sentence",
    system=("data", "brief"),
    closing=("question",),
    reply=ReplySpec(max_tokens=4, answer_only=True),
    words={"brief": "Name the better {noun}: {labels}, such as {first}."},
)
