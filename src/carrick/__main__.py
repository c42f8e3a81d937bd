"""`python -m carrick`: the same as the command `carrick`."""

from __future__ import annotations

from carrick.cli import main

if __name__ == "__main__":
    main()
