"""The PIF-style loss by hand, its data, and a run that resumes."""

import math
import shutil

import pytest
import torch
from small_models import colour_items, save_word_model, small_plan

from unswayed.base.errors import UsageError
from unswayed.model.items import Item, Task
from unswayed.model.presentation import Ask
from unswayed.prompts import render
from unswayed.training.chats import load_chat
from unswayed.training.groups import build_groups, prompt_settings
from unswayed.training.pif import collate, examples, pif_loss
from unswayed.training.recipe_parts import DataTable, Pif, PromptTable

# One example, one negative, four tokens: prompt, symbol, content, content.
LOG_PROBS = torch.tensor([[[-9.0, -0.2, -1.0, -3.0], [-9.0, -0.5, -0.1, -0.3]]])
SYMBOL = torch.tensor([[[0, 1, 0, 0], [0, 1, 0, 0]]])
CONTENT = torch.tensor([[[0, 0, 1, 1], [0, 0, 1, 1]]])


def test_loss_by_hand():
    # -log p(symbol) = .2; mean content = (1 + 3) / 2 = 2; the negative's mean over its three
    # tokens is -.3, so - log(1 - exp(-.3)).
    expected = 0.2 + 2.0 - math.log(1 - math.exp(-0.3))
    assert pif_loss(LOG_PROBS, SYMBOL, CONTENT).item() == pytest.approx(expected, abs=1e-6)


def test_weights_and_a_loss_without_negatives():
    found = pif_loss(
        LOG_PROBS[:, :1], SYMBOL[:, :1], CONTENT[:, :1], symbol_weight=2.0, content_weight=0.5
    )
    assert found.item() == pytest.approx(2 * 0.2 + 0.5 * 2.0)


def test_a_certain_negative_has_a_finite_loss():
    certain = torch.zeros_like(LOG_PROBS)
    assert pif_loss(certain, SYMBOL, CONTENT).item() == pytest.approx(-math.log(1e-6), rel=1e-4)


def test_gradients_push_the_positive_up_and_the_negative_down():
    leaf = LOG_PROBS.clone().requires_grad_()
    pif_loss(leaf, SYMBOL, CONTENT).backward()
    assert (leaf.grad[0, 0, 1:] < 0).all()
    assert (leaf.grad[0, 1, 1:] > 0).all()
    assert (leaf.grad[..., 0] == 0).all()


def built(word_model, items, settings):
    prompt = PromptTable(template=str(word_model / "prompt_template.jinja"))
    groups = build_groups(items, DataTable(), prompt)
    first = render(items[0], Ask(groups.rows[0].shown), prompt_settings(prompt))
    chat = load_chat(word_model, name="words", enable_thinking=None, prompt=first)
    return chat.tokenizer, groups, examples(groups, settings, chat, seed=0)


def test_the_positive_is_gold_with_the_symbol_it_is_shown_with(word_model):
    settings = Pif(separator=" : ")
    tokenizer, groups, found = built(word_model, colour_items(2, n=4), settings)
    for row, example in zip(groups.rows, found, strict=True):
        item = next(item for item in groups.items if item.id == row.item_id)
        words = tokenizer.convert_ids_to_tokens(example[0].ids)
        symbol = [words[at] for at in example[0].symbol]
        content = [words[at] for at in example[0].content]
        assert content == [item.candidates[item.gold]]
        assert symbol == ["ABCD"[row.shown.order.index(item.gold)]]


def test_negatives_pair_a_symbol_with_a_wrong_content(word_model):
    tokenizer, groups, found = built(word_model, colour_items(4, n=4), Pif(separator=" : "))
    for row, example in zip(groups.rows, found, strict=True):
        item = next(item for item in groups.items if item.id == row.item_id)
        pairs = set()
        for negative in example[1:]:
            words = tokenizer.convert_ids_to_tokens(negative.ids)
            pairs.add((words[negative.symbol[0]], words[negative.content[0]]))
        assert len(pairs) == 3
        assert item.candidates[item.gold] not in {content for _, content in pairs}


def test_two_candidates_have_two_negatives_and_items_keep_theirs(word_model):
    _, _, found = built(word_model, colour_items(3), Pif(negatives=5, separator=" : "))
    assert [len(example[1:]) for example in found] == [2] * 6
    _, _, fewer = built(word_model, colour_items(1), Pif(negatives=5, separator=" : "))
    assert fewer == found[:2]


def test_several_right_candidates_bound_all_negatives(word_model):
    several = [
        Item(id="m0", task=Task.MCQ, prompt="1", candidates=("red", "blue", "green"), gold=(0, 2)),
        Item(id="m1", task=Task.MCQ, prompt="2", candidates=("red", "blue", "green"), gold=1),
    ]
    tokenizer, groups, found = built(word_model, several, Pif(negatives=5, separator=" : "))
    # One wrong candidate x three symbols are all that m0 has.
    assert {len(example[1:]) for example in found} == {3}
    for row, example in zip(groups.rows, found, strict=True):
        words = [tokenizer.convert_ids_to_tokens(negative.ids) for negative in example[1:]]
        contents = {
            ids[negative.content[0]] for ids, negative in zip(words, example[1:], strict=True)
        }
        assert contents <= ({"blue"} if row.item_id == "m0" else {"red", "green"})


def test_a_separator_that_the_tokenizer_swallows_is_refused(word_model):
    with pytest.raises(UsageError, match="does not separate symbol"):
        built(word_model, colour_items(1), Pif(separator=""))


def test_collating_pads_on_the_right(word_model):
    _, _, found = built(word_model, colour_items(2), Pif(separator=" : "))
    batch = collate(found[:3], pad=0)
    assert batch["input_ids"].shape[:2] == (3, 3)
    assert (batch["attention_mask"].sum(-1) == len(found[0][0].ids)).all()
    assert (batch["symbol"].sum(-1) == 1).all()


def test_a_run_lowers_the_loss_and_resumes_exactly(trained, tmp_path):
    changes = {"optimiser_steps": "8", "run_save_every": "4", "optimiser_learning_rate": "1e-2"}
    lines = []
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    trained(whole, "pif", report=lines.append, **changes)
    losses = [line["loss"] for line in lines if "loss" in line]
    assert losses[-1] < losses[0] - 0.5
    shutil.copytree(whole / "checkpoint-4", cut / "checkpoint-4")
    assert trained(cut, "pif", **changes).resumed_from == 4
    straight, resumed = ((folder / "model.safetensors").read_bytes() for folder in (whole, cut))
    assert straight == resumed
    assert "in the style of PIF" in (whole / "README.md").read_text()


def test_pif_has_no_reward(planned):
    with pytest.raises(UsageError, match="no reward"):
        planned("pif", consistency="con")


def test_an_adapter_is_drawn_with_the_seed_of_the_run(trained, tmp_path):
    weights = []
    for number in range(2):
        torch.manual_seed(number)  # whatever ran before
        out = tmp_path / str(number)
        trained(out, "pif", lora="{rank = 4, alpha = 8}", pif_separator=" : ")
        weights.append((out / "adapter_model.safetensors").read_bytes())
    assert weights[0] == weights[1]


def test_a_prompt_that_asks_for_reasoning_is_refused(tmp_path):
    model = save_word_model(tmp_path / "model", context=1024)
    (model / "prompt_template.jinja").unlink()
    with pytest.raises(UsageError, match=r"prompt\.style=direct"):
        small_plan(model, "pif", prompt_style="reasoning", data_max_prompt_tokens="900")
