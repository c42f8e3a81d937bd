"""Logs: one line per event, as JSON where a machine reads them and readable in a terminal."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import Processor

SHARED: list[Processor] = [
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure_logs(level: int = logging.INFO) -> None:
    """Send all logs to standard error. Called once, by the command that runs."""
    terminal = sys.stderr.isatty()
    renderer: Processor = structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=SHARED,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            renderer,
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
