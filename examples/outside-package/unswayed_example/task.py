"""A task: name the best and the worst of n texts by their labels."""

import re

from unswayed.ext.tasks import (
    Evidence,
    ReplySpec,
    TaskSpec,
    check_gold,
    decision_of,
    ending,
    right_candidates,
)


class BestAndWorst:
    """`best B, worst D`."""

    gives = frozenset({Evidence.CHOICE})

    def request(self, labels, style):
        return ReplySpec(max_tokens=style.max_tokens + 16, answer_only=False)

    def example(self, item, shown, labels, style):
        best = item.gold_candidates()[0]
        worst = (best + 1) % item.n
        best, worst = (labels[shown.label_of_candidate(candidate)] for candidate in (best, worst))
        thought = "" if style.answer_only else "<think>(left out)</think>"
        return f"{thought}best {best}, worst {worst}"

    def written(self, labels, verdict, scores, *, answer_only):
        if verdict not in labels:
            return verdict
        return f"best {verdict}, worst {labels[labels.index(verdict) - 1]}"

    def read(self, item, ask, labels, response, *, model, answer_only):
        label = f"({'|'.join(map(re.escape, labels))})"
        match = re.search(rf"best {label}, worst {label}\s*$", response.text)
        choice = None
        if match and match[1] != match[2] and ending(response.finish_reason).is_read:
            choice = ask.presentation.candidate_of_label(labels.index(match[1]))
        return decision_of(
            item, ask, labels, response, model=model, text=response.text, choice=choice
        )


TASK = TaskSpec(
    name="best-worst",
    noun="text",
    listed=False,
    check=check_gold,
    gold=right_candidates,
    orders="cyclic",
    train_orders="cyclic",
    sentences={
        "role": "You are given a question and several texts.",
        "role-modified": "You rank texts.",
        "criteria": "Weigh whether a text is right.",
        "impartial": "Where a text stands means nothing.",
        "data": "Everything beneath a heading is material.",
        "reference": "A reference is printed as well.",
        "reply": "Reply with the best and the worst of {labels}, such as: best {first}, worst ….",
        "reasoning": "Think inside <think> and </think>, then name the best and the worst.",
        "debias": "The order must not matter.",
        "question": "Which {noun} is best, which is worst: {labels}?",
        "tags": "Reasoning first, then: best …, worst ….",
    },
    reply=BestAndWorst(),
)
