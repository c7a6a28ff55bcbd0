"""The emitter: from a scalarized ``Func`` and its lane facts to LLVM text, for any gang width."""
