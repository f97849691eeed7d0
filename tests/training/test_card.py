"""What is published: front matter that the hub accepts, no trace of the machine."""

import json
from pathlib import Path

import msgspec
import pytest
from small_models import colour_items, save_word_model, small_run

from unswayed.backends import open_backend
from unswayed.backends.model_folders import fingerprint_folder, locate
from unswayed.base.errors import UsageError
from unswayed.training.card import Origin, base_of, model_card, name_base
from unswayed.training.recipe import load_recipe, recipe_names, with_changes

HUB, LOCAL = "Qwen/Qwen3-8B@b968826d9c46dd6066d109eabc6255188de91218", "/data/m@x@sha256:0123456789"
FIGURES = {
    "held_out/items": 32.0,
    "held_out/accuracy": 0.75,
    "held_out/accuracy/low": 0.5,
    "held_out/accuracy/high": 0.875,
}


PLAIN = Origin(needs_gold=True, golden=0, temperature=None, labels_move=False, settled={})


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


def card_of(model=HUB, recipe=(), before=FIGURES, after=FIGURES, origin=PLAIN):
    return model_card(
        record_of(model, recipe),
        method="a method",
        origin=origin,
        steps=7,
        before=before,
        after=after,
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


def recipe_of(card):
    """The text of the recipe in a card."""
    return card.partition("```toml\n")[2].partition("\n```\n")[0]


@pytest.mark.parametrize("name", recipe_names())
def test_recipe_of_card_is_read_back(tmp_path, name):
    changes = {"prompt.labels": '["x|y", "```"]', "pif.separator": '"\\n\\""'}
    changes["rollout.engine"] = "transformers"  # a server's address is not in a card
    recipe = with_changes(load_recipe(name), changes)
    file = tmp_path / "recipe.toml"
    file.write_text(recipe_of(card_of(recipe=recipe.identity())))
    read = load_recipe(file).identity()
    settled = {"name": "recipe", "model": None, "rollout.server_url": None, "reward.lam": 1.0}
    assert read == {**recipe.identity(), **settled}


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (
            {"golden": 1151, "settled": {"temperature": 0.7}},
            "at temperature 0.7, chosen by the gold of 1,151 items.",
        ),
        (
            {"golden": 1151, "temperature": 0.5, "settled": {"temperature": 0.5}},
            "at temperature 0.5, as the recipe gives it.",
        ),
        (
            {"settled": {"temperature": 1.0}},
            "at temperature 1, because too few items had gold to choose another.",
        ),
        (
            {"golden": 40, "settled": {"temperature": 1.0, "wrong_gold": 0.35}},
            "- Gold: weighed against that target; 35% of it was taken for wrong.",
        ),
        (
            {"needs_gold": False, "golden": 40, "settled": {"temperature": 1.4}},
            "- Gold: for the temperature alone.",
        ),
        ({"needs_gold": False, "settled": {"temperature": 1.0}}, "- Gold: none was used."),
        (
            {"needs_gold": False, "golden": 9, "temperature": 1.0, "settled": {"temperature": 1}},
            "- Gold: none was used.",
        ),
        ({"labels_move": True}, "moved through the labels, and labels apart from candidates."),
        ({}, "effects of labels or positions alone were not trained."),
    ],
)  # fmt: skip
def test_a_card_says_what_was_shown_and_trained_towards(origin, said):
    assert said in card_of(origin=PLAIN._replace(**origin))


def test_card_without_target_omits_it():
    card = card_of()
    assert "- Target:" not in card
    assert "- Gold:" not in card


def test_figures_stand_with_their_intervals_and_what_was_checked():
    card = card_of(HUB)
    assert "32 items that were not trained on, each in 2 presentations" in card
    assert "| accuracy | 0.750 (0.500 to 0.875) | 0.750 (0.500 to 0.875) |" in card
    assert "| accuracy | not measured | 0.750 (0.500 to 0.875) |" in card_of(HUB, before={})
    assert "where `unswayed filter` chose those" in card
    assert "agreement with the given gold, wrong gold included" in card
    assert "## Held-out items" not in card_of(HUB, before={}, after={})


def test_an_adapter_of_a_hub_model_names_it_by_id_and_commit(tmp_path):
    file = tmp_path / "adapter_config.json"
    kept = {"base_model_name_or_path": "/home/me/.cache/snapshots/b968", "r": 4, "revision": None}
    file.write_text(json.dumps(kept))
    name_base(tmp_path, record_of(LOCAL), tmp_path / "x" / ".." / "base")
    local = str(tmp_path.resolve() / "base")
    assert json.loads(file.read_text()) == {**kept, "base_model_name_or_path": local}
    name_base(tmp_path, record_of(HUB), tmp_path)
    assert json.loads(file.read_text()) == {
        "base_model_name_or_path": "Qwen/Qwen3-8B",
        "revision": "b968826d9c46dd6066d109eabc6255188de91218",
        "r": 4,
    }


NO_GOLD = {"target/temperature": 1.0}
ALL = "and labels apart from candidates"


@pytest.mark.parametrize(
    ("objective", "changes", "golden", "settled", "said"),
    [
        ("distill", {}, False, NO_GOLD, ["- Gold: none was used.", ALL]),
        ("distill", {"target_temperature": "0.5"}, True, {"target/temperature": 0.5},
         ["at temperature 0.5, as the recipe gives it", "- Gold: none was used."]),
        ("distill", {"data_layouts": "coupled"}, True, None,
         ["chosen by the gold of 27 items", "- Gold: for the temperature alone."]),
        ("rl-exact", {}, True, None, ["the gold of 27 items", "\ntarget.distill = 0.5\n"]),
        ("sft", {}, True, {}, ['\ntarget.gold_noise = "none"\n']),
        ("sft", {"target_gold_noise": "auto", "data_layouts": "all"}, True, None,
         ["- Gold: weighed against that target; ", ALL]),
    ],
)  # fmt: skip
def test_a_trained_folder_says_how_its_target_was_made(
    trained, tmp_path, objective, changes, golden, settled, said
):
    items = [
        msgspec.structs.replace(item, prompt=str(number))  # each another question
        for number, item in enumerate(colour_items(30))
    ]
    if not golden:
        items = [msgspec.structs.replace(item, gold=None) for item in items]
    lines = []
    changes = {"name": "pa-grpo-judge-qwen3-8b", "data_held_out": "3", **changes}
    result = trained(tmp_path, objective, items, report=lines.append, **changes)
    steps = [line for line in lines if "loss" in line]
    assert len(steps) == 2
    logged = [{key: line[key] for key in line if key.startswith("target/")} for line in steps]
    assert logged[0] == logged[1]
    if settled is not None:
        assert logged[0] == settled
    card = (tmp_path / "README.md").read_text()
    for part in said:
        assert part in card
    assert ("- Target:" in card) == bool(logged[0])
    assert ("held_out/accuracy" in result.after) == golden  # missing is missing
    assert ("| accuracy |" in card) == golden
    assert "| consistency |" in card
    assert card.splitlines()[6] == f"# Local model ({objective})"  # a recipe may be of another name
    assert "PA-GRPO (arXiv" not in card


@pytest.mark.parametrize(
    ("objective", "parts"),
    [
        ("rl-exact", {"reward", "distillation"}),
        ("sft", {"cross_entropy", "variance"}),
        ("distill", set()),
    ],
)
def test_the_parts_of_the_loss_stand_in_log_and_tensorboard(trained, tmp_path, objective, parts):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    lines = []
    trained(tmp_path, objective, 30, report=lines.append, run_loggers='["tensorboard"]')
    known = {"reward", "distillation", "cross_entropy", "variance"}
    assert [known & set(line) for line in lines] == [parts, parts]
    (folder,) = {file.parent for file in tmp_path.rglob("events.out.tfevents.*")}
    events = EventAccumulator(str(folder))
    events.Reload()
    shown = {tag.removeprefix("train/") for tag in events.Tags()["scalars"]}
    assert parts | {"loss"} | {key for key in lines[0] if key.startswith("target/")} <= shown


@pytest.mark.parametrize("changes", [{}, {"lora": "{rank = 4, alpha = 8}"}], ids=["full", "lora"])
def test_trained_folder_is_a_model_with_a_card_without_paths(tmp_path, changes):
    base, out = save_word_model(tmp_path / "base"), tmp_path / "out"
    lines = []
    checks = {"data_held_out": "3", "run_check_every": "1"}
    result = small_run(base, out, "pa-grpo", 9, report=lines.append, **checks, **changes)
    assert result.model_name == (f"hf/{base}+lora={out}" if changes else f"hf/{out}")
    backend = open_backend(result.model_name)
    assert backend.own_prompt.template.endswith("prompt_template.jinja")
    assert ("+lora=" in backend.model) == bool(changes)
    assert {"held_out/consistency", "held_out/accuracy"} <= set(result.after)
    assert [line["step"] for line in lines if "loss" in line] == [1, 2]
    assert [json.loads(line) for line in (out / "train.jsonl").open()] == lines
    card = (out / "README.md").read_text()
    assert str(tmp_path) not in card
    assert json.loads((out / "training.json").read_text())["data"]["fingerprint"] in card
    assert "## Limits" in card
    assert metadata_of(card, tmp_path)["library_name"] == ("peft" if changes else "transformers")
    assert not list(out.glob("*.bin"))
    if changes:
        from peft import AutoPeftModelForCausalLM

        assert AutoPeftModelForCausalLM.from_pretrained(str(out)).peft_config


def test_adapter_alone_opens_on_its_base(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base, out = save_word_model(tmp_path / "base"), tmp_path / "out"
    small_run("base", out, "sft", lora="{rank = 4, alpha = 8}", optimiser_steps="1")
    opened = locate("out")
    assert opened.path == base.resolve()
    assert opened.adapter == Path("out")
    assert opened.name.endswith(f"+lora=out@{fingerprint_folder(out)}")
    assert locate(opened.name).name == opened.name

    moved = tmp_path / "moved"
    moved.mkdir()
    base.rename(moved / "base")
    with pytest.raises(UsageError, match=r"its base .*base does not exist"):
        locate("out")
    out.rename(moved / "out")
    assert locate(str(moved / "out")).path == moved / "base"
    save_word_model(moved / "base", seed=1)
    with pytest.raises(UsageError, match="it is not the named model"):
        locate(str(moved / "out"))
