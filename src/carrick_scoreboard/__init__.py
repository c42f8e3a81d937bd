"""The scoreboard: patrol points of Online Scout Manager (OSM), shown on devices and changed by leaders, right once."""
