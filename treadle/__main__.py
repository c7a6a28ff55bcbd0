"""``python -m treadle run script.py [arguments]``: run a program written for NVIDIA Warp, unchanged.

``python -m treadle stubs [folder]``: write what type checkers read, beside the sources of an editable install.

``python -m treadle mujoco check|bench|rollout scene.xml``: compare a model with MuJoCo's own engine, time or run it.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import sys
from pathlib import Path


def main(argv: list[str] | None = None) -> int:
    """The command line. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m treadle", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a script in which `import warp` gives treadle")
    run.add_argument("-m", dest="module", action="store_true", help="the script is a module's name, as for python -m")
    run.add_argument("script")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    stubs = commands.add_parser("stubs", help="write type stubs; an installed wheel has them already")
    stubs.add_argument("folder", nargs="?", help="where; the package's own folder if none is said")
    physics = commands.add_parser("mujoco", add_help=False, help="check, bench or rollout scene.xml")
    physics.add_argument("arguments", nargs=argparse.REMAINDER)
    given, options = parser.parse_known_args(argv)
    if given.command == "mujoco":
        given.arguments[:0] = options
    elif options:
        parser.error(f"unrecognized arguments: {' '.join(options)}")
    commanded = {"stubs": _stubs, "mujoco": _mujoco, "run": _run}
    return commanded[given.command](given)


def _mujoco(given: argparse.Namespace) -> int:
    """The physics has commands of its own: ``python -m treadle.mujoco``."""
    sys.argv[1:] = given.arguments
    runpy.run_module(f"{__package__}.mujoco", run_name="__main__", alter_sys=True)
    return 0


def _stubs(given: argparse.Namespace) -> int:
    from .stubs import write

    for path in write(Path(given.folder or os.path.dirname(os.path.abspath(__file__)))):
        print(path)
    return 0


def _run(given: argparse.Namespace) -> int:
    from . import install_as_warp
    from .base.config import for_children

    package = os.path.dirname(os.path.abspath(__file__))
    standin = os.path.join(package, "standin")
    install_as_warp()
    for_children(os.pathsep.join([standin, os.path.dirname(package)]))
    sys.argv = [given.script, *given.arguments]
    home = os.getcwd() if given.module else os.path.dirname(os.path.abspath(given.script))
    sys.path[0:0] = [home, standin]  # the first as Python does
    missing = _no_module(given.script) if given.module else _no_file(given.script)
    if missing:
        print(f"python -m treadle run: {missing}", file=sys.stderr)
        return 2
    if given.module:
        runpy.run_module(given.script, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(given.script, run_name="__main__")
    return 0


def _no_file(path: str) -> str:
    """Why there is no script at ``path``, if there is none."""
    if os.path.isdir(path) and not os.path.exists(os.path.join(path, "__main__.py")):
        return f"{path!r} is a folder without a __main__.py"
    return "" if os.path.exists(path) else f"there is no file {path!r}"


def _no_module(name: str) -> str:
    """Why no module of a name can be run, if none can."""
    try:
        found = importlib.util.find_spec(name)
        if found is not None and found.submodule_search_locations is not None:  # a package
            found = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # what a package around it imports is missing
        found = None
    return "" if found else f"there is no module {name!r} that can be run"


if __name__ == "__main__":
    sys.exit(main())
