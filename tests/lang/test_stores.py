"""What a kernel may store to, told by its source."""

import gc
import types
import weakref

import pytest

import treadle as wp
from treadle.frontend.source import Source
from treadle.lang.stores import leads, stores

floats, table = wp.array(dtype=float), wp.array2d(dtype=float)


@wp.struct
class Pair:
    a: wp.array(dtype=float)
    b: wp.array(dtype=float)


@wp.func
def put(to: wp.array(dtype=float), i: int, x: float):
    to[i] = x


@wp.func
def read(of: wp.array2d(dtype=float), i: int):
    return of[i, 0]


@wp.func
def line(of: wp.array2d(dtype=float), i: int):
    return of[i]


@wp.func
def change(x: wp.ref[float]):
    x = x + 1.0


@wp.func
def again(x: wp.array(dtype=float), n: int):
    x[n] = 0.0


@wp.func
def again(x: wp.array(dtype=float), n: float):  # noqa: F811
    again(x, int(n))


@wp.kernel
def plain(a: floats, b: floats, c: floats, d: table, n: int):
    i = wp.tid()
    x = a[i] + wp.max(b[i], read(d, i))
    x += b[i]
    for k in range(n):
        c[i], x = x, a[k]


@wp.kernel
def by_calls(a: floats, b: floats, c: floats, d: floats):
    i = wp.tid()
    put(a, i, b[i])
    wp.atomic_add(c, 0, d[i])


@wp.kernel
def by_names(a: floats, b: table, c: table, d: table, n: int):
    i = wp.tid()
    other = a
    row = line(b, i)
    whole = d[i]
    if n > 1:
        other = c[i]
    other[i] = whole[0]
    row[0] += 1.0


@wp.kernel
def by_choice(a: floats, b: floats, c: floats):
    i = wp.tid()
    chosen = wp.where(i > 0, a, b)
    chosen[i] = c[i]


@wp.kernel
def by_fields(p: Pair, q: Pair, a: floats):
    i = wp.tid()
    q.a = a
    q.a[i] = p.a[i]


@wp.kernel
def by_reference(a: floats, b: floats):
    i = wp.tid()
    change(a[i])
    x = b[i]
    change(x)


@wp.kernel
def by_overloads(a: floats, b: floats):
    again(a, 1.0)
    wp.printf("%f", b[0])


@wp.kernel
def composites(a: wp.array(dtype=wp.vec3), b: wp.array(dtype=wp.vec3)):
    v = a[0]
    v[1] = 2.0
    b[0][1] = v[1]


CASES = {
    plain: "c", by_calls: "ac", by_names: "abc", by_choice: "ab", by_fields: "aq", by_reference: "a",
    by_overloads: "a", composites: "b",
}  # fmt: skip


@pytest.mark.parametrize("kernel", CASES, ids=lambda k: k.key)
def test_what_is_stored_to(kernel):
    assert "".join(sorted(stores(kernel.source))) == CASES[kernel]


@pytest.mark.host
def test_what_is_said_holds_what_the_compiler_finds():
    for kernel in (plain, by_calls, composites):
        arrays = [wp.zeros((2, 2) if t is table else 2, dtype=getattr(t, "dtype", float)) if t is not int else 1
                  for t in [p.annotation for p in kernel.parameters]]  # fmt: skip
        program = wp.launch(kernel, dim=1, inputs=arrays, record_cmd=True)._program
        assert {kernel.parameters[k].name for k, *_ in program.stored} == stores(kernel.source)


def test_where_results_lead():
    assert leads(line.source).returned == {"of"} and not leads(read.source).returned


def test_what_is_known_of_a_source_goes_with_it():
    def late(a: floats):
        a[0] = 1.0

    source = Source(late)
    assert leads(source).stored == {"a"} and leads(source) is leads(source)
    left = weakref.ref(source)
    del source
    gc.collect()
    assert left() is None


def test_functions_in_namespaces_and_modules_of_modules_are_told_apart():
    from treadle.lang.identity import Identity

    @wp.func
    def keep(to: floats, i: int):
        return to[i]

    @wp.func
    def store(to: floats, i: int):
        to[i] = 0.0
        return 0.0

    inner = types.ModuleType("inner")
    outer = types.ModuleType("outer")
    outer.inner, tools = inner, types.SimpleNamespace()

    def kernels():
        @wp.kernel
        def by_module(a: floats):
            outer.inner.f(a, wp.tid())

        @wp.kernel
        def by_namespace(a: floats):
            tools.f(a, wp.tid())

        return by_module, by_namespace

    found = []
    for inner.f in (keep, store):
        tools.f = inner.f
        made = kernels()
        found.append([Identity().of(k.source) for k in made])
        assert [stores(k.source) for k in made] == [{"a"} if inner.f is store else set()] * 2
    assert not set(found[0]) & set(found[1])
