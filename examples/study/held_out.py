"""Parts of the tiny judge's world that training leaves out: a topic, or half of the words.

What is learned about the words of the other half cannot help: gold teaches what words are worth,
while position bias is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from unswayed.model.items import Item, Task
from unswayed.tiny.items import NOUNS, TOPICS, WORDS, worth


def topic_of(seed: int) -> str:
    """The topic that a training seed leaves out."""
    return TOPICS[(2 * seed + 1) % len(TOPICS)]


def about(items: Sequence[Item], topic: str) -> tuple[Item, ...]:
    """The same answers, all about one topic; what they are worth does not depend on it."""
    return tuple(msgspec.structs.replace(item, prompt=topic, group=topic) for item in items)


def halved(items: Sequence[Item], parity: int) -> tuple[Item, ...]:
    """Items of one half of the words: each word becomes its neighbour of this parity.

    Words are listed by kind and nouns by size, so neighbours are alike. Items whose candidates, or
    whose content, then coincide are left out.
    """
    kept: dict[tuple[object, ...], Item] = {}
    for item in items:
        listed, values = (
            (WORDS, worth().words) if item.task is Task.PAIRWISE else (NOUNS, worth().sizes)
        )
        places = [
            [listed.index(word) // 2 * 2 + parity for word in str(candidate).split()]
            for candidate in item.candidates
        ]
        content = frozenset(tuple(sorted(candidate)) for candidate in places)
        utility = [float(values[candidate].sum()) for candidate in places]
        changed = msgspec.structs.replace(
            item,
            candidates=tuple(" ".join(listed[place] for place in words) for words in places),
            gold=int(np.argmax(utility)),
            meta={**item.meta, "utility": utility},
        )
        if len(content) == item.n:
            kept.setdefault((item.prompt, content), changed)
    return tuple(kept.values())
