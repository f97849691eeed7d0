"""What recipes say of GPUs, checkpoints and losses, in the words of trl."""

import pytest
from small_models import small_recipe

from unswayed.base.errors import UnknownNameError, UsageError
from unswayed.training import rollout_checks
from unswayed.training.launch_files import launch_file, launch_names, launch_title
from unswayed.training.pa_grpo import grpo_config
from unswayed.training.recipe import load_recipe, recipe_names
from unswayed.training.sampling import split_step
from unswayed.training.trainer_arguments import load_arguments, save_steps


@pytest.fixture(autouse=True)
def with_vllm(monkeypatch):
    """As if it were installed."""
    monkeypatch.setattr(rollout_checks, "check_vllm", lambda _engine: None)


@pytest.fixture
def config(planned, tmp_path):
    """The configuration of trl's trainer."""
    return lambda **changes: grpo_config(planned("rl", **changes), tmp_path)


@pytest.mark.parametrize(
    ("steps", "updates", "every"),
    [
        (1, 1, 1),
        (7, 1, 1),
        (20, 1, 2),
        (95, 1, 10),
        (250, 1, 25),
        (5_000, 1, 50),
        (5, 4, 4),
        (100, 4, 8),
        (10_000, 4, 48),
        (10_000, 64, 64),
    ],
)
def test_checkpoints_fit_the_length_of_the_run(steps, updates, every):
    recipe = small_recipe(run_save_every="auto", optimiser_inner_updates=str(updates))
    assert save_steps(recipe, steps) == every


def test_a_number_of_steps_between_checkpoints_stays_what_it_is():
    assert save_steps(small_recipe(run_save_every="7"), 1_000) == 7
    assert save_steps(small_recipe(run_save_every="0"), 1_000) == 0


def test_the_paper_is_what_stands_where_nothing_is_asked(config):
    made = config()
    assert (made.loss_type, made.use_vllm) == ("grpo", False)
    assert made.vllm_importance_sampling_correction is False
    assert "attn_implementation" not in load_arguments(small_recipe())


def test_a_server_is_waited_for_and_corrected_for_as_asked(config):
    made = config(
        rollout_engine="vllm-server",
        rollout_server_url="http://127.0.0.1:1",
        rollout_server_timeout="900",
        rollout_correction="token_truncate",
        rollout_correction_cap="2.0",
        optimiser_loss="dapo",
    )
    assert (made.use_vllm, made.vllm_mode, made.vllm_server_timeout) == (True, "server", 900)
    assert made.vllm_server_base_url == "http://127.0.0.1:1"
    assert made.vllm_importance_sampling_correction is True
    assert made.vllm_importance_sampling_mode == "token_truncate"
    assert made.vllm_importance_sampling_clip_max == 2
    assert made.loss_type == "dapo"


def test_colocated_vllm_sleeps_if_asked(config):
    colocated = {"rollout_engine": "vllm-colocate", "rollout_gpu_memory": "0.4"}
    for asked in (True, False):
        made = config(**colocated, rollout_sleep=str(asked).lower())
        assert made.vllm_enable_sleep_mode is asked
        assert (made.use_vllm, made.vllm_mode) == (True, "colocate")
        assert made.vllm_gpu_memory_utilization == 0.4


def test_the_attention_kernel_reaches_the_model(trained, tmp_path):
    recipe = small_recipe(run_attention="eager")
    assert load_arguments(recipe)["attn_implementation"] == "eager"
    assert trained(tmp_path, "pif", recipe=recipe).steps == 2
    assert recipe.fingerprint() == small_recipe().fingerprint()  # it changes nothing learned


@pytest.mark.parametrize("objective", ["pa-grpo", "grpo"])
def test_a_preset_keeps_the_papers_loss(planned, objective):
    with pytest.raises(UsageError, match=r"'dapo' is not the paper's.*Use: train rl"):
        planned(objective, optimiser_loss="dapo")


@pytest.mark.parametrize("name", [n for n in recipe_names() if n.startswith("pa-grpo-")])
@pytest.mark.parametrize("n_processes", [1, 4, 8])
def test_a_step_of_the_shipped_recipes_divides(name, n_processes):
    recipe = load_recipe(name)
    micro, passes = split_step(recipe, 5 if "mcq" in name else 2, n_processes)
    assert micro == recipe.run.micro_batch
    assert micro * passes * n_processes == (320 if "mcq" in name else 256)


@pytest.mark.parametrize("name", ["pa-grpo-judge-qwen3-32b", "pa-grpo-mcq-qwen3-32b"])
def test_the_largest_model_is_sampled_on_gpus_of_its_own(name):
    recipe = load_recipe(name)
    assert recipe.rollout.engine == "vllm-server"
    assert recipe.rollout.server_url == "http://127.0.0.1:8000"


def test_launch_files_are_found_by_name():
    for name in launch_names():
        assert launch_file(name).read_text().startswith(f"# {launch_title(name)}\n")
    with pytest.raises(UnknownNameError, match="Did you mean 'fsdp2'"):
        launch_file("fsdp")
