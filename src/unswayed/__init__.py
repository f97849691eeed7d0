"""Unswayed: judges and multiple-choice answers that depend on what is compared, never on where it stands.

    import unswayed as us

    result = us.audit("tiny/judge")
    result.metrics["methods"]["direct"]["consistency"]

Names load when they are first used, so importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from unswayed.base.version import VERSION

if TYPE_CHECKING:
    from unswayed import methods as methods
    from unswayed.api import assert_unswayed as assert_unswayed
    from unswayed.api import audit as audit
    from unswayed.api import calibrate as calibrate
    from unswayed.backends.function import FunctionJudge as FunctionJudge
    from unswayed.base.errors import UnswayedError as UnswayedError
    from unswayed.calls.judge import Judge as Judge
    from unswayed.calls.judging import Judged as Judged
    from unswayed.methods.fitted_file import load_method as load_method
    from unswayed.model.decisions import Decision as Decision
    from unswayed.model.decisions import Verdict as Verdict
    from unswayed.model.items import Item as Item
    from unswayed.model.items import Task as Task
    from unswayed.model.items import load_items as load_items
    from unswayed.model.presentation import Presentation as Presentation
    from unswayed.ranking import rank as rank
    from unswayed.result import AuditResult as AuditResult
    from unswayed.sources import load_data as load_data

__version__ = VERSION

_WHERE = {
    "AuditResult": "unswayed.result:AuditResult",
    "Decision": "unswayed.model.decisions:Decision",
    "FunctionJudge": "unswayed.backends.function:FunctionJudge",
    "Item": "unswayed.model.items:Item",
    "Judge": "unswayed.calls.judge:Judge",
    "Judged": "unswayed.calls.judging:Judged",
    "Presentation": "unswayed.model.presentation:Presentation",
    "Task": "unswayed.model.items:Task",
    "UnswayedError": "unswayed.base.errors:UnswayedError",
    "Verdict": "unswayed.model.decisions:Verdict",
    "assert_unswayed": "unswayed.api:assert_unswayed",
    "audit": "unswayed.api:audit",
    "calibrate": "unswayed.api:calibrate",
    "load_data": "unswayed.sources:load_data",
    "load_items": "unswayed.model.items:load_items",
    "load_method": "unswayed.methods.fitted_file:load_method",
    "methods": "unswayed.methods",
    "rank": "unswayed.ranking:rank",
}

__all__ = [
    "AuditResult", "Decision", "FunctionJudge", "Item", "Judge", "Judged", "Presentation", "Task",
    "UnswayedError", "Verdict", "assert_unswayed", "audit", "calibrate", "load_data", "load_items",
    "load_method", "methods", "rank",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'unswayed' has no attribute {name!r}")
    module, _, attribute = _WHERE[name].partition(":")
    loaded = importlib.import_module(module)
    value = getattr(loaded, attribute) if attribute else loaded
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
