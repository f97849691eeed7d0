"""An adapter merged into its base, and a result on the hub: what is kept, what is left out."""

import json
from pathlib import Path

import huggingface_hub
import pytest
from small_models import save_word_model, small_run

from unswayed.backends import BackendSettings, open_backend
from unswayed.backends.model_folders import fingerprint_folder
from unswayed.backends.own_prompts import own_prompt_of
from unswayed.base.errors import RunDirectoryError, UsageError
from unswayed.cli import main
from unswayed.model.calls import Query, Request
from unswayed.model.items import Item, Message
from unswayed.model.presentation import X0, Ask
from unswayed.training.merging import push

LORA = {"lora": "{rank = 4, alpha = 8}", "optimiser_learning_rate": "1e-2"}


def adapter_of(folder, *, dtype="float32", tied=False, **changes):
    """An adapter on a base that was saved in some precision."""
    from transformers import AutoModelForCausalLM

    base = save_word_model(folder / "base", tied=tied)
    if dtype != "float32":
        AutoModelForCausalLM.from_pretrained(base, dtype=dtype).save_pretrained(base)
    held_out = {"data_held_out": "2", "run_check_every": "2"}
    small_run(base, folder / "adapter", "sft", 8, **{**held_out, **LORA, **changes})
    return folder / "adapter"


def logprobs(model):
    """Label log-probabilities of one chat."""
    backend = open_backend(f"hf/{model}", BackendSettings(device="cpu"))
    chat = (Message("user", "which of these is warmer 3 A : red . B : blue . ?"),)
    request = Request(messages=chat, model="m", labels=("A", "B"), max_tokens=1, top_logprobs=5)
    item = Item(id="q", prompt="3", candidates=("red", "blue"))
    ((_, response),) = next(backend._run(backend._prepare([Query(item, Ask(X0), request)])[0], ()))
    return dict(response.top_logprobs[0])


@pytest.mark.parametrize(("dtype", "bound"), [("float32", 1e-5), ("bfloat16", 0.05)])
def test_merged_folder_answers_as_the_adapter(tmp_path, capsys, dtype, bound):
    adapter, out = adapter_of(tmp_path, dtype=dtype), tmp_path / "merged"
    assert main(["train", "merge", str(adapter), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("label log-probabilities agree within ")
    assert said.endswith(f"hf/{out}\n")
    before, after, base = map(logprobs, (adapter, out, tmp_path / "base"))
    for label in before:
        assert after[label] == pytest.approx(before[label], abs=bound)
    assert abs(base["A"] - after["A"]) > 0.05
    assert json.loads((out / "config.json").read_text())["dtype"] == dtype
    assert {"generation_config.json", "tokenizer.json"} <= {file.name for file in out.iterdir()}
    prompts = [own_prompt_of([folder]) for folder in (adapter, out)]
    templates = [Path(prompt.template).read_text() for prompt in prompts]
    assert templates[0] == templates[1]
    record = json.loads((out / "training.json").read_text())
    assert record["merged"] == {"adapter": fingerprint_folder(adapter)}
    card = (out / "README.md").read_text()
    assert 'library_name: "transformers"' in card
    assert "Local model (sft, merged)" in card
    assert "## Held-out items" not in card.splitlines()
    assert "### Held-out items" in card.splitlines()
    assert "+lora=" not in card
    assert str(tmp_path) not in card
    with pytest.raises(
        UsageError, match=r"push me/judge: adapter_config\.json names the base by its path"
    ):
        push(adapter, "me/judge")
    with pytest.raises(RunDirectoryError, match="already exists"):
        raise_from(["train", "merge", str(adapter), "--out", str(out)])


def raise_from(words):
    from unswayed.cli.train_merge import merge

    merge(result=Path(words[2]), out=Path(words[4]))


def test_merging_that_changes_answers_leaves_no_folder(tmp_path):
    """The output layer of this base is its embedding: an adapter of the one would change both."""
    adapter = adapter_of(tmp_path, tied=True, lora='{rank = 4, alpha = 8, target = "lm_head"}')
    with pytest.raises(UsageError, match="moves a label's log-probability by"):
        raise_from(["train", "merge", str(adapter), "--out", str(tmp_path / "merged")])
    assert {path.name for path in tmp_path.iterdir()} == {"base", "adapter"}


def test_full_disk_while_merging_leaves_no_folder(tmp_path, monkeypatch):
    from safetensors import SafetensorError
    from transformers import PreTrainedModel

    def full(model, folder):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    adapter = adapter_of(tmp_path)
    monkeypatch.setattr(PreTrainedModel, "save_pretrained", full)
    with pytest.raises(RunDirectoryError, match=r"merged: .*No space left .*Free some space"):
        raise_from(["train", "merge", str(adapter), "--out", str(tmp_path / "merged")])
    assert {path.name for path in tmp_path.iterdir()} == {"base", "adapter"}


class Hub:
    """The hub's client: what it was told, and whether repositories are private."""

    def __init__(self, private=True, error=None):
        self.private, self.error, self.uploads, self.made = private, error, [], []

    def __call__(self):
        return self

    def create_repo(self, name, **how):
        if self.error is not None:
            raise self.error
        self.made.append((name, how))
        return f"https://hub/{name}"

    def model_info(self, name):
        return self

    def upload_folder(self, *, repo_id, folder_path, ignore_patterns):
        names = (path.relative_to(folder_path).as_posix() for path in folder_path.rglob("*"))
        kept = huggingface_hub.utils.filter_repo_objects(names, ignore_patterns=ignore_patterns)
        self.uploads.append(sorted(name for name in kept if (folder_path / name).is_file()))


def test_push_uploads_result_without_checkpoints_and_logs(trained, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    trained(out, "rl-exact", run_save_every="1", run_loggers='["tensorboard"]')
    kept = {path.name for path in out.iterdir()}
    assert {"train.jsonl", "checkpoint-2", "base_answers"} <= kept
    monkeypatch.setattr(huggingface_hub, "HfApi", hub := Hub())
    assert main(["train", "merge", str(out), "--push", "me/judge"]) == 0
    assert capsys.readouterr().out == "https://hub/me/judge\n"
    assert hub.made == [("me/judge", {"private": True, "exist_ok": True})]
    assert hub.uploads == [
        [
            "README.md", "chat_template.jinja", "config.json", "generation_config.json",
            "model.safetensors", "prompt_template.jinja", "tokenizer.json", "tokenizer_config.json",
            "training.json", "unswayed_prompt.json",
        ]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("hub", "said"),
    [
        (Hub(private=False), "this repository is public"),
        (Hub(error=OSError("401 Client Error\nsign in")), "401 Client Error. "),
    ],
)
def test_push_is_refused_with_the_reason(trained, tmp_path, monkeypatch, capsys, hub, said):
    trained(tmp_path, "sft")
    monkeypatch.setattr(huggingface_hub, "HfApi", hub)
    assert main(["train", "merge", str(tmp_path), "--push", "me/judge"]) == 2
    assert f"--push me/judge: {said}" in capsys.readouterr().err
    assert hub.uploads == []


def test_merge_refuses_what_it_cannot_merge(trained, word_model, tmp_path, capsys):
    trained(tmp_path, "sft")
    assert main(["train", "merge", str(tmp_path), "--out", str(tmp_path / "x")]) == 2
    assert "is a whole model, not an adapter" in capsys.readouterr().err
    assert main(["train", "merge", str(tmp_path)]) == 2
    assert "nothing to do" in capsys.readouterr().err
    assert main(["train", "merge", str(word_model), "--push", "me/judge"]) == 2
    assert "no readable training.json" in capsys.readouterr().err
