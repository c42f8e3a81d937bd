"""The term to read a section in, for who brings points: the running one, else the one that began last."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from carrick_scoreboard.osm import errors
from carrick_scoreboard.osm.answers import Section
from carrick_scoreboard.osm.client import Credential, OsmClient
from carrick_scoreboard.patrols.decision import is_term_due, today
from carrick_scoreboard.patrols.fetching import term_of
from carrick_scoreboard.patrols.shelf import Shelf


class Terms:
    """Asks OSM only when it is not known."""

    def __init__(self, shelf: Shelf, client: OsmClient, now: Callable[[], datetime]) -> None:
        self._shelf = shelf
        self._client = client
        self._now = now

    async def reading(self, section_id: int, credential: Credential) -> int:
        """The id of the term. Raises OsmError."""
        [known] = await self._shelf.look([(section_id, credential.user_id)])
        now = self._now()
        if known.term is not None and known.term.term_id is not None and not is_term_due(known.term, now):
            return known.term.term_id
        profile = await self._client.profile(credential.access_token, credential.user_id, purpose="write")
        section = profile.section(section_id)
        await self._shelf.put_term(section_id, credential.user_id, term_of(profile, section_id, now))
        if section is None:
            raise errors.SectionDenied("no_section", "OSM does not show you this section any more")
        return _latest(section, now)


def _latest(section: Section, now: datetime) -> int:
    """Points can be given between terms, too. Raises SectionDenied where there has never been a term."""
    running = section.term_on(today(now))
    if running is not None:
        return running.id
    if not section.terms:
        raise errors.SectionDenied("no_term", "the section has no terms in OSM")
    begun = [term for term in section.terms if term.starts <= today(now)] or list(section.terms)
    return max(begun, key=lambda term: (term.starts, term.id)).id
