"""How fast something goes, lately."""

from __future__ import annotations

from collections import deque

WINDOW_SECONDS = 60.0


class Rate:
    """A sum that grows, as a rate over the last minute. Times come from the caller's clock, in seconds."""

    def __init__(self, window_seconds: float = WINDOW_SECONDS) -> None:
        self._window = window_seconds
        self._points: deque[tuple[float, int]] = deque()

    def note(self, now: float, total: int) -> None:
        """The sum stands at `total` now."""
        self._points.append((now, total))
        while len(self._points) > 2 and now - self._points[1][0] >= self._window:
            self._points.popleft()

    def per_second(self) -> float:
        """The rate between the oldest and the newest note within the window; 0 when there is only one."""
        if len(self._points) < 2:
            return 0.0
        (first, before), (last, after) = self._points[0], self._points[-1]
        return (after - before) / (last - first) if last > first else 0.0
