"""Python imports this at start-up where this folder is on the path, so in every process that a test starts too.

``import warp`` then gives treadle, while ``warp.tests`` and ``warp.examples`` come from the installed ``warp-lang``:
they are what treadle is tested with. With CONFORMANCE_MODULE=warp nothing is changed, and Warp itself is run.
"""

import importlib.machinery
import os
import sys
from importlib.abc import MetaPathFinder

MATERIAL = ("tests", "examples")


class Material(MetaPathFinder):
    """Finds the tests and examples of the installed package, without importing the package."""

    def __init__(self):
        spec = importlib.machinery.PathFinder.find_spec("warp")
        self.home = next(iter(spec.submodule_search_locations)) if spec else None

    def find_spec(self, fullname, path=None, target=None):
        top, *parts = fullname.split(".")
        if top != "warp" or not parts or parts[0] not in MATERIAL or self.home is None:
            return None
        return importlib.machinery.PathFinder.find_spec(fullname, [os.path.join(self.home, *parts[:-1])])


if os.environ.get("CONFORMANCE_MODULE", "treadle") != "warp":
    import treadle

    treadle.install_as_warp()
    if os.environ.get("CONFORMANCE_OBJECTS"):  # every kernel becomes an object for other systems too, see targets.py
        from tests.targets import FOREIGN, install

        install([*FOREIGN], os.environ["CONFORMANCE_OBJECTS"])
    sys.meta_path.insert(0, Material())
