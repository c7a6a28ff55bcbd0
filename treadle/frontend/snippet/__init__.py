"""Functions written in C: a snippet's text becomes the syntax tree that a Python function would have.

``text`` does the directives of the preprocessor and takes the spellings of C++ away, so that a C parser can read the
rest. ``tree`` makes Python statements of C statements, ``expressions`` their expressions. ``parser`` translates them
with C's rules for types: operands are converted to a common type, and values to the type of what they are assigned to.
"""
