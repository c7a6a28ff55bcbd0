"""Floor 4: from a user's Python function to a typed program."""
