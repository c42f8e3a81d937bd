"""What is shown of a section while points are on their way: last known scores, and changes that OSM has taken."""

from __future__ import annotations

from collections.abc import Mapping

from carrick_scoreboard.patrols.shelf import Shelf


class Wall:
    """The last known scores. No call to OSM."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def seen(self, section_id: int) -> Mapping[str, int]:
        """The scores that were last shown, by patrol."""
        scores = await self._shelf.last_scores(section_id)
        return {} if scores is None else {patrol.id: patrol.points for patrol in scores.patrols}

    async def names(self, section_id: int) -> Mapping[str, str]:
        """The names of patrols, as far as they are known."""
        scores = await self._shelf.last_scores(section_id)
        return {} if scores is None else {patrol.id: patrol.name for patrol in scores.patrols}

    async def show(self, section_id: int, patrol_id: str, score: int) -> None:
        """OSM has a new score: whoever asks from now on sees it."""
        await self._shelf.change_scores(section_id, {patrol_id: score})

    async def tell(self, section_id: int) -> None:
        """Points have been given, or have arrived: everybody who shows the section should ask."""
        await self._shelf.tell(section_id)
