"""HTTP of the scoreboard: each module parses, calls and answers."""
