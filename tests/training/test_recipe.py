"""Recipes: what ships, what is refused, what a preset fixes."""

import re
from importlib import resources

import pytest
from small_models import settings_of

from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.training.recipe import load_recipe, recipe_names, with_changes
from unswayed.training.recipe_parts import Recipe

PAPER = [name for name in recipe_names() if name.startswith("pa-grpo-")]


def write(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def test_the_papers_models_and_tasks_ship():
    assert set(PAPER) == {
        f"pa-grpo-{task}-{model}"
        for task in ("judge", "mcq")
        for model in ("llama-3.1-8b", "qwen3-8b", "qwen3-32b")
    }


@pytest.mark.parametrize("name", PAPER)
def test_recipes_of_the_paper_hold_its_numbers(name):
    recipe = load_recipe(name)
    mcq = "-mcq-" in name
    assert (recipe.lora.rank, recipe.lora.alpha, recipe.lora.target) == (32, 64, "all-linear")
    assert (recipe.optimiser.learning_rate, recipe.optimiser.epochs) == (1e-5, 2)
    assert (recipe.optimiser.beta, recipe.optimiser.entropy) == (0.001, 0.001)
    assert recipe.rollout.samples == 8
    prompts = recipe.optimiser.items_per_step * (5 if mcq else 2)
    assert prompts == (40 if mcq else 32)
    settings = settings_of("pa-grpo", recipe)
    assert (settings.lam, settings.format_size, settings.length_size) == (1.0, 0.3, 0.1)
    assert (settings.consistency, settings.advantage) == ("con", "group")
    assert recipe.chat.enable_thinking is (False if "qwen3" in name else None)


@pytest.mark.parametrize("name", PAPER)
def test_every_number_of_a_paper_recipe_names_its_source(name):
    file = resources.files("unswayed.training") / "recipes" / f"{name}.toml"
    for line in file.read_text().splitlines():
        if re.match(r"\w+ = [\d\[]", line):
            assert re.search(r"# (App\.|Eq\.|Table|section|Algorithm|verl|code|ours)", line), line


def test_a_misspelt_field_gets_a_suggestion(tmp_path):
    path = write(tmp_path, 'task = "pairwise"\n[reward]\nlamda = 1.0\n')
    with pytest.raises(UnknownNameError, match=r"unknown field reward\.lamda\. Did you mean 'lam'"):
        load_recipe(path)
    path = write(tmp_path, 'task = "pairwise"\n[optimizer]\nclip = 0.2\n')
    with pytest.raises(
        UnknownNameError, match=r"unknown field 'optimizer'\. Did you mean 'optimiser"
    ):
        load_recipe(path)
    path = write(tmp_path, 'task = "pairwise"\n[run]\nsteps = 20\n')
    with pytest.raises(UnknownNameError, match=r"Did you mean 'optimiser\.steps'"):
        load_recipe(path)


@pytest.mark.parametrize(
    ("field", "value", "remedy"),
    [
        ("rollout.engine", "vllm", "Known: transformers, vllm-colocate, vllm-server."),
        ("rollout.correction", "some", "rollout.correction"),
        ("lora", "8", "It is a table: set lora.alpha or "),
    ],
)
def test_a_value_that_does_not_fit_is_told_what_does(field, value, remedy):
    with pytest.raises(UsageError, match=re.escape(remedy)):
        with_changes(load_recipe("tiny-judge"), {field: value})


def test_an_unknown_recipe_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="Did you mean 'tiny-judge'"):
        load_recipe("tiny-juge")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[reward]\nlam = -1.0\n", "lam is -1.0"),
        ("[reward]\nddof = 2\n", "ddof is 2"),
        ("[reward]\nlength_band = [5, 1]\n", "length_band"),
        (f"[rollout]\nsamples = {10**21}\n", "rollout.samples: Expected `int` <"),
        ("[rollout]\nsamples = 0\n", "rollout.samples: Expected `int` >= 1"),
        ("[rollout]\ntemperature = 0.0\n", "rollout.temperature: Expected `float` > 0.0"),
        ('[rollout]\nengine = "vllm-server"\n', "needs rollout.server_url"),
        ("[optimiser]\nepochs = nan\n", "optimiser.epochs: Expected `float` > 0.0"),
        ("[optimiser]\nepochs = inf\n", "optimiser.epochs: inf is not a finite number"),
        ("[optimiser]\nweight_decay = inf\n", "optimiser.weight_decay: inf is not a finite"),
        ("[optimiser]\nlearning_rate = 1e31\n", "optimiser.learning_rate: 1e+31 is above 1e+30"),
        ("[target]\ntemperature = 1e-10\n", "target.temperature: Expected `float` >= 1e-09"),
        (f"[run]\nseed = {'9' * 5000}\n", "not valid TOML"),
        (f"a = {'[' * 5000}", "not valid TOML"),
        ("[optimiser]\ninner_updates = 2\n[run]\nsave_every = 3\n", "must be a multiple of"),
        ('[optimiser]\nlearning_rate = "fast"\n', "optimiser.learning_rate: Expected `float`"),
        ('[data]\nwithout_gold = "guess"\n', "data.without_gold"),
        ("[run\n", "not valid TOML"),
    ],
)
def test_values_that_cannot_be_used_are_refused_with_the_field(tmp_path, text, reason):
    with pytest.raises(UsageError, match=re.escape(reason)):
        load_recipe(write(tmp_path, f'task = "pairwise"\n{text}'))


def test_a_recipe_needs_a_task(tmp_path):
    with pytest.raises(UsageError, match="missing required field `task`"):
        load_recipe(write(tmp_path, "[reward]\nlam = 1.0\n"))


def test_single_fields_can_be_changed_from_the_command_line():
    recipe = with_changes(
        load_recipe("tiny-judge"),
        {"reward.lam": "0.5", "data.orders": "cyclic", "lora": "{rank=4}"},
    )
    assert (recipe.reward.lam, recipe.data.orders, recipe.lora.rank) == (0.5, "cyclic", 4)
    with pytest.raises(UnknownNameError, match=r"reward\.lambda"):
        with_changes(recipe, {"reward.lambda": "1"})


@pytest.mark.parametrize(
    "change", [{"model": "\udcff"}, {"data.orders": "\udcff"}, {"\udcff": "1"}]
)
def test_invalid_text_bytes_are_rejected(change):
    with pytest.raises(UsageError, match="not UTF-8"):
        with_changes(load_recipe("tiny-judge"), change)


@pytest.mark.parametrize(
    ("consistency", "advantage"),
    [("none", "prompt"), ("con", "prompt"), ("none", "group"), ("con", "group"), ("inv", "group")],
)
def test_rl_takes_any_combination(consistency, advantage):
    settings = settings_of(
        "rl", load_recipe("tiny-judge"), consistency=consistency, advantage=advantage
    )
    assert (settings.consistency, settings.advantage) == (consistency, advantage)


@pytest.mark.parametrize(
    ("kind", "flags"),
    [("pa-grpo", {"consistency": "inv"}), ("grpo", {"advantage": "group"})],
)
def test_presets_are_frozen(kind, flags):
    with pytest.raises(UsageError, match="is the paper's preset"):
        settings_of(kind, load_recipe("tiny-judge"), **flags)


def test_presets_accept_their_own_combination_spelt_out():
    recipe = load_recipe("tiny-judge")
    spelt = settings_of("grpo", recipe, consistency="none", advantage="prompt")
    assert spelt == settings_of("grpo", recipe)


def test_the_fingerprint_ignores_how_training_is_watched():
    recipe = load_recipe("tiny-judge")
    watched = with_changes(recipe, {"run.log_every": "5", "run.save_every": "7"})
    changed = with_changes(recipe, {"reward.lam": "2.0"})
    assert watched.fingerprint() == recipe.fingerprint()
    assert changed.fingerprint() != recipe.fingerprint()
    assert isinstance(recipe, Recipe)


def test_a_recipe_that_is_not_utf_8_is_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes('name = "é"'.encode("latin-1"))
    with pytest.raises(UsageError, match="not UTF-8 text"):
        load_recipe(path)
