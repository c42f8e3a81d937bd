"""What the scoreboard keeps in the database. One class per subject; one text of every query per database."""
