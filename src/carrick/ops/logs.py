"""Logs: one line per event, as JSON where a machine reads them and readable in a terminal.

Every line of JSON has its `level` and, in the words that collectors of logs look for, its `severity`.
"""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor

SEVERITIES = {"warning": "WARN"}
"""Where the word is not the level's own in capitals."""

SHARED: list[Processor] = [
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def add_severity(_: object, __: str, event: EventDict) -> EventDict:
    """DEBUG, INFO, WARN, ERROR or CRITICAL."""
    level = str(event["level"])
    return {**event, "severity": SEVERITIES.get(level, level.upper())}


class ToStandardError(logging.Handler):
    """Writes to whatever standard error is at the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except Exception:  # noqa: BLE001  a log that cannot be written must not stop the work
            self.handleError(record)


def configure_logs(level: int = logging.INFO) -> None:
    """Send all logs to standard error. Called once, by the command that runs."""
    terminal = sys.stderr.isatty()
    written: list[Processor] = [add_severity, structlog.processors.JSONRenderer()]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=SHARED,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            *([structlog.dev.ConsoleRenderer()] if terminal else written),
        ],
    )
    handler = ToStandardError()
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
