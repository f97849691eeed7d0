"""Compiled templates, kept where Python keeps the bytecode of modules: compiling them takes longer
than writing a report with them."""

from __future__ import annotations

import contextlib
import sys
from importlib.metadata import version
from importlib.util import cache_from_source
from pathlib import Path
from pickle import UnpicklingError

from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket

from unswayed.base.version import VERSION


class KeptCode(FileSystemBytecodeCache):
    """One file of code for each template, beside that of the source file `module`, which may not exist.

    A file of another text or version is compiled and written again; one that cannot be written is not kept.
    """

    def __init__(self, module: Path) -> None:
        folder = Path(cache_from_source(str(module))).parent
        super().__init__(str(folder), f"%s.{sys.implementation.cache_tag}.template")
        self._compiler = f"jinja2 {version('jinja2')}, unswayed {VERSION}"

    def get_source_checksum(self, source: str) -> str:
        """Return a hash of a template and of what compiles it."""
        return super().get_source_checksum(f"{self._compiler}\n{source}")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a bucket its code, if it is kept and whole."""
        with contextlib.suppress(OSError, EOFError, UnpicklingError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code of a bucket, unless Python was told to keep none."""
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                Path(self.directory).mkdir(parents=True, exist_ok=True)
                super().dump_bytecode(bucket)
