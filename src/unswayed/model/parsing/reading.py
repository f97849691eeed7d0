"""Response -> decision: what a judge was asked and what it answered, by candidate.

The verdict is the likeliest label where label probabilities are known and the reply is a label
(equal probabilities go to the one tie rule); otherwise the label that the text states. They are
unknown if that label is outside the list of alternatives. If it is in the list and another label is
likelier, the decision is marked `disagrees`. A reply
whose text states nothing has no verdict, but keeps its probabilities. So does a reply that was cut
off in the middle of its words: only a label alone, or a complete tag or mark, is a verdict there. A repeated sample (sample >
0) was drawn, so its text is its verdict: the likeliest label would be the same for every sample.
A refusal, a filtered reply and a reply with an unknown finish reason (`endings.py`) are never verdicts,
whatever their text and probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from unswayed.base.errors import ShapeError
from unswayed.model.calls import Response
from unswayed.model.decisions import Choice, Decision, tie_rank
from unswayed.model.items import Item, text_of, texts_of
from unswayed.model.parsing.endings import Ending, ending
from unswayed.model.parsing.labels import read_label
from unswayed.model.parsing.logprobs import LabelProbs, probs_of_response
from unswayed.model.parsing.places import DECLARED_TIE
from unswayed.model.parsing.symbols import NO_LABEL, Symbols, symbols_of
from unswayed.model.permutations import Order
from unswayed.model.presentation import Ask, Presentation


def read_decision(
    item: Item,
    ask: Ask,
    labels: Sequence[str],
    response: Response,
    *,
    model: str,
    answer_only: bool,
    form: str | None = None,
) -> Decision:
    """Read one response; `labels` are in canonical order, one per candidate.

    With `answer_only` the reply is the label itself, so its token probabilities are the verdict's.
    """
    shown = ask.presentation
    n = len(shown.order)
    if len(labels) != n or len(item.candidates) != n:
        raise ShapeError(
            f"{item.id}: {len(labels)} labels and {len(item.candidates)} candidates cannot be "
            f"read through a presentation of {n}"
        )
    text = response.text
    ended = ending(response.finish_reason)
    if not ended.is_read:  # neither its words nor its tokens are read
        response = msgspec.structs.replace(response, text="", tokens=None, top_logprobs=None)
    symbols = symbols_of(labels)
    position = probs_of_response(response, symbols) if answer_only else (None, NO_LABEL)
    carriers, labels_by_candidate = _turned(shown)
    texts = item.candidates if ask.substitute is None else ask.substitute.candidates
    values = item.values or ()
    parsed = read_label(
        response.text,
        symbols,
        quoted=texts_of(item),
        texts=[text_of(texts[candidate]) for candidate in carriers],
        scale=item.values is not None,
        form=form,
        values=[values[candidate] for candidate in carriers] if values else (),
        truncated=ended is Ending.CUT and not _is_settled(position, response, symbols),
    )
    by_label = _probs(*position, parsed)
    probs, disagrees = None, False
    if by_label is not None and by_label.probs is not None:
        own = by_label.probs
        probs = tuple([own[label] for label in labels_by_candidate])
        disagrees = parsed >= 0 and ask.sample == 0 and own[parsed] < max(own)
    censored = by_label is not None and by_label.censored
    return decision_of(
        item,
        ask,
        labels,
        response,
        model=model,
        text=text,
        choice=_choice(item, ask, response, parsed, carriers, probs, censored),
        probs=probs,
        label_mass=by_label.mass if by_label is not None else None,
        censored=censored,
        disagrees=disagrees,
    )


def decision_of(
    item: Item,
    ask: Ask,
    labels: Sequence[str],
    response: Response,
    *,
    model: str,
    text: str,
    choice: Choice,
    probs: tuple[float, ...] | None = None,
    label_mass: float | None = None,
    censored: bool = False,
    disagrees: bool = False,
    scores: tuple[float | None, ...] | None = None,
    ranking: tuple[int, ...] | None = None,
    flags: dict[str, tuple[bool | None, ...]] | None = None,
    criteria_order: tuple[int, ...] | None = None,
) -> Decision:
    """Return the record of what was read, with what was asked and what it cost.

    Args:
        item: What was judged.
        ask: How it was shown.
        labels: The label set in canonical order.
        response: What came back.
        model: Full model name of the request.
        text: What the judge wrote.
        choice: What was read.
        probs: Probability by candidate.
        label_mass: Probability of all labels together.
        censored: Whether a label was outside the returned alternatives.
        disagrees: True if the text states a label other than the likeliest.
        scores: By candidate, None where unknown.
        ranking: Candidates, best first.
        flags: By name, by candidate.
        criteria_order: The order in which criteria were asked, where the reply is about several.
    """
    kind = _kind(ask, tuple(labels), model, item.criterion, criteria_order)
    return msgspec.structs.replace(
        kind,
        item_id=item.id,
        choice=choice,
        probs=probs,
        label_mass=label_mass,
        censored=censored,
        disagrees=disagrees,
        scores=scores,
        ranking=ranking,
        flags=flags,
        text=text,
        input_tokens=response.input_tokens,
        output_tokens=response.output_tokens,
        cost_usd=response.cost_usd,
        latency_s=response.latency_s,
        finish_reason=response.finish_reason,
    )


@lru_cache(maxsize=8192)  # few questions are asked about very many items
def _kind(
    ask: Ask,
    label_set: tuple[str, ...],
    model: str,
    criterion: str | None,
    criteria_order: tuple[int, ...] | None,
) -> Decision:
    """Return the fields that all decisions about a question share."""
    substitute = ask.substitute
    return Decision(
        item_id="",
        order=ask.presentation.order,
        labels=ask.presentation.symbols(label_set),
        label_set=label_set,
        sample=ask.sample,
        prompt_id=ask.prompt_id,
        model=model,
        criterion=criterion,
        criteria_order=criteria_order,
        substitute=None if substitute is None else substitute.candidates,
        substitute_prompt=None if substitute is None else substitute.prompt,
    )


@lru_cache(maxsize=8192)
def _turned(shown: Presentation) -> tuple[Order, Order]:
    """Return the candidate that carries each label, and the label that each candidate carries."""
    return shown.candidates_by_label(), shown.labels_by_candidate()


def is_unread(response: Response, decision: Decision) -> bool:
    """Return True if a complete or cut-off reply states no verdict, so that a second call may bring one.

    Refusals, broken replies and tokens scored without a reply do not count as unread.
    """
    if decision.choice is not None or response.exact:
        return False
    return ending(response.finish_reason).is_read


def _is_settled(
    position: tuple[LabelProbs | None, int], response: Response, symbols: Symbols
) -> bool:
    """Return True if a cut-off reply is a label whose probabilities show that no longer one was begun."""
    by_label, label = position[0], symbols.index(response.text.strip())
    return (
        label >= 0
        and by_label is not None
        and by_label.probs is not None
        and label not in by_label.unseen
    )


def _probs(by_label: LabelProbs | None, generated: int, parsed: int) -> LabelProbs | None:
    """Return the label probabilities; None where they are unknown or belong to something else."""
    if by_label is None or (by_label.probs is None and not by_label.censored):
        return None
    if 0 <= parsed != generated >= 0:
        # "A careful look: the answer is B" begins with a token that looks like a label and is
        # none: those probabilities are of the sentence, not of the verdict.
        return None
    if parsed in by_label.unseen:
        return by_label._replace(probs=None)  # no floor for what the text states
    return by_label


def _choice(
    item: Item,
    ask: Ask,
    response: Response,
    parsed: int,
    carriers: tuple[int, ...],
    probs: tuple[float, ...] | None,
    censored: bool,
) -> Choice:
    """Return the verdict; `carriers[l]` is the candidate that carries label l, `probs` are by candidate."""
    if parsed == DECLARED_TIE:
        return "tie"
    if parsed == NO_LABEL:
        return _likeliest(item, probs) if response.exact and probs is not None else None
    if probs is None or ask.sample > 0 or (censored and probs[carriers[parsed]] == max(probs)):
        return carriers[parsed]  # a floor does not overrule the text
    return _likeliest(item, probs)


def _likeliest(item: Item, probs: tuple[float, ...]) -> int:
    best = max(probs)
    if probs.count(best) == 1:
        return probs.index(best)
    ranks = tie_rank(item)
    return min((c for c, value in enumerate(probs) if value == best), key=ranks.__getitem__)
