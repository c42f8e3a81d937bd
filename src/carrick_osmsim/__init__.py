"""A simulator of Online Scout Manager: its OAuth, its patrols, its limits and its oddities, with a control panel.

It shares no code with any client of OSM, so that a misunderstanding cannot hide on both sides.
"""
