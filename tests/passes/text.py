"""Short programs as text, for tests of one pass."""

from __future__ import annotations

from treadle.builtins.registry import primitive
from treadle.ir import Func
from treadle.ir.read import read
from treadle.ir.show import show
from treadle.ir.verify import verify

for _name in "add sub mul div neg min max mod shl bitand bitor bitxor eq ne lt le gt logical_not fma abs".split():
    primitive(_name)

HEAD = (
    "%0: view<f32,1,(4)>, %1: i32, %2: f32, %3: f32, %4: bool, %5: vec<3,f32>, %6: view<vec<3,f32>,1,(12)>, "
    "%7: view<i32,1,(4)>"
)


def of(body: str, before: str = "") -> Func:
    """A kernel over ``HEAD`` with these ops; functions it calls stand in ``before``."""
    number = before.count("function @")
    return verify(read(f'{before}\nkernel @{number} "k" ({HEAD}) {{\n {body}\n yield\n}}'))


def body(func: Func) -> str:
    """The ops of a program as lines, each after a new line."""
    text = show(verify(func))
    inside = text[text.index("kernel @") :].split("\n", 1)[1]
    return "\n" + inside[: inside.rindex("  yield")]

