"""LLVM text: types, constants, and the lines of one function."""

from __future__ import annotations

import struct

from ...types.core import Scalar, bf16, f16, f32, f64
from ...types.numbers import bf16_bits

PTR = Scalar("ptr", "p", 64)  # an address in a register; never the type of an IR value

MASK = Scalar("mask", "m", 32)  # a varying truth value on its way from block to block

# Registers. A bfloat16 is kept as its 16 bits: not every processor knows the type.
_REGISTER = {"bool": "i1", "f16": "half", "bf16": "i16", "f32": "float", "f64": "double", "ptr": "ptr", "mask": "i32"}


def register(t: Scalar) -> str:
    """The LLVM type of a scalar in a register."""
    return _REGISTER.get(t.name) or f"i{t.bits}"


def memory(t: Scalar) -> str:
    """The LLVM type of a scalar in memory: a bool takes a byte."""
    return "i8" if t.kind == "b" else register(t)


def vector(elem: str, width: int) -> str:
    """``width`` lanes of ``elem``."""
    return f"<{width} x {elem}>"


def constant(value: bool | int | float, t: Scalar) -> str:
    """A number as LLVM writes it; floats exactly, by their bits."""
    if t.kind == "b":
        return "true" if value else "false"
    if t.kind != "f":
        bits = int(value) & ((1 << t.bits) - 1)
        return str(bits - (1 << t.bits) if bits >> (t.bits - 1) else bits)
    if t is f64 or t is f32:
        rounded = float(value) if t is f64 else struct.unpack("f", struct.pack("f", _clipped(value)))[0]
        return f"0x{struct.unpack('Q', struct.pack('d', rounded))[0]:016X}"
    if t is f16:
        return f"0xH{struct.unpack('H', _half(float(value)))[0]:04X}"
    assert t is bf16
    return str(int(bf16_bits(value).view("int16")))


def _clipped(value: float) -> float:
    """``value``, or an infinity where it would not fit float32 (``struct`` raises there)."""
    try:
        struct.pack("f", value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return value


def _half(value: float) -> bytes:
    try:
        return struct.pack("e", value)
    except OverflowError:
        return struct.pack("e", float("inf") if value > 0 else float("-inf"))


# Instructions whose repetition is worth looking for; of arithmetic the IR's own passes have shared what is common.
_SHARED = (
    "getelementptr", "mul i64", "add i64", "sext", "zext", "trunc", "bitcast", "icmp", "and ", "xor ", "shufflevector",
    "extractelement",
)  # fmt: skip


class Text:
    """The lines of one LLVM function under construction.

    ``slot`` leaves a place behind, into which lines may still be put later: what is written there runs (and is known)
    wherever the code after the slot runs. Values are widened there, so that a loop does not widen what it found
    outside.
    """

    __slots__ = ("block", "count", "known", "lines", "needs")

    def __init__(self, needs: set[str]):
        self.lines: list[str | list] = []
        self.count = 0
        self.block = "entry"
        self.needs = needs  # declarations of the module
        self.known: dict[str, str] = {}  # what has been computed on the way to the current place

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def label(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def ins(self, rhs: str) -> str:
        """An instruction with a result; its name. Addresses and masks that are known already are not computed again."""
        shared = rhs.startswith(_SHARED)
        if shared and rhs in self.known:
            return self.known[rhs]
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {rhs}")
        if shared:
            self.known[rhs] = name
        return name

    def into(self, slot: list, rhs: str) -> str:
        """An instruction with a result, put into ``slot``."""
        self.count += 1
        name = f"%v{self.count}"
        slot.append(f"  {name} = {rhs}")
        return name

    def do(self, line: str) -> None:
        """An instruction without a result."""
        self.lines.append("  " + line)

    def slot(self) -> list:
        made: list = []
        self.lines.append(made)
        return made

    def start(self, label: str, known: dict[str, str] | None = None) -> None:
        """Begin the block ``label``. ``known``: what had been computed at a place that every way to it passes."""
        self.lines.append(f"{label}:")
        self.block = label
        self.known = {} if known is None else dict(known)

    def jump(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.lines.append(f"  br i1 {condition}, label %{yes}, label %{no}")

    def text(self) -> str:
        out: list[str] = []
        _flatten(self.lines, out)
        return "\n".join(out)

    def declare(self, line: str) -> None:
        """A declaration the module must have (once)."""
        self.needs.add(line)


def _flatten(lines: list, out: list[str]) -> None:
    for line in lines:
        if type(line) is str:
            out.append(line)
        else:
            _flatten(line, out)
