"""UniBias (arXiv 2405.20612): find heads and neurons that push labels whatever is asked.

Three criteria choose sets: related to the labels, biased towards some, alike on all prompts. The set
whose mask balances the mean label probabilities best is kept, neurons first and then heads. As in
the paper, for any number of layers, with the coefficient of a neuron scaled (the authors' code
replaces an input of its gate), all spellings of a label, and one recorded pass for all statistics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unswayed.backends import BackendSettings, open_backend
from unswayed.backends.head_scales import HeadScales
from unswayed.backends.huggingface import HuggingFaceBackend
from unswayed.backends.local_costs import LOGITS_AT_ONCE
from unswayed.backends.local_heads import HeadSites
from unswayed.backends.local_jobs import Job
from unswayed.backends.local_models import LoadedModel, load_model
from unswayed.base.counts import plural
from unswayed.base.errors import UsageError
from unswayed.base.registry import require
from unswayed.base.version import VERSION
from unswayed.calls import Question, RunSettings
from unswayed.calls.calibration import prompts_for
from unswayed.calls.questions import Drafter
from unswayed.model.decisions import FloatArray
from unswayed.model.items import ItemSet, blind
from unswayed.model.presentation import Ask, Presentation, presentations
from unswayed.prompts import PromptSettings, prompt_fingerprint
from unswayed.store import Memory
from unswayed.tiny.formats import FORMATS

if TYPE_CHECKING:
    import torch

Set = tuple[tuple[int, int], ...]
"""Layer and place of heads or neurons."""

BIASED: Final = (0.1, 0.2, 0.3, 0.4, 0.5)
NEURON_GRID: Final = (
    (0.05, 0.1, 0.15, 0.2, 0.3),  # related: label probability of the vector
    BIASED,
    (0.05, 0.1, 0.15, 0.2),  # alike: coefficient of variation
    (0.1, 0.2, 0.3),  # mean coefficient
)
HEAD_GRID: Final = ((0.02, 0.05, 0.1, 0.15, 0.2), BIASED, (0.1, 0.15, 0.2, 0.25))
LEAST_LOGITS: Final = 0.2
"""Thresholds of the criteria, as in the paper."""

BALANCED: Final = 0.1
"""Label imbalance above which the best sets are tried with negative scales."""
RETRIED: Final = 5
LEAST_ITEMS: Final = 10


class Readings(NamedTuple):
    """Heads and neurons at the last token of every prompt."""

    head_logits: FloatArray  # mean label logits that a head adds, shape (layers, heads, labels)
    head_spread: FloatArray  # their standard deviations
    residual: FloatArray  # mean label logits of what enters a layer, shape (layers, 1, labels)
    coefficients: FloatArray  # mean coefficient of a neuron, shape (layers, neurons)
    variation: FloatArray  # its coefficient of variation, without sign
    values: FloatArray  # label probabilities of its vector, shape (layers, neurons, labels)


class Support:
    """Label prompts of one loaded model, read side by side."""

    def __init__(self, loaded: LoadedModel, jobs: Sequence[Job]) -> None:
        self.sites = HeadSites(loaded.model)
        self._loaded, self._jobs = loaded, jobs
        self._labels = jobs[0].label_ids or ()
        self._last: list[int] = []  # last tokens of the prompts that are read at the moment

    def logprobs(self, scales: HeadScales) -> FloatArray:
        """Log-probability of every label after every prompt, with scales: (prompts, labels)."""
        answers: dict[int, FloatArray] = {}
        with self.sites.hooked(scales):
            for batch, _ in replace(self._loaded.plan, trees=False).scored(self._jobs):
                self._last = [len(job.tokens) - 1 for job in batch]
                prompts, ids = [job.tokens for job in batch], [job.label_ids or () for job in batch]
                for rows in self._loaded.scorer.score(prompts, ids):
                    answers.update(zip(map(id, batch), rows, strict=True))
        return np.stack([answers[id(job)] for job in self._jobs])

    def read(self, scales: HeadScales) -> Readings:
        """Read heads and neurons in one pass."""
        import torch

        seen: dict[tuple[str, int], list[torch.Tensor]] = defaultdict(list)

        def watch(part: str, layer: int, inputs: torch.Tensor) -> None:
            rows = inputs.reshape(len(self._last), -1, inputs.shape[-1])
            seen[part, layer].append(rows[range(len(rows)), self._last].float())

        with self.sites.watched(watch):
            self.logprobs(scales)
        head: Any = self._loaded.model.get_output_embeddings()  # type: ignore[no-untyped-call]
        layers: list[tuple[FloatArray, ...]] = []
        with torch.inference_mode():
            for layer, module in enumerate(self.sites.attention):
                rows = head.weight[[token for ids in self._labels for token in ids]].float()
                weight = _columns(module).to(rows).view(self.sites.heads, -1, rows.shape[1])
                inputs = torch.cat(seen["heads", layer]).to(rows)
                inputs = inputs.view(len(inputs), self.sites.heads, -1)
                logits = self._by_label(torch.einsum("phw,hwo,lo->phl", inputs, weight, rows))
                entering = self._by_label(torch.cat(seen["residual", layer]).to(rows) @ rows.T)
                used, values = np.zeros((2, 0)), np.zeros((0, len(self._labels)))
                if self.sites.mlp:
                    used = torch.cat(seen["neurons", layer]).double().cpu().numpy()
                    values = self._values(_columns(self.sites.mlp[layer]).to(head.weight), head)
                mean, spread = used.mean(0), used.std(0, ddof=1)
                varied = np.divide(spread, abs(mean), out=mean + np.inf, where=mean != 0)
                heads = logits.mean(0), logits.std(0, ddof=1), entering.mean(0, keepdims=True)
                layers.append((*heads, mean, varied, values))
        return Readings(*map(np.array, zip(*layers, strict=True)))

    def _values(self, vectors: torch.Tensor, head: Any) -> FloatArray:
        """Label probabilities of vectors that are read as hidden states, shape (vectors, labels)."""
        import torch

        (norm,) = self.sites.norms
        ids = [token for spellings in self._labels for token in spellings]
        parts = torch.split(vectors, LOGITS_AT_ONCE // len(head.weight) + 1)
        probs = [head(norm(part)).float().softmax(-1)[:, ids] for part in parts]
        return self._by_label(torch.cat(probs))

    def _by_label(self, tokens: torch.Tensor) -> FloatArray:
        """Return the largest value among the spellings of each label, along the last axis."""
        begins = np.cumsum([0, *map(len, self._labels[:-1])])
        return np.maximum.reduceat(tokens.double().cpu().numpy(), begins, axis=-1)


def _columns(module: Any) -> torch.Tensor:
    """Return the weight of a projection in float32, shape (inputs, outputs)."""
    weight: torch.Tensor = module.weight.detach().float()
    return weight.T if hasattr(module, "in_features") else weight


def _bias(values: FloatArray) -> FloatArray:
    """Mean distance of labels from their mean, over that mean's size; the last axis is labels."""
    mean = values.mean(-1, keepdims=True)
    apart: FloatArray = (abs(values - mean) / np.maximum(abs(mean), 1e-12)).mean(-1)
    return apart


def _sets(chosen: Iterable[NDArray[np.bool_]]) -> set[Set]:
    """Return the different sets, and the empty set."""
    return {(), *(tuple((at, of) for at, of in np.argwhere(mask).tolist()) for mask in chosen)}


def neuron_sets(read: Readings) -> set[Set]:
    """Return the sets of neurons that meet the criteria at some thresholds."""
    total, bias, used = read.values.sum(-1), _bias(read.values), abs(read.coefficients)
    return _sets(
        (total > related) & (bias > biased) & (read.variation < alike) & (used > least)
        for related, biased, alike, least in product(*NEURON_GRID)
    )


def head_sets(read: Readings) -> set[Set]:
    """Return the sets of heads in the second half of the layers that do so."""
    total, bias = abs(read.head_logits).sum(-1), _bias(read.head_logits)
    entering = abs(read.residual).sum(-1)
    # the mean over labels of sd / |mean|, weighted by |mean|: no division by the mean of one label
    varied = read.head_spread.sum(-1) / np.maximum(total, 1e-12)
    late = np.arange(len(total))[:, None] >= np.ceil(len(total) / 2)
    late = late & (total > LEAST_LOGITS) & (varied > 0)
    return _sets(
        late & (total > related * entering) & (bias > biased) & (varied < alike)
        for related, biased, alike in product(*HEAD_GRID)
    )


STAGES: Final = (
    ("neurons", 0.90, (-0.5, -1.0, -2.0, -4.0), neuron_sets),
    ("heads", 0.95, (-0.1, -0.25, -0.5, -1.0), head_sets),
)
"""What is masked, the least share of the label mass that must stay, further scales, and the sets."""


def imbalance(logprobs: FloatArray) -> tuple[float, float]:
    """Return the mean distance of log mean label probabilities from their mean's log, and the label mass."""
    mean = np.exp(logprobs).mean(0)
    with np.errstate(divide="ignore"):
        return float(abs(np.log(mean.mean()) - np.log(mean)).mean()), float(mean.sum())


def search(
    scales: HeadScales, read: Readings, masked: Callable[[HeadScales], FloatArray]
) -> tuple[HeadScales, int]:
    """Return the best scales, the same if none are better, and how many were compared.

    Args:
        scales: Scales of 1.
        read: Readings of the support.
        masked: Gives the label log-probabilities of the support with scales, shape (prompts, labels).
    """
    _, mass = imbalance(masked(scales))

    def tried(
        start: HeadScales, part: str, least: float, sets: Iterable[Set], factor: float
    ) -> Iterator[tuple[float, int, Set, float]]:
        for chosen in sets:
            apart, left = imbalance(masked(with_mask(start, part, chosen, factor)))
            kept = left >= least * mass or not chosen
            yield apart if kept else np.inf, len(chosen), chosen, factor

    compared = 0
    for part, least, factors, sets in STAGES:
        rows = sorted(tried(scales, part, least, sets(read), 0.0))
        if rows[0][0] > BALANCED:
            best = [chosen for _, size, chosen, _ in rows[:RETRIED] if size]
            for scale in factors:
                rows += tried(scales, part, least, best, scale)
        compared += len(rows)
        _, _, chosen, factor = min(rows)
        scales = with_mask(scales, part, chosen, factor)
    return scales, compared


def with_mask(scales: HeadScales, part: str, chosen: Set, factor: float) -> HeadScales:
    """Return scales with another factor for some "heads" or "neurons"."""
    if not chosen:
        return scales
    array = getattr(scales, part).copy()
    array[tuple(np.array(chosen).T)] = factor
    return replace(scales, **{part: array})


def fit_heads(
    model: str, items: ItemSet, *, prompts: PromptSettings, reach: BackendSettings
) -> HeadScales:
    """Return UniBias's scales for a local model; gold is not looked at.

    Every item is shown in all rotations, so that gold lies at every label equally often.

    Raises:
        UsageError: If model or items do not allow it, or if no mask balances the labels better than none.
    """
    require("torch", extra="local", feature="heads fit")
    provider, _, name = model.partition("/")
    tiny = provider == "tiny" and name in FORMATS
    backend = open_backend(f"hf/{FORMATS[name].folder}" if tiny else model, reach)
    folder = backend.folder if isinstance(backend, HuggingFaceBackend) else None
    if folder is None or folder.adapter or folder.heads or folder.bits:
        raise UsageError(
            f"{model}: give a plain hf/ model, without +bits, +heads and +lora, or tiny/judge."
        )
    prompts = prompts_for(backend, prompts)
    chosen = [item for item in items if item.permutable]
    if len(chosen) < LEAST_ITEMS or len({item.n for item in chosen}) > 1:
        raise UsageError(
            f"{items.name}: the search needs {LEAST_ITEMS} items that may be permuted, with one number of "
            f"candidates. Give such items."
        )
    loaded = load_model(folder, reach.valid(), name=backend.model)
    if getattr(loaded.model.config, "quantization_config", None) is not None:
        raise UsageError(
            f"{model}: quantised weights cannot be read. Fit heads on the full weights."
        )
    views = presentations("cyclic", chosen[0].n)
    drafter = Drafter.of(backend, Memory(), RunSettings(prompts=prompts))
    asked = [Question(blind(item), Ask(view)) for item in chosen for view in views]
    jobs, refused = loaded.plan.prepare([drafter.draft(question).query for question in asked])
    if refused or not all(job.label_ids for job in jobs):
        why = (
            getattr(refused[0][1], "message", "") if refused else "the answer is not a label alone"
        )
        raise UsageError(
            f"{items.name}: prompts cannot be read for label probabilities: {why}. Choose another "
            f"--prompt or other items."
        )
    support = Support(loaded, jobs)
    sites = support.sites
    neurons = np.ones((sites.layers, sites.neurons), np.float32) if sites.mlp else None
    plain = HeadScales(np.ones((sites.layers, sites.heads), np.float32), neurons, {})
    scales, masks = search(plain, support.read(plain), support.logprobs)
    rows = [support.logprobs(plain), support.logprobs(scales)]
    if scales is plain:
        raise UsageError(
            f"{model}: UniBias found nothing to mask, so no file was written. Of {plural(masks, 'mask')} none "
            f"balances the labels of {plural(len(chosen), 'item')} better than no mask (imbalance "
            f"{imbalance(rows[0])[0]:.3f}). Fit a correction with `unswayed calibrate`."
        )
    record = {
        "base": model,
        "revision": folder.name.rpartition("@")[2].partition("+")[0],  # with +dtype= behind it
        "how": "unibias",
        "items": len(chosen),
        "orders": len(views),
        "masks": masks,
        "prompt_fingerprint": prompt_fingerprint(prompts),
        "imbalance": [imbalance(each)[0] for each in rows],
        "variance_ratio": [variance_ratio(each, views) for each in rows],
        "version": VERSION,
    }
    return replace(scales, record=record)


def variance_ratio(logprobs: FloatArray, views: Sequence[Presentation]) -> float:
    """Return the variance of content scores between presentations over that between contents.

    It is 0 for a model that no presentation sways, and the same for any scale of the logits.

    Args:
        logprobs: Of the labels, item by item in all `views`, shape (items * presentations, labels).
        views: The presentations of every item.
    """
    labels = np.array([[view.label_of_candidate(c) for c in range(view.n)] for view in views])
    scores = np.take_along_axis(logprobs.reshape(-1, *labels.shape), labels[None], axis=2)
    scores = scores - scores.mean(-1, keepdims=True)
    mean = scores.mean(1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(((scores - mean) ** 2).mean() / (mean**2).mean())
