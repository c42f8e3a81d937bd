"""Stops a build that would leave the web pages out: what is installed from it could not show them.

An editable install, as `make setup` makes it, is for those who change the code: it works without.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PagesHook(BuildHookInterface[Any]):
    """Looks for the pages that pyproject.toml lists, before a wheel or a source archive is made."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raises RuntimeError, with the command that builds the pages."""
        if version == "editable":
            return
        missing = [page for page in self.config["pages"] if not (Path(self.root) / page).is_file()]
        if missing:
            raise RuntimeError(f"the web pages are not built: {', '.join(missing)} missing; run: make web")
