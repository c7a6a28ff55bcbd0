"""Launches as primitives of JAX: what JAX must know to trace, differentiate, batch and compile them.

There are five: ``launch``; ``tangent``, which is linear in the tangents of operands; ``adjoint``, its transpose; and
``second``, how the adjoint changes, which is its own transpose, as second derivatives may be taken in either order.
``bend``, how the tangent program changes, only has a transpose, which is ``second`` as well.
So ``jax.jvp`` runs the kernel and its tangent program, ``jax.grad`` the kernel and its adjoint, and ``jax.vmap`` gives
each of them one more axis, over which the machine code repeats the launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from ..base.errors import KernelGradientError
from .extras import jax
from .jax_arrays import first_gpu
from .jax_launch import INOUT, Call, Lowered, Slot
from .xla import Level


class Primitives(NamedTuple):
    """The primitives."""

    launch: Any
    tangent: Any
    adjoint: Any
    second: Any
    bend: Any


@cache
def primitives() -> Primitives:
    """The primitives, made when first needed."""
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir, xla

    made = Primitives(*[Primitive(f"treadle_{name}") for name in Primitives._fields])
    for p, shapes, lower, fixed in (
        (made.launch, _launch_shapes, _launch_lowered, _launch_fixed),
        (made.tangent, _tangent_shapes, _tangent_lowered, _tangent_fixed),
        (made.adjoint, _adjoint_shapes, _adjoint_lowered, _adjoint_fixed),
        (made.second, _second_shapes, _second_lowered, _second_fixed),
        (made.bend, _bend_shapes, _bend_lowered, _bend_fixed),
    ):
        p.multiple_results = True
        p.def_impl(_implementation(xla, p))
        p.def_effectful_abstract_eval(_abstract(shapes, p is made.launch))
        mlir.register_lowering(p, _lowering(lower), platform="cpu")
        mlir.register_lowering(p, _lowering(lower, far=True), platform="cuda")
        batching.primitive_batchers[p] = _batcher(p, fixed)
    ad.primitive_jvps[made.launch] = _launch_jvp
    ad.primitive_jvps[made.tangent] = _tangent_jvp
    ad.primitive_transposes[made.tangent] = _tangent_transpose
    ad.primitive_jvps[made.adjoint] = _adjoint_jvp
    ad.primitive_jvps[made.second] = _second_jvp
    ad.primitive_transposes[made.adjoint] = _adjoint_transpose
    ad.primitive_transposes[made.second] = _second_transpose
    ad.primitive_transposes[made.bend] = _bend_transpose
    return made


def _implementation(xla: Any, p: Any) -> Callable[..., Any]:
    def run(*operands: Any, **params: Any) -> Any:
        return xla.apply_primitive(p, *operands, **params)

    return run


# Shapes --------------------------------------------------------------------------------------------------------------


def _launch_shapes(call: Call) -> Sequence[Slot]:
    return call.results


def _tangent_shapes(call: Call, active: tuple[int, ...]) -> Sequence[Slot]:
    return call.float_results


def _adjoint_shapes(call: Call, active: tuple[int, ...], given: tuple[int, ...]) -> Sequence[Slot]:
    return [call.operands[k] for k in active]


def _second_shapes(call: Call, active: tuple[int, ...], **params: Any) -> Sequence[Slot]:
    return [call.operands[k] for k in active]


def _bend_shapes(call: Call, active: tuple[int, ...], moved: tuple[int, ...]) -> Sequence[Slot]:
    return call.float_results


def _abstract(shapes: Callable[..., Sequence[Slot]], acts: bool) -> Callable[..., Any]:
    def evaluate(*avals: Any, batch: tuple[Level, ...], **params: Any) -> tuple[list[Any], Any]:
        sizes = [level.size for level in batch]
        made = [_aval((*sizes, *slot.shape), slot.dtype, avals) for slot in shapes(**params)]
        return made, _effects() if acts and params["call"].wanted else frozenset()

    return evaluate


@cache
def _effects() -> Any:
    """What JAX notes of a call that it may not leave out: the effect that its own foreign calls have."""

    def call() -> Any:
        return jax().ffi.ffi_call("treadle_effect", (), has_side_effect=True)()

    return frozenset(jax().make_jaxpr(call)().effects)


def _aval(shape: tuple[int, ...], dtype: Any, like: Sequence[Any]) -> Any:
    """JAX's type of an array, which varies over the axes of a mesh as those in ``like`` do."""
    shaped = jax().core.ShapedArray
    if not like or not _axes_of(like[0]):
        return shaped(shape, dtype)
    first, sharding = like[0], jax().sharding
    spec = sharding.PartitionSpec(*[None] * len(shape))
    placed = sharding.NamedSharding(first.sharding.mesh, spec)
    if getattr(first, "mat", None) is not None:
        return shaped(shape, dtype, sharding=placed, manual_axis_type=first.mat)
    return shaped(shape, dtype, sharding=placed, vma=first.vma)


def _axes_of(t: Any) -> frozenset:
    """The axes of a mesh over which an array of JAX's type ``t`` varies."""
    return getattr(getattr(t, "mat", None), "varying", None) or getattr(t, "vma", None) or frozenset()


def varying_alike(operands: list[Any]) -> list[Any]:
    """The operands, all of them varying over each axis of a mesh that one of them varies over."""
    axes = [_axes_of(jax().typeof(x)) for x in operands]
    every = frozenset().union(*axes)
    if all(each == every for each in axes):
        return operands
    return [x if each == every else _cast(x, tuple(sorted(every - each, key=str))) for x, each in zip(operands, axes)]


def _cast(x: Any, axes: tuple[Any, ...]) -> Any:
    lax = jax().lax
    return lax.pcast(x, axes, to="varying") if hasattr(lax, "pcast") else lax.pvary(x, axes)


# Compiling -----------------------------------------------------------------------------------------------------------


def _launch_lowered(batch: tuple[Level, ...], call: Call) -> Lowered:
    return call.launch(batch)


def _tangent_lowered(batch: tuple[Level, ...], call: Call, active: tuple[int, ...]) -> Lowered:
    return call.tangent(active, batch)


def _adjoint_lowered(batch: tuple[Level, ...], call: Call, active: tuple[int, ...], given: tuple[int, ...]) -> Lowered:
    return call.adjoint(active, given, batch)


def _second_lowered(batch: tuple[Level, ...], call: Call, **params: Any) -> Lowered:
    return call.second(batch=batch, **params)


def _bend_lowered(batch: tuple[Level, ...], call: Call, active: tuple[int, ...], moved: tuple[int, ...]) -> Lowered:
    raise KernelGradientError(
        f"JAX asks for the second derivative of kernel {call.key} by forward mode alone",
        hint="take the gradient first or last: jax.jacfwd(jax.grad(f)), or jax.grad of what jax.jvp gives",
    )


def _lowering(lower: Callable[..., Lowered], far: bool = False) -> Callable[..., Any]:
    def rule(ctx: Any, *operands: Any, batch: tuple[Level, ...], call: Call, **params: Any) -> Any:
        made = lower(batch, call.on(first_gpu()) if far else call, **params)
        every = [*ctx.avals_out]
        every += [jax().core.ShapedArray(shape, dtype) for shape, dtype in made.results[made.kept :]]
        write = jax().ffi.ffi_lowering(made.name, operand_output_aliases=made.aliases, has_side_effect=call.effect)
        return write(ctx.replace(avals_out=every), *operands)[: made.kept]

    return rule


# Batches -------------------------------------------------------------------------------------------------------------
# Operands that become results need every axis of the batch, as results have them.


def _launch_fixed(call: Call) -> list[int]:
    return [k for k, slot in enumerate(call.operands) if slot.role == INOUT]


def _tangent_fixed(call: Call, active: tuple[int, ...]) -> list[int]:
    own = _launch_fixed(call)
    return [*own, *[len(call.operands) + n for n, k in enumerate(active) if k in own]]


def _adjoint_fixed(call: Call, active: tuple[int, ...], given: tuple[int, ...]) -> list[int]:
    first = len(call.operands)
    return [*_launch_fixed(call), *range(first, first + len(call.winners(active)[0]) + len(given))]


def _second_fixed(
    call: Call, active: tuple[int, ...], given: tuple[int, ...], moved: tuple[int, ...], dotted: tuple[int, ...]
) -> list[int]:
    own, first = _launch_fixed(call), len(call.operands)
    behind = first + len(moved)
    tangents = [first + n for n, k in enumerate(moved) if call.operands[k].role == INOUT]
    return [*own, *tangents, *range(behind, behind + len(given) + len(dotted))]


def _bend_fixed(call: Call, active: tuple[int, ...], moved: tuple[int, ...]) -> list[int]:
    return _tangent_fixed(call, (*active, *moved))


def _batcher(p: Any, fixed: Callable[..., list[int]]) -> Callable[..., Any]:
    def rule(operands: Sequence[Any], axes: Sequence[int | None], *, batch: tuple[Level, ...], **params: Any) -> Any:
        if not params["call"].batches:
            raise NotImplementedError(f"vmap over kernel {params['call'].key}, whose vmap_method is None")
        size = next(x.shape[axis] for x, axis in zip(operands, axes) if axis is not None)
        longer = params["call"].longer(size)
        if longer is not None:
            made = p.bind(*[_joined(x, axis, size) for x, axis in zip(operands, axes)], batch=batch,
                          **{**params, "call": longer})  # fmt: skip
            return [x.reshape((size, x.shape[0] // size, *x.shape[1:])) for x in made], [0] * len(made)
        all_of = {*fixed(**params)}
        moved, flags = [], []
        for k, (x, axis) in enumerate(zip(operands, axes)):
            if axis is None and k in all_of:
                x, axis = jax().numpy.broadcast_to(x, (size, *x.shape)), 0
            moved.append(x if axis is None else jax().numpy.moveaxis(x, axis, 0))
            flags.append(axis is not None)
        made = p.bind(*moved, batch=(Level(size, tuple(flags)), *batch), **params)
        return made, [0] * len(made)

    return rule


def _joined(x: Any, axis: int | None, size: int) -> Any:
    """An operand with its batch as part of its first axis."""
    numpy = jax().numpy
    x = numpy.broadcast_to(x, (size, *x.shape)) if axis is None else numpy.moveaxis(x, axis, 0)
    return x.reshape((size * x.shape[1], *x.shape[2:]))


def _flagged(batch: tuple[Level, ...], pick: Callable[[tuple[bool, ...]], list[bool]]) -> tuple[Level, ...]:
    return tuple([Level(level.size, tuple(pick(level.flags))) for level in batch])


# Derivatives ---------------------------------------------------------------------------------------------------------


def _zero(x: Any) -> Any:
    from jax.interpreters import ad

    return ad.Zero(jax().typeof(x).to_tangent_aval())


def _is_zero(x: Any) -> bool:
    from jax.interpreters import ad

    return type(x) is ad.Zero


def _by_arrays(
    call: Call, moved: Sequence[int], batch: tuple[Level, ...], *values: Sequence[Any]
) -> tuple[Call, Sequence[Any], Sequence[Any]]:
    """The call, and the operands and their tangents among ``values``, with numbers as arrays of one element if one of
    those is ``moved``."""
    if not any(call.operands[k].boxes for k in moved):
        return call, *values
    found = []
    for own in values:
        made = [*own]
        for k, slot in enumerate(call.operands):
            if slot.boxes and not _is_zero(made[k]):
                made[k] = jax().numpy.expand_dims(made[k], sum(level.flags[k] for level in batch))
        found.append(made)
    return call.by_arrays, *found


def _launch_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, call: Call, batch: tuple[Level, ...]) -> Any:
    made = primitives()
    results = made.launch.bind(*primals, call=call, batch=batch)
    active = tuple([k for k, t in enumerate(tangents) if not _is_zero(t)])
    if not active or not call.float_results:
        return results, [_zero(x) for x in results]
    call, primals, tangents = _by_arrays(call, active, batch, primals, tangents)
    more = _flagged(batch, lambda flags: [*flags, *[flags[k] for k in active]])
    moved = iter(made.tangent.bind(*primals, *[tangents[k] for k in active], call=call, active=active, batch=more))
    return results, [next(moved) if slot.floats else _zero(x) for slot, x in zip(call.results, results)]


def _tangent_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    """A tangent program is linear in its tangents, and changes with the other operands."""
    call, active, batch = params["call"], params["active"], params["batch"]
    first, made = len(call.operands), primitives()
    results = made.tangent.bind(*primals, **params)
    sums = []
    live = [n for n in range(len(active)) if not _is_zero(tangents[first + n])]
    if live:
        own = _flagged(batch, lambda flags: [*flags[:first], *[flags[first + n] for n in live]])
        sums.append(made.tangent.bind(*primals[:first], *[tangents[first + n] for n in live], call=call, batch=own,
                                      active=tuple([active[n] for n in live])))  # fmt: skip
    moved = tuple([k for k in range(first) if not _is_zero(tangents[k])])
    if moved:
        call, primals, tangents = _by_arrays(call, moved, batch, primals, tangents)
        more = _flagged(batch, lambda flags: [*flags, *[flags[k] for k in moved]])
        sums.append(made.bend.bind(*primals, *[tangents[k] for k in moved], call=call, active=active, moved=moved,
                                   batch=more))  # fmt: skip
    if not sums:
        return results, [_zero(x) for x in results]
    return results, [sum(parts[1:], parts[0]) for parts in zip(*sums)]


def _bend_transpose(
    cotangents: Sequence[Any], *operands: Any, call: Call, active: tuple[int, ...], moved: tuple[int, ...],
    batch: tuple[Level, ...],
) -> list[Any]:  # fmt: skip
    behind = len(call.operands) + len(active)
    given = tuple([k for k, ct in enumerate(cotangents) if not _is_zero(ct)])
    if not given:
        return [*[None] * behind, *[_zero_like(x) for x in operands[behind:]]]
    values = [cotangents[k] for k in given]
    more = _flagged(batch, lambda flags: [*flags[:behind], *[True] * len(given)])
    grads = primitives().second.bind(
        *varying_alike([*operands[:behind], *values]), call=call, active=moved, given=given, moved=active,
        dotted=(), batch=more)  # fmt: skip
    return [*[None] * behind, *_summed(grads, batch, behind)]


def _summed(grads: Sequence[Any], batch: tuple[Level, ...], first: int) -> list[Any]:
    """Gradients of the operands from number ``first`` on: what all elements of a batch share has their sum."""
    found = []
    for n, grad in enumerate(grads):
        axes = tuple([at for at, level in enumerate(batch) if not level.flags[first + n]])
        found.append(jax().numpy.sum(grad, axis=axes) if axes else grad)
    return found


def _tangent_transpose(
    cotangents: Sequence[Any], *operands: Any, call: Call, active: tuple[int, ...], batch: tuple[Level, ...]
) -> list[Any]:
    first = len(call.operands)
    primals, none = operands[:first], [None] * first
    given = tuple([k for k, ct in enumerate(cotangents) if not _is_zero(ct)])
    if not given:
        return [*none, *[_zero_like(x) for x in operands[first:]]]
    cts = {call.float_results[k].name: cotangents[k] for k in given}
    return [*none, *_summed(_adjoint(primals, cts, call, active, batch), batch, first)]


def _zero_like(x: Any) -> Any:
    from jax.interpreters import ad

    return ad.Zero(x.aval)


def _adjoint(
    primals: Sequence[Any], cts: dict[str, Any], call: Call, active: tuple[int, ...], batch: tuple[Level, ...]
) -> list[Any]:
    """Gradients of the arrays at ``active``, with all axes of the batch.

    Where a result holds the least or greatest of many values, the adjoint must see what the launch left; the cotangent
    of elements that it did not change belongs to what was there before.
    """
    made, jnp = primitives(), jax().numpy
    first, sizes = len(call.operands), tuple([level.size for level in batch])
    own = _flagged(batch, lambda flags: [*flags[:first]])
    winners, seen = call.winners(active)
    after, kept = [], {}
    if winners:
        primals = [jnp.broadcast_to(x, (*sizes, *slot.shape)) if slot.role == INOUT else x
                   for x, slot in zip(primals, call.operands)]  # fmt: skip
        own = _flagged(own, lambda flags: [f or s.role == INOUT for f, s in zip(flags, call.operands)])
        left = dict(zip([s.name for s in call.results], made.launch.bind(*primals, call=call, batch=own)))
        after = [left[name] for name in winners]
        for name in winners:
            if name in cts and name not in seen:
                before = primals[call.place[name]] if name in call.place else jnp.zeros_like(left[name])
                same = before == left[name]
                kept[name] = jnp.where(same, cts[name], 0)
                cts = {**cts, name: jnp.where(same, 0, cts[name])}
    given = tuple([k for k, slot in enumerate(call.float_results) if slot.name in cts])
    values = [cts[call.float_results[k].name] for k in given]
    fixed = [slot.role == INOUT for slot in call.operands]
    primals = [jnp.broadcast_to(x, (*sizes, *slot.shape)) if f else x
               for x, slot, f in zip(primals, call.operands, fixed)]  # fmt: skip
    more = _flagged(own, lambda flags: [*[a or b for a, b in zip(flags, fixed)], *[True] * (len(after) + len(values))])
    grads = made.adjoint.bind(*varying_alike([*primals, *after, *values]), call=call, active=active, given=given,
                              batch=more)  # fmt: skip
    names = [call.operands[k].name for k in active]
    return [grad + kept[name] if name in kept else grad for name, grad in zip(names, grads)]


def _adjoint_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, call: Call, active: tuple[int, ...], given: tuple[int, ...],
    batch: tuple[Level, ...],
) -> Any:  # fmt: skip
    first = len(call.operands)
    results = primitives().adjoint.bind(*primals, call=call, active=active, given=given, batch=batch)
    moved = tuple([k for k in range(first) if not _is_zero(tangents[k])])
    dotted = tuple([k for n, k in enumerate(given) if not _is_zero(tangents[first + n])])
    if not moved and not dotted:
        return results, [_zero(x) for x in results]
    if len(primals) > first + len(given):
        raise KernelGradientError(f"kernel {call.key} has atomic minima or maxima, and so no second derivative in JAX")
    call, primals, tangents = _by_arrays(call, moved, batch, primals, tangents)
    cts, behind = primals[first:], tangents[first:]
    changes = [behind[given.index(k)] for k in dotted]
    own = [*range(first), *moved, *range(first, first + len(given)), *[first + given.index(k) for k in dotted]]
    more = _flagged(batch, lambda flags: [flags[k] for k in own])
    if not moved:  # linear in the cotangents
        more = _flagged(batch, lambda flags: [*flags[:first], *[flags[first + given.index(k)] for k in dotted]])
        return results, primitives().adjoint.bind(
            *primals[:first], *changes, call=call, active=active, given=dotted, batch=more)  # fmt: skip
    return results, primitives().second.bind(
        *primals[:first], *[tangents[k] for k in moved], *cts, *changes,
        call=call, active=active, given=given, moved=moved, dotted=dotted, batch=more)  # fmt: skip


def _adjoint_transpose(
    cotangents: Sequence[Any], *operands: Any, call: Call, active: tuple[int, ...], given: tuple[int, ...],
    batch: tuple[Level, ...],
) -> list[Any]:  # fmt: skip
    """The transpose of the adjoint is the tangent program."""
    first = len(call.operands)
    live = [n for n in range(len(active)) if not _is_zero(cotangents[n])]
    if not live:
        return [*[None] * first, *[_zero_like(x) for x in operands[first:]]]
    directions = [cotangents[n] for n in live]
    moved = _moved(operands[:first], call, tuple([active[n] for n in live]), directions, batch)
    return [*[None] * first, *[moved[k] for k in given]]


def _moved(
    primals: Sequence[Any], call: Call, active: tuple[int, ...], directions: Sequence[Any], batch: tuple[Level, ...]
) -> list[Any]:
    """Tangents of the results with floats in directions that have all axes of the batch."""
    first = len(call.operands)
    flags = _flagged(batch, lambda flags: [*flags[:first], *[True] * len(directions)])
    operands = varying_alike([*primals, *directions])
    return primitives().tangent.bind(*operands, call=call, active=active, batch=flags)


def _second_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    """It is linear in the tangents together with those of the cotangents; more derivatives are not known."""
    call, moved, dotted = params["call"], params["moved"], params["dotted"]
    first, given = len(call.operands), params["given"]
    fixed = [*range(first), *range(first + len(moved), first + len(moved) + len(given))]
    if any(not _is_zero(tangents[k]) for k in fixed):
        raise KernelGradientError(f"JAX asks for the third derivative of kernel {call.key}")
    places = [*range(first, first + len(moved)), *range(len(primals) - len(dotted), len(primals))]
    results = primitives().second.bind(*primals, **params)
    if all(_is_zero(tangents[k]) for k in places):
        return results, [_zero(x) for x in results]
    values = [*primals]
    for k in places:
        values[k] = jax().numpy.zeros_like(primals[k]) if _is_zero(tangents[k]) else tangents[k]
    return results, primitives().second.bind(*values, **params)


def _second_transpose(
    cotangents: Sequence[Any], *operands: Any, call: Call, active: tuple[int, ...], given: tuple[int, ...],
    moved: tuple[int, ...], dotted: tuple[int, ...], batch: tuple[Level, ...],
) -> list[Any]:  # fmt: skip
    first = len(call.operands)
    primals, cts = operands[:first], operands[first + len(moved) : first + len(moved) + len(given)]
    live = [n for n in range(len(active)) if not _is_zero(cotangents[n])]
    if not live:
        return [*[None] * first, *[_zero_like(x) for x in operands[first : first + len(moved)]], *[None] * len(given),
                *[_zero_like(x) for x in operands[len(operands) - len(dotted) :]]]  # fmt: skip
    directions, along = [cotangents[n] for n in live], tuple([active[n] for n in live])
    behind = _flagged(batch, lambda flags: [*flags[:first], *[True] * (len(live) + len(given))])
    turned = primitives().second.bind(
        *varying_alike([*primals, *directions, *cts]), call=call, active=moved, given=given, moved=along, dotted=(),
        batch=behind)  # fmt: skip
    summed = _summed(turned, batch, first)
    ahead = _moved(primals, call, along, directions, batch) if dotted else []
    return [*[None] * first, *summed, *[None] * len(given), *[ahead[k] for k in dotted]]
