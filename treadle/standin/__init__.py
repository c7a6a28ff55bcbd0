"""A folder for Python's search path: ``import warp`` finds treadle there, also in processes that a program starts."""
