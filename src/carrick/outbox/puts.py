"""The answers of a bulk put."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload
from uuid import UUID

from carrick.entry import Put, State


class Puts(Sequence[Put]):
    """The answers of a bulk put of new entries, made when looked at: most callers never do."""

    def __init__(self, ids: Sequence[str]) -> None:
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> Put: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Put]: ...
    def __getitem__(self, index: int | slice) -> Put | Sequence[Put]:
        if isinstance(index, slice):
            return Puts(self._ids[index])
        return Put(UUID(self._ids[index]), True, State.PENDING)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list
