"""What documentation of stages says that the tables know: the fields that they write, with types, shapes and units."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from treadle.mujoco.data import Data

# The model of all examples: an arm above the floor with a limit, a tendon, a servo and a sensor.
SCENE = """
<mujoco>
  <option><flag energy="enable"/></option>
  <worldbody>
    <geom type="plane" size="2 2 1"/>
    <body pos="0 0 0.5">
      <joint name="arm" axis="0 1 0" damping="0.1" limited="true" range="-3 3"/>
      <geom type="sphere" size="0.1" pos="0.45 0 0" mass="1"/>
      <site name="tip" pos="0.55 0 0"/>
    </body>
    <camera pos="0 -2 1"/>
  </worldbody>
  <tendon><fixed name="cord"><joint joint="arm" coef="2"/></fixed></tendon>
  <actuator><position name="servo" joint="arm" kp="4"/></actuator>
  <sensor><jointpos joint="arm"/><jointvel joint="arm"/><actuatorfrc actuator="servo"/></sensor>
</mujoco>
"""

BEGIN = """\
>>> import mujoco, treadle.mujoco as mjw
>>> from treadle.mujoco.documented import SCENE
>>> mjm = mujoco.MjModel.from_xml_string(SCENE)
>>> m, d = mjw.put_model(mjm), mjw.make_data(mjm, nworld=2)
"""

ARGUMENTS = """\
Args:
    m: the model.
    d: the worlds.

{writes}Raises:
    TypeError: these are no model and data of ours, or they differ in precision.
    ValueError: the data was made for another model{more}.
"""


def writes(*names: str, order: str = "", more: str = "") -> Callable[[Callable], Callable]:
    """Add to a function's documentation its arguments, the fields that the stages ``names`` write, its errors, and to
    its example how that begins. ``order``: what raises an `OrderError`; ``more``: what else a ValueError."""
    rows = [row for row in Data.rows() if row.role == "derived" and row.stage in names]
    lines = "".join(f"    {row.name}: {row.kind} ({', '.join(row.shape)}), {row.doc}.\n" for row in rows)

    def add(function: Callable) -> Callable:
        text, mark, example = (inspect.cleandoc(function.__doc__ or "") + "\n").partition("Example:\n")
        also = more + (f".\n    OrderError: {order}" if order else "")
        made = text + ARGUMENTS.format(writes=f"Writes:\n{lines}\n" if lines else "", more=also)
        begin = "".join(f"    {line}\n" for line in BEGIN.splitlines())
        function.__doc__ = made + (f"\nExample:\n{begin}{example}" if mark else "")
        return function

    return add
