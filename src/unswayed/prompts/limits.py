"""Templates that never end or fill the memory, found before they are used.

A sandbox keeps a template from the machine's files and secrets, not from its time and memory: one
multiplication makes gigabytes, two loops run for days. So a template that computes is rendered
once in a process of its own that may use 5 s and 512 MiB (about 0.1 s for an ordinary one).
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from unswayed.base.errors import TemplateError

SECONDS: Final = 5
MEBIBYTES: Final = 512
PATIENCE_S: Final = 120.0
"""For a machine so busy that 5 s of its time take long, and systems without limits."""
FULL: Final = 3

RENDERING: Final = f"""
import json, sys
from jinja2.sandbox import ImmutableSandboxedEnvironment
given = json.load(sys.stdin)
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, ({MEBIBYTES * 2**20},) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS + 1}))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except ImportError:
    pass
environment = ImmutableSandboxedEnvironment(extensions=["jinja2.ext.loopcontrols"])
try:
    environment.from_string(given["source"]).render(given["fields"])
except MemoryError:
    sys.exit({FULL})
except Exception:
    pass
"""
"""Any other failure is reported where the template is used."""


def check_limits(source: str, fields: Mapping[str, object], *, where: str) -> None:
    """Raise `TemplateError` unless a template ends within 5 s and stays below 512 MiB."""
    wrong = _excess(source, json.dumps(fields)) if _computes(source) else None
    if wrong is not None:
        raise TemplateError(
            f"{where}: {wrong} for a prompt of a few words. Remove the loop or the product that "
            "grows so large."
        )


def _computes(source: str) -> bool:
    """Return True if it does more than show what it is given and loop over it."""
    import jinja2
    from jinja2 import nodes

    try:
        tree = jinja2.Environment(extensions=["jinja2.ext.loopcontrols"]).parse(source)
    except (jinja2.TemplateSyntaxError, RecursionError, MemoryError):
        return True
    kinds = (nodes.BinExpr, nodes.Concat, nodes.Call, nodes.CallBlock, nodes.Filter, nodes.Macro)
    return any(tree.find(kind) is not None for kind in kinds)


@functools.lru_cache(maxsize=64)
def _excess(source: str, fields: str) -> str | None:
    given = json.dumps({"source": source, "fields": json.loads(fields)})
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-c", RENDERING],
            input=given.encode(),
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"takes longer than {SECONDS} s"
    if ended.returncode == FULL:
        return f"fills {MEBIBYTES} MiB of memory"
    if ended.returncode < 0:  # ended by the system
        return f"takes longer than {SECONDS} s"
    return None
