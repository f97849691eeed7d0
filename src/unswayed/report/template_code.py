"""Compiled templates, kept where Python keeps the bytecode of modules: compiling them takes longer
than writing a report with them."""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import sys
from importlib.metadata import version
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from typing import Final

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from unswayed.base.files import whole_file
from unswayed.base.version import VERSION

SEAL_BYTES: Final = 32


class KeptCode(BytecodeCache):
    """One file of code for each template, a hash of it and of what it was made from in front.

    A file that does not fit is compiled and written again; one that cannot be written is not kept.
    The code lies where that of the source file `module`, which may not exist, would.
    """

    def __init__(self, module: Path) -> None:
        self._folder = Path(cache_from_source(str(module))).parent
        self._compiler = f"jinja2 {version('jinja2')}, unswayed {VERSION}"

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a bucket its code, if it is kept."""
        try:
            kept = self._file(bucket).read_bytes()
        except OSError:
            return
        code = kept[SEAL_BYTES:]
        if kept[:SEAL_BYTES] == self._seal(bucket, code):
            bucket.code = marshal.loads(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code of a bucket, unless Python was told to keep none."""
        if sys.dont_write_bytecode:
            return
        code = marshal.dumps(bucket.code)
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            with whole_file(self._file(bucket)) as file:
                file.write(self._seal(bucket, code) + code)

    def _file(self, bucket: Bucket) -> Path:
        return self._folder / f"{bucket.key}.{sys.implementation.cache_tag}.template"

    def _seal(self, bucket: Bucket, code: bytes) -> bytes:
        templates = bucket.environment
        syntax = (templates.autoescape, templates.trim_blocks, templates.lstrip_blocks)
        source = repr((self._compiler, syntax, bucket.checksum))
        return hashlib.sha256(MAGIC_NUMBER + source.encode() + code).digest()
