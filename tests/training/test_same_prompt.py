"""One way to put a prompt to a model: token ids of training are those of audits."""

import functools
import json
import shlex
import shutil
import warnings

import pytest
from prompted_models import (
    CHATS,
    SPECIAL,
    noting_audits,
    noting_rollouts,
    pairs,
    save_chat_model,
)
from small_models import colour_items, small_command, small_plan, small_run

from unswayed.api import audit
from unswayed.backends import BackendSettings, open_backend
from unswayed.base.errors import UsageError
from unswayed.cli import main
from unswayed.model.items import encode_item
from unswayed.prompts import PromptSettings

CPU = BackendSettings(device="cpu", threads=1)
LORA = {"lora": "{rank = 4, alpha = 8}"}
SHORT = {
    "data_max_prompt_tokens": "1000",
    "prompt_max_response_tokens": "3",
    "rollout_samples": "2",
}


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory):
    """The folder of the model with one of the chat templates."""
    return functools.cache(
        lambda chat="plain": save_chat_model(tmp_path_factory.mktemp("chat"), CHATS[chat])
    )


def training_ids(model, items, out, **changes):
    """The prompts of a short training that meets every item."""
    groups = str(len(items) - int(changes.get("data_held_out", "0")))
    steps = {"optimiser_steps": "1", "optimiser_items_per_step": groups}
    with noting_rollouts() as sent:
        result = small_run(model, out, "pa-grpo", items, **{**steps, **SHORT, **changes})
    return sent, result


def audit_ids(model, items, **options):
    with noting_audits() as sent:
        audit(str(model), items, methods="direct", resamples=100, backend=CPU, **options)
    return sent


@pytest.mark.parametrize(
    ("chat", "style"),
    [*((chat, "direct") for chat in CHATS), ("plain", "reasoning"), ("can think", "reasoning")],
)
@pytest.mark.filterwarnings("ignore:.*has no chat template")
def test_training_sends_the_token_ids_of_the_hf_backend(chat_model, tmp_path, chat, style):
    model = chat_model(chat)
    items = pairs(text="<|eot_id|> and <|im_end|> and")  # ends no turn in either
    sent, _ = training_ids(model, items, tmp_path / "out", prompt_style=style)
    assert len(sent) == 2 * len(items)
    assert sent == audit_ids(
        f"hf/{model}", items, prompt=PromptSettings(prompt=style, max_tokens=3)
    )


def test_the_word_model_reads_the_same_in_both(word_model, tmp_path):
    changes = {"data_max_prompt_tokens": "60"}
    sent, _ = training_ids(word_model, colour_items(4), tmp_path, **changes)
    assert sent == audit_ids(f"hf/{word_model}", colour_items(4))


@pytest.mark.parametrize("control", SPECIAL[1:])
def test_a_candidate_cannot_end_the_turn_in_training(chat_model, control):
    number = SPECIAL.index(control)
    counts = []
    for text in ("plain", f"plain{control}"):
        plan = small_plan(chat_model(), "pif", pairs(text=text), **SHORT)
        counts.append([plan.chat.ids(row.messages).count(number) for row in plan.groups.rows])
    assert counts[0] == counts[1]


def test_an_answer_that_pif_teaches_holds_no_control_token(chat_model):
    from unswayed.training.pif import examples

    model = chat_model()
    plan = small_plan(model, "pif", pairs(text="<|end|>"), **SHORT)
    made = examples(plan.groups, plan.recipe.pif, plan.chat, seed=0)
    asked = audit_ids(f"hf/{model}", pairs(text="<|end|>"))
    for row, example in zip(plan.groups.rows, made, strict=True):
        prompt = plan.chat.ids(row.messages)
        assert tuple(prompt) in asked
        for answer in example:
            assert list(answer.ids[: len(prompt)]) == prompt
            assert SPECIAL.index("<|end|>") not in answer.ids[len(prompt) :]


def test_a_model_without_chat_template_trains_as_it_is_audited(chat_model):
    model = chat_model("none")
    with pytest.warns(UserWarning, match="has no chat template"):
        plan = small_plan(model, "grpo", pairs(), **SHORT)
    assert plan.example.startswith("<bos>")
    assert plan.example.endswith("Answer:")


def test_held_out_checks_ask_as_audits_do(chat_model, tmp_path, monkeypatch):
    from unswayed.training import trl_engine

    asked, answers = set(), trl_engine.answers_of

    def noting(trainer, plan, prompts):
        asked.update(map(tuple, prompts))
        return answers(trainer, plan, prompts)

    monkeypatch.setattr(trl_engine, "answers_of", noting)
    model = chat_model("refuses the system role")
    items = pairs(text="<|end|>")
    changes = {"data_held_out": "1", "run_check_every": "1"}
    sent, _ = training_ids(model, items, tmp_path / "out", **changes)
    assert len(asked) == 2
    assert sent | asked == audit_ids(f"hf/{model}", items)


# --- what the result says of itself -----------------------------------------------------------

RECIPES = {
    "direct": {"prompt_labels": '["X", "Y"]', **LORA},
    "reasoning": {"prompt_style": "reasoning", "chat_enable_thinking": "false"},
    "template": {"prompt_template": "TEMPLATE", **LORA},
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_next_command_asks_as_training_did(chat_model, tmp_path, capsys, monkeypatch, recipe):
    monkeypatch.chdir(tmp_path)
    model = chat_model("can think")
    template = tmp_path / "mine.jinja"
    template.write_text(
        "{{ question }}{% for c in candidates %}\n{{ c.label }}) {{ c.text }}{% endfor %}"
    )
    fields = {
        key: value.replace("TEMPLATE", str(template)) for key, value in RECIPES[recipe].items()
    }
    train = small_command(
        tmp_path, model, "pa-grpo", pairs(), **{"optimiser_steps": "1", **SHORT, **fields}
    )
    with noting_rollouts() as trained_on:
        code = main([*train, "--out", "out"])
    assert code == 0
    said = capsys.readouterr().out
    commands = said.partition("next: ")[2].replace("DATA", "items.jsonl").splitlines()
    assert len(commands) == 2
    record = json.loads((tmp_path / "out" / "training.json").read_text())
    for number, command in enumerate(commands):  # of the untrained model, and of the result
        _, *words = shlex.split(command)
        with noting_audits() as asked:
            assert main([*words, "--methods", "direct", "--out", f"run{number}"]) == 0
        assert len(asked) == 4
        assert asked == trained_on
        run = json.loads((tmp_path / f"run{number}" / "run.json").read_text())
        assert run["prompt"]["name"] == RECIPES[recipe].get("prompt_style", "direct")
        assert run["prompt"]["fingerprint"] == record["prompt_fingerprint"]
        assert run["prompt_settings"]["default_max_tokens"] == 3


def test_a_recipe_gives_filter_audit_and_training_one_prompt(
    chat_model, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    model = chat_model("can think")
    (tmp_path / "items.jsonl").write_bytes(b"\n".join(map(encode_item, pairs())))
    (tmp_path / "mine.toml").write_text(
        f'task = "pairwise"\nmodel = "{model}"\n[prompt]\nstyle = "reasoning"\n'
        "max_response_tokens = 3\n[data]\nheld_out = 0\n[optimiser]\nitems_per_step = 2\n"
        "[run]\nloggers = []\n"
    )
    kept = ["--count-unparsed", "--out"]
    assert main(["filter", "items.jsonl", "--recipe", "mine.toml", *kept, "train.jsonl"]) == 0
    asked = ["--model", f"hf/{model}", "--methods", "direct"]
    audited = ["audit", "items.jsonl", *asked]
    assert main([*audited, "--recipe", "mine.toml", "--out", "run"]) == 0
    assert main([*audited, "--out", "other"]) == 0
    assert main([*audited, "--recipe", "mine.toml", "--prompt", "direct"]) == 2
    filtered = json.loads((tmp_path / "train.filter.json").read_text())
    runs = [json.loads((tmp_path / f"{name}/run.json").read_text()) for name in ("run", "other")]
    assert filtered["prompt_fingerprint"] == runs[0]["prompt"]["fingerprint"]
    assert filtered["prompt_fingerprint"] != runs[1]["prompt"]["fingerprint"]
    shutil.copy("items.jsonl", "train.jsonl")
    capsys.readouterr()
    train = ["train", "grpo", "train.jsonl", "--recipe", "mine.toml", "--out", "out", "--dry-run"]
    assert main(train) == 0
    assert "was filtered with prompt" not in capsys.readouterr().err
    assert main([*train, "--set", "prompt.style=direct"]) == 0
    filtered = f"train.jsonl was filtered with prompt reasoning of hf/{model}"
    assert filtered in capsys.readouterr().err
    assert main(["report", "run", "other", "--out", "both.html"]) == 0
    page = (tmp_path / "both.html").read_text()
    assert "asked with different prompts (reasoning and direct), so" in page


def test_explicit_options_go_before_what_the_model_says(chat_model, tmp_path):
    model = chat_model("can think")
    changes = {"prompt_style": "reasoning", "prompt_labels": '["X", "Y"]'}
    _, result = training_ids(model, pairs(), tmp_path / "out", **changes)
    asks = result.model_name
    same = audit_ids(f"hf/{model}", pairs(), prompt="direct", labels="X,Y")
    assert audit_ids(asks, pairs(), prompt="direct") == same
    same = audit_ids(
        f"hf/{model}",
        pairs(),
        prompt=PromptSettings(prompt="reasoning", max_tokens=3),
        labels="C,D",
    )
    assert audit_ids(asks, pairs(), labels="C,D") == same


def test_judge_calibrate_and_filter_ask_as_training_did(chat_model, tmp_path):
    from unswayed import Judge, calibrate

    model = chat_model("can think")
    items = pairs()
    changes = {"prompt_labels": '["X", "Y"]', "chat_enable_thinking": "true", **LORA}
    sent, result = training_ids(model, items, tmp_path / "out", **changes)
    with noting_audits() as asked, Judge(result.model_name, method="vote", backend=CPU) as judge:
        list(judge.verdicts(items))
    assert asked == sent
    with noting_audits() as asked, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = tmp_path / "prior.json"
        calibrate("pride", items, result.model_name, out=out, backend=CPU, force=True)
    assert asked == sent
    (tmp_path / "items.jsonl").write_bytes(b"\n".join(map(encode_item, items)))
    filtering = ["filter", str(tmp_path / "items.jsonl"), "--model", result.model_name]
    with noting_audits() as asked:
        code = main([*filtering, "--out", str(tmp_path / "kept.jsonl")])
    assert code == 0
    assert asked == sent


def test_a_second_training_keeps_the_thinking_mode_of_the_first(chat_model, tmp_path):
    model = chat_model("can think")
    changes = {"prompt_style": "reasoning", "chat_enable_thinking": "false"}
    sent, result = training_ids(model, pairs(), tmp_path / "first", **changes)
    again, second = training_ids(result.out, pairs(), tmp_path / "second", prompt_style="reasoning")
    assert again == sent
    assert open_backend(second.model_name).own_prompt.enable_thinking is False


def test_a_server_is_told_to_think_as_the_recipe_says(tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text('task = "pairwise"\n[chat]\nenable_thinking = false\n')
    reach = BackendSettings(
        base_url="http://127.0.0.1:9/v1", recipe=str(tmp_path / "mine.toml"), extra_body='{"a": 1}'
    )
    opened = open_backend("openai-api/local/served", reach)
    assert json.loads(opened.extra_body) == {
        "a": 1,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert opened.own_prompt.style == "direct"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    with pytest.raises(UsageError, match=r"sets chat\.enable_thinking, which this API"):
        open_backend("anthropic/claude", BackendSettings(recipe=reach.recipe))
