"""What ``pyproject.toml`` cannot say: a wheel has type stubs, which are made from the package when it is built."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithStubs(build_py):
    """Copies the modules, then writes the stubs beside the copies."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:  # the sources stay clean; `python -m treadle stubs` writes them there if wished
            sys.path.insert(0, str(Path(__file__).resolve().parent))
            from treadle import stubs

            stubs.write(Path(self.build_lib) / "treadle")


setup(cmdclass={"build_py": BuildWithStubs})
