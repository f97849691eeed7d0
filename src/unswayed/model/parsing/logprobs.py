"""Top-k log-probabilities -> label probabilities.

A generated token counts for a label if it is that label once white space, word-boundary marks of
tokenizers, Markdown, opening brackets before it and punctuation after it are taken away: "A", " A",
"▁A", "ĠA", "(A", "**A", "A.", "A)". All these are ways of beginning the same answer and exclude
each other, so their probabilities add up. Another case counts only where the labels stay distinct
without case. A token that is the beginning of a longer label ("Al" of Alice) counts for it if no
token spells that label in full; a beginning shared by several labels settles nothing.

A label outside the returned top-k is not impossible: it gets the smallest probability returned
(an upper bound), the result is flagged as censored, and it is never 0. The label that the reply states
never gets it: if it is outside the list, the probabilities are unknown (`reading.py`). The label mass is what was
seen on the labels before renormalising, without such floors. No label seen: no probabilities.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from unswayed.model.calls import Response, TokenLogprob
from unswayed.model.parsing.symbols import AMBIGUOUS, NO_LABEL, Symbols, symbols_of

_IMPOSSIBLE: Final = -1000.0
"""Servers mark "not in the list" by -9999 or -inf; no real top-k log-probability is this low."""
_ROUNDING: Final = 0.01
"""A log-probability may exceed 0 by rounding; beyond this the numbers are something else."""
_LEAST: Final = 1e-300
"""A returned label is never impossible, however small float64 makes it."""
_TRIVIAL: Final = " \t\r\n\v\f\xa0▁ĠĊ*_`'\"“‘«([{<#>"
_PREAMBLE: Final = re.compile(
    r"[\W_]*(?:(?:the|my|final|best|better|correct|right|answer|verdict|choice|option|assistant|"
    r"response|candidate|output|model|label|letter|winner|is)[\W_]*){1,6}",
    re.IGNORECASE,
)
_PREAMBLE_TOKENS: Final = 12


class LabelProbs(NamedTuple):
    """Probabilities of the labels at one generated position."""

    # by label, summing to 1; None if no label was seen or the numbers settle nothing
    probs: tuple[float, ...] | None
    mass: float  # probability seen on the labels before renormalising, in [0, 1]
    # labels outside the list, which got the floor; all labels if the list has none
    unseen: frozenset[int] = frozenset()

    @property
    def censored(self) -> bool:
        """True if a label was outside the list."""
        return bool(self.unseen)


_UNKNOWN: Final = LabelProbs(None, 0.0)


def label_probs(
    top: Sequence[TokenLogprob], label_set: Symbols, *, exact: bool = False
) -> LabelProbs:
    """Probabilities of the labels from the alternatives at one position, tokens in any order.

    NaN entries are left out, -inf (and below -1000) counts as not returned; the same token with the
    same value counts once. `probs` is None for an empty list, a list without labels, positive
    log-probabilities, or a token that begins several labels. A single returned token says nothing
    about the others' smallest; there the floor is what it leaves over. An `exact` list has every label,
    from the full distribution: nothing is censored, and -inf is a probability of 0.
    """
    n = len(label_set.labels)
    codes = label_set.codes
    if exact and len(top) == n > 1 and (whole := _whole(top, codes)) is not None:
        return whole
    full: list[list[float]] = [[] for _ in range(n)]
    begun: list[list[float]] = [[] for _ in range(n)]
    unclear: list[str] = []
    smallest = math.inf
    valid = 0
    seen: set[TokenLogprob] = set()
    for pair in top:
        token, logprob = pair
        if logprob > 0.0:
            if logprob > _ROUNDING:
                return _UNKNOWN
            logprob = 0.0
        if logprob != logprob or (logprob < _IMPOSSIBLE and not exact):
            continue
        valid += 1
        if logprob < smallest:
            smallest = logprob
        code = codes.get(token)
        if code is None:
            code = label_set.token(token)
        if code == NO_LABEL or pair in seen:
            continue
        seen.add(pair)
        if code >= 0:
            full[code].append(logprob)
        elif code < AMBIGUOUS:
            begun[-3 - code].append(logprob)
        else:
            unclear.append(token)
            if exact and (label := label_set.index(token)) >= 0:
                full[label].append(logprob)
    if not valid:
        return _UNKNOWN
    if unclear and not exact and not _settles(top, label_set, full, unclear):
        return _UNKNOWN
    if valid == 1 or (valid < 4 and len(seen) == 1 and len(set(top)) == 1):
        smallest = min(smallest, math.log(max(-math.expm1(smallest), 1e-10)))
    logprobs = [whole or part for whole, part in zip(full, begun, strict=True)]
    return _normalise(logprobs, smallest, least=0.0 if exact else _LEAST)


def _whole(top: Sequence[TokenLogprob], codes: Mapping[str, int]) -> LabelProbs | None:
    """Return the probabilities where a list has every label once and nothing else; else None."""
    values = [math.nan] * len(top)
    for token, logprob in top:
        code = codes.get(token, NO_LABEL)
        if code < 0 or values[code] == values[code] or not logprob <= 0.0:
            return None
        values[code] = logprob
    peak = max(values)
    if peak == -math.inf:
        return LabelProbs(None, 0.0, frozenset(range(len(values))))
    weights = [math.exp(value - peak) for value in values]
    total = sum(weights)
    mass = min(1.0, total * math.exp(peak))
    return LabelProbs(tuple([weight / total for weight in weights]), mass)


def _normalise(logprobs: list[list[float]], floor: float, *, least: float) -> LabelProbs:
    """Sum, put the floor where a label has none, renormalise."""
    peak = max([max(values) for values in logprobs if values], default=-math.inf)
    unseen = frozenset([label for label, values in enumerate(logprobs) if not values])
    if peak == -math.inf:
        return LabelProbs(None, 0.0, unseen)
    # Relative to the peak, so that very small probabilities do not vanish before renormalising.
    weights = [sum([math.exp(value - peak) for value in values]) for values in logprobs]
    total = sum(weights)
    mass = min(1.0, total * math.exp(peak))
    if unseen:
        bound = math.exp(floor - peak)
        weights = [
            weight if values else bound for weight, values in zip(weights, logprobs, strict=True)
        ]
    if unseen or min(weights) < least:
        weights = [max(weight, least) for weight in weights]
        total = sum(weights)
    return LabelProbs(tuple([weight / total for weight in weights]), mass, unseen)


def _settles(
    top: Sequence[TokenLogprob], symbols: Symbols, full: list[list[float]], unclear: list[str]
) -> bool:
    """Return True if tokens that begin a longer label are labels themselves all the same.

    "1" begins "12"; but where the list has "12" as one token, the tokenizer writes numbers whole,
    and "1" is the label 1. Adds their values to `full` if so.
    """
    whole = {symbols.labels[label] for label, values in enumerate(full) if values}
    settled = {}
    for token in unclear:
        label = symbols.index(token.strip(" ▁ĠĊ\n\t\r"))
        if label < 0 or not any(
            other != symbols.labels[label] and other.startswith(symbols.labels[label])
            for other in whole
        ):
            return False
        settled[token] = label
    for token, logprob in dict.fromkeys(top):
        if token in settled and _IMPOSSIBLE <= logprob <= _ROUNDING:
            full[settled[token]].append(min(logprob, 0.0))
    return True


def probs_of_response(response: Response, symbols: Symbols) -> tuple[LabelProbs | None, int]:
    """Return the label probabilities where an answer-only reply states its label, None without any.

    That is the first generated position that is not white space, Markdown or an opening bracket;
    after a short preamble ("Answer:", "The better option is") the label that follows it; after the
    shared beginning of labels ("Model " of Model X and Model Y) the first token that differs. With
    them comes the label of the token generated there, as far as one token tells: an index, or a
    negative code.
    """
    lists = response.top_logprobs
    if not lists:
        return None, NO_LABEL
    if response.exact:
        return label_probs(lists[0], symbols, exact=True), NO_LABEL
    tokens = response.tokens
    if tokens is None:
        tokens = tuple(top[0].token if top else "" for top in lists)
    position = _position(tokens[: len(lists)], symbols)
    token = tokens[position] if position < len(tokens) else ""
    code = symbols.token(token)
    if code == AMBIGUOUS and len(symbols.labels) > 1:
        rest = _after_shared(tokens[: len(lists)], position, symbols)
        if rest is not None:
            position, suffixes = rest[0], symbols_of(rest[1])
            return label_probs(lists[position], suffixes), suffixes.token(tokens[position])
    return label_probs(lists[position], symbols), code


def _position(tokens: Sequence[str], symbols: Symbols) -> int:
    """Return the generated position that holds the label."""
    if tokens and symbols.token(tokens[0]) >= 0:
        return 0
    start = 0
    for position, token in enumerate(tokens):
        if "</think>" in token:
            start = position + 1
    first = start
    while first < len(tokens) and not tokens[first].strip(_TRIVIAL):
        first += 1
    if first >= len(tokens):
        return min(start, max(len(tokens) - 1, 0))
    if symbols.token(tokens[first]) != NO_LABEL:
        return first
    said = ""
    for position in range(first, min(len(tokens), first + _PREAMBLE_TOKENS)):
        if symbols.token(tokens[position]) != NO_LABEL and _PREAMBLE.fullmatch(said):
            return position
        said += tokens[position].replace("▁", " ").replace("Ġ", " ").replace("Ċ", "\n")
    return first


def _after_shared(
    tokens: Sequence[str], position: int, symbols: Symbols
) -> tuple[int, tuple[str, ...]] | None:
    """Position and rests of the labels after the beginning that all of them share."""
    first, last = min(symbols.labels), max(symbols.labels)
    at = next((k for k, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), 0)
    shared = first[:at]
    said = ""
    while position < len(tokens):
        token = tokens[position].replace("▁", " ").replace("Ġ", " ")
        longer = (said + token).lstrip()
        if not shared.startswith(longer):
            break
        said = longer
        position += 1
    rests = tuple(label[len(said) :].strip() for label in symbols.labels)
    if not said or position >= len(tokens) or "" in rests or len(set(rests)) < len(rests):
        return None
    return position, rests
