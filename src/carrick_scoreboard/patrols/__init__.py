"""Patrol scores for devices: what is known, what to do about it, and how OSM is asked as rarely as can be."""

from carrick_scoreboard.patrols.patrols import Patrols, Scores

__all__ = ["Patrols", "Scores"]
