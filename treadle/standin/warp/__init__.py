"""What is found as ``warp``: it puts treadle in its own place."""

import sys

import treadle

sys.modules.pop(__name__, None)
treadle.install_as_warp()
sys.modules[__name__] = treadle
