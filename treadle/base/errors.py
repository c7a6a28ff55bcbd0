"""One class per kind of error. A class's docstring says the cause and the mend; messages name file, line and types."""

from __future__ import annotations

from .span import NOWHERE, Span


class TreadleError(Exception):
    """Whatever treadle raises on purpose derives from this class.

    ``message`` is one sentence; ``span`` the place in the user's source, if there is one; ``hint`` says how to mend it.
    """

    def __init__(self, message: str, span: Span | None = None, hint: str = ""):
        self.message, self.span, self.hint = message, span, hint
        parts = [span.show()] if span is not None and span is not NOWHERE else []
        parts.append(message)
        if hint:
            parts.append(f"hint: {hint}")
        super().__init__("\n".join(parts) if len(parts) > 1 else message)


class KernelError(TreadleError, RuntimeError):
    """A program that cannot be compiled; its subclasses say what kind of mistake it has. Mend: see the message."""


class KernelSyntaxError(KernelError, SyntaxError):
    """A Python construct that the kernel language does not have. Mend: write it with the statements it has."""

    def __str__(self) -> str:  # SyntaxError would print its own (filename, line) form
        return Exception.__str__(self)


class KernelTypeError(KernelError, TypeError):
    """Operand or argument types that do not fit. Mend: cast explicitly, as in ``float(n)``."""


class KernelNameError(KernelError, NameError, KeyError):
    """A name that is not defined where the kernel reads it. Mend: define it, or capture it before the first launch.

    A NameError, as in Python, and a KeyError, as programs for Warp expect.
    """

    def __str__(self) -> str:  # KeyError would print the message as a quoted key
        return Exception.__str__(self)


class KernelAttributeError(KernelError, AttributeError):
    """A field or function that does not exist. Mend: see the names that the message lists."""


class KernelValueError(KernelError, ValueError):
    """A value known while compiling that cannot stand where it does. Mend: the message says which are allowed."""


class KernelIndexError(KernelError, IndexError):
    """An index known while compiling that is outside of what it counts. Mend: the message says how many parts."""


class KernelGradientError(KernelError):
    """A derivative was asked for where there is none, or none that treadle knows. Mend: the hint says how."""


class DeterminismError(TreadleError, RuntimeError):
    """A program whose results would not repeat. Programs for Warp may wait for it; here results always repeat, and
    nothing raises it."""


class AutogradError(TreadleError, ValueError):
    """Arguments that ``wp.autograd`` cannot work with, or derivatives that a check found wrong. Mend: the message names
    the argument, or the entries that differ."""


class UnassignedError(KernelError, UnboundLocalError):
    """A variable was read on a path on which nothing had assigned it. Mend: assign it before the branch."""


class CaptureError(TreadleError, NotImplementedError):
    """Something that cannot be part of a graph was done while one is captured, or captures do not match. Mend: do it
    before the capture or after the launch of the graph; the message names the call."""


class LaunchError(TreadleError, RuntimeError):
    """Arguments, dimensions or devices of a launch that do not fit the kernel."""


class DeviceError(TreadleError, RuntimeError):
    """A device that is not there, or whose driver refused something. Mend: the message says what is missing."""


class DeviceLostError(DeviceError):
    """A GPU on which a kernel went so wrong that its driver does nothing any more for this process: it used memory that
    is none, say. Mend: run the program with ``wp.config.mode = "debug"``, which checks each index; then start anew."""


class GridError(LaunchError, ValueError):
    """A grid that a launch cannot have. Mend: one to four extents, none negative, each within what indices can say."""


class LaunchTypeError(TreadleError, TypeError, RuntimeError):
    """A launch argument of the wrong type. Mend: pass the type that the kernel's annotation names."""


class LaunchValueError(LaunchTypeError, ValueError):
    """A launch argument that was left out where a value is needed. Mend: pass one."""


class IndexOutOfRange(TreadleError, IndexError):
    """An index outside an array. Mend: guard it; the message names line, array, index and thread."""


class DataRaceError(TreadleError, RuntimeError):
    """Two threads of one launch used an element of an array, and at least one of them wrote it without an atomic. Mend:
    write elements of the thread's own, use an atomic, or split the kernel in two launches."""


class ArrayError(TreadleError, ValueError, RuntimeError):
    """Shapes, strides, offsets or data that do not fit an array. Mend: the message says what was expected."""


class StridesError(ArrayError, NotImplementedError):
    """Memory was asked for in an order that no array is allocated in. Mend: allocate it forwards and take a view."""


class KernelAssertionError(TreadleError, AssertionError):
    """An ``assert`` of a kernel did not hold in some thread."""


class KernelMemoryError(TreadleError, MemoryError):
    """A kernel needed more memory than there is, to remember what its gradient needs of its loops."""


class ManyErrors(TreadleError):
    """Several errors of one program, reported together. Also an error of the first one's kind, to be caught as that."""

    def __new__(cls, errors: list[TreadleError]):
        return super().__new__(type(cls.__name__, (cls, type(errors[0])), {}), errors)

    def __init__(self, errors: list[TreadleError]):
        self.errors = errors
        Exception.__init__(self, "\n\n".join(str(e) for e in errors))
        self.message, self.span, self.hint = errors[0].message, errors[0].span, errors[0].hint


def alone(error: BaseException) -> BaseException:
    """``error`` and its causes without the frames in which they arose. Those of the compiler tell nothing of a wrong
    program, and whoever holds the error, as interactive shells do, would hold the kernels in their variables too."""
    each: BaseException | None = error
    while each is not None:
        each.__traceback__, each = None, each.__cause__ or each.__context__
    return error


class InternalError(TreadleError):
    """A broken promise inside treadle itself; a bug of ours, never the user's."""


class UnsupportedModelError(TreadleError, NotImplementedError):
    """A model uses a feature that the engine does not simulate; the message names each element and attribute."""


class OrderError(TreadleError, RuntimeError):
    """Part of a step was to go on from what earlier parts compute, and these had not been done. Mend: the hint says
    which call comes before."""


class CapacityError(TreadleError, OverflowError):
    """Worlds needed more room for contacts or rows of constraints than their arrays have, and these cannot grow. Mend:
    make the data with the numbers that the message gives."""
