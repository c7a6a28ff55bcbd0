"""Writing LLVM functions by hand from Python: values are their names, control flow is ``with`` blocks.

Native helpers are few and small, so this knows no types beyond the words that LLVM uses: each call says them. Variables
that change live in stack slots (:meth:`Code.var`), which LLVM turns into registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Var:
    """A variable of LLVM type ``type`` in a stack slot."""

    __slots__ = ("code", "slot", "type")

    def __init__(self, code: Code, slot: str, t: str):
        self.code, self.slot, self.type = code, slot, t

    def get(self) -> str:
        """The value now."""
        return self.code.load(self.type, self.slot)

    def set(self, value: str | int) -> None:
        """Assign ``value``."""
        self.code.store(self.type, value, self.slot)


class Code:
    """One function being written. ``params``: (type, name) pairs; each parameter is then read as ``%name``."""

    def __init__(self, name: str, result: str, params: list[tuple[str, str]], linkage: str = ""):
        self.result = result
        listed = ", ".join(f"{t} %{n}" for t, n in params)
        self._head = f"define {linkage + ' ' if linkage else ''}{result} @{name}({listed}) {{"
        self._slots: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._ended = False  # whether the current block has its terminator

    def text(self) -> str:
        """The finished definition."""
        if not self._ended:
            assert self.result == "void", "a function that returns a value must end with ret"
            self.ret()
        return "\n".join([self._head, "entry:", *self._slots, *self._lines, "}\n"])

    def _fresh(self, stem: str = "v") -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def line(self, text: str) -> None:
        """Append an instruction without a result."""
        if self._ended:  # code after a return or break: give it a block of its own, which LLVM drops
            self._label(self._fresh("dead"))
        self._lines.append("  " + text)

    def value(self, text: str) -> str:
        """Append an instruction and name its result."""
        name = f"%{self._fresh()}"
        self.line(f"{name} = {text}")
        return name

    def _label(self, name: str) -> None:
        self._lines.append(f"{name}:")
        self._ended = False

    def _branch(self, text: str) -> None:
        self.line(text)
        self._ended = True

    # Memory ----------------------------------------------------------------------------------------------------------

    def var(self, t: str, initial: str | int) -> Var:
        """A variable with an initial value."""
        slot = f"%{self._fresh('slot')}"
        self._slots.append(f"  {slot} = alloca {t}")
        made = Var(self, slot, t)
        made.set(initial)
        return made

    def stack(self, nbytes: int) -> str:
        """Address of ``nbytes`` on the stack, aligned to a cache line."""
        slot = f"%{self._fresh('slot')}"
        self._slots.append(f"  {slot} = alloca [{nbytes} x i8], align 64")
        return slot

    def at(self, pointer: str, offset: str | int) -> str:
        """``pointer`` plus ``offset`` bytes."""
        return pointer if offset == 0 else self.value(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def load(self, t: str, pointer: str, offset: str | int = 0) -> str:
        """The ``t`` that lies ``offset`` bytes after ``pointer``."""
        return self.value(f"load {t}, ptr {self.at(pointer, offset)}")

    def store(self, t: str, value: str | int, pointer: str, offset: str | int = 0) -> None:
        """Write ``value``."""
        self.line(f"store {t} {value}, ptr {self.at(pointer, offset)}")

    def atomic_load(self, t: str, pointer: str, offset: int, order: str = "acquire") -> str:
        """An atomic read."""
        return self.value(f"load atomic {t}, ptr {self.at(pointer, offset)} {order}, align {int(t[1:]) // 8}")

    def atomic_store(self, t: str, value: str | int, pointer: str, offset: int, order: str = "release") -> None:
        """An atomic write."""
        self.line(f"store atomic {t} {value}, ptr {self.at(pointer, offset)} {order}, align {int(t[1:]) // 8}")

    def atomic(self, op: str, t: str, value: str | int, pointer: str, offset: int, order: str = "seq_cst") -> str:
        """An atomic update; the value before it."""
        return self.value(f"atomicrmw {op} ptr {self.at(pointer, offset)}, {t} {value} {order}")

    # Arithmetic ------------------------------------------------------------------------------------------------------

    def op(self, name: str, t: str, a: str | int, b: str | int) -> str:
        """``a name b``, as in ``op("add", "i64", x, 1)``; comparisons are ``"icmp slt"``."""
        return self.value(f"{name} {t} {a}, {b}")

    def cast(self, name: str, t: str, a: str, to: str) -> str:
        """``a`` converted by instruction ``name``."""
        return self.value(f"{name} {t} {a} to {to}")

    def select(self, condition: str, t: str, a: str | int, b: str | int) -> str:
        """``a`` where ``condition`` holds, else ``b``."""
        return self.value(f"select i1 {condition}, {t} {a}, {t} {b}")

    def call(self, result: str, function: str, *args: tuple[str, str | int]) -> str:
        """Call ``function`` (``@name`` or a pointer) with (type, value) arguments; the result's name, "" for void."""
        text = f"call {result} {function}({', '.join(f'{t} {v}' for t, v in args)})"
        if result.split(" ")[0] == "void":
            self.line(text)
            return ""
        return self.value(text)

    # Control flow ----------------------------------------------------------------------------------------------------

    def ret(self, value: str | int | None = None) -> None:
        """Return from the function."""
        self._branch("ret void" if value is None else f"ret {self.result} {value}")

    def unreachable(self) -> None:
        """Say that control never comes here, as after a loop that only returns leave."""
        self._branch("unreachable")

    @contextmanager
    def if_(self, condition: str) -> Iterator[None]:
        """The block runs where ``condition`` (an i1) holds."""
        name = self._fresh("if")
        self._branch(f"br i1 {condition}, label %{name}.then, label %{name}.end")
        self._label(f"{name}.then")
        yield
        if not self._ended:
            self._branch(f"br label %{name}.end")
        self._label(f"{name}.end")

    @contextmanager
    def loop(self) -> Iterator[Loop]:
        """The block repeats until ``loop.leave()`` or ``loop.leave_if(condition)``."""
        name = self._fresh("loop")
        self._branch(f"br label %{name}")
        self._label(name)
        yield Loop(self, name)
        if not self._ended:
            self._branch(f"br label %{name}")
        self._label(f"{name}.end")

    @contextmanager
    def for_(self, count: str | int, start: str | int = 0, step: str | int = 1) -> Iterator[str]:
        """The block runs for each i64 from ``start`` below ``count``; yields the counter."""
        i = self.var("i64", start)
        with self.loop() as loop:
            now = i.get()
            loop.leave_if(self.op("icmp sge", "i64", now, count))
            yield now
            i.set(self.op("add", "i64", now, step))


class Loop:
    """A loop being written."""

    __slots__ = ("_code", "_name")

    def __init__(self, code: Code, name: str):
        self._code, self._name = code, name

    def leave(self) -> None:
        """Go on after the loop."""
        self._code._branch(f"br label %{self._name}.end")

    def again(self) -> None:
        """Begin the next round."""
        self._code._branch(f"br label %{self._name}")

    def leave_if(self, condition: str) -> None:
        """Go on after the loop where ``condition`` holds."""
        rest = self._code._fresh("stay")
        self._code._branch(f"br i1 {condition}, label %{self._name}.end, label %{rest}")
        self._code._label(rest)

    def again_if(self, condition: str) -> None:
        """Begin the next round where ``condition`` holds."""
        rest = self._code._fresh("stay")
        self._code._branch(f"br i1 {condition}, label %{self._name}, label %{rest}")
        self._code._label(rest)
