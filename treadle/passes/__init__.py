"""Floor 5: passes, functions ``Func -> Func`` that ``pipeline`` puts in order, and the analyses that codegen asks."""
