"""Errors: what a command prints as one sentence instead of a traceback."""

from unswayed.base.errors import ItemError as ItemError
from unswayed.base.errors import MethodError as MethodError
from unswayed.base.errors import UnswayedError as UnswayedError
from unswayed.base.errors import UsageError as UsageError
