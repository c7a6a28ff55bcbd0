"""What the compiler must know of each operation to move, drop or mask it. One table, open to builtins.

Structural ops: arguments (a view is written ``v``, indices ``i…``), results, attributes, meaning:

    const     ()                         -> x    value          a Python bool, int or float; or a str
    poison    ()                         -> x                   a value nobody may look at (never assigned)
    make      (parts…)                   -> c                   a composite from its direct parts
    extract   (c)                        -> part index          one direct part, index known
    insert    (c, part)                  -> c    index          a copy of c with one part replaced
    pick      (c, i[, j])                -> x                   a component of a vector (matrix) at run-time indices
    put       (c, x, i[, j])             -> c                   a copy with that component replaced
    cast      (x)                        -> y                   to the result's scalar type
    bitcast   (x)                        -> y                   same bits, other scalar type
    select    (c, a, b)                  -> x                   a where c, else b; both already computed
    tid       ()                         -> i32  axis           this thread's index on a grid axis
    lanes_any (c)                        -> bool                does any running lane of the gang hold c
    local     ()                         -> v    type (Fixed)   a thread's own array, zeroed unless blank; its view
    load      (v, i…)                    -> x                   one element (after scalarize: one result a leaf)
    store     (v, i…, x…)                                       one element (after scalarize: one argument a leaf)
    atomic    (v, i…, x[, y])            -> old  op             add sub min max and or xor exch cas (y: new value)
    subview   (v, i…)                    -> v'   axis           fixes dimensions from axis on (none: the leading ones)
    slice     (v, start, step, len)      -> v'   axis           a range along one axis (already normalised)
    field     (v)                        -> v'   index          each element's part number index (static)
    parts     (v)                        -> v'                  components as one (vectors) or two (matrices) last axes
    shape     (v)                        -> i32  axis
    address   (v)                        -> u64                 of the first element
    view_at   (address, n…[, s…])        -> v                   wp.array(ptr=…, shape=…) inside a kernel
    if        (c)                        -> r…                  regions then, else: both yield one value a result
    for       (start, stop, step, init…) -> r…   [stays]        region (i, carried…) yields ([stay,] carried…)
    while     (init…)                    -> r…   [bounded]      region (carried…) yields (stay, carried…)
    call      (args…)                    -> r…   func (a Func)
    print     (parts…)                           format         strings are const parts
    grad      (v)                        -> v'                  the gradient of a root view: its layout, other memory
    has_grad  (v)                        -> bool                whether a view read from memory has a gradient
    lanes_max (n)                        -> i32                 the largest n of the running lanes of the gang
    push      (x…)                              site            onto the gang's stack
    pop       ()                         -> x…  site            what the last push of that site put there
    record    (x…)                              site            to the end of the gang's log
    recall    ()                         -> x…  site            the next values of the log
    mark      ()                         -> i64  [read]         where the log ends now (read: the next recall's place)
    seek      (m)                                               the next recall reads what was recorded at mark m
    lane      ()                         -> i32                 this thread's number among those that share its block
    barrier   ()                                                every thread of the block has come here
    shuffle   (x)                        -> x    by             x of the thread whose number differs in the bits ``by``
    check     (ok, shown…)                       kind, message  records a fault where ok is false; an ``optional`` one
                                                                is left out of programs that are not checked

A ``for`` reads start, stop and step once. Where its block yields ``stay`` the loop ends after an iteration in which
stay is false; so does a ``while``, whose test is the user's condition and every break. Results are the last carried
values. A ``bounded`` while is sure to end. Stack and log are the gang's: only adjoint programs have them, which replay
a program and then go through it backwards; a gang pushes and pops, records and recalls in step, under the same masks.
Where it splits, it goes through both arms of an ``if``, and the other way round where they pop what another pushed.
Only ``passes/blocks`` makes programs with ``lane``, ``barrier``, ``shuffle`` (among 32 threads that run in step) and
``local`` arrays that are ``shared``, which the block has once; each thread of the block meets the same barriers.
An ``atomic`` that is ``apart`` meets no plain access of another thread, and no later one of its own. A ``mul`` with the
attribute ``exact`` never fuses with a sum.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpInfo:
    """``pure``: may be dropped, shared and moved. ``safe``: harmless when it runs on an inactive lane with any input.

    ``reads``/``writes``: touches memory behind a view. ``orders``: must run in thread order with others of its kind.
    ``tape``: works on the gang's stack or log.
    """

    pure: bool = True
    safe: bool = True
    reads: bool = False
    writes: bool = False
    orders: bool = False
    tape: bool = False


PURE = OpInfo()
OPS: dict[str, OpInfo] = {
    **dict.fromkeys(
        ("const", "poison", "make", "extract", "insert", "pick", "put", "cast", "bitcast", "select", "tid", "subview",
         "slice", "field", "parts", "shape", "address", "view_at"), PURE,
    ),
    "lanes_any": OpInfo(pure=False),  # depends on the mask: must stay where it is
    "local": OpInfo(pure=False),  # two allocations are two arrays; dropped only when nothing uses it
    "grad": PURE,
    "has_grad": PURE,
    "lanes_max": OpInfo(pure=False),  # as lanes_any
    # Their order among each other is the program's meaning: none moves, none runs twice.
    **dict.fromkeys(("push", "pop", "record", "recall", "mark", "seek"), OpInfo(pure=False, safe=False, tape=True)),
    "lane": PURE,
    "barrier": OpInfo(pure=False, safe=False),
    "shuffle": OpInfo(pure=False, safe=False),
    "load": OpInfo(pure=False, safe=False, reads=True),
    "store": OpInfo(pure=False, safe=False, writes=True),
    "atomic": OpInfo(pure=False, safe=False, reads=True, writes=True),
    "if": OpInfo(pure=False),
    "for": OpInfo(pure=False),
    "while": OpInfo(pure=False),
    "call": OpInfo(pure=False),
    "print": OpInfo(pure=False, safe=False, orders=True),
    "check": OpInfo(pure=False, safe=False),
}  # fmt: skip

CUTS = ("subview", "slice", "field", "parts")  # these give a view of memory that another view shows
STRUCTURAL = frozenset(OPS)  # the ops above; what comes later is a primitive of the builtins registry


def declare(name: str, info: OpInfo = PURE) -> None:
    """Add a scalar primitive of the builtins registry."""
    OPS[name] = info


def info(name: str) -> OpInfo:
    """What is known of op ``name``."""
    return OPS[name]
