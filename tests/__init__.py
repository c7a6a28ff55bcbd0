"""The tests mirror the tree: ``treadle/ir/show.py`` is tested by ``tests/ir/test_show.py``."""
