"""Short trainings from end to end: the tiny judge learns, the real training pairs train."""

import json

import pytest
from small_models import save_model, small_plan, small_run

import needs
from unswayed.data.importers import import_files
from unswayed.model.permutations import structured
from unswayed.tiny.items import judge_items, rubric_items
from unswayed.training.recipe import load_recipe, with_changes
from unswayed.training.run import train

SHARED = needs.DATA / "pagrpo_train"


def test_the_tiny_judge_becomes_consistent_in_a_few_steps(tmp_path):
    recipe = with_changes(
        load_recipe("tiny-judge"),
        {
            "data.held_out": "100",
            "optimiser.steps": "25",
            "run.save_every": "0",
            "run.check_every": "25",
            "run.loggers": "[]",
        },
    )
    items = judge_items(500, seed=7)
    result = small_run("tiny/judge", tmp_path, "pa-grpo", items, recipe=recipe)
    assert result.before["held_out/consistency"] < 0.6
    assert result.after["held_out/consistency"] > result.before["held_out/consistency"] + 0.2
    assert result.after["held_out/accuracy"] > result.before["held_out/accuracy"]
    assert (tmp_path / "prompt_template.jinja").is_file()


def test_the_rubric_judge_trains_on_groups_of_five_levels(tmp_path):
    recipe = with_changes(
        load_recipe("tiny-rubric"),
        {
            "data.held_out": "24",
            "rollout.samples": "4",
            "optimiser.items_per_step": "8",
            "optimiser.learning_rate": "1e-3",
            "optimiser.steps": "8",
            "run.save_every": "0",
            "run.check_every": "8",
            "run.loggers": "[]",
        },
    )
    items = rubric_items(200, seed=7)
    plan = small_plan("tiny/rubric", "pa-grpo", items, recipe=recipe)
    assert [shown.order for shown in plan.groups.views[5]] == list(structured(5))
    assert plan.groups.counts.without_gold == sum(not item.gold_candidates() for item in items) > 0
    result = train(plan, tmp_path)
    assert result.after["held_out/consistency"] > result.before["held_out/consistency"] + 0.1
    assert (tmp_path / "prompt_template.jinja").is_file()


def test_a_dry_run_loads_no_weights_and_says_what_would_happen(word_model, monkeypatch):
    def refused(*_args, **_named):
        raise AssertionError("weights were read")

    import safetensors
    import transformers

    monkeypatch.setattr(transformers.PreTrainedModel, "from_pretrained", refused)
    monkeypatch.setattr(safetensors, "safe_open", refused)
    plan = small_plan(f"hf/{word_model}", "pa-grpo", 11, optimiser_steps="9")
    assert (plan.steps, plan.steps_per_epoch, plan.responses_per_step) == (9, 5, 16)
    assert plan.groups.counts.longest_prompt == 17
    assert plan.example.startswith("<|user|> which of these is warmer")
    assert plan.example.endswith("<|assistant|>")
    assert plan.settings.consistency == "con"


def byte_model(folder):
    """The tiny architecture over bytes, so that it can read anything."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<pad>", "<|end|>", "<|user|>", "<|assistant|>"]
    vocabulary = {symbol: at for at, symbol in enumerate([*special, *alphabet])}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        eos_token="<|end|>",
        additional_special_tokens=special[2:],
    )
    tokenizer.chat_template = (
        "{% for m in messages %}<|user|>{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    return save_model(folder, tokenizer, size=len(vocabulary), context=2048, labels="AB", pull=6.0)


@needs.recorded
@pytest.mark.parametrize(
    ("name", "n", "presentations"),
    [("chatbot_arena_filter_2perm", 2, 2), ("mmlu_filter_5perm", 4, 5)],
)
def test_the_real_training_pairs_train_a_few_steps(tmp_path, name, n, presentations):
    model = byte_model(tmp_path / "model")
    items = import_files("pa-grpo", [SHARED / f"{name}_think_dev.jsonl.gz"]).items[:60]
    sizes = {"data_max_prompt_tokens": "1100", "run_micro_batch": "4", "rollout_samples": "2"}
    result = small_run(model, tmp_path / "out", "pa-grpo", list(items), n, **sizes)
    counts = result.counts
    assert counts.given == 60
    assert counts.overlong > 0  # whole items, counted
    assert counts.kept + counts.overlong + counts.identical == 60
    assert counts.longest_prompt <= 1100
    record = json.loads((tmp_path / "out" / "training.json").read_text())
    assert record["presentations"] == presentations
    logged = [json.loads(line) for line in (tmp_path / "out" / "train.jsonl").open()]
    assert [line["step"] for line in logged] == [1, 2]
    assert all(line["group/unparsed"] < 1 for line in logged)
