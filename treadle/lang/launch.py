"""``wp.launch``: run a kernel over a grid of threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.config import config
from ..base.errors import KernelError, LaunchError, LaunchTypeError, alone
from ..base.logs import log_info
from ..runtime import capture, fast, packing, watch
from ..runtime import device as devices
from ..runtime.array import array
from ..runtime.device import Device, apart, get_device
from ..runtime.foreign import shared
from ..runtime.launch import Program, normal_dims
from ..runtime.shaped import Shaped
from . import ahead
from .blocks import in_blocks
from .kernel import EXTERNAL, KERNELS, Kernel
from .read_only import check_writes, looks

_watchers = watch.watchers  # tapes
_usual: Device | None = None  # the CPU, once known: launches on it need no look-up


def launch(
    kernel: Kernel,
    dim: int | Sequence[int],
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    adj_inputs: Sequence[Any] = (),
    adj_outputs: Sequence[Any] = (),
    device: Any = None,
    stream: Any = None,
    adjoint: bool = False,
    record_tape: bool = True,
    record_cmd: bool = False,
    max_blocks: int = 0,
    block_dim: int | None = None,
    checked: bool | None = None,
) -> Any:
    """Run ``kernel`` once for each thread of a grid, on every core, and wait for its end.

    Args:
        kernel: what ``@wp.kernel`` made.
        dim: extent of the grid, an int or up to four ints (at most 2**31 in a dimension that ``wp.tid()`` tells).
        inputs, outputs: the arguments, in order; which of the two lists they are in does not matter.
        adjoint: run the kernel's adjoint instead: it adds to the gradients of inputs and uses up those of outputs.
        adj_inputs, adj_outputs: for an adjoint launch, the gradients to use, one an argument; None takes ``.grad``.
        device: where to run; the arrays' device. ``stream``: the GPU's stream to run in; a CPU has one.
        record_tape: whether a tape that records notes the launch.
        record_cmd: instead of running return a :class:`wp.Launch` that can be run many times.
        block_dim: threads in a block, at most 1024, 0 for the usual number; one on a CPU unless
            ``wp.config.enable_cpu_blocks`` is set.
        max_blocks: blocks of threads that run at a time on a GPU, at most; each then does the work of several. 0: as
            many as keep it busy. Kernels whose sums depend on the grid keep theirs. A CPU has no blocks.
        checked: check every index and assertion in this launch (beyond Warp); None leaves it to ``wp.config.mode``.

    Returns: None, or the :class:`Launch` if ``record_cmd``.

    Raises:
        LaunchError, LaunchTypeError: dimensions or arguments that do not fit the kernel.
        KernelTypeError, KernelSyntaxError, KernelNameError: the kernel is wrong; the message names each line.
        IndexOutOfRange: an index outside an array, found at the launch or, in checked mode, anywhere.
        DataRaceError: with ``wp.config.check_races``, two threads meet at an element that one of them writes.

    >>> import treadle as wp
    >>> @wp.kernel
    ... def fill(a: wp.array(dtype=int)):
    ...     i = wp.tid()
    ...     a[i] = i * i
    >>> a = wp.zeros(4, dtype=int)
    >>> wp.launch(fill, dim=4, inputs=[a])
    >>> a.list()
    [0, 1, 4, 9]
    """
    if block_dim is not None and not 0 <= block_dim <= 1 and isinstance(kernel, Kernel):
        kernel = in_blocks(kernel, block_dim, device)
    try:
        quick = kernel.fast
    except AttributeError:
        raise LaunchTypeError(
            f"wp.launch takes a kernel, not {type(kernel).__name__}", hint="decorate it with @wp.kernel"
        ) from None
    if (
        quick is not None
        and not record_cmd
        and not adjoint
        and checked is None
        and (device is _usual or device == "cpu" or (device is None and devices.here))
    ):
        if _watchers:
            _demand_lists(kernel, inputs=inputs, outputs=outputs)
            done = watch.launch(kernel, quick, dim, inputs, outputs, record_tape)
        else:
            done = quick(dim, inputs, outputs)
            if done is NotImplemented:
                _demand_lists(kernel, inputs=inputs, outputs=outputs)
                own = _adopted(kernel, inputs, outputs)
                done = NotImplemented if own is None else quick(dim, own, ())
        if done is None:
            return None
        if done is not NotImplemented:
            raise fast.error(done)
    if kernel.far and checked is None and not (record_cmd or adjoint or max_blocks or stream or _watchers):
        far = None if capture.active else kernel.far.get(get_device(device))
        if far is not None and far(dim, inputs, outputs) is None:
            return None
    _demand_lists(kernel, inputs=inputs, outputs=outputs, adj_inputs=adj_inputs, adj_outputs=adj_outputs)
    try:
        if stream is not None and stream.device.queue is not None:
            with apart(stream.device, stream):
                return launch(
                    kernel, dim, inputs, outputs, adj_inputs, adj_outputs, stream.device, None, adjoint, record_tape,
                    record_cmd, max_blocks, None, checked,
                )  # fmt: skip
        if record_cmd:
            from .recorded import Launch

            values = [*inputs, *outputs]
            adjoints = [*adj_inputs, *adj_outputs] if adjoint else None
            return Launch.recorded(kernel, dim, values, device, checked, adjoints, max_blocks)
        if adjoint:
            from .adjoint_launch import launch_adjoint

            return launch_adjoint(kernel, dim, inputs, outputs, adj_inputs, adj_outputs, device)
        return _launch(kernel, dim, [*inputs, *outputs], device, checked, record_tape, max_blocks)
    except KernelError as error:
        wrong = alone(error)
    finally:
        for each in devices.far:  # a launch that failed, or is put off, has nothing to give back
            each.forget_lenders()
    kernel.forget_failed()
    del kernel
    raise wrong


def _demand_lists(kernel: Kernel, **given: Any) -> None:
    """Raise a LaunchTypeError where one of the lists of arguments is none."""
    for name, each in given.items():
        if type(each) is list or type(each) is tuple:
            continue
        if isinstance(each, Shaped | str | bytes) or not hasattr(each, "__iter__"):
            what = f"kernel {kernel.key}: {name} of a launch is a list of arguments, not {type(each).__name__}"
            raise LaunchTypeError(what, hint=f"write {name}=[x] for one argument x")


def bound(
    kernel: Kernel, dim: Any, args: list[Any], device: Any
) -> tuple[Device, tuple[int, ...], list[Any], tuple[Any, ...]]:
    """Device, grid, arguments and their types of a launch, each as the kernel takes it."""
    if not isinstance(kernel, Kernel):
        raise LaunchTypeError(
            f"wp.launch takes a kernel, not {type(kernel).__name__}", hint="decorate it with @wp.kernel"
        )
    where = get_device(device)
    if kernel.options.get("entry_point_abi") == EXTERNAL:
        what = f"kernel {kernel.key} gets its arguments from another program (entry_point_abi)"
        raise LaunchError(f"{what} and cannot be launched with wp.launch")
    dims = normal_dims(dim, kernel.key)
    values, types = kernel.bind(args)
    for p, value in zip(kernel.parameters, values, strict=True):
        home = getattr(value, "device", None)
        if isinstance(home, Device) and home is not where:
            raise LaunchError(f"kernel {kernel.key}: argument {p.name!r} lies on {home}, the launch is on {where}")
    return where, dims, values, types


def _launch(
    kernel: Kernel, dim: Any, args: list[Any], device: Any, checked: bool | None, record_tape: bool, max_blocks: int
) -> None:
    """The way of a first launch, and of everything unusual."""
    where, dims, values, types = bound(kernel, dim, args, device)
    later = ahead.asked()
    if later is not None:
        later.append(ahead.Deferred(kernel, dims, values, types, where, checked))
        return
    if _watchers and record_tape:
        _begin(kernel, types, dims, values, checked, where)
    program, packed = ready(kernel, types, dims, values, checked, where, args)
    usual = checked is None and not config.print_launches and not config.verify_fp and not looks(program)
    if usual and where.key and not program.shared:
        where.quicken(kernel.far, program, kernel.open)
    if usual and not where.key and not capture.active:
        if program.shared:  # taken in place of the usual one, which must be known first
            _quicken(kernel, kernel.overload(types).variant(dims).program)
        _quicken(kernel, program)
    if config.print_launches:
        log_info(f"kernel: {kernel.key}, device: {where}, dim: {dims}")
    command = program.command(packed, dims, values)
    command.limit(max_blocks)
    run(kernel, types, program, command, values, dims, record_tape)


def _begin(
    kernel: Kernel, types: tuple[Any, ...], dims: tuple[int, ...], values: list[Any], checked: bool | None,
    where: Device,
) -> None:  # fmt: skip
    """A tape may record the launch: if the kernel is new, let another thread compile it, and see to its adjoint
    meanwhile, which the backward pass will ask for."""
    from .tape import recording

    overload = kernel.overload(types, where)
    if not overload.variants and recording():
        variant = overload.variant(dims, checked, begin=True)
        if variant.waits:
            from .foresee import foresee

            foresee(kernel, overload, variant, dims, values)


def _adopted(kernel: Kernel, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any] | None:
    """The arguments with arrays in place of those of other libraries; None where there are none, or where one does not
    fit, which the usual way then says."""
    args = [*inputs, *outputs]
    places = [k for k, arg in enumerate(args) if not isinstance(arg, array) and hasattr(arg, "__dlpack__")]
    try:
        for k in places:
            args[k] = shared(args[k], kernel.element_classes[k])
    except (TypeError, ValueError, IndexError, BufferError):
        return None
    return args if places else None


def run(
    kernel: Kernel, types: tuple[Any, ...], program: Program, command: Any, values: list[Any], dims: tuple[int, ...],
    record: bool,
) -> None:  # fmt: skip
    """Run ``command``, with tapes looking on where there are some, and a look at all floats where one is asked for."""
    if config.verify_fp and not capture.recording():
        from .finite import checked as finite

        with finite(kernel.key, [p.name for p in kernel.parameters], values):
            _run(kernel, types, program, command, values, dims, record)
    else:
        _run(kernel, types, program, command, values, dims, record)


def _run(
    kernel: Kernel, types: tuple[Any, ...], program: Program, command: Any, values: list[Any], dims: tuple[int, ...],
    record: bool,
) -> None:  # fmt: skip
    if _watchers:
        from .plan import plan_of

        overload = kernel.overload(types, program.entry.device)
        watch.run(plan_of(kernel, overload, program), dims, values, command, record)
    else:
        command()


def ready(
    kernel: Kernel, types: tuple[Any, ...], dims: tuple[int, ...], values: list[Any], checked: bool | None,
    where: Device | None = None, given: Sequence[Any] = (),
) -> tuple[Program, bytearray]:  # fmt: skip
    """The program for these arguments, and the arguments packed for it. ``given``: what they were to begin with.

    Raises:
        LaunchTypeError: the kernel writes to memory that must not be changed.
    """
    overload = kernel.overload(types, where)
    program = overload.variant(dims, checked).program
    check_writes(kernel, types, program, values, given)
    packed = program.pack(values)
    if program.meets(packed):  # the same in thread order
        program = overload.variant(dims, checked, shared=True).program
    return program, packed


def _quicken(kernel: Kernel, program: Program) -> None:
    """Let the native launcher know ``program``; settings that change what a launch means make it forget."""
    global _usual
    if kernel.fast is None:
        _usual = get_device("cpu")
        kernel.fast = fast.launcher()
    fast.add(kernel.fast, program, exact=kernel.open)


def _forget_all(_: Any) -> None:
    for kernel in list(KERNELS):
        kernel.fast = None
        kernel.far.clear()


packing.first.append(lambda: _forget_all(None))
for _setting in ("mode", "gang_width", "print_launches", "verify_fp", "max_unroll", "check_races", "deterministic"):
    config.watch(_setting, _forget_all)
