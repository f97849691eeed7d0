"""Errors: what a command prints as one sentence instead of a traceback."""

from unswayed.errors import ItemError as ItemError
from unswayed.errors import MethodError as MethodError
from unswayed.errors import UnswayedError as UnswayedError
from unswayed.errors import UsageError as UsageError
