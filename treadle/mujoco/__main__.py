"""``python -m treadle mujoco check scene.xml``: compare a model with MuJoCo's own engine, stage by stage.

The exit status is 1 if a stage is beyond its bound, or the model uses what is not simulated.
"""

from __future__ import annotations

import argparse
import sys

from treadle.base.errors import UnsupportedModelError
from treadle.mujoco.check import report


def main(argv: list[str] | None = None) -> int:
    """The command line. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m treadle mujoco", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="compare a model with MuJoCo's own engine, stage by stage")
    check.add_argument("scene", help="an MJCF or URDF file")
    check.add_argument("--states", type=int, default=5, help="number of random states")
    check.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    try:
        text, fine = report(given.scene, given.states, given.seed)
    except UnsupportedModelError as error:
        text, fine = str(error), False
    print(text)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
