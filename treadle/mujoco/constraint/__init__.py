"""Constraints of worlds: their rows, and the reference accelerations that pull them where they should be."""
