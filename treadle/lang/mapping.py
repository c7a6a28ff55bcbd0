"""``wp.map``: apply a function to every element of arrays, without writing a kernel."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from ..base.digest import digest
from ..base.errors import ArrayError, KernelTypeError
from ..runtime.array import array
from ..runtime.construct import empty
from ..runtime.copies import copy
from ..runtime.device import get_device
from ..runtime.indexed import indexedarray
from ..runtime.shaped import Shaped
from ..types.annotations import ArrayAnnotation
from ..types.core import Matrix, Scalar, Type, Vector
from ..types.layout import has_floats
from ..types.promotion import adapts, literal_type
from ..types.spelling import spell
from ..types.values import class_of
from .function import Function
from .host import Builtin, host_type
from .kernel import Kernel
from .launch import launch
from .module import Module
from .parts import span_of

KERNELS: dict[tuple, Kernel] = {}  # what has been made, by function, types, ranks and repeated axes
MEANINGS: dict[tuple, tuple[Any, list[Type]]] = {}  # the function as kernels call it, and the types of its results
MOST = 1024  # of each: a lambda around a number that changes is another function each time

_AXES = "ijkl"


class Operand(NamedTuple):
    """An argument as the kernel takes it. ``axes``: for arrays, of each dimension whether it runs with the grid; those
    that do not have one element, which is used everywhere. None for values that all elements share."""

    type: Type
    axes: tuple[bool, ...] | None = None
    family: str = "array"

    def annotation(self) -> Any:
        """The annotation of its parameter."""
        return self.type if self.axes is None else ArrayAnnotation(class_of(self.type), len(self.axes), self.family)

    def element(self, name: str, rank: int) -> str:
        """The text of the element that belongs to a thread."""
        if self.axes is None:
            return name
        first = rank - len(self.axes)
        return f"{name}[{', '.join(_AXES[first + d] if runs else '0' for d, runs in enumerate(self.axes))}]"


def map(  # noqa: A001 - its name in the field
    func: Callable, *inputs: Any, out: Any = None, return_kernel: bool = False, block_dim: int | None = None,
    device: Any = None,
) -> Any:  # fmt: skip
    """Apply ``func`` to the elements of arrays, one after the other along all dimensions.

    Args:
        func: a function under ``@wp.func``, a builtin such as ``wp.clamp``, a plain Python function or a lambda.
        inputs: arrays, indexed arrays, and values that all elements share; one for each parameter, one array at least.
            Shapes go together as in NumPy: aligned at the last dimension, where an extent of 1 is repeated.
        out: the array for the results, or a list of them where ``func`` gives several; made if left out. Arrays made
            have a gradient if an input has one. An array may be input and output, and may lie over inputs in any way:
            all are read as they were.
        return_kernel: give the kernel instead of running it. It takes the inputs, then the outputs.
        block_dim: threads in a block, as for :func:`launch`.
        device: where to run; where the first array lies if left out.

    Returns: the array of results, a list of arrays for several, or the kernel.

    Raises:
        KernelTypeError: a function that does not take these types or gives nothing; outputs of other types or shapes.
        ArrayError: shapes that do not go together, or no array among the inputs.

    >>> import treadle as wp
    >>> a = wp.array([1.0, 2.0, 3.0], dtype=float)
    >>> wp.map(lambda x, y: x + 2.0 * y, a, 10.0).list()
    [21.0, 22.0, 23.0]
    >>> wp.map(wp.clamp, a, 1.5, 2.5, out=a).list()
    [1.5, 2.0, 2.5]
    """
    arrays = [x for x in inputs if isinstance(x, Shaped)]
    if not arrays:
        raise ArrayError("map requires at least one warp.array input")
    _count(func, len(inputs))
    shape = broadcast([a.shape for a in arrays])
    operands = [_operand(x, shape, func, i, arrays) for i, x in enumerate(inputs)]
    same = _identity(func)
    meaning = (same, tuple([o.type for o in operands]))
    if meaning not in MEANINGS:
        made = _function(func)
        _keep(MEANINGS, meaning, (made, _results(func, made, list(meaning[1]))))
    made, results = MEANINGS[meaning]
    given = _outputs(out, shape, results)
    if given and not return_kernel and any(_lies_over(o, a) for o in given for a in arrays):
        for o, aside in zip(given, _map_aside(func, inputs, block_dim, device), strict=True):
            copy(o, aside)
        return given[0] if isinstance(out, Shaped) else given
    outputs = [Operand(t, (True,) * len(shape), _family(o))
               for t, o in zip(results, given or [None] * len(results), strict=True)]  # fmt: skip
    key = (same, tuple(operands), tuple(outputs), len(shape))
    kernel = KERNELS.get(key)
    if kernel is None:
        kernel = _kernel(func, made, operands, outputs, len(shape))
        _keep(KERNELS, key, kernel)
    if return_kernel:
        return kernel
    where = get_device(device) if device is not None else arrays[0].device
    if given is None:
        graded = any(getattr(a, "requires_grad", False) for a in arrays)
        given = [empty(shape, class_of(t), where, graded and has_floats(t)) for t in results]
    launch(kernel, shape, inputs, given, device=where, block_dim=block_dim)
    return (given if isinstance(out, list | tuple) else given[0]) if len(given) == 1 else given


def _keep(made: dict[tuple, Any], key: tuple, value: Any) -> None:
    """Note ``value``, in the place of the oldest one where there are many."""
    made[key] = value
    while len(made) > MOST:
        del made[next(iter(made))]


def operate(name: str, arguments: tuple[Any, ...], out: Any) -> Any:
    """Apply the operator ``name`` to arrays, as ``a + b`` asks; NotImplemented where an operand is no value."""
    if any(not isinstance(x, Shaped | bool | int | float) and host_type(x) is None for x in arguments):
        return NotImplemented
    try:
        return map(Builtin(name), *arguments, out=out)
    except KernelTypeError as error:  # the place that it names is in a text that no user wrote
        raise KernelTypeError(error.message, hint=error.hint) from None


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that arrays of ``shapes`` have together.

    Raises:
        ArrayError: two of them do not go together.

    >>> from treadle.lang.mapping import broadcast
    >>> broadcast([(3, 1, 4), (5, 4)])
    (3, 5, 4)
    """
    found = shapes[0]
    for other in shapes[1:]:
        rank = max(len(found), len(other))
        a, b = (1,) * (rank - len(found)) + tuple(found), (1,) * (rank - len(other)) + tuple(other)
        if any(m != n and 1 not in (m, n) for m, n in zip(a, b, strict=True)):
            raise ArrayError(f"Shapes {tuple(found)} and {tuple(other)} are not broadcastable")
        found = tuple([n if m == 1 else m for m, n in zip(a, b, strict=True)])
    return tuple(found)


def _count(func: Any, given: int) -> None:
    """Check how many arguments there are, where not overloads decide nor the builtin."""
    plain = func.func if isinstance(func, Function) and len(func.overloads) == 1 else func
    if isinstance(plain, FunctionType):
        code = plain.__code__
        wanted = code.co_argcount + code.co_kwonlyargcount
        if given != wanted:
            raise KernelTypeError(f"{plain.__name__} takes {wanted} arguments, wp.map was given {given}")


def _operand(x: Any, shape: tuple[int, ...], func: Any, place: int, arrays: list[Any]) -> Operand:
    if isinstance(x, Shaped):
        rest = shape[len(shape) - len(x.shape) :]
        axes = tuple([n == 1 or m != 1 for m, n in zip(x.shape, rest, strict=True)])
        return Operand(x.type.elem, axes, _family(x))
    if isinstance(x, bool | int | float) and not isinstance(x, np.generic):
        return Operand(_number_type(x, func, place, arrays))
    t = host_type(x)
    if t is None:
        raise KernelTypeError(f"argument {place} of wp.map cannot be a {type(x).__name__}")
    return Operand(t)


def _family(x: Any) -> str:
    return x.family.__name__ if isinstance(x, Shaped) else "array"


def _number_type(x: bool | int | float, func: Any, place: int, arrays: list[Any]) -> Type:
    """The type of a Python number: what the function declares, else that of the first array's numbers where these are
    of its kind, else its usual one."""
    declared = func.source.parameter_types() if isinstance(func, Function) and len(func.overloads) == 1 else ()
    wanted = declared[place] if place < len(declared) else None
    if isinstance(wanted, Scalar):
        return wanted
    usual = literal_type(x)
    for a in arrays:
        t = getattr(a.type.elem, "elem", a.type.elem)
        if isinstance(t, Scalar) and t.is_float == usual.is_float and adapts(x, t):
            return t
    return usual


def _function(func: Any) -> Function | Builtin:
    """``func`` as kernels call it."""
    if isinstance(func, FunctionType):
        return Function(func, func.__name__ if func.__name__ != "<lambda>" else "map_lambda")
    if isinstance(func, Function) or hasattr(func, "__treadle_builtin__"):
        return func
    raise KernelTypeError(f"wp.map takes a function, not {type(func).__name__}")


def _results(func: Any, made: Any, types: list[Type]) -> list[Type]:
    """The types of what ``made`` gives for arguments of ``types``."""
    f = made
    if not isinstance(f, Function):  # a builtin
        names = [f"a{i}" for i in range(len(types))]
        f = Function(written("call", names, f"    return f({', '.join(names)})\n", {"f": made}))
    try:
        f.chosen(types, ())
    except KernelTypeError as error:
        shown = ", ".join(spell(t) for t in types)
        name = getattr(func, "__qualname__", made.key).replace(".<locals>.", ".")
        raise KernelTypeError(f"wp.map: {name} does not take {shown}") from error
    found = [y.type for y in f.treadle_function(tuple(types)).body.yields]
    if not found:
        raise KernelTypeError("The provided function must return a value")
    return found


def _outputs(out: Any, shape: tuple[int, ...], results: list[Type]) -> list[Any] | None:
    """The arrays given for the results, checked; None if they are to be made."""
    if out is None:
        return None
    single = isinstance(out, Shaped)
    given = [out] if single else list(out)
    if single and len(results) > 1:
        shown = ", ".join(spell(t) for t in results)
        raise KernelTypeError(f"out must be a list of {len(results)} arrays of shape {shape} and of dtypes ({shown})")
    if len(given) != len(results):
        raise KernelTypeError(f"out has {len(given)} arrays; the function gives {len(results)} results")
    for i, (o, t) in enumerate(zip(given, results, strict=True)):
        what = "out" if single else f"out[{i}]"
        if tuple(o.shape) != shape:
            raise KernelTypeError(f"{what}: Output array shape {tuple(o.shape)} does not match expected shape {shape}")
        if o.type.elem is not t:
            raise KernelTypeError(f"{what} has dtype {spell(o.type.elem)}, the results {spell(t)}")
    return given


def _map_aside(func: Callable, inputs: Sequence[Any], block_dim: int | None, device: Any) -> list[Any]:
    """The results in arrays of their own, where a thread would write what others have yet to read."""
    made = map(func, *inputs, block_dim=block_dim, device=device)
    return made if isinstance(made, list) else [made]


def _lies_over(o: Any, a: Any) -> bool:
    """Whether elements of the output ``o`` may be elements of the input ``a`` that belong to other threads."""
    if o is a:
        return False
    x, y = (v.data if isinstance(v, indexedarray) else v for v in (o, a))
    if not isinstance(x, array) or not isinstance(y, array):
        return False  # buckets: their memory belongs to others
    if x is o and y is a and (x.ptr, x.shape, x.strides) == (y.ptr, y.shape, y.strides):
        return False
    (low, high), (begin, end) = span_of(x), span_of(y)
    return low < end and begin < high


def _identity(func: Any) -> Any:
    """What stands for ``func`` in keys: of plain functions and lambdas what they are made of, so that one written in a
    loop, or in two places alike, is one, and one whose variables have changed is another."""
    if not isinstance(func, FunctionType):
        return getattr(func, "__treadle_builtin__", func)
    code, seen = func.__code__, []
    cells = [cell.cell_contents for cell in func.__closure__ or ()]
    for value in (*cells, *[func.__globals__.get(name) for name in code.co_names], *(func.__defaults__ or ())):
        seen.append(_seen(value))
        parts = getattr(value, "__dict__", ())  # as in settings.scale
        seen += [(name, _seen(parts[name])) for name in code.co_names if name in parts]
    constants = tuple(repr(c) for c in code.co_consts)
    notes = tuple([(name, repr(note)) for name, note in func.__annotations__.items()])
    return (code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_kwonlyargcount, notes,
            *seen)  # fmt: skip


def _seen(value: Any) -> Any:
    """What stands for a value from outside: its content, where that is a constant of kernels, else itself."""
    if isinstance(value, list | tuple):
        return type(value), *[_seen(v) for v in value]
    if isinstance(value, bool | int | float | str):
        return type(value), repr(value)
    number = not isinstance(value, type) and isinstance(host_type(value), Scalar | Vector | Matrix)
    return (type(value), np.asarray(value).tobytes()) if number else _Same(value)


class _Same:
    """Equal to what holds the very same object, which it keeps alive: its address cannot come to mean another."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _kernel(func: Any, made: Any, operands: list[Operand], outputs: list[Operand], rank: int) -> Kernel:
    """The kernel: each thread calls the function for one element."""
    names = [f"in_{i}" for i in range(len(operands))]
    results = [f"out_{i}" for i in range(len(outputs))]
    arguments = ", ".join(o.element(n, rank) for o, n in zip(operands, names, strict=True))
    targets = ", ".join(o.element(n, rank) for o, n in zip(outputs, results, strict=True))
    axes = ", ".join(_AXES[:rank])
    body = f"    {axes} = tid()\n    {targets} = f({arguments})\n"
    name = f"map_{getattr(made, 'key', None) or made.__name__}"
    fn = written(name, [*names, *results], body, {"f": made, "tid": Builtin("tid")})
    pairs = zip([*names, *results], [*operands, *outputs], strict=True)
    fn.__annotations__ = {n: o.annotation() for n, o in pairs}
    home = getattr(made, "module", None)
    return Kernel(fn, name, home if isinstance(home, Module) else Module(name))


def written(name: str, parameters: list[str], body: str, names: dict[str, Any]) -> FunctionType:
    """The Python function with this text. Its file is named after it, so that equal ones are one to every cache."""
    text = f"def {name}({', '.join(parameters)}):\n{body}"
    file = f"<{name} {digest(text)[:12]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {**names, "__name__": __name__}
    exec(compile(text, file, "exec"), scope)
    return scope[name]
