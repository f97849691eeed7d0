"""What every test runs under: one torch thread, no deadlines, the same examples in CI."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two are many times slower on a busy machine
os.environ.pop("COLUMNS", None)  # pytest-xdist hands its terminal's width to the workers

from hypothesis import settings

settings.register_profile("unswayed", deadline=None)  # tests never assert a time
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "unswayed")
