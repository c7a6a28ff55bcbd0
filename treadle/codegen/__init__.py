"""Floor 6: from IR to machine code. ``emit`` writes LLVM text, ``cpu`` and ``nvptx`` build it, ``native`` has
helpers."""
