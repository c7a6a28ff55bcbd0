"""Floor 0: what every room needs and that needs no room itself. Imports nothing of treadle."""
