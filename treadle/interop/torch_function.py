"""``wp.torch_function``: a kernel, or a function that launches kernels, as a differentiable function of PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from ..base.errors import KernelGradientError, LaunchError, LaunchTypeError
from ..lang.kernel import Kernel
from ..lang.launch import launch
from ..lang.tape import Tape
from ..runtime.array import array
from ..runtime.device import apart
from ..runtime.elements import Element, element_of
from ..types.core import Array, Matrix, Scalar, Type, Vector
from ..types.layout import has_floats
from ..types.spelling import spell
from ..types.values import class_of
from .extras import torch
from .signature import Signature, declared_of, dims_of, output_shape
from .torch_arrays import dtype_to_torch, from_torch, stream_from_torch, to_torch

_numbers = itertools.count()


def torch_function(
    func: Kernel | Callable[..., Any],
    num_outputs: int = 1,
    launch_dims: Any = None,
    output_dims: Any = None,
    in_out_argnames: Sequence[str] | None = None,
    block_dim: int | None = None,
    name: str | None = None,
) -> Callable[..., Any]:
    """A function of PyTorch's tensors that launches a kernel, or calls a function that launches several.

    It is an operator of ``torch.library``: autograd goes back through it, ``torch.compile`` keeps it in its graphs, and
    ``torch.vmap`` repeats it for each element of a batch. Beyond Warp.

    Args:
        func: a kernel, or a Python function with annotations like a kernel's. Its arguments are those that are read,
            and at the end those that are only written. Arrays of vectors and matrices are tensors with the components
            in their last dimensions.
        num_outputs: how many results there are: the arguments in ``in_out_argnames``, and the last ones.
        launch_dims: the grid of a kernel; the shape of the first tensor if left out.
        output_dims: shapes of results that are only written, one for all or by name; the grid, or the shape of the
            first tensor, if left out. What is not written is 0.
        in_out_argnames: arguments that are operands and results; the operand stays as it is.
        block_dim: threads in a block, as for ``wp.launch``.
        name: of the operator, ``"namespace::name"``; one in the namespace ``treadle`` if left out.

    Returns: a function of the inputs, with the keywords ``launch_dims`` and ``output_dims``; it gives a tensor, or a
        tuple of them where there are several results.

    Raises:
        ValueError, TypeError: arguments that do not go with ``func``.
        LaunchTypeError: when it is called, a type or shape that does not fit.

    >>> import torch, treadle as wp
    >>> @wp.kernel
    ... def scaled(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    ...     i = wp.tid()
    ...     y[i] = s * x[i] * x[i]
    >>> f = wp.torch_function(scaled)
    >>> x = torch.arange(3.0, requires_grad=True)
    >>> f(x, 3.0).sum().backward()
    >>> x.grad
    tensor([ 0.,  6., 12.])
    """
    made = _Operator(func, num_outputs, launch_dims, output_dims, tuple(in_out_argnames or ()), block_dim, name)
    operator, function, compiling = made.operator, made.function(), torch().compiler.is_compiling
    count, plain, several = made.signature.count, made.plain, num_outputs > 1

    def call(*args: Any, launch_dims: Any = None, output_dims: Any = None) -> Any:
        count(args)
        if not compiling():
            made.refuse(args)
        given = [*args] if plain else [made.flat(k, arg) for k, arg in enumerate(args)]
        if launch_dims is not None or output_dims is not None:
            given += made.shapes(launch_dims, output_dims)
        found = operator(*given) if compiling() else function.apply(*given)
        return tuple(found) if several else found[0]

    call.__name__ = call.__qualname__ = made.signature.key
    return call


_USUAL = {float, int, bool, list, tuple, type(None)}  # types of arguments that need no operator
_SCHEMA = {"f": "float", "i": "int", "u": "int", "b": "bool"}


class _Operator:
    """The operator of ``torch.library`` for a kernel or function, and the one of its derivative."""

    def __init__(self, func: Any, num_outputs: int, launch_dims: Any, output_dims: Any, in_out: tuple[str, ...],
                 block_dim: int | None, name: str | None):  # fmt: skip
        self.func, self.block_dim = func, block_dim
        self.launch_dims = None if launch_dims is None else dims_of(launch_dims, "launch_dims")
        self.output_dims, self.is_kernel = output_dims, isinstance(func, Kernel)
        if self.is_kernel:
            what, names, types = f"kernel {func.key}", [p.name for p in func.parameters], func.declared
        elif callable(func):
            label = getattr(func, "__name__", type(func).__name__)
            what, (names, types) = f"function {label}", declared_of(func, label)
        else:
            raise LaunchTypeError(f"wp.torch_function takes a kernel or a function, not {type(func).__name__}")
        self.signature = Signature(what, names, types, num_outputs, in_out)
        self.signature.check_names(output_dims)
        kinds = [self._kind(n, t) for n, t in zip(self.signature.inputs, self.signature.declared, strict=False)]
        self.inputs = [*zip(self.signature.inputs, self.signature.declared, strict=False)]
        self.tensors = [k for k, kind in enumerate(kinds) if kind == "Tensor"]
        self.numbers = [k for k, kind in enumerate(kinds) if kind in _SCHEMA.values()]
        # The results in order: what is read and written, then what is only written.
        self.names = [*[n for n, _ in self.inputs if n in in_out], *[n for n, _ in self.signature.made]]
        self.plain = not any(kind.endswith("[]") for kind in kinds)  # whether arguments go as they are
        if name is not None and name.count("::") != 1:
            raise ValueError(f"an operator of PyTorch is called 'namespace::name', not {name!r}")
        label = name or f"treadle::{self.signature.key.replace('.', '_')}_{next(_numbers)}"
        listed = ", ".join([f"{kind} {n}" for n, kind in zip(self.signature.inputs, kinds, strict=True)])
        behind = f"{', ' if listed else ''}int[]? launch_dims=None, int[]? output_dims=None"
        self.operator = self._defined(label, f"({listed}{behind}) -> Tensor[]", self.run, self.imagined)
        more = f"Tensor[] cotangents{', ' if listed else ''}{listed}, int[]? launch_dims=None, int[]? output_dims=None"
        self.adjoint = self._defined(f"{label}_adjoint", f"({more}) -> Tensor[]", self.go_back, self.imagined_back)
        self.operator.register_autograd(self._backward, setup_context=self._keep)

    def _defined(self, label: str, schema: str, run: Any, imagined: Any) -> Any:
        made = torch().library.custom_op(label, run, mutates_args=(), schema=schema, device_types=("cpu", "cuda"))
        made.register_fake(imagined)
        made.register_vmap(self._vmap(made))
        return made

    def _kind(self, name: str, t: Type | None) -> str:
        if isinstance(t, Array) and t.elem is not None:
            return "Tensor"
        if isinstance(t, Scalar):
            return _SCHEMA[t.kind]
        if isinstance(t, Vector | Matrix):
            return f"{_SCHEMA[t.elem.kind]}[]"
        what = "any type" if t is None else spell(t)
        raise LaunchTypeError(
            f"argument {name!r} of {self.signature.what}: PyTorch's operators take no {what}",
            hint="give it one type by its annotation, or by wp.overload",
        )

    def refuse(self, args: Sequence[Any]) -> None:
        """Raise LaunchTypeError where one of ``args`` should be a tensor and is none, or is one and should not be."""
        for k in self.tensors:
            if not isinstance(args[k], torch().Tensor):
                name, t = self.inputs[k]
                raise LaunchTypeError(f"argument {name!r} of {self.signature.what} must be {spell(t)}, a tensor of "
                                      f"PyTorch, not {type(args[k]).__name__}")  # fmt: skip
        for k in self.numbers:
            if isinstance(args[k], torch().Tensor):
                name, t = self.inputs[k]
                raise LaunchTypeError(
                    f"argument {name!r} of {self.signature.what} must be {spell(t)}, a value of Python, which has no "
                    "gradient and no vmap; it is a tensor of PyTorch",
                    hint=f"make it an array of one element in the kernel, and read {name}[0]; or pass its item()",
                )

    def flat(self, k: int, arg: Any) -> Any:
        """Argument number ``k`` as the operator takes it: vectors and matrices as lists."""
        t = self.inputs[k][1]
        if not isinstance(t, Vector | Matrix):
            return arg
        return [x for row in arg for x in (row if hasattr(row, "__len__") else [row])]

    def shapes(self, launch_dims: Any, output_dims: Any) -> list[Any]:
        """What a call says of shapes, as the operator takes it."""
        if isinstance(output_dims, dict):
            raise LaunchTypeError("in a call output_dims is one shape for all results; name them in wp.torch_function")
        return [None if each is None else [*dims_of(each, "a shape")] for each in (launch_dims, output_dims)]

    # Shapes -----------------------------------------------------------------------------------------------------

    def _split(self, args: Sequence[Any]) -> tuple[list[Any], tuple[int, ...], list[tuple[Element, tuple[int, ...]]]]:
        """Inputs, grid, and element and shape of each result that is only written."""
        values = [*args[: len(self.inputs)]]
        launch_dims, output_dims = (*args[len(self.inputs) :], None, None)[:2]
        for k in self.tensors:
            self._check(k, values[k])
        first = next(iter(self.tensors), None)
        around: tuple[int, ...] | None = None
        if first is not None:
            around = tuple(values[first].shape[: self.inputs[first][1].ndim])
        given = launch_dims if launch_dims is not None else self.launch_dims
        dims = tuple(given) if given is not None else around
        if dims is None and self.is_kernel:
            raise LaunchError(f"{self.signature.what} has no tensor among its inputs, so its grid is not known",
                              hint="give it: launch_dims=…")  # fmt: skip
        made = []
        for name, t in self.signature.made:
            if t is None or t.elem is None:
                raise LaunchTypeError(f"argument {name!r} of {self.signature.what} has no element type")
            e = element_of(t.elem)
            shape = output_shape(name, self.output_dims if output_dims is None else list(output_dims))
            if shape is None:
                shape = around if dims is None or (len(dims) != t.ndim and around is not None) else dims
            if shape is None:
                raise LaunchError(f"the shape of {name!r} is not known", hint=f"output_dims={{{name!r}: …}}")
            made.append((e, self.signature.shape_of(name, e, t.ndim, tuple(shape))))
        return values, dims or (), made

    def _check(self, k: int, t: Any) -> None:
        name, declared = self.inputs[k]
        where = f"argument {name!r} of {self.signature.what}"
        e = element_of(declared.elem)
        if dtype_to_torch(_scalar(e)) != t.dtype:
            raise LaunchTypeError(f"{where} must hold {dtype_to_torch(_scalar(e))}, not {t.dtype}")
        if t.ndim != declared.ndim + len(e.inner) or tuple(t.shape[declared.ndim :]) != e.inner:
            behind = f", then {e.inner} for the components of {spell(e.type)}" if e.inner else ""
            raise LaunchTypeError(f"{where} must have {declared.ndim} dimensions{behind}, not the shape {(*t.shape,)}")

    def imagined(self, *args: Any) -> list[Any]:
        """The results of :meth:`run` without content."""
        values, _, made = self._split(args)
        both = [values[k] for k in self.tensors if self.inputs[k][0] in self.signature.in_out]
        return [*[torch().empty_like(t) for t in both],
                *[torch().empty(shape, dtype=dtype_to_torch(_scalar(e)), device=self._place(values))
                  for e, shape in made]]  # fmt: skip

    def imagined_back(self, cotangents: Any, *args: Any) -> list[Any]:
        """The results of :meth:`go_back` without content."""
        return [torch().empty_like(args[k]) for k in self.tensors if self._moves(k)]

    def _moves(self, k: int) -> bool:
        return has_floats(self.inputs[k][1].elem)

    # Work -------------------------------------------------------------------------------------------------------

    def _arrays(self, args: Sequence[Any]) -> tuple[tuple[int, ...], list[Any], list[Any]]:
        """Grid, all arguments, and the tensors of the results."""
        values, dims, made = self._split(args)
        results = []
        for k, (name, t) in enumerate(self.inputs):
            if k in self.tensors:
                tensor = values[k].detach()
                if name in self.signature.in_out:
                    tensor = tensor.clone()
                    results.append(tensor)
                values[k] = from_torch(tensor, class_of(t.elem), requires_grad=False)
            elif isinstance(t, Vector | Matrix):
                values[k] = class_of(t)(*values[k])
        for e, shape in made:
            results.append(torch().zeros(shape, dtype=dtype_to_torch(_scalar(e)), device=self._place(args)))
            values.append(from_torch(results[-1], e.cls, requires_grad=False))
        return dims, values, results

    def _place(self, args: Sequence[Any]) -> Any:
        """PyTorch's device of the tensors among the inputs; None where there are none."""
        return args[self.tensors[0]].device if self.tensors else None

    def _within(self, args: Sequence[Any]) -> Any:
        """In the block work is given to PyTorch's current stream, on a GPU, by this thread alone: PyTorch goes back on
        threads of its own. On the CPU there is nothing to say."""
        where = self._place(args)
        if where is None or where.type == "cpu":
            return nullcontext()
        stream = stream_from_torch(where)
        return apart(stream.device, stream)

    def _do(self, dims: tuple[int, ...], values: list[Any]) -> None:
        if self.is_kernel:
            launch(self.func, dims, values, block_dim=self.block_dim)
        else:
            self.func(*values)

    def run(self, *args: Any) -> list[Any]:
        """The work: tensors to tensors."""
        with self._within(args):
            dims, values, results = self._arrays(args)
            self._do(dims, values)
        return results

    def go_back(self, cotangents: Sequence[Any], *args: Any) -> list[Any]:
        """The gradients of the tensors that hold floats."""
        with self._within(args):
            return self._gone_back(cotangents, args)

    def _gone_back(self, cotangents: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        apart = [x.contiguous() if k in self.tensors and _overlaps(x) else x for k, x in enumerate(args)]
        dims, values, _ = self._arrays(apart)
        graded: dict[str, array] = {}
        for k in [k for k in self.tensors if self._moves(k)]:
            values[k].requires_grad = True
            graded[self.inputs[k][0]] = values[k]
        for name, cotangent in zip(self.names, cotangents, strict=True):
            a = values[self.signature.names.index(name)]
            if has_floats(a.type.elem):
                a.requires_grad = True
                a.grad.assign(from_torch(cotangent.detach(), a.dtype, requires_grad=False))
        with Tape() as tape:
            self._do(dims, values)
        tape.backward()
        shaped = {name: to_torch(a.grad, requires_grad=False) for name, a in graded.items()}
        return [shaped[self.inputs[k][0]] for k in self.tensors if self._moves(k)]

    # What PyTorch asks ------------------------------------------------------------------------------------------

    def function(self) -> Any:
        """The function for autograd; the transforms of ``torch.func`` know it, while they do not go through operators.

        A compiler sees the operator in its place.
        """
        _USUAL.update((torch().Tensor, torch().nn.Parameter))
        own, batched = self, self._vmap

        class Adjoint(torch().autograd.Function):
            @staticmethod
            def forward(*args: Any) -> tuple[Any, ...]:
                count = len(own.names)
                return tuple((own.go_back if _usual(args) else own.adjoint)([*args[:count]], *args[count:]))

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                pass

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                raise KernelGradientError(f"PyTorch asks for the second derivative of {own.signature.what}")

            vmap = staticmethod(batched(lambda *args: Adjoint.apply(*args)))

        class Function(torch().autograd.Function):
            @staticmethod
            def forward(*args: Any) -> tuple[Any, ...]:
                return tuple((own.run if _usual(args) else own.operator)(*args))

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                own._keep(ctx, inputs, output)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return own._backward(ctx, grads, lambda cotangents, *args: Adjoint.apply(*cotangents, *args))

            vmap = staticmethod(batched(lambda *args: Function.apply(*args)))

        Function.__name__ = self.signature.key
        return Function

    def _keep(self, ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*[inputs[k] for k in self.tensors])
        ctx.others = [None if k in self.tensors else x for k, x in enumerate(inputs)]
        ctx.like = [(x.shape, x.dtype) for x in output]

    def _backward(self, ctx: Any, grads: Sequence[Any], adjoint: Any = None) -> tuple[Any, ...]:
        args = [*ctx.others]
        for k, t in zip(self.tensors, ctx.saved_tensors, strict=True):
            args[k] = t
        cotangents = [torch().zeros(shape, dtype=dtype) if grad is None else grad
                      for grad, (shape, dtype) in zip(grads, ctx.like, strict=True)]  # fmt: skip
        found = iter((adjoint or self.adjoint)(cotangents, *args))
        return tuple([next(found) if k in self.tensors and self._moves(k) else None for k in range(len(args))])

    def _vmap(self, operator: Any) -> Callable[..., Any]:
        def batched(info: Any, in_dims: Any, *args: Any) -> tuple[Any, Any]:
            def element(arg: Any, axis: Any, i: int) -> Any:
                if isinstance(arg, list | tuple) and isinstance(axis, list | tuple):
                    return [element(x, a, i) for x, a in zip(arg, axis, strict=True)]
                return arg if axis is None else arg.select(axis, i)

            rows = [operator(*[element(arg, axis, i) for arg, axis in zip(args, in_dims, strict=True)])
                    for i in range(info.batch_size)]  # fmt: skip
            made = [torch().stack(column) for column in zip(*rows, strict=True)]
            return (made, [0] * len(made)) if isinstance(rows[0], list) else (tuple(made), (0,) * len(made))

        return batched


def _overlaps(t: Any) -> bool:
    """Whether elements may share memory, as in an expanded tensor: their gradients must not."""
    end = 0
    for step, extent in sorted(zip(t.stride(), t.shape, strict=True)):
        if extent > 1:
            if step <= end:
                return True
            end += step * (extent - 1)
    return False


def _usual(args: Sequence[Any]) -> bool:
    """Whether no tensor is one of a mode of PyTorch that only knows operators."""
    return all(type(x) in _USUAL for x in args)


def _scalar(e: Element) -> Any:
    t = e.type.elem if isinstance(e.type, Vector | Matrix) else e.type
    return class_of(t)
