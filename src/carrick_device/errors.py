"""What stops the device client on purpose."""

from __future__ import annotations


class DeviceError(Exception):
    """It cannot go on until a person changes something; the message says what."""
