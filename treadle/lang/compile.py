"""The whole compiler on one screen: a user's function becomes machine code, or comes out of the cache.

An :class:`Overload` is a kernel for one list of argument types, a :class:`Variant` one machine-code form of it: for one
gang width, with or without checks, for wide or any grids.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.binary import Binary
from ..base.config import DeterministicMode, config
from ..base.digest import digest
from ..base.errors import KernelTypeError, TreadleError
from ..base.target import Target
from ..runtime import cache as disk
from ..runtime.launch import Program
from ..types.core import Type
from ..types.layout import has_tangent
from ..types.records import MAX_THREADS
from .manifest import Unknown, code_digest, holds, node_of, types_text
from .natives import install
from .patience import compiling
from .targets import collector_off, compiler_version, gpu, host, host_device, native_width
from .told import axes, own_index, own_places, places, places_of

if TYPE_CHECKING:  # the compiler's rooms are loaded when something is compiled
    from ..ir.node import Func
    from .kernel import Kernel

BLOCK = 256  # threads of a GPU's block where nothing else is asked for
_ONE_BY_ONE = ("few", "one")  # how gangs are filled whose threads go one by one

# Guards what kernels know of their variants, and the frontend, which notes what a kernel it parses depends on. Whoever
# translates for a launch or makes a variant must hold it; passes and emitter need it not.
one_by_one = threading.RLock()


def _forked() -> None:
    """In a child process whoever held the lock is gone."""
    global one_by_one
    one_by_one = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Options(NamedTuple):
    """What one variant is compiled for. ``grid``: dimensions of the launch; ``rows``: gangs lie along the last of them,
    which is wide enough. ``shared``: arrays that the kernel updates lie over each other, so threads run in order.
    ``fuse``: products and sums may become fused multiply-adds. ``active``: for an adjoint, the paths of the arrays that
    have a gradient; None for the kernel itself. ``aliased``: its arrays that may lie over each other.
    ``tangents``: for forward mode, of the kernel or its adjoint, the paths of what has tangents; None without it.
    ``block``: threads in a block. ``races``: look for races between threads, which run in order. ``fill``: what is
    known of the gangs' lanes, where that makes better code: all are needed ("full"), or hardly any ("few"), so that
    threads go one by one, or there is but one thread ("one"). ``relaxed``: floats that threads add up may be added in
    any order. ``arch``: the GPU that it is for, by its compute capability times ten; 0 is this machine's CPU;
    ``special``: what only its target knows. ``boxes``: the places of parameters that are given as arrays of one
    element, of which the kernel says that they are numbers."""

    max_unroll: int
    checked: bool
    rows: bool
    width: int
    grid: int = 1
    shared: bool = False
    fuse: bool = True
    active: tuple[str, ...] | None = None
    aliased: tuple[str, ...] = ()
    tangents: tuple[str, ...] | None = None
    block: int = 1
    races: bool = False
    fill: str = ""
    relaxed: bool = False
    arch: int = 0
    special: tuple[tuple[str, Any], ...] = ()
    boxes: tuple[int, ...] = ()

    @property
    def lanes(self) -> int:
        """How many threads a gang has at most."""
        return 1 if self.fill in _ONE_BY_ONE else self.width

    @property
    def gradient(self) -> int:
        """How often the program is to be differentiated."""
        return (self.active is not None) + (self.tangents is not None)

    def key(self) -> str:
        marks = f"{'checked' if self.checked else ''} {'rows' if self.rows else ''}{' shared' if self.shared else ''}"
        marks += "" if self.fuse else " unfused"
        marks += " races" if self.races else ""
        marks += f" {self.fill}" if self.fill else ""
        marks += " relaxed" if self.relaxed else ""
        marks += f" blocks of {self.block}" if self.block > 1 else ""
        marks += f" {self.special}" if self.special else ""
        marks += f" boxes {self.boxes}" if self.boxes else ""
        marks += f" over each other {' '.join(self.aliased)}" if self.aliased else ""
        if self.active is not None:
            marks += f" adjoint of {' '.join(self.active)}"
        if self.tangents is not None:
            marks += f" tangents of {' '.join(self.tangents)}"
        return f"unroll{self.max_unroll} grid{self.grid} {marks}"


class Translation(NamedTuple):
    """What parser and passes made of a kernel. ``key``: its long key; ``kept``: manifest node and key, or None."""

    key: str
    func: Func
    found: Any  # its effects
    options: Options
    target: Target
    kept: Any

    def draft(self) -> Any:
        """The kernel as LLVM text."""
        from ..ir.reach import facts_of

        func, found, options = self.func, self.found, self.options
        made = self._draft()
        made.meta.update(
            rank=func.facts.get("ndim", 0), axes=axes(func), own_index=own_index(func, found),
            updated=places_of(func, found.updated), beside=places_of(func, found.beside),
        )  # fmt: skip
        made.meta["touched"] = facts_of(func)
        made.meta["own"], made.meta["key"] = own_places(func, found), self.key
        if options.active is not None:
            made.meta.update((name, places_of(func, func.facts[name])) for name in ("winners", "seen", "kept"))
            made.meta.update((name, name in func.facts) for name in ("rereads", "nameless"))
        if options.tangents is not None:
            made.meta["tangents"] = list(func.facts["tangents"])
        return made

    def _draft(self) -> Any:
        """The text itself, by who writes it for the target."""
        from ..codegen import cpu

        func, order, options = self.func, self.found.order, self.options
        if options.arch:
            from ..codegen import nvptx

            wanted = nvptx.Options(checked=options.checked, order=order, forced=options.shared,
                                   relaxed=options.relaxed, **dict(options.special))  # fmt: skip
            made = nvptx.draft(func, self.target, wanted)
            made.meta["once"] = False
            return made
        full, alone = options.fill == "full", options.fill == "one"
        return cpu.draft(func, self.target, cpu.Options(options.rows, options.checked, order, options.races, full,
                                                             alone, options.relaxed))  # fmt: skip


def translate(kernel: Kernel, types: tuple[Type, ...], options: Options) -> Translation:
    """User function in, lowered IR out, with the key of the code that it leads to."""
    from dataclasses import replace

    from ..builtins import blocks
    from ..codegen.cpu import way_of_sums, written_twice
    from ..frontend.names import Manifest
    from ..frontend.parse import parse
    from ..ir.effects import effects
    from ..ir.show import show
    from ..ir.walk import callees, ops_of
    from ..passes.boxes import box, unboxed
    from ..passes.fma import leave_products
    from ..passes.pipeline import FINISH, LOWER, NORMALIZE, PREPARE, RELEASE, run

    manifest = Manifest()

    def parsed(block: int) -> Func:
        token = blocks.SIZE.set(block)
        try:
            own = unboxed(types, options.boxes)
            func = parse(kernel.source, own, options, "kernel", manifest=manifest, name=kernel.key)
            return box(func, options.boxes) if options.boxes else func
        finally:
            blocks.SIZE.reset(token)

    func = parsed(options.block)
    tiles = _of_tiles(func) if options.block > 1 or options.arch else None
    if options.block > 1 and (op := tiles) is not None:
        if not options.arch:
            raise KernelTypeError(
                "tiles are worked on by blocks of one thread on a CPU", op.span,
                "launch the kernel without wp.config.enable_cpu_blocks",
            )  # fmt: skip
        func = parsed(1)  # what one thread does, on a GPU as well: its blocks share that as they see fit
    if tiles is not None:
        func = replace(func, facts={**func.facts, "tiles": True})
    func = run(NORMALIZE, func if options.fuse else leave_products(func))
    if options.active is not None:
        from ..passes.adjoint import reverse

        again = options.tangents is not None
        func = reverse(run(PREPARE, func), options.active, options.aliased, again)
    lower = FINISH if options.active is not None else (*RELEASE, *LOWER)
    alike: dict[str, Any] = {}
    atomic = any([op.name == "atomic" for f in (func, *callees(func)) for op in ops_of(f.body)])
    if atomic and (options.tangents is not None or (options.checked and options.active is None)):
        plain = run(lower, func)  # with checks, or with tangents beside them, values are summed up as without
        alike = way_of_sums(plain, effects(plain).order)
    if options.tangents is not None:
        from ..passes.tangent import tangent

        func = run(PREPARE, func if options.active is None else run(NORMALIZE, func))
        func = run(FINISH, tangent(func, options.tangents, options.active is not None))
    else:
        func = run(LOWER if options.checked and options.active is None else lower, func)
    found = effects(func)
    if options.shared or options.races:
        found.order, found.updated, found.beside = "ordered", (), ()
    func = replace(func, facts={**func.facts, **alike, "order": found.order})
    if options.fill and written_twice(func):
        options = options._replace(fill="")
    target = target_of(options)
    key = digest(compiler_version(), show(func), places(func), target.key(), options.key())
    try:
        kept = node_of(kernel.source, manifest), key
    except Unknown:
        kept = None
    return Translation(key, func, found, options, target, kept)


def short_key(kernel: Kernel, types: tuple[Type, ...], options: Options) -> str | None:
    """The key that stands for the kernel before anything is parsed; None where its defaults cannot be named."""
    try:
        target = target_of(options)
        return digest(compiler_version(), code_digest(kernel.source), types_text(types), target.key(), options.key())
    except Unknown:
        return None


def remembered(kernel: Kernel, short: str | None) -> Binary | None:
    """The code that an earlier compile left in the cache, if what it depended on is still so."""
    for node, key in disk.manifests(short) if short is not None else ():
        if holds(node, kernel.source):
            binary = disk.load(key)
            if binary is not None:
                return binary
    return None


def in_cache(kernel: Kernel, types: tuple[Type, ...], options: Options) -> Binary | None:
    """The code for ``options``, or for gangs however filled where that is not written apart, if the cache has it."""
    found = remembered(kernel, short_key(kernel, types, options))
    if found is None and options.fill:
        general = remembered(kernel, short_key(kernel, types, options._replace(fill="")))
        found = general if general is not None and not general.meta["once"] else None
    return found


def keep(short: str | None, made: Translation, binary: Binary) -> Binary:
    """Leave ``binary`` in the cache under both keys."""
    return _keep(short, made.key, made.kept, binary)


def _keep(short: str | None, key: str, kept: tuple[Any, str] | None, binary: Binary) -> Binary:
    binary = disk.store(key, binary)
    if short is not None and kept is not None:
        disk.add_manifest(short, *kept)
    return binary


class Making:
    """The code of a variant on its way: found by its short key and manifest if those are known, else translated; what
    LLVM has to do may be done meanwhile by another thread. ``meta`` is what the runtime must know of it."""

    __slots__ = ("_binary", "_draft", "_job", "_keys", "_name", "meta")

    def __init__(
        self, kernel: Kernel, types: tuple[Type, ...], options: Options, begin: bool = False,
        found: Binary | None = None,
    ):  # fmt: skip
        self._binary = found or in_cache(kernel, types, options)
        self._name = kernel.key
        if self._binary is None:
            with collector_off(), compiling(self._name):  # which finds no program left when it is on again
                self._translate(kernel, types, options, begin)
        self.meta = self._draft.meta if self._binary is None else self._binary.meta

    def _translate(self, kernel: Kernel, types: tuple[Type, ...], options: Options, begin: bool) -> None:
        from ..codegen.workers import Job

        made = translate(kernel, types, options)
        self._keys = short_key(kernel, types, made.options), made.key, made.kept
        known = disk.load(made.key)
        if known is not None:
            self._binary = _keep(*self._keys, known)
            return
        self._draft = made.draft()
        self._job = Job(self._draft.text, self._draft.target)
        if begin:
            self._job.begin()

    @property
    def waits(self) -> bool:
        """Whether there is no code yet."""
        return self._binary is None

    def binary(self) -> Binary:
        """The code, as soon as it is there."""
        if self._binary is None:
            with compiling(self._name):
                self._binary = _keep(*self._keys, self._draft.binary(self._job.code()))
            del self._draft, self._job
        return self._binary


def load_compiler() -> None:
    """Import the compiler's rooms and LLVM, which a kernel that is not in the cache would otherwise wait for."""
    from ..codegen import cpu  # noqa: F401
    from ..codegen.llvm import target_machine
    from ..frontend import parse  # noqa: F401
    from ..passes import pipeline  # noqa: F401

    here = host(None)
    target_machine(here.triple, here.cpu, here.features)


class Variant:
    """One machine-code form of an overload. ``program`` is what the runtime runs, ``meta`` what is known of it before
    it is there. ``begin``: somebody will ask for the program soon, another thread may compile it meanwhile. ``found``:
    what the cache has."""

    __slots__ = ("_making", "_origin", "_program", "_what", "device", "meta", "options")

    def __init__(
        self, kernel: Kernel, types: tuple[Type, ...], options: Options, begin: bool = False, device: Any = None,
        found: Binary | None = None,
    ):  # fmt: skip
        install()
        self.options, self.device = options, device
        self._making = Making(kernel, types, options, begin, found)
        self._program: Program | None = None
        self._what = kernel.key, [p.name for p in kernel.parameters], types
        self.meta = self._making.meta
        made_for = options if self.meta["once"] else options._replace(fill="")  # code that is for any grid
        self._origin = weakref.ref(kernel), types, made_for

    @property
    def waits(self) -> bool:
        """Whether LLVM has work to do, or is at it, before there is code."""
        making = self._making
        return making is not None and making.waits

    @property
    def program(self) -> Program:
        """The code, loaded."""
        if self._program is None:
            with one_by_one:
                if self._program is None:
                    self._program = self._load()
                    self._making = None
        return self._program

    def _load(self) -> Program:
        binary, options = self._making.binary(), self.options
        key, names, types = self._what
        rank = binary.meta["rank"]
        entry = (self.device or host_device()).load(binary)
        low, high = 0, MAX_THREADS  # the last extents it is for
        if rank > 1 and options.grid > 1:
            low, high = (options.width, high) if options.rows else (low, options.width - 1)
        grid = options.grid if rank else 0
        if options.fill in _ONE_BY_ONE and binary.meta["once"]:
            high = 1 if options.fill == "one" else few(options.width)
        if options.tangents is not None:  # parameters for tangents follow the others
            names += [f"tangent of {name}" for name, t in zip(names, types) if has_tangent(t)]
            types += tuple([t for t in types if has_tangent(t)])
        made = Program(entry, types, key, names, options.checked, grid, low, high, options.shared)
        made.origin = self._origin
        return made


class Overload:
    """A kernel for one list of argument types, with the variants compiled so far. ``device``: where those run, if not
    on the host's memory."""

    __slots__ = ("_kernel", "device", "doubled", "general", "plan", "types", "variants")

    def __init__(self, kernel: Kernel, types: tuple[Type, ...], device: Any = None):
        self._kernel, self.types, self.device = kernel, types, device
        self.plan: Any = None  # what a tape knows of its launches; see lang/plan.py
        self.variants: dict[Options, Variant] = {}
        self.general = False  # whether it was compiled before anybody knew the grid: the code is for any
        self.doubled: dict[tuple[str, ...], Any] = {}  # its launches with tangents, see lang/jvp.py

    def _options(self, rows: bool, checked: bool | None) -> Options:
        """What the settings of now ask for; ``checked`` None leaves it to them."""
        kernel, unroll = self._kernel, self._kernel.option("max_unroll")
        if checked is None:
            checked = (kernel.option("mode") or config.mode) == "debug"
        unroll = config.max_unroll if unroll is None else unroll
        asked, fuse = kernel.option("deterministic"), bool(kernel.option("fuse_fp"))
        relaxed = (config.deterministic if asked is None else asked) is DeterministicMode.NOT_GUARANTEED
        boxes = tuple([k for k, p in enumerate(kernel.parameters) if p.name in kernel.boxes])
        if self.device is not None:
            return self._special(Options(unroll, checked, rows, 1, fuse=fuse, relaxed=relaxed, boxes=boxes))
        width = kernel.option("gang_width") or config.gang_width or native_width()
        return Options(unroll, checked, rows, width, fuse=fuse, block=kernel.block, relaxed=relaxed, boxes=boxes)

    def _special(self, options: Options) -> Options:
        """The same for a GPU, with what only that knows."""
        kernel = self._kernel
        block = abs(kernel.block) if abs(kernel.block) > 1 else BLOCK
        bounds = kernel.option("launch_bounds")
        special = {
            "block": block, "fast_math": bool(kernel.option("fast_math")), "lines": bool(kernel.option("lineinfo")),
            "bounds": (bounds,) if isinstance(bounds, int) else tuple(bounds or ()),
            "registers": kernel.option("cuda_max_registers"),
        }  # fmt: skip
        size = 1 if kernel.block < 0 else block
        return options._replace(arch=self.device.arch, block=size, special=tuple(special.items()))

    def variant(
        self, dims: tuple[int, ...], checked: bool | None = None, shared: bool = False, begin: bool = False
    ) -> Variant:
        """The variant for a grid of ``dims``, translated when first asked for; ``begin`` lets another thread compile
        it."""
        races = config.check_races and checked is not False
        options = self._options(False, True if races else checked)
        return self._find(dims, self._widened(dims, options._replace(shared=shared, races=races)), begin)

    def _widened(self, dims: tuple[int, ...], options: Options) -> Options:
        """``options`` with as many vectors a gang as the kernel asks for, if a grid of ``dims`` fills them."""
        width = options.width * (self._kernel.option("gang_vectors") or 1)
        open_ = not (self._kernel.option("gang_width") or config.gang_width or options.arch or self.general)
        return options._replace(width=width) if open_ and dims[-1] % width == 0 else options

    def known(self, dims: tuple[int, ...], checked: bool | None = None) -> Variant | None:
        """The variant for a grid of ``dims``, if it is there, or in the cache."""
        return self._find(dims, self._widened(dims, self._options(False, checked)), known=True)

    def _find(self, dims: tuple[int, ...], options: Options, begin: bool = False, known: bool = False) -> Any:
        """The variant for ``options`` and a grid of ``dims``, translated when first asked for; None where it would have
        to be, and only a ``known`` one is wanted."""
        if len(dims) > 1:
            options = options._replace(grid=len(dims), rows=dims[-1] >= options.width and not options.arch)
        fill = "" if self.general or options.arch else self._fill(dims, options.width)
        found = self._known(options, fill)
        if found is None:
            with one_by_one:
                found = self._known(options, fill)
                if found is None:
                    filled = options._replace(fill=fill)
                    binary = in_cache(self._kernel, self.types, filled) if known else None
                    if known and binary is None:
                        return None
                    found = Variant(self._kernel, self.types, filled, begin, self.device, binary)
                    self.variants[options._replace(fill=fill if found.meta["once"] else "")] = found
        return found

    def _known(self, options: Options, fill: str) -> Variant | None:
        """The variant for ``options`` if there is one: for gangs that are filled so, or for any."""
        found = self.variants.get(options)
        if fill and (found is None or found.meta["once"]):
            found = self.variants.get(options._replace(fill=fill))
        return found

    def _fill(self, dims: tuple[int, ...], width: int) -> str:
        """What a grid of ``dims`` says of the lanes of its gangs."""
        if width > 1 and dims[-1] % width == 0:
            return "full"
        chosen = self._kernel.option("gang_width") or config.gang_width
        if len(dims) > 1 or dims[0] > few(width) or chosen:
            return ""
        return "one" if dims[0] == 1 else "few"

    def adjoint(
        self, dims: tuple[int, ...], active: tuple[str, ...], aliased: tuple[str, ...] = (), shared: bool = False
    ) -> Variant:
        """The adjoint for a grid of ``dims``: it adds to the gradients of the arrays at the paths ``active``. Who wants
        one usually wants more of them, so another thread begins to compile it."""
        options = self._options(False, None)._replace(active=active, aliased=aliased, shared=shared)
        return self._find(dims, options, begin=True)

    def tangent(
        self, dims: tuple[int, ...], tangents: tuple[str, ...], active: tuple[str, ...] | None = None,
        aliased: tuple[str, ...] = (), shared: bool = False,
    ) -> Variant:  # fmt: skip
        """Forward mode for a grid of ``dims``: what stands at the paths ``tangents`` has tangents other than zero. With
        ``active`` the adjoint of that launch, for gradients of the arrays at these paths and of their tangents."""
        options = self._options(False, None)
        options = options._replace(tangents=tangents, active=active, aliased=aliased, shared=shared)
        return self._find(dims, options, begin=active is not None)

    def forget_derivatives(self) -> None:
        """Drop adjoints and tangents: a recorded launch is differentiated by the rules that there are when a backward
        pass asks, not by those from when its adjoint was foreseen."""
        for options in [o for o in self.variants if o.active is not None or o.tangents is not None]:
            del self.variants[options]

    def translation(self) -> tuple[str | None, Translation] | None:
        """For a plain launch: the short key and the lowered IR; None where the cache knows the code."""
        options = self._options(False, None)
        short = short_key(self._kernel, self.types, options)
        if remembered(self._kernel, short) is not None:
            return None
        with collector_off():
            made = translate(self._kernel, self.types, options)
        return None if disk.load(made.key) is not None else (short, made)


def few(width: int) -> int:
    """Up to how many threads go one by one where gangs have ``width`` lanes: masked gangs would take longer."""
    return width // 4


def prepare(overloads: list[Overload], processes: int | None = None) -> list[TreadleError]:
    """Compile and load what plain launches of ``overloads`` need; what the cache lacks, on several cores.

    Returns: why some of them cannot be compiled; the others are loaded.
    """
    many = processes or config.compile_workers
    errors = _in_processes(overloads, many) if many else []
    begun = []
    for o in overloads:
        try:
            o.general = True
            begun.append(o.variant((1,), begin=True))
        except TreadleError as error:
            errors.append(error)
    for variant in begun:
        variant.program  # noqa: B018  is loaded when it is asked for
    return list({str(error): error for error in errors}.values())


def _in_processes(overloads: list[Overload], processes: int) -> list[TreadleError]:
    """Fill the cache with what ``overloads`` need, in so many processes."""
    from ..codegen.workers import compile_all

    missing, errors = [], []
    for o in overloads:
        try:
            made = o.translation()
        except TreadleError as error:
            errors.append(error)
            continue
        if made is not None:
            missing.append(made)
    drafts = [made.draft() for _, made in missing]
    codes = compile_all([(draft.text, draft.target) for draft in drafts], processes)
    for (short, made), draft, code in zip(missing, drafts, codes, strict=True):
        keep(short, made, draft.binary(code))
    return errors


def _of_tiles(func: Func) -> Any:
    """An op that makes a tile, which several threads of a block would have to share; None where there is none."""
    from ..ir.walk import callees, ops_of
    from ..types.core import Tile

    ops = [op for f in (func, *callees(func)) for op in ops_of(f.body)]
    return next((op for op in ops if any([isinstance(r.type, Tile) for r in op.results])), None)


def target_of(options: Options) -> Target:
    """What a variant is compiled for."""
    return gpu(options.arch) if options.arch else host(options.lanes)
