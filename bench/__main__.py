"""`python -m bench [--quick] [--only put,drain,...]`: every figure beside its counterpart, in one run."""

from __future__ import annotations

import argparse
import sys
import time

from rich.console import Console

from bench import forwarder, gauges, ingest, kafka, patrols, postgres, relay, sqlite
from bench.measure import show

CASES = {
    **postgres.CASES,
    **sqlite.CASES,
    **relay.CASES,
    **forwarder.CASES,
    **ingest.CASES,
    **kafka.CASES,
    **patrols.CASES,
    **gauges.CASES,
}
UNASKED = {"idle", "kafka-sink", "kafka-cpu", "gauges"}
"""Cases whose figures nobody asks for: a quick run leaves them out unless they are named."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of it, and only what a figure is asked of")
    parser.add_argument("--only", default="", help=f"comma list of {', '.join(CASES)}")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a ratio is below what is asked for")
    arguments = parser.parse_args()
    usual = [name for name in CASES if not (arguments.quick and name in UNASKED)]
    chosen = [name for name in arguments.only.split(",") if name] or usual
    if unknown := [name for name in chosen if name not in CASES]:
        parser.error(f"--only: unknown {', '.join(unknown)}; accepted: {', '.join(CASES)}")
    console = Console()
    results = []
    for name in chosen:
        began = time.monotonic()
        with console.status(f"measuring {name}"):
            found = list(CASES[name](arguments.quick))
        console.print(f"{name}: took {time.monotonic() - began:.0f} s")
        results += found
        if not console.is_terminal:
            show(found, console)
    show(results, console)
    missed = [result.name for result in results if result.reach is not None and result.ratio < result.reach]
    if missed:
        console.print(f"below what is asked for: {'; '.join(missed)}")
    return 1 if missed and arguments.strict else 0


if __name__ == "__main__":
    sys.exit(main())
