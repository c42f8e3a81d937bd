"""Everything that knows how OSM talks. Outside this room nobody sees its answers."""
