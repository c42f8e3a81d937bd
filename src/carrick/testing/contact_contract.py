"""The contract of contacts: their rules as tests that any database can run.

Fixtures, all of one fresh database: `contacts`, a Contacts; `store`, the Store of the engine there; `connect`, which
opens a connection of an application.
"""

from __future__ import annotations

from carrick.testing.contract.contact_merges import ConflictContract, MergeContract
from carrick.testing.contract.contacts import ArrivalContract, CallerContactContract, ResolveContract, TraitContract


class ContactContract(
    ResolveContract, TraitContract, MergeContract, ConflictContract, CallerContactContract, ArrivalContract
):
    """All rules of contacts together."""
