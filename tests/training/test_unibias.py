"""UniBias on planted heads and neurons, scales in every family, and refusals."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from planted_heads import LAYER, grown, plant, save

from unswayed.api import audit
from unswayed.backends import BackendSettings
from unswayed.backends.head_scales import HeadScales
from unswayed.backends.local_heads import HeadSites
from unswayed.base.errors import UsageError
from unswayed.model.calls import Request
from unswayed.model.items import ItemSet, blind
from unswayed.model.presentation import Ask, presentations
from unswayed.prompts import PromptSettings, render
from unswayed.tiny.backend import WEIGHTS, prompt_ids
from unswayed.tiny.items import VOCABULARY, judge_items, mcq_items
from unswayed.training import unibias
from unswayed.training.unibias import Readings, fit_heads, imbalance, search, variance_ratio

torch = pytest.importorskip("torch")

CPU = BackendSettings(device="cpu", threads=1)
SUPPORT = judge_items(40, 777)
HEAD = (LAYER, 7)
NEURON = (LAYER, 128)
PAIR = presentations("swap", 2)


def prompts_of(items: ItemSet) -> list[list[int]]:
    settings = PromptSettings(template=str(WEIGHTS / "prompt_template.jinja"))
    ids = {token: number for number, token in enumerate(VOCABULARY)}
    shown = [render(blind(item), Ask(view), settings) for item in items for view in PAIR]
    return [
        prompt_ids(Request(model="", messages=s.messages, labels=s.labels, max_tokens=1), ids)
        for s in shown
    ]


PROMPTS = prompts_of(SUPPORT)


def logits(model: Any, prompts: Any = PROMPTS) -> NDArray[np.float32]:
    with torch.no_grad():
        out: NDArray[np.float32] = model(torch.tensor(prompts), use_cache=False).logits.numpy()
    return out


def fitted(model: str, items: ItemSet = SUPPORT) -> HeadScales:
    return fit_heads(model, items, prompts=PromptSettings(), reach=CPU)


def changed(scales: NDArray[np.float32] | None) -> set[tuple[int, ...]]:
    assert scales is not None
    return {tuple(place) for place in np.argwhere(scales != 1).tolist()}


def masking(
    sites: HeadSites, heads: Iterable[tuple[int, int]] = (), neurons: Iterable[tuple[int, int]] = ()
) -> HeadScales:
    own = np.ones((sites.layers, sites.heads), np.float32)
    inner = np.ones((sites.layers, sites.neurons), np.float32)
    for scales, places in ((own, heads), (inner, neurons)):
        for place in places:
            scales[place] = 0
    return HeadScales(own, inner, {})


@pytest.fixture(scope="module")
def base() -> NDArray[np.float32]:
    from transformers import AutoModelForCausalLM

    return logits(AutoModelForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float32).eval())


def test_zero_heads_and_neurons_change_nothing(base: NDArray[np.float32]) -> None:
    assert abs(logits(grown()) - base).max() == 0.0


@pytest.mark.parametrize(
    ("push", "heads", "neurons"),
    [({"head": 6.0}, [HEAD], []), ({"neuron": 6.0}, [], [NEURON])],
    ids=["head", "neuron"],
)
def test_planted_bias_is_selected_and_masked(
    push: dict[str, float],
    heads: list[tuple[int, int]],
    neurons: list[tuple[int, int]],
    base: NDArray[np.float32],
    tmp_path: Path,
) -> None:
    model = grown()
    plant(model, PROMPTS, **push)
    pushed = logits(model)
    first = [VOCABULARY.index(label) for label in "AB"]
    assert (pushed[:, -1, first[0]] > pushed[:, -1, first[1]]).all()

    found = fitted(f"hf/{save(model, tmp_path / 'planted')}")
    assert changed(found.heads) == set(heads)
    assert changed(found.neurons) >= set(neurons)
    assert found.record["imbalance"][1] < found.record["imbalance"][0]

    sites = HeadSites(model)
    mask = masking(sites, heads, neurons)
    with sites.hooked(mask):
        assert abs(logits(model) - base).max() <= 1e-6  # 0.0 where it was written
    assert abs(logits(model) - pushed).max() == 0.0
    sites.apply(mask)
    assert abs(logits(model) - base).max() <= 1e-6


def test_planted_neuron_beside_a_head_is_missed(tmp_path: Path) -> None:
    """Limit of the criterion: the head makes the neuron's coefficient vary above every threshold."""
    model = grown()
    plant(model, PROMPTS, head=4.0, neuron=4.0)
    found = fitted(f"hf/{save(model, tmp_path / 'planted')}")
    assert changed(found.heads) == {HEAD}
    assert NEURON not in changed(found.neurons)


SMALL = {
    "vocab_size": 97,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED: dict[str, object] = {"num_key_value_heads": 2}
WIDE: dict[str, object] = {"num_key_value_heads": 2, "head_dim": 16}
FAMILIES: dict[str, dict[str, object]] = {
    "Llama": {},
    "Qwen2": GROUPED,
    "Qwen3": WIDE,
    "Mistral": GROUPED,
    "Gemma": WIDE,
    "Gemma2": WIDE,
    "Gemma3Text": WIDE,
    "GPTNeoX": {},
    "Phi": {},
    "Phi3": {},
    "Olmo2": {},
    "OPT": {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "Falcon": {"ffn_hidden_size": 48},
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_inner": 48, "n_positions": 64},
    "Bloom": {"n_layer": 2, "n_head": 4},
    "Cohere": {},
    "SmolLM3": GROUPED,
    "Mixtral": {**GROUPED, "num_local_experts": 2},
}


def random_model(family: str, **fields: object) -> Any:
    import transformers

    kind = getattr(transformers, f"{family}Config", None)
    if kind is None:
        pytest.skip(f"this transformers has no {family}")
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(kind(**{**SMALL, **fields})).eval()


@pytest.mark.parametrize("family", FAMILIES)
def test_folded_scales_equal_hooks_in_every_family(family: str) -> None:
    model = random_model(family, **FAMILIES[family])
    sites = HeadSites(model)
    rng = np.random.default_rng(0)
    heads, neurons = (
        rng.uniform(-1, 2, (2, n)).astype(np.float32) for n in (sites.heads, sites.neurons)
    )
    scales = HeadScales(heads, neurons if sites.mlp else None, {})
    assert (sites.neurons == 0) == (family == "Mixtral")  # a mixture of experts has heads alone
    prompts = rng.integers(3, 97, (3, 9))
    plain = logits(model, prompts)
    with sites.hooked(scales):
        hooked = logits(model, prompts)
    assert abs(logits(model, prompts) - plain).max() == 0.0
    sites.apply(scales)
    folded = logits(model, prompts)
    scale = max(1.0, abs(plain).max())
    assert abs(hooked - plain).max() > 1e-4 * scale
    assert abs(folded - hooked).max() <= 1e-6 * scale


def test_projections_that_are_not_plain_keep_a_hook() -> None:
    """As quantised weights and those with an adapter: what is no plain weight cannot be folded."""
    model = random_model("Llama")
    sites = HeadSites(model)
    scales = masking(sites, [(0, 1)], [(1, 3)])
    sites.apply(scales)
    folded = logits(model, [[5, 6, 7]])
    model = random_model("Llama")
    for layer in model.model.layers:
        for block, name in ((layer.self_attn, "o_proj"), (layer.mlp, "down_proj")):
            setattr(block, name, Wrapped(getattr(block, name)))
    before = model.model.layers[0].self_attn.o_proj.inner.weight.clone()
    HeadSites(model).apply(scales)
    assert torch.equal(model.model.layers[0].self_attn.o_proj.inner.weight, before)
    assert abs(logits(model, [[5, 6, 7]]) - folded).max() <= 1e-6


class Wrapped(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner, self.in_features = inner, inner.in_features

    def forward(self, inputs: Any) -> Any:
        return self.inner(inputs)


def test_family_with_other_modules_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"^MambaForCausalLM: of 2 layers 0 have an attention"):
        HeadSites(random_model("Mamba"))
    model = random_model("Llama")
    model.model.layers[1].self_attn.o_proj = torch.nn.Linear(16, 32)
    with pytest.raises(UsageError, match="LlamaForCausalLM"):
        HeadSites(model)


def test_variance_ratio_ignores_scale_and_is_0_without_bias() -> None:
    views = presentations("cyclic", 3)
    rng = np.random.default_rng(1)
    content = rng.normal(size=(20, 3))
    labels = np.array([[view.candidate_of_label(label) for label in range(3)] for view in views])
    invariant = content[:, labels].reshape(-1, 3)
    assert variance_ratio(invariant, views) == pytest.approx(0, abs=1e-30)
    swayed = invariant + np.array([1.0, 0.0, 0.0])
    # by hand: a push p of one label gives each content scores p(2/3, -1/3, -1/3) in turn
    mean = content - content.mean(1, keepdims=True)
    assert variance_ratio(swayed, views) == pytest.approx((2 / 9) / (mean**2).mean())
    assert variance_ratio(7 * swayed + 5, views) == pytest.approx(variance_ratio(swayed, views))


def test_imbalance_is_0_for_equal_labels() -> None:
    apart, mass = imbalance(np.log([[0.5, 0.1], [0.1, 0.5]]))
    assert apart == pytest.approx(0)
    assert mass == pytest.approx(0.6)
    assert imbalance(np.log([[0.8, 0.2]]))[0] == pytest.approx(np.log(4) / 2)


def readings(coefficient: float) -> Readings:
    """Of two layers with two heads and two neurons, of which one pushes the first label."""
    nothing = np.zeros((2, 2, 2))
    values = nothing.copy()
    values[1, 0] = [0.6, 0.1]
    used = np.array([[0.0, 0.0], [coefficient, 1.0]])
    heads = nothing.copy()
    heads[0, 0] = heads[1, 1] = [3.0, 0.5]  # the first layer is never masked
    residual = np.ones((2, 1, 2))
    spread = np.where(heads, 0.01, 0.0)
    varied = np.where(used, 0.01, np.inf)
    return Readings(heads, spread, residual, used, varied, values)


def test_criteria_need_late_heads_and_active_neurons() -> None:
    assert unibias.neuron_sets(readings(1.0)) == {(), ((1, 0),)}
    assert unibias.neuron_sets(readings(0.0)) == {()}
    assert unibias.head_sets(readings(1.0)) == {(), ((1, 1),)}


def test_mask_that_takes_label_mass_is_not_kept() -> None:
    plain = HeadScales(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32), {})

    def masked(scales: HeadScales, lost: float = 0.0) -> NDArray[np.float64]:
        assert scales.neurons is not None
        if scales.heads[1, 1] != 1:
            return np.log([[0.4, 0.4]])
        return np.log([[0.7, 0.2]] if scales.neurons[1, 0] == 1 else [[0.45 - lost, 0.44]])

    found, compared = search(plain, readings(1.0), masked)
    assert changed(found.neurons) == {(1, 0)}
    assert changed(found.heads) == set()  # 0.8 of 0.9 is too little
    assert compared == 4
    assert search(plain, readings(1.0), lambda scales: masked(scales, 0.3))[0] is plain


def test_empty_search_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unibias, "STAGES", ())
    said = r"^tiny/judge: UniBias found nothing to mask, so no file was written\."
    with pytest.raises(UsageError, match=said):
        fitted("tiny/judge")


def test_quantised_weights_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    load = unibias.load_model

    def quantised(*given: Any, **named: Any) -> Any:
        loaded = load(*given, **named)
        loaded.model.config.quantization_config = {"bits": 4}
        return loaded

    monkeypatch.setattr(unibias, "load_model", quantised)
    with pytest.raises(UsageError, match="Fit heads on the full weights"):
        fitted("tiny/judge")


@pytest.mark.parametrize(
    ("model", "items", "message"),
    [
        ("simulated/judge", SUPPORT, "give a plain hf/ model"),
        (f"hf/{WEIGHTS}+bits=8", SUPPORT, "give a plain hf/ model|bitsandbytes"),
        ("tiny/judge", judge_items(9), "needs 10 items"),
    ],
)
def test_search_is_refused_with_the_reason(model: str, items: ItemSet, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fitted(model, items)


@pytest.mark.parametrize(
    ("items", "n", "orders", "before", "after"),
    [
        ("pairs", 300, "swap", (70.9, 42.4, 42.1), (74.7, 50.5, 49.9)),
        ("choices", 100, "full", (69.9, 73.1, 83.7), (75.6, 78.5, 82.3)),
    ],
)
def test_built_in_judge_has_the_specified_figures(
    items: str,
    n: int,
    orders: str,
    before: tuple[float, ...],
    after: tuple[float, ...],
    tmp_path: Path,
) -> None:
    """Within 3 standard errors of both samples; another support may find another mask.

    The specification's figures come from 1,000 pairs and 300 choices of its own.
    """
    make = judge_items if items == "pairs" else mcq_items
    fitted("tiny/judge", make(40, 777)).write(tmp_path / "scales")
    names = "accuracy", "consistency", "consistent_accuracy"
    rows = [
        audit(
            f"tiny/judge{scales}", make(n, 4242), methods="direct", orders=orders, resamples=100
        ).metrics["methods"]["direct"]
        for scales in ("", f"+heads={tmp_path / 'scales'}")
    ]
    for row, known in zip(rows, (before, after), strict=True):
        for name, figure in zip(names, known, strict=True):
            share = figure / 100
            error = np.sqrt(share * (1 - share) * (1 / n + 1 / (1000 if items == "pairs" else 300)))
            assert abs(row[name]["value"] - share) <= 3 * error
    assert rows[1]["consistency"]["value"] > rows[0]["consistency"]["value"] + 0.02
