"""`python -m carrick_osmsim`: the same as the command `carrick-osmsim`."""

from __future__ import annotations

from carrick_osmsim.command import main

if __name__ == "__main__":
    main()
