"""One process of several that begin run after run, as `train` does; see `test_two_processes.py`."""

import json
import os
import sys
from pathlib import Path

from small_models import small_recipe

from unswayed.base.errors import RunDirectoryError
from unswayed.training.processes import is_main, joined, on_main
from unswayed.training.run_folder import RunFolder


def record(kind):
    return {"kind": kind, "model": "m", "recipe": {}, "data": {}}


def begin(number, folder):
    """A folder with a log, a fresh one, or one that holds another run."""
    path = folder / f"run{number}"
    if number % 3 == 0 and is_main():
        path.mkdir()
        (path / "train.jsonl").write_text("".join(f'{{"step": {step}}}\n' for step in range(200)))
    if number % 3 == 2 and is_main():
        RunFolder(path).prepare(record("pif"), 4)
    try:
        start = on_main(lambda: RunFolder(path).prepare(record("grpo"), 4))
    except RunDirectoryError as error:
        return {"error": str(error)}
    return start._asdict()


def main():
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    with joined(small_recipe()):
        starts = [begin(number, folder) for number in range(count)]
        (folder / f"rank{os.environ['RANK']}.json").write_text(json.dumps(starts))


if __name__ == "__main__":
    main()
    os._exit(0)  # as the command ends each of several processes
