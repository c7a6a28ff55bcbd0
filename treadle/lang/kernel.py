"""``@wp.kernel``: a function that runs once for each thread of a grid."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from ..base.digest import digest
from ..base.errors import KernelTypeError, KernelValueError, LaunchError, LaunchTypeError
from ..frontend.source import EMPTY, Source
from ..runtime.array import array
from ..runtime.foreign import shared, shows_memory
from ..runtime.shaped import Shaped
from ..types.annotations import ArrayAnnotation, type_of
from ..types.core import (
    Array,
    Fixed,
    Indexed,
    Matrix,
    Scalar,
    Struct,
    Type,
    Vector,
    View,
    bucketed,
    family_of,
    i32,
    indexed,
    view,
)
from ..types.limits import Limit
from ..types.promotion import adapts
from ..types.spelling import spell
from ..types.values import class_of
from .host import host_type
from .module import Module, check_gang, check_options, get_module, module_of
from .struct import convert, fits

KERNELS: weakref.WeakSet[Kernel] = weakref.WeakSet()  # all alive, so that a changed setting can make them forget


class Kernel:
    """A kernel with its overloads, one per combination of argument types it was launched with.

    ``key`` is its name in messages, ``module`` the :class:`Module` it belongs to, ``options`` its own compile options.
    """

    def __init__(
        self,
        func: Any,
        key: str | None = None,
        module: Module | None = None,
        options: dict[str, Any] | None = None,
        namespace: dict[str, Any] | None = None,
    ):
        self.func = func
        self.key = key or func.__qualname__.rpartition(".<locals>.")[2]
        self.module = module or module_of(func, None)
        self.options = options or {}
        self.source = Source(func, namespace=namespace)
        self.source.declare()
        self.overloads: dict[tuple[Type, ...], Any] = {}
        self.elsewhere: dict[Any, Any] = {}  # the same for devices with code of their own, by these and types
        self.bound: tuple[Type | None, ...] | None = None  # types fixed by ``wp.overload``
        self.stated: list[tuple[Type, ...]] = []  # overloads that ``wp.overload`` asks for
        self.fast: Any = None  # the native launcher of the latest variant; see lang/launch.py
        self.far: dict[Any, Any] = {}  # the same for devices with memory of their own
        self.block = 1  # threads in a block; see lang/blocks.py
        self._blocks: dict[int, Kernel] = {}
        self.boxes: tuple[str, ...] = ()  # parameters that launches give as arrays of one element; see passes/boxes.py
        self._boxed: dict[tuple[str, ...], Kernel] = {}
        self.plan: Any = None  # what tapes know of launches, while there is one overload; see lang/plan.py
        functools.update_wrapper(self, func)
        KERNELS.add(self)

    def __repr__(self) -> str:
        return f"<treadle kernel {self.key}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise LaunchError(f"kernel {self.key} cannot be called", hint=f"wp.launch({self.key}, dim=…, inputs=[…])")

    @property
    def adj(self) -> Source:
        """What it was made from, under the name by which programs for Warp ask for it: ``kernel.adj.tree``."""
        return self.source

    def option(self, name: str) -> Any:
        """A compile option: the kernel's own, else its module's."""
        own = self.options.get(name)
        return own if own is not None else self.module.options.get(name)

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The parameters: name, annotation, default."""
        return self.source.parameters()

    @property
    def is_generic(self) -> bool:
        """Whether a parameter takes arguments of several types."""
        return not _complete(self.declared)

    @functools.cached_property
    def declared(self) -> tuple[Type | None, ...]:
        """The annotated type of each parameter; None where any type is taken."""
        types = tuple(self.source.parameter_types())
        for p in self.parameters:
            if p.annotation is EMPTY:
                raise KernelTypeError(
                    f"parameter {p.name!r} of kernel {self.key} has no type",
                    self.source.span,
                    "annotate it, for example with float or wp.array(dtype=float)",
                )
        if self.bound is not None:
            types = tuple(b if b is not None else t for b, t in zip(self.bound, types, strict=True))
        return types

    def bind(self, args: list[Any]) -> tuple[list[Any], tuple[Type, ...]]:
        """Arguments converted where the language allows it, and their types. Errors name the one that does not fit."""
        names = self.parameters
        if len(args) != len(names):
            args = [*args, *self._defaults(len(args))]
        if len(args) != len(names):
            expected = ", ".join(p.name for p in names)
            raise LaunchError(f"kernel {self.key} takes {len(names)} arguments ({expected}), {len(args)} were given")
        values, types = [], []
        for p, declared, arg in zip(names, self.declared, args, strict=True):
            value, t = bind_one(arg, declared, p.name, self.key)
            values.append(value)
            types.append(t)
        found = self._stated(tuple(types), args)
        for place, limit in self._limits:
            if not limit(found[place]):
                p = names[place]
                wanted = str(p.annotation).replace("~", "wp.")
                raise LaunchTypeError(
                    f"kernel {self.key}: argument {p.name!r} must be {wanted}, not {spell(found[place])}"
                )
        return values, found

    @functools.cached_property
    def element_classes(self) -> tuple[Any, ...]:
        """The classes of the elements of array parameters; None where they are open, and for other parameters."""
        declared = [t.elem if isinstance(t, Array) else None for t in self.declared]
        return tuple([None if t is None else class_of(t) for t in declared])

    @functools.cached_property
    def open(self) -> tuple[int, ...]:
        """The places of parameters that take any type, so that a number tells its own."""
        return tuple([i for i, t in enumerate(self.declared) if t is None])

    @functools.cached_property
    def _limits(self) -> list[tuple[int, Limit]]:
        """The places of parameters that leave their type open but not to any, and what they ask for."""
        places = [i for i, t in enumerate(self.declared) if not _complete([t])]
        limits = self.source.limits if places else ()
        return [(i, limit) for i in places if (limit := limits[i]) is not None]

    def _stated(self, types: tuple[Type, ...], args: list[Any]) -> tuple[Type, ...]:
        """``types``, or those of a stub under ``@wp.overload`` that differs only in the types of Python numbers."""
        for wanted in reversed(self.stated):
            if all([t is u or type(arg) in (bool, int, float) and adapts(arg, u)
                    for t, u, arg in zip(types, wanted, args, strict=True)]):  # fmt: skip
                return wanted
        return types

    def _defaults(self, given: int) -> list[Any]:
        rest = self.parameters[given:]
        return [p.default for p in rest] if all(p.default is not EMPTY for p in rest) else []

    def overload(self, types: tuple[Type, ...], device: Any = None) -> Any:
        """The overload for exactly these argument types; made, not yet compiled, when first asked for. ``device``:
        where its code is to run, if that is not the host's memory."""
        apart = device is not None and device.key
        known, key = (self.elsewhere, (device, types)) if apart else (self.overloads, types)
        found = known.get(key)
        if found is None:
            from .compile import Overload

            found = known[key] = Overload(self, types, device if apart else None)
            if not apart:
                self.plan = None
        return found

    def code_on(self, device: Any, block_dim: int | None = None) -> Any:
        """The code for a device that runs other code than the host, loaded.

        Raises:
            KernelTypeError: no arguments fixed its types yet.
        """
        one = self.in_blocks(block_dim) if block_dim and block_dim > 1 else self
        found = next((o for (where, _), o in one.elsewhere.items() if where is device), None)
        if found is None:
            if not _complete(self.declared):
                raise KernelTypeError(f"the types of kernel {self.key} are open", hint="fix them by wp.overload")
            found = one.overload(_usual_types(self.declared), device)
        return found.variant((1,)).program

    def add_overload(self, arg_types: dict[str, Any] | list[Any]) -> Kernel:
        """The kernel with its types fixed; see :func:`overload`."""
        return overload(self, arg_types)

    def in_blocks(self, size: int) -> Kernel:
        """This kernel, compiled for blocks of ``size`` threads."""
        if size == self.block:
            return self
        found = self._blocks.get(size)
        if found is None:
            found = self._blocks[size] = self._like()
            found.block, found._blocks = size, {self.block: self}
        return found

    def boxed(self, names: tuple[str, ...]) -> Kernel:
        """This kernel with the parameters ``names``, numbers, vectors or matrices, as arrays of one element: so they
        have gradients."""
        found = self._boxed.get(names)
        if found is None:
            found = self._boxed[names] = self._like()
            found.boxes = names
        return found

    def _like(self) -> Kernel:
        """This kernel, of which nothing is compiled yet."""
        made = copy(self)
        made.overloads, made.elsewhere, made.far, made._blocks, made._boxed = {}, {}, {}, {}, {}
        made.fast = made.plan = None
        KERNELS.add(made)
        return made

    def sizes(self) -> tuple[Kernel, ...]:
        """This kernel for each size of blocks that was asked for."""
        return self, *self._blocks.values()

    def forget(self) -> None:
        """Drop compiled code; the next launch compiles again."""
        for one in self.sizes():
            for overload in (*one.overloads.values(), *one.elsewhere.values()):
                overload.forget_derivatives()
            one.overloads.clear()
            one.elsewhere.clear()
            one.fast = one.plan = None
            one.far.clear()
            for boxed in one._boxed.values():
                boxed.forget()

    def forget_failed(self) -> None:
        """Drop overloads of which nothing could be compiled: a kernel that is replaced by a right one goes at once."""
        for known in (self.overloads, self.elsewhere):
            for key in [key for key, o in known.items() if not o.variants]:
                del known[key]

    def declared_variants(self) -> list[Any]:
        """The overloads that can be compiled before a launch: explicit ones, and that of complete annotations."""
        for types in self.stated:
            self.overload(types)
        if not self.overloads and _complete(self.declared):
            self.overload(_usual_types(self.declared))
        return list(self.overloads.values())


def bind_one(arg: Any, declared: Type | None, name: str, kernel: str) -> tuple[Any, Type]:
    """One argument as the kernel called ``kernel`` takes it, and its type."""
    what = f"kernel {kernel}: argument {name!r}"
    if declared is None:
        return _bind_any(arg, what)
    if isinstance(declared, Array):
        return _bind_array(arg, declared, what)
    if isinstance(declared, Struct):
        own = None if isinstance(arg, type) else getattr(arg, "treadle_type", None)
        if own is None or not fits(own(), declared):
            given = f"the class {arg.__name__}" if isinstance(arg, type) else type(arg).__name__
            given = "None" if arg is None else given
            raise LaunchTypeError(f"{what} expects {spell(declared)} but got {given}")
        return arg, own()
    if isinstance(declared, Scalar | Vector | Matrix):
        return convert(arg, declared, what, f"kernel parameter {name!r} of {kernel}"), declared
    raise LaunchTypeError(f"{what}: values of type {spell(declared)} cannot be passed to kernels")


def _bind_any(arg: Any, what: str) -> tuple[Any, Type]:
    if isinstance(arg, Shaped):
        return arg, arg.type
    if isinstance(arg, bool | int | float) and not isinstance(arg, np.generic):  # np.float64 is a float, and more
        from ..types.promotion import literal_type

        return arg, literal_type(arg)
    t = host_type(arg)
    if t is not None:
        return arg, t
    if shows_memory(arg):
        made = _shared(arg, Any, what)
        return made, made.type
    raise LaunchTypeError(f"{what} cannot be a {type(arg).__name__}")


def _bind_array(arg: Any, declared: Array, what: str) -> tuple[Any, Type]:
    have = getattr(arg, "type", None)
    if isinstance(have, View | Indexed) and fits(have, declared):
        return arg, have
    dtype = spell(declared.elem) if declared.elem else "Any"
    what += f" expects an array of type {declared.family}(ndim={declared.ndim}, dtype={dtype})"
    passed = f"passed value has type {type(arg).__name__}"
    if isinstance(have, View | Indexed) and family_of(have) != declared.family:
        raise LaunchTypeError(f"{what}, but {passed}", hint=_family_hint(family_of(have), declared.family))
    if arg is None:
        if declared.elem is None:
            raise LaunchTypeError(f"{what}, not None: its type cannot be told")
        return None, _usual(declared)
    if not isinstance(have, View | Indexed):
        if declared.indexed or not shows_memory(arg):
            raise LaunchTypeError(f"{what}, but {passed}")
        arg = _shared(arg, class_of(declared.elem) if declared.elem else Any, what)
        have = arg.type
    if not fits(have, declared):
        other = have.ndim != declared.ndim
        found = f"{have.ndim} dimension(s)" if other else f"dtype {spell(have.elem)}"
        raise LaunchTypeError(f"{what}, but the passed array has {found}")
    return arg, have


def _family_hint(have: str, wanted: str) -> str:
    if (have, wanted) == ("array", "indexedarray"):
        return "wp.indexedarray(a) is an indexed array with all its elements"
    copy = ", or pass a copy of the elements: a.contiguous()" if wanted == "array" else ""
    return f"annotate wp.{have}(dtype=…){copy}"


def _usual(declared: Array) -> View | Indexed:
    """The type of the usual arguments for an annotation."""
    if "fabric" in declared.family:
        return bucketed(declared.elem, declared.ndim, declared.family != "fabricarray")
    data = view(declared.elem, declared.ndim)
    return indexed(data, (view(i32, 1),) * declared.ndim) if declared.indexed else data


def _complete(types: Sequence[Type | None]) -> bool:
    """Whether ``types`` leave nothing open but the layout of arrays."""
    return all(t is not None and not (isinstance(t, Array) and t.elem is None) for t in types)


def _usual_types(declared: Sequence[Type | None]) -> tuple[Type, ...]:
    return tuple([_usual(t) if isinstance(t, Array) else t for t in declared])


def _shared(arg: Any, dtype: Any, what: str) -> array:
    """A NumPy array, or that of a framework, as an array over the same memory: what the kernel writes must arrive."""
    if not hasattr(arg, "__array_interface__"):
        try:
            return shared(arg, None if dtype is Any else dtype)
        except (TypeError, ValueError) as error:
            raise LaunchTypeError(f"{what}: {getattr(error, 'message', error)}") from None
    rows = np.asarray(arg)
    try:
        made = array(rows, dtype=dtype, copy=False)
    except (TypeError, ValueError) as error:
        raise LaunchTypeError(f"{what}: {getattr(error, 'message', error)}") from None
    if made.size and made.ptr != rows.__array_interface__["data"][0]:
        raise LaunchTypeError(
            f"{what}: a NumPy array of {rows.dtype} and shape {rows.shape} would have to be copied, and what the "
            "kernel writes would be lost",
            hint="make an array of it first: wp.array(x, dtype=…)",
        )
    return made


def kernel(
    f: Any = None,
    *,
    name: str | None = None,
    enable_backward: bool | None = None,
    module: Module | str | None = None,
    module_options: dict[str, Any] | None = None,
    launch_bounds: Any = None,
    cuda_max_registers: int | None = None,
    enable_cuda_smem_spilling: bool | None = None,
    cluster_dim: int | None = None,
    entry_point_abi: str | None = None,
    grid_stride: bool | None = None,
    gang_width: int | None = None,
    gang_vectors: int | None = None,
    detached: bool | None = None,
) -> Any:
    """Make ``f`` a kernel. Nothing is compiled until it is launched.

    Args:
        f: a Python function whose parameters are annotated; it returns nothing.
        name: another name than the function's own.
        enable_backward: whether a gradient may be asked of it; None leaves it to the module and ``wp.config``.
        module: the module it belongs to (default: its Python module), or "unique" for one of its own. A kernel that is
            declared in a unique module again, alike in all that it reaches, is the one declared before.
        module_options: options for a "unique" module.
        gang_width: logical threads a SIMD gang for this kernel (beyond Warp).
        gang_vectors: vectors a gang (beyond Warp), where the grid fills them and nobody chose a width: 2 or 4 where
            threads have in common most of what a kernel does, such as loops over tables and their short loops.
        detached: what it writes is constant for tapes (beyond Warp): backward passes go past it, as with
            ``record_tape=False``; but tapes that keep few states run it again. For what is found step by step, and
            differentiated in another way.
        launch_bounds, cuda_max_registers, enable_cuda_smem_spilling, cluster_dim, grid_stride: for NVIDIA GPUs; without
            effect on a CPU.
        entry_point_abi: "external_constant_params" for a kernel that another program gives its arguments, which
            ``wp.launch`` refuses; it needs ``enable_backward=False``.

    Raises:
        KernelTypeError: ``f`` declares a return value.
        KernelValueError: a name that is no identifier, or an unknown or unfit ``entry_point_abi``.
        ValueError, TypeError: ``module_options`` that do not exist, or without a unique module.

    >>> import treadle as wp
    >>> @wp.kernel
    ... def double(a: wp.array(dtype=float)):
    ...     i = wp.tid()
    ...     a[i] = 2.0 * a[i]
    >>> a = wp.array([1.0, 2.0], dtype=float)
    >>> wp.launch(double, dim=2, inputs=[a])
    >>> a.list()
    [2.0, 4.0]
    """
    around = sys._getframe(1).f_locals  # not the frame, which would keep its callers
    given = {
        "enable_backward": enable_backward, "gang_width": gang_width, "gang_vectors": gang_vectors,
        "detached": detached, "launch_bounds": launch_bounds,
        "cuda_max_registers": cuda_max_registers, "enable_cuda_smem_spilling": enable_cuda_smem_spilling or None,
        "cluster_dim": cluster_dim, "entry_point_abi": entry_point_abi, "grid_stride": grid_stride,
    }  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    _check_name(name)
    _check_entry(entry_point_abi, enable_backward)
    check_gang("gang_width", gang_width)
    check_gang("gang_vectors", gang_vectors)
    if module_options is not None:
        if module != "unique":
            raise KernelValueError(
                'module_options needs module="unique"', hint="use wp.set_module_options for a module"
            )
        check_options(module_options)

    def declare(fn: Any) -> Kernel:
        home = module_of(fn, module)
        home.options.update(module_options or {})
        nested = "<locals>" in fn.__qualname__
        made = Kernel(fn, name, home, options, dict(around) if nested else None)
        if module == "unique":
            made = _unique(made)
        made.module.kernels[made.key] = made
        return made

    return declare if f is None else declare(f)


EXTERNAL = "external_constant_params"  # the entry of a kernel whose arguments another program puts in place


def _check_name(name: str | None) -> None:
    if name is not None and not (name.isidentifier() and name.isascii()):
        raise KernelValueError(
            f"the name of a kernel must be a valid C++ identifier: {name!r} is none", hint="use letters, digits and _"
        )


def _check_entry(abi: str | None, backward: bool | None) -> None:
    """Where a kernel finds its arguments is for code on GPUs, but what it excludes is told on every device."""
    if abi not in (None, "warp", EXTERNAL):
        raise KernelValueError(f"entry_point_abi is {abi!r}; it must be 'warp' or {EXTERNAL!r}")
    if abi == EXTERNAL and backward is not False:
        raise KernelValueError(f"entry_point_abi={abi!r} leaves no way to gradients: it requires enable_backward=False")


_shared_kernels: dict[str, tuple[Kernel, list[Any]]] = {}  # those of unique modules, with what their digests rely on
_MOST_SHARED = 1024


def _unique(made: Kernel) -> Kernel:
    """The kernel of a unique module that is just like ``made``: one declared before, or this one.

    A function that declares a kernel each time it is called so gets the same one, with what has been compiled.
    """
    from .identity import Identity, kernel_digest

    identity = Identity()
    is_now = kernel_digest(made, identity)
    key = digest(is_now, made.source.file, made.source.qualname, repr(sorted(made.module.options.items())))
    known, _ = _shared_kernels.get(key, (None, None))
    if known is not None and kernel_digest(known, Identity()) == is_now:  # lists that it read may have changed since
        return known
    if not made.module.options["strip_hash"]:
        made.module.name += f"_{key[:12]}"
    _shared_kernels[key] = made, identity.kept
    while len(_shared_kernels) > _MOST_SHARED:
        del _shared_kernels[next(iter(_shared_kernels))]
    return made


def overload(kernel: Any, arg_types: dict[str, Any] | list[Any] | None = None) -> Kernel:
    """Fix the types of a generic kernel: by position, by parameter name, or, as a decorator, by a typed signature.

    Args:
        kernel: the generic kernel; as a decorator, a function without a body that has the kernel's name and types.
        arg_types: one type for each parameter, or types by parameter name; an array stands for its type.

    Returns: a kernel that takes exactly these types; as a decorator the generic kernel, which will be loaded for them.

    Raises:
        KernelTypeError: types that do not go with the kernel's parameters, or not one kernel of that name.

    >>> import treadle as wp
    >>> from typing import Any
    >>> @wp.kernel
    ... def scale(a: wp.array(dtype=Any), s: Any):
    ...     a[wp.tid()] *= s
    >>> scale_f64 = wp.overload(scale, [wp.array(dtype=wp.float64), wp.float64])
    """
    if not isinstance(kernel, Kernel):
        return _overload_by_signature(kernel, sys._getframe(1).f_locals)
    names = [p.name for p in kernel.parameters]
    if isinstance(arg_types, dict):
        unknown = set(arg_types) - set(names)
        if unknown:
            raise KernelTypeError(f"kernel {kernel.key} has no parameter {sorted(unknown)[0]!r}")
        given = [arg_types.get(n) for n in names]
    elif arg_types is None:
        raise KernelTypeError(f"wp.overload of kernel {kernel.key} needs the argument types")
    else:
        given = list(arg_types)
    meant = [ArrayAnnotation(t.dtype, t.ndim, t.family.__name__) if isinstance(t, Shaped) else t for t in given]
    return _bound(kernel, [None if t is None else type_of(t, kernel.source.names()) for t in meant])


def _overload_by_signature(fn: Any, around: dict[str, Any]) -> Kernel:
    """The kernel that ``fn`` names; it is told of the types of ``fn``'s parameters."""
    if not callable(fn):
        raise KernelTypeError(f"wp.overload takes a kernel, not {type(fn).__name__}")
    stub = Source(fn, namespace=around)
    if stub.annotations.get("return") not in (None, type(None), "None", "NoneType", "types.NoneType"):
        raise KernelTypeError("Return annotations are not allowed on @wp.overload stubs: leave it out", stub.span)
    generic = around.get(fn.__name__)
    if not isinstance(generic, Kernel):
        kernels = get_module(fn.__module__).kernels.values()
        found = [k for k in kernels if k.func.__qualname__ == fn.__qualname__ or k.key == fn.__name__]
        if len(found) > 1:
            shown = ", ".join(k.key for k in found)
            raise KernelTypeError(f"Ambiguous kernel lookup: {fn.__name__!r} is the function of {shown}",
                                  hint="give the types to one of them: wp.overload(kernel, [types])")  # fmt: skip
        generic = found[0] if found else None
    if generic is None:
        raise KernelTypeError(f"wp.overload: there is no kernel {fn.__name__!r} to give types to")
    _state(generic, stub.parameter_types())
    return generic


def _state(kernel: Kernel, types: Sequence[Type | None]) -> None:
    """Note that ``kernel`` is wanted for ``types``, so that it is loaded for them with its module."""
    if len(types) != len(kernel.parameters):
        raise KernelTypeError(
            f"kernel {kernel.key} takes {len(kernel.parameters)} arguments, {len(types)} types were given"
        )
    for p, t in zip(kernel.parameters, types, strict=True):
        if isinstance(t, Fixed):
            raise KernelTypeError(f"parameter {p.name!r} of kernel {kernel.key}: a {spell(t)} belongs to a thread")
    if _complete(types):
        usual = _usual_types(types)
        if usual not in kernel.stated:
            kernel.stated.append(usual)
        kernel.overload(usual)


def _bound(kernel: Kernel, types: list[Type | None]) -> Kernel:
    _state(kernel, types)
    made = Kernel(kernel.func, kernel.key, kernel.module, kernel.options, kernel.source.namespace)
    made.bound = tuple(types)
    return made
