"""An engine that is not trl: it trains from `PolicyLoss`, `SampleReader` and `score_rows` alone."""

import json
import sys

from small_models import colour_items, small_recipe

from unswayed.ext.training import SampleKey, SampleReader, Sharding, Split, Stop, score_rows
from unswayed.training.planning import plan_training
from unswayed.training.run import train
from unswayed.training.table import ENGINES


class Toy:
    """One process, answers of one token, the whole step in one pass."""

    def check(self, recipe, settings, objective):
        assert objective.loss(recipe, settings).aggregate == "response"

    def sharding(self, recipe, environment):
        return Sharding()

    def checkpoint_defect(self, folder, step):
        return "never resumed"

    def split(self, recipe, n_presentations, world):
        return Split(recipe.optimiser.items_per_step * n_presentations * recipe.rollout.samples, 1)

    def run(self, plan, folder, resume, report):
        import torch
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(plan.folder)
        reference = AutoModelForCausalLM.from_pretrained(plan.folder)
        optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
        groups, loss, n_samples = plan.groups, plan.loss, plan.recipe.rollout.samples
        read = SampleReader.of(plan.recipe.prompt, answer_only=True, task=plan.recipe.task)
        ids = torch.tensor([plan.chat.ids(row.messages) for row in groups.rows])
        torch.manual_seed(0)
        for step in range(1, plan.steps + 1):
            log_p = model(ids).logits[:, -1].log_softmax(-1)
            drawn = torch.multinomial(log_p.detach().exp(), n_samples, replacement=True)
            keys, features = [], []
            for row, tokens in zip(groups.rows, drawn, strict=True):
                for sample, text in enumerate(plan.chat.tokenizer.batch_decode(tokens[:, None])):
                    keys.append(SampleKey(row.item_id, row.presentation, sample))
                    features.append(read.features(row.shown, row.symbols, row.gold, text))
            shape = groups.n_presentations, n_samples
            scored = score_rows(keys, features, plan.settings, shape, whole=True)
            advantages = torch.tensor(scored.advantages).reshape(drawn.shape)
            chosen = log_p.gather(1, drawn)
            ratio = (chosen - chosen.detach()).exp()
            low, high = 1 - loss.clip[0], 1 + loss.clip[1]
            gain = torch.minimum(ratio * advantages, ratio.clamp(low, high) * advantages)
            with torch.no_grad():
                before = reference(ids).logits[:, -1].log_softmax(-1).gather(1, drawn)
            apart = (before - chosen).exp() - (before - chosen) - 1  # k3
            entropy = -(log_p.exp() * log_p).sum(-1)
            (-gain + loss.kl * apart - loss.entropy * entropy[:, None]).mean().backward()
            optimiser.step()
            optimiser.zero_grad()
            folder.append({"step": step, "reward": scored.total.mean()})
        model.save_pretrained(folder.path)
        return Stop(plan.steps, interrupted=False)


def test_registered_engine_trains_pa_grpo_without_trl(word_model, tmp_path, monkeypatch):
    monkeypatch.setitem(ENGINES._all, "toy", "toy:TOY")
    monkeypatch.setitem(ENGINES._loaded, "toy", Toy())
    monkeypatch.setitem(sys.modules, "trl", None)  # an import of it would fail
    recipe = small_recipe(optimiser_steps="15", optimiser_items_per_step="8")
    chosen = {"model": str(word_model), "recipe": recipe, "engine": "toy"}
    result = train(plan_training("pa-grpo", colour_items(8), **chosen), tmp_path)
    lines = (tmp_path / "train.jsonl").read_text().splitlines()
    logged = [json.loads(line)["reward"] for line in lines]
    assert sum(logged[-3:]) > sum(logged[:3]) + 1
    assert result.steps == 15
    assert (tmp_path / "model.safetensors").is_file()
