"""`python -m carrick_device`: the same as the command `carrick-device`."""

from __future__ import annotations

from carrick_device.command import main

if __name__ == "__main__":
    main()
