"""Django's database connections: `django.db.connection`, `connections["alias"]`, inside transaction.atomic() or not."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeVar

from carrick.errors import UnsupportedConnection
from carrick.outbox.adapters.adapter import Dialect, drive, statement_only
from carrick.outbox.adapters.placeholders import lite_pyformat
from carrick.outbox.adapters.sqlite_transaction import in_sqlite_transaction
from carrick.outbox.adapters.transaction import in_postgres_transaction, unprepared
from carrick.outbox.statement import Row, Step, Steps

T = TypeVar("T")


class DjangoAdapter:
    """A Django connection. Statements go through its cursors, so its query log and execute wrappers see them."""

    is_async: Final[Literal[False]] = False
    can_bulk: Final[Literal[False]] = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def dialect(self) -> Dialect:
        """The database behind the connection."""
        match self._connection.vendor:
            case "postgresql":
                return "postgresql"
            case "sqlite":
                return "sqlite"
            case other:
                raise UnsupportedConnection("connection", f"Django speaks {other} there", "postgresql, sqlite")

    def run(self, steps: Steps[T]) -> T:
        """Run the operation inside the atomic block; outside one, as Django's autocommit says."""
        lite = self.dialect == "sqlite"
        self._connection.ensure_connection()
        driver = self._connection.connection
        if lite:
            steps = in_sqlite_transaction(steps, driver)
        else:
            steps = in_postgres_transaction(steps, driver, autocommit=self._connection.get_autocommit())
        with self._connection.cursor() as cursor, unprepared(driver):
            return drive(steps, lambda step: _perform(cursor, step, lite=lite))


def _perform(cursor: Any, step: Step, *, lite: bool) -> list[Row]:
    sql, params = statement_only(step)
    if lite:
        cursor.execute(lite_pyformat(sql), dict(params))
    else:
        cursor.execute(sql, {name: _not_bytea(value) for name, value in params.items()})
    return [] if cursor.description is None else [tuple(row) for row in cursor.fetchall()]


def _not_bytea(value: Any) -> Any:
    """Bytes are JSON text here."""
    return value.decode() if isinstance(value, bytes) else value
