"""A run goes on from the newest checkpoint that is whole, whatever else lies in its folder."""

import json
import os
import shutil

import pytest
from commands import result_of

from unswayed.base.errors import RunDirectoryError
from unswayed.training.checkpoints import checkpoint_defect
from unswayed.training.protocol import Stop
from unswayed.training.run import ResumeWarning, finish
from unswayed.training.run import result_of as left_by
from unswayed.training.run_folder import RunFolder
from unswayed.training.weight_files import weights_defect

STEPS = "4"
"""Of five to an epoch: a trainer that is resumed at the last step has more data to go on with."""


GIVEN = {"optimiser_steps": STEPS, "run_save_every": "1", "run_keep": "9"}


@pytest.fixture(
    scope="module", params=[{}, {"lora": "{rank = 4, alpha = 8}"}], ids=["full", "lora"]
)
def whole(request, trained, tmp_path_factory):
    """An undisturbed run with all its checkpoints, and what it was started with."""
    out = tmp_path_factory.mktemp("whole") / "run"
    given = {"items": 10, **GIVEN, **request.param}
    trained(out, **given)
    return out, given


def cut(path, share=0.5):
    os.truncate(path, int(path.stat().st_size * share))


def weights_of(folder):
    return next(folder.glob("*.safetensors"))


def configurations(at):
    return [*at.glob("config.json"), *at.glob("adapter_config.json")]


def changed(at, **fields):
    record = json.loads((at / "training.json").read_text())
    (at / "training.json").write_text(json.dumps({**record, **fields}))


DAMAGES = {
    "weights cut": lambda at: cut(weights_of(at)),
    "weights without their last byte": lambda at: os.truncate(
        weights_of(at), weights_of(at).stat().st_size - 1
    ),
    "weights empty": lambda at: cut(weights_of(at), 0),
    "no weights": lambda at: weights_of(at).unlink(),
    "optimizer.pt cut": lambda at: cut(at / "optimizer.pt"),
    "no optimizer.pt": lambda at: (at / "optimizer.pt").unlink(),
    "scheduler.pt cut": lambda at: cut(at / "scheduler.pt"),
    "no scheduler.pt": lambda at: (at / "scheduler.pt").unlink(),
    "rng_state.pth cut": lambda at: cut(at / "rng_state.pth", 0.9),
    "no rng_state.pth": lambda at: (at / "rng_state.pth").unlink(),
    "trainer_state.json cut": lambda at: cut(at / "trainer_state.json"),
    "no trainer_state.json": lambda at: (at / "trainer_state.json").unlink(),
    "training.json cut": lambda at: cut(at / "training.json"),
    "training.json of no number of processes": lambda at: changed(at, processes="two"),
    "training.json of too many processes": lambda at: changed(at, processes=10**9),
    "configuration empty": lambda at: [cut(path, 0) for path in configurations(at)],
    "no training.json": lambda at: (at / "training.json").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_not_whole_is_seen_and_passed_over(whole, planned, tmp_path, damage):
    out, given = whole
    newest = tmp_path / "checkpoint-4"
    for step in (3, 4):
        shutil.copytree(out / f"checkpoint-{step}", tmp_path / f"checkpoint-{step}")
    assert checkpoint_defect(newest, 4) is None
    assert checkpoint_defect(newest, 3) == "no trainer_state.json of step 3"
    damage(newest)
    assert checkpoint_defect(newest, 4) is not None
    plan = planned(**given)
    start = RunFolder(tmp_path).prepare(plan.record, plan.steps)
    assert start.resume == 3
    assert str(newest) in start.warnings[0]
    assert newest.exists()  # until the next checkpoint is whole


def test_a_changed_byte_in_any_file_prevents_resuming(whole, planned, tmp_path):
    out, given = whole
    plan = planned(**given)
    for step in (3, 4):
        shutil.copytree(out / f"checkpoint-{step}", tmp_path / f"checkpoint-{step}")
    at, folder = tmp_path / "checkpoint-4", RunFolder(tmp_path)
    assert folder.prepare(plan.record, 5).resume == 4
    files = sorted(path for path in at.rglob("*") if path.is_file())
    for path in set(files) - {at / "training.json"}:
        whole_file = path.read_bytes()
        middle = len(whole_file) // 2
        path.write_bytes(
            whole_file[:middle] + bytes([whole_file[middle] ^ 1]) + whole_file[middle + 1 :]
        )
        start = folder.prepare(plan.record, 5)
        assert (start.resume, path.name in "".join(start.warnings)) == (3, True)
        path.write_bytes(whole_file)
    assert folder.prepare(plan.record, 5).resume == 4
    assert len(files) > 5


def test_damaged_tables_of_contents_are_a_defect(whole, tmp_path):
    out, _ = whole
    at = tmp_path / "checkpoint-4"
    shutil.copytree(out / at.name, at)
    archive, found = at / "scheduler.pt", set()
    content = archive.read_bytes()
    for place in range(content.index(b"PK\1\2"), len(content)):
        flipped = bytes([content[place] ^ 0x80])
        archive.write_bytes(content[:place] + flipped + content[place + 1 :])
        found.add(checkpoint_defect(at, 4))
    assert found == {None, "scheduler.pt is incomplete"}
    archive.write_bytes(content)
    weights = weights_of(at)
    weights.write_bytes(weights.read_bytes().replace(b'"data_offsets":[0,', b'"data_offsets":[0.'))
    assert checkpoint_defect(at, 4) == f"{weights.name} is not a safetensors file"


def test_a_checkpoint_needs_random_numbers_of_both_processes(whole, tmp_path):
    out, _ = whole
    at = tmp_path / "checkpoint-4"
    shutil.copytree(out / at.name, at)
    changed(at, processes=2, files=None)
    (at / "rng_state.pth").rename(at / "rng_state_0.pth")
    assert checkpoint_defect(at, 4) == "no rng_state_1.pth"
    shutil.copy(at / "rng_state_0.pth", at / "rng_state_1.pth")
    assert checkpoint_defect(at, 4) is None


def test_weights_in_several_files_need_all_of_them(word_model, tmp_path):
    from transformers import AutoModelForCausalLM

    AutoModelForCausalLM.from_pretrained(word_model).save_pretrained(
        tmp_path, max_shard_size="10KB"
    )
    parts = sorted(tmp_path.glob("*.safetensors"))
    assert len(parts) > 1
    assert weights_defect(tmp_path) is None
    cut(parts[1])
    assert parts[1].name in weights_defect(tmp_path)
    parts[1].unlink()
    assert parts[1].name in weights_defect(tmp_path)


def test_shares_of_weights_are_whole_with_what_is_written_last(whole, tmp_path):
    out, _ = whole
    at = tmp_path / "checkpoint-4"
    shutil.copytree(out / at.name, at)
    changed(at, files=None)
    weights_of(at).unlink()
    (at / "optimizer.pt").unlink()
    for name in ("pytorch_model_fsdp_0", "optimizer_0"):
        (at / name).mkdir()
        assert checkpoint_defect(at, 4) is not None
        (at / name / ".metadata").touch()
    assert checkpoint_defect(at, 4) is None
    (at / "latest").write_text("global_step4")
    assert checkpoint_defect(at, 4) == "no folder 'global_step4', which latest names"
    (at / "global_step4").mkdir()
    (at / "scheduler.pt").unlink()
    assert checkpoint_defect(at, 4) is None


def test_run_resumes_from_newest_whole_checkpoint(whole, trained, tmp_path):
    out, given = whole
    for step in (2, 3, 4):
        shutil.copytree(out / f"checkpoint-{step}", tmp_path / f"checkpoint-{step}")
    cut(weights_of(tmp_path / "checkpoint-3"))
    (tmp_path / "checkpoint-4" / "optimizer.pt").unlink()
    shutil.copy(out / "train.jsonl", tmp_path)
    with pytest.warns(ResumeWarning) as warned:
        result = trained(tmp_path, **given)
    told = [str(warning.message) for warning in warned if warning.category is ResumeWarning]
    assert ["checkpoint-4" in told[0], "checkpoint-3" in told[1], len(told)] == [True, True, 2]
    assert result.resumed_from == 2
    assert result_of(tmp_path) == result_of(out)


def test_one_that_cannot_be_read_is_none_of_those_kept(whole, planned, tmp_path, monkeypatch):
    out, given = whole
    for step in (1, 4):
        shutil.copytree(out / f"checkpoint-{step}", tmp_path / f"checkpoint-{step}")
    cut(tmp_path / "checkpoint-4" / "optimizer.pt")
    folder, seen = RunFolder(tmp_path), []
    shutil.copytree(out / "checkpoint-2", tmp_path / ".writing" / "checkpoint-2")
    record = planned(**given).record

    def removing(path, **options):
        seen.append({at.name for at in tmp_path.glob("checkpoint-*")})

    monkeypatch.setattr(shutil, "rmtree", removing)  # as if killed before anything is removed
    folder.keep_checkpoint(2, record, 1)
    assert {at.name for at in tmp_path.glob("checkpoint-*")} == {"checkpoint-2"}
    assert all("checkpoint-2" in names for names in seen)  # whole before another loses its name
    assert checkpoint_defect(folder.checkpoint(2), 2) is None


@pytest.mark.parametrize("kept", [0, 4], ids=["no checkpoint", "checkpoint of the last step"])
def test_a_kill_while_the_result_is_saved_is_made_good(whole, trained, tmp_path, kept):
    out, given = whole
    shutil.copytree(out, tmp_path / "run")
    for path in (tmp_path / "run").glob("checkpoint-*"):
        if path.name != f"checkpoint-{kept}":
            shutil.rmtree(path)
    cut(weights_of(tmp_path / "run"))
    with pytest.warns(ResumeWarning, match="its weights cannot be read"):
        result = trained(tmp_path / "run", **given)
    assert (result.resumed_from, result.steps) == (kept or None, 4)
    assert result_of(tmp_path / "run") == result_of(out)


def test_a_kill_before_old_checkpoints_go_is_repaired(trained, tmp_path, monkeypatch):
    def die(folder, step):
        if folder.checkpoint(step).exists():
            raise KeyboardInterrupt

    given = {**GIVEN, "optimiser_steps": "2", "run_keep": "1"}
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "_discard", die)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path, **given)
    assert {at.name for at in tmp_path.glob("checkpoint-*")} == {"checkpoint-1", "checkpoint-2"}
    assert trained(tmp_path, **given).resumed_from == 2
    assert {at.name for at in tmp_path.glob("checkpoint-*")} == {"checkpoint-2"}
    assert not (tmp_path / ".writing").exists()


def test_a_run_without_weights_has_not_finished(planned, tmp_path):
    plan, folder = planned(), RunFolder(tmp_path)
    folder.prepare(plan.record, plan.steps)
    result = left_by(plan, folder, Stop(4, interrupted=False), resumed_from=None)
    with pytest.raises(RunDirectoryError, match="saved model is incomplete"):
        finish(plan, folder, result)
    assert "finished" not in folder.read_record()
