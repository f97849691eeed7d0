"""What is published: front matter that the hub accepts, no trace of the machine."""

import json

import pytest
from small_models import colour_items, save_word_model, small_recipe, trained

from unswayed.training.card import base_of, model_card, name_base

HUB, LOCAL = "Qwen/Qwen3-8B@b968826d9c46dd6066d109eabc6255188de91218", "/data/m@x@sha256:0123456789"
FIGURES = {
    "held_out/items": 32.0,
    "held_out/accuracy": 0.75,
    "held_out/accuracy/low": 0.5,
    "held_out/accuracy/high": 0.875,
}


def record_of(model, recipe=()):
    return {
        "kind": "pa-grpo",
        "model": model,
        "recipe_name": "mine",
        "recipe_fingerprint": "sha256:r",
        "recipe": {"name": "mine", "model": "/home/me/m", **dict(recipe)},
        "reward": {"lam": 1.0},
        "presentations": 2,
        "data": {
            "fingerprint": "sha256:d", "given": 9, "kept": 5, "held_out": 1, "overlong": 1,
            "without_gold": 1, "not_permutable": 1,
        },
        "prompt_fingerprint": "sha256:p",
        "packages": {"torch": "2.13.0"},
    }  # fmt: skip


def card_of(model, recipe=(), before=FIGURES, after=FIGURES):
    return model_card(
        record_of(model, recipe), method="a method", steps=7, before=before, after=after
    )


def metadata_of(card, tmp_path):
    """The front matter, read as the hub reads it."""
    from huggingface_hub import ModelCardData, metadata_load
    from huggingface_hub.utils import validate_repo_id

    (tmp_path / "README.md").write_text(card, encoding="utf-8")
    metadata = metadata_load(tmp_path / "README.md")
    ModelCardData(**metadata)
    if "base_model" in metadata:
        validate_repo_id(metadata["base_model"])
    return metadata


@pytest.mark.parametrize(
    ("recipe", "relation", "library"),
    [({"lora.rank": 4}, "adapter", "peft"), ({}, "finetune", "transformers")],
    ids=["adapter", "model"],
)
def test_a_base_of_the_hub_is_named_by_its_id(tmp_path, recipe, relation, library):
    card = card_of(HUB, recipe)
    metadata = metadata_of(card, tmp_path)
    assert metadata["base_model"] == "Qwen/Qwen3-8B"
    assert metadata["base_model_relation"] == relation
    assert metadata["library_name"] == library
    assert metadata["pipeline_tag"] == "text-generation"
    assert "unswayed" in metadata["tags"]
    assert "`b968826d9c46dd6066d109eabc6255188de91218`" in card


def test_a_local_base_is_named_by_its_fingerprint_alone(tmp_path):
    card = card_of(LOCAL, {"lora.rank": 4})
    assert "base_model" not in metadata_of(card, tmp_path)
    assert "a local model with the fingerprint `sha256:0123456789`" in card
    assert "Before this is published" in card
    assert base_of(record_of(LOCAL)) == (None, "sha256:0123456789")


def test_nothing_of_the_machine_is_in_the_card():
    recipe = {"rollout.server_url": "http://node7:8000", "prompt.template": "/home/me/t.jinja"}
    card = card_of(LOCAL, recipe)
    assert "/home/me" not in card
    assert "/data/m" not in card
    assert "node7" not in card


def test_values_that_markdown_would_read_as_its_own_stand_as_code():
    recipe = {"prompt.think_tags": ["<think>", "</think>"], "pif.separator": "\n", "a.b": "x|y"}
    card = card_of(HUB, recipe)
    assert '| recipe.prompt.think_tags | `["<think>", "</think>"]` |' in card
    assert '| recipe.pif.separator | `"\\n"` |' in card
    assert '| recipe.a.b | `"x\\|y"` |' in card


def test_figures_stand_with_their_intervals_and_what_was_checked():
    card = card_of(HUB)
    assert "32 items that were not trained on, each in 2 presentations" in card
    assert "| accuracy | 0.750 (0.500 to 0.875) | 0.750 (0.500 to 0.875) |" in card
    assert "| accuracy | not measured | 0.750 (0.500 to 0.875) |" in card_of(HUB, before={})
    assert "where `unswayed filter` chose those" in card
    assert "## Held-out items" not in card_of(HUB, before={}, after={})


def test_an_adapter_of_a_hub_model_names_it_by_id_and_commit(tmp_path):
    file = tmp_path / "adapter_config.json"
    kept = {"base_model_name_or_path": "/home/me/.cache/snapshots/b968", "r": 4, "revision": None}
    file.write_text(json.dumps(kept))
    name_base(tmp_path, record_of(LOCAL))
    assert json.loads(file.read_text()) == kept  # there is no other name that peft would find
    name_base(tmp_path, record_of(HUB))
    assert json.loads(file.read_text()) == {
        "base_model_name_or_path": "Qwen/Qwen3-8B",
        "revision": "b968826d9c46dd6066d109eabc6255188de91218",
        "r": 4,
    }


@pytest.mark.parametrize("changes", [{}, {"lora": "{rank = 4, alpha = 8}"}], ids=["full", "lora"])
def test_a_trained_folder_has_a_card_without_paths_and_loads(tmp_path, changes):
    base, out = save_word_model(tmp_path / "base"), tmp_path / "out"
    recipe = small_recipe(data_held_out="3", run_check_every="1", **changes)
    trained("pa-grpo", colour_items(9), model=str(base), recipe=recipe, out=out)
    card = (out / "README.md").read_text()
    assert str(tmp_path) not in card
    assert metadata_of(card, tmp_path)["library_name"] == ("peft" if changes else "transformers")
    if changes:
        from peft import AutoPeftModelForCausalLM

        assert AutoPeftModelForCausalLM.from_pretrained(str(out)).peft_config
