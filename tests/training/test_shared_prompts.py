"""Each distinct prompt is computed once, and every number stays what trl computes."""

import pytest
import torch
import transformers
from traced import traced_trainer

from unswayed.base.errors import UsageError
from unswayed.training import checks, prompt_trees
from unswayed.training.prompt_trees import UNSCORED, Rows, SharedForward, Trees, trees_hold
from unswayed.training.shared_prompts import (
    has_dropout,
    prefilled_once,
    sorted_by_prompt,
    takes_prompts_apart,
)
from unswayed.training.table import OBJECTIVES

SIZES = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
    "bos_token_id": None,
    "eos_token_id": 1,
    "pad_token_id": 0,
}
WHOLE = {
    "Llama": {"num_key_value_heads": 2},
    "Qwen3": {"num_key_value_heads": 1, "head_dim": 8},
    "GPTNeoX": {},
    "GPT2": {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},  # absolute positions
}
WINDOWED = {
    "Mistral": {"num_key_value_heads": 1, "sliding_window": 4},
    "Gemma3Text": {
        "num_key_value_heads": 1,
        "head_dim": 8,
        "sliding_window": 4,
        "layer_types": ["sliding_attention", "full_attention"],
    },
}


def small_model(name, settings):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**{**SIZES, **settings})
    return transformers.AutoModelForCausalLM.from_config(config)


def scored_model(name, settings):
    from trl.trainer.utils import add_fused_lm_head

    model = small_model(name, settings)
    add_fused_lm_head(model, outputs=("log_probs", "entropy"))
    return model


def batch(samples=6, prompts=3, length=7, width=3, symbols=2, seed=0):
    """Prompts padded on the left, with responses of few different tokens, in any order."""
    draw = torch.Generator().manual_seed(seed)
    ids = torch.randint(2, 40, (prompts, length), generator=draw).repeat_interleave(samples, dim=0)
    mask = torch.ones_like(ids)
    for row in range(len(ids)):
        mask[row, : row // samples] = 0
    answers = torch.randint(1, 1 + symbols, (len(ids), width), generator=draw)
    ended = (answers == 1).cumsum(1) - (answers == 1).int()
    ids = torch.cat([ids.masked_fill(mask == 0, 0), answers.masked_fill(ended > 0, 0)], dim=1)
    mask = torch.cat([mask, (ended == 0).long()], dim=1)
    order = torch.randperm(len(ids), generator=draw)
    ids, mask = ids[order], mask[order]
    labels = ids.masked_fill(mask == 0, UNSCORED)
    labels[:, :length] = UNSCORED
    return ids, mask, labels


def as_trl_calls(ids, mask, labels):
    return {"input_ids": ids, "attention_mask": mask, "labels": labels, "fused_lm_head": True}


class Counted:
    """A model that notes the tokens it computes."""

    def __init__(self, model):
        self.model, self.shapes = model, []

    def __call__(self, **inputs):
        self.shapes.append(tuple(inputs["input_ids"].shape))
        return self.model(**inputs)


def gradients(model):
    return {name: value.grad.clone() for name, value in model.named_parameters()}


# --- log-probabilities ------------------------------------------------------------------------


@pytest.mark.parametrize(("symbols", "width"), [(2, 3), (4, 1), (30, 4)])
@pytest.mark.parametrize("trees", [False, True], ids=["rows", "trees"])
@pytest.mark.parametrize("name", WHOLE)
def test_tree_results_and_gradients_equal_those_of_rows(name, trees, symbols, width):
    model = scored_model(name, WHOLE[name])
    ids, mask, labels = batch(symbols=symbols, width=width)
    weights = torch.randn(ids.shape[0], ids.shape[1] - 1)
    results = []
    for form in (model, SharedForward(model, trees)):
        model.zero_grad()
        outputs = form(**as_trl_calls(ids, mask, labels))
        ((outputs.log_probs - 0.1 * outputs.entropy) * weights).sum().backward()
        results.append((outputs.log_probs, outputs.entropy, gradients(model)))
    plain, shared = results
    torch.testing.assert_close(shared[0], plain[0], rtol=1e-5, atol=2e-6)
    torch.testing.assert_close(shared[1], plain[1], rtol=1e-5, atol=2e-6)
    for key, gradient in plain[2].items():
        torch.testing.assert_close(shared[2][key], gradient, rtol=1e-4, atol=2e-5)
    assert (plain[0] != 0).sum() == (labels != UNSCORED).sum()


def test_rows_are_computed_once_and_prompts_once_as_trees():
    model = scored_model("Llama", WHOLE["Llama"])
    ids, mask, labels = batch(samples=6, prompts=3, length=7, width=2, symbols=2)
    pairs = zip(ids.tolist(), mask.tolist(), strict=True)
    different = {(*row, *counts) for row, counts in pairs}
    prompts = {row[:7] for row in different}
    most = max(sum(row[:7] == prompt for row in different) for prompt in prompts)
    calls = {}
    for trees in (False, True):
        counted = Counted(model)
        SharedForward(counted, trees)(**as_trl_calls(ids, mask, labels))
        calls[trees] = counted.shapes
    assert calls[False] == [(len(different), 9)]
    assert calls[True] == [(3, 6 + 2 * most + 1)]
    assert 3 * (6 + 2 * most + 1) < len(different) * 9 < ids.numel()


def test_one_tree_by_hand():
    # Prompt 5 6 7, padded once; responses 8 9 and 8 1, the second one twice.
    ids = torch.tensor([[0, 5, 6, 7, 8, 9], [0, 5, 6, 7, 8, 1], [0, 5, 6, 7, 8, 1]])
    mask = (ids != 0).long()
    labels = ids.masked_fill(torch.arange(6) < 4, UNSCORED)
    rows = Rows.of(ids, mask, labels)
    assert rows.row_of.tolist() == [1, 0, 0]  # sorted: 8 1 comes before 8 9
    tree = Trees.of(rows)
    inputs = tree.inputs()
    assert inputs["input_ids"].tolist() == [[0, 5, 6, 7, 8, 7, 8, 0]]
    assert inputs["labels"].tolist() == [[UNSCORED] * 4 + [8, 1, 8, 9]]  # of what came before
    assert inputs["position_ids"][0, :7].tolist() == [0, 1, 2, 3, 4, 3, 4]
    assert inputs["attention_mask"][0, 0].int().tolist() == [
        [1, 0, 0, 0, 0, 0, 0, 0],  # the padding sees itself alone
        [0, 1, 0, 0, 0, 0, 0, 0],
        [0, 1, 1, 0, 0, 0, 0, 0],
        [0, 1, 1, 1, 0, 0, 0, 0],
        [0, 1, 1, 1, 1, 0, 0, 0],
        [0, 1, 1, 0, 0, 1, 0, 0],  # the second response does not see the first
        [0, 1, 1, 0, 0, 1, 1, 0],
        [0, 1, 1, 0, 0, 0, 0, 1],
    ]
    values = torch.tensor([[0.0, 0.0, 0.0, 0.1, 0.2, 0.3, 0.4]])
    assert tree.spread(values)[:, 3:].tolist() == values[0, [[5, 6], [3, 4], [3, 4]]].tolist()


def test_nothing_is_shared_where_it_saves_nothing(monkeypatch):
    model = scored_model("Llama", WHOLE["Llama"])
    ids, mask, labels = batch(samples=1, prompts=12, symbols=30)
    counted = Counted(model)
    SharedForward(counted, trees=True)(**as_trl_calls(ids, mask, labels))
    assert counted.shapes == [tuple(ids.shape)]
    monkeypatch.setattr(prompt_trees, "MASK_CELLS", 100)  # long responses: the mask is too large
    ids, mask, labels = batch(symbols=30)
    counted = Counted(model)
    SharedForward(counted, trees=True)(**as_trl_calls(ids, mask, labels))
    assert counted.shapes == [tuple(ids.shape)]


def test_a_call_that_trl_would_not_make_goes_through_unchanged():
    calls = []
    SharedForward(lambda **inputs: calls.append(inputs), trees=True)(input_ids=1, use_cache=True)
    assert calls == [{"input_ids": 1, "use_cache": True}]


@pytest.mark.parametrize("name", WHOLE)
def test_trees_are_tried_before_they_are_used(name):
    model = scored_model(name, WHOLE[name])
    assert trees_hold(model, 40)

    class WithoutPositions(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, position_ids=None, **inputs):
            return self.inner(**inputs)

    assert not trees_hold(WithoutPositions(), 40)


# --- generation -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WHOLE)
def test_equal_responses_are_sampled_and_prompts_prefilled_once(name):
    model = small_model(name, WHOLE[name]).eval()
    ids, mask, _ = batch(samples=6, prompts=3, symbols=30)
    ids, mask = ids[:, :7], mask[:, :7]
    config = transformers.GenerationConfig(max_new_tokens=4, do_sample=True, pad_token_id=0)
    shapes = []
    embeddings = model.get_input_embeddings()
    embeddings.register_forward_hook(lambda _m, inputs, _o: shapes.append(tuple(inputs[0].shape)))

    def sampled():
        shapes.clear()
        torch.manual_seed(3)
        with torch.no_grad():
            return model.generate(input_ids=ids, attention_mask=mask, generation_config=config)

    plain = sampled()
    assert shapes[0] == (18, 7)
    with prefilled_once(model):
        shared = sampled()
    assert torch.equal(plain, shared)
    assert shapes[:2] == [(3, 6), (18, 1)]
    sampled()
    assert shapes[0] == (18, 7)  # afterwards the model is as it was


# --- models that cannot share -----------------------------------------------------------------


@pytest.mark.parametrize("name", WINDOWED)
def test_windows_keep_prompts_whole_and_rows_unique(name):
    model = scored_model(name, WINDOWED[name])
    assert not takes_prompts_apart(model)
    ids, mask, labels = batch()
    counted = Counted(model)
    shared = SharedForward(counted, trees=False)(**as_trl_calls(ids, mask, labels))
    plain = model(**as_trl_calls(ids, mask, labels))
    torch.testing.assert_close(shared.log_probs, plain.log_probs, rtol=1e-5, atol=2e-6)
    assert counted.shapes[0][0] < len(ids)


def test_dropout_is_seen_in_layers_and_in_attention():
    assert all(not has_dropout(small_model(name, WHOLE[name])) for name in WHOLE)
    assert has_dropout(small_model("GPTNeoX", {"hidden_dropout": 0.1}))
    assert has_dropout(small_model("Llama", {"attention_dropout": 0.1}))
    assert all(takes_prompts_apart(small_model(name, WHOLE[name])) for name in WHOLE)


def test_an_adapter_with_dropout_is_left_to_trl(word_model, tmp_path):
    trainer, _, _ = traced_trainer(
        word_model, tmp_path, 2, lora="{rank = 4, alpha = 8, dropout = 0.1}"
    )
    assert not trainer._shares
    assert not trainer._prefills


def test_a_trl_with_another_log_probability_hook_is_refused():
    from trl import GRPOTrainer

    class Changed(GRPOTrainer):
        def _get_per_token_logps_and_entropies(self, input_ids, model): ...

    with pytest.raises(UsageError, match="has changed _get_per_token_logps_and_entropies"):
        checks.check_trl(Changed)


# --- whole steps ------------------------------------------------------------------------------


def test_micro_batches_are_cut_from_sorted_rows():
    def part(prompts, answers, extra):
        return {
            "prompt_ids": torch.tensor(prompts),
            "prompt_mask": torch.ones(3, 1, dtype=torch.long),
            "completion_ids": torch.tensor(answers),
            "completion_mask": torch.ones(3, 1, dtype=torch.long),
            "advantages": torch.tensor(extra),
            "names": [f"row {value:.0f}" for value in extra],
            "num_items_in_batch": torch.tensor(6),
            "nothing": None,
        }

    first = part([[7], [4], [7]], [[1], [2], [2]], [0.0, 1.0, 2.0])
    second = part([[4], [7], [4]], [[1], [1], [2]], [3.0, 4.0, 5.0])
    batches = sorted_by_prompt([first, second])
    assert [cut["advantages"].tolist() for cut in batches] == [[3, 1, 5], [0, 4, 2]]
    assert [cut["prompt_ids"].flatten().tolist() for cut in batches] == [[4] * 3, [7] * 3]
    assert batches[1]["names"] == ["row 0", "row 4", "row 2"]
    assert [cut["num_items_in_batch"].item() for cut in batches] == [6, 6]
    assert batches[0]["nothing"] is None


LORA = {"lora": "{rank = 4, alpha = 8}", "optimiser_learning_rate": "1e-4"}
TWO = {"rollout_samples": "8", "run_micro_batch": "32"}
# What changes with the cut is trl's entropy bonus alone, see `shared_prompts`.
CUT = {"rollout_samples": "8", "run_micro_batch": "4", "optimiser_entropy": "0"}


@pytest.mark.parametrize(
    ("n", "changes"),
    [
        (2, {**TWO, **LORA}),
        (4, {"run_micro_batch": "20"}),
        (2, CUT),
        (2, {**TWO, "optimiser_inner_updates": "2"}),
        (2, {**TWO, "run_gradient_checkpointing": "true"}),
        (2, {**TWO, "optimiser_beta": "0"}),
    ],
    ids=["lora", "P5 N2", "cut", "inner", "checkpointing", "no KL"],
)
def test_steps_are_those_without_sharing(word_model, tmp_path, n, changes):
    runs = {}
    for share in ("true", "false"):
        trainer, _, _ = traced_trainer(
            word_model,
            tmp_path / share,
            n,
            items=12,
            optimiser_steps="3",
            prompt_max_response_tokens="2",
            run_share_prompts=share,
            **changes,
        )
        tokens = []
        model = trainer.model.get_base_model() if "lora" in changes else trainer.model
        embeddings = model.get_input_embeddings()
        embeddings.register_forward_hook(lambda _m, x, _o, t=tokens: t.append(x[0].numel()))
        trainer.train()
        told = [line.get("rollout/shared_prompts") for line in trainer.state.log_history]
        assert set(told) - {None} == {float(share == "true")}
        runs[share] = trainer.trace, trainer.model.state_dict(), sum(tokens)
    (shared, weights, computed), (plain, plainly, whole) = runs["true"], runs["false"]
    assert shared == plain  # the same responses and advantages
    assert any(len(set(batch["advantages"])) > 3 for batch in plain)
    for name, value in plainly.items():
        difference = (weights[name] - value).norm()
        assert difference <= 1e-5 * value.norm() + 1e-9, name
    assert computed < (0.45 if n == 2 else 0.7) * whole


def test_the_tiny_judge_computes_a_quarter_of_the_tokens(tmp_path):
    from unswayed.tiny.items import judge_items
    from unswayed.training.planning import plan_training
    from unswayed.training.recipe import load_recipe, with_changes

    runs = {}
    for share in ("true", "false"):
        changes = {"data.held_out": "0", "optimiser.steps": "1", "run.save_every": "0"}
        recipe = with_changes(
            load_recipe("tiny-judge"),
            {**changes, "run.loggers": "[]", "run.check_every": "0", "run.share_prompts": share},
        )
        plan = plan_training("pa-grpo", judge_items(64), model="tiny/judge", recipe=recipe)
        trainer = OBJECTIVES.load("pa-grpo").build(plan, tmp_path / share)
        tokens = []
        trainer.model.get_input_embeddings().register_forward_hook(
            lambda _m, inputs, _o, t=tokens: t.append(inputs[0].numel())
        )
        trainer.train()
        runs[share] = trainer.model.state_dict(), sum(tokens)
    (weights, computed), (plainly, whole) = runs["true"], runs["false"]
    for name, value in plainly.items():
        assert (weights[name] - value).norm() <= 1e-5 * value.norm(), name
    assert computed < whole / 4
