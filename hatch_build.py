"""Metadata hook of hatchling: the README for the package index, with URLs in place of relative links."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class LongDescription(MetadataHookInterface):
    """Sets `readme` of the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README as it appears outside the repository."""
        root = Path(self.root)
        with_urls = runpy.run_path(str(root / "docs" / "site.py"))["with_urls"]
        text = with_urls((root / "README.md").read_text(encoding="utf-8"), root / "README.md")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
