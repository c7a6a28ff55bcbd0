"""Forms of gang functions: one for each kind of call, with results that are what lanes have in common."""

import re

import numpy as np

from tests.codegen.emit.test_calls import call, function
from tests.codegen.harness import Entry, KernelBuilder, agrees_with_oracle, same_on_all_widths
from treadle.codegen import cpu
from treadle.codegen.emit import gangs
from treadle.codegen.emit.unit import Options
from treadle.types.core import f32, i32, view

N = 48


def reader():
    def read(b, x, n, i):
        """Element i of x, n times over, and the numbers behind both."""
        (v,) = b.op("load", (x, i), (f32,))
        return [b.one("mul", (v, b.one("cast", (n,), f32)), f32), b.one("add", (n, b.const(1, i32)), i32),
                b.one("add", (i, b.const(1, i32)), i32)]  # fmt: skip

    return function("read", (view(f32, 1, (4,)), i32, i32), read)


def kernel():
    """Two calls at the thread's own index, one in a branch, one at an index that varies."""
    read = reader()
    k = KernelBuilder((view(f32, 1, (4,)), view(i32, 1, (4,)), i32, view(f32, 1, (4,))))
    x, where, n, y = k.params
    i = k.tid()
    a, more, _ = call(k, read, x, n, i)
    b, _, _ = call(k, read, x, more, i)
    c = k.if_(k.op("gt", a, k.const(0.0, f32)), lambda: [call(k, read, x, n, i)[0]], lambda: [b])
    d, _, following = call(k, read, x, k.load(where, i), k.load(where, i))
    k.store(y, (i,), k.op("add", k.op("add", b, c), k.op("add", d, k.cast(following, f32))))
    return k.func()


def make():
    rng = np.random.default_rng(0)
    where = rng.integers(0, N, N).astype(np.int32)
    return rng.normal(size=N).astype(np.float32), where, 3, np.zeros(N, np.float32)


def heads(func, **options):
    """The first lines of the functions of gangs of eight."""
    text = cpu.draft(func, cpu.host_target(8), Options(**options)).text
    return re.findall(r"define internal (.*?) @f\d+_read\((.*?)\)", text)


def test_calls_that_agree_share_a_form_and_others_have_their_own():
    func = kernel()
    found = heads(func, full=True)
    kinds = [("<8 x i1> %mask" in params, result) for result, params in found]
    own, foreign = "{ <8 x float>, i32, i32 }", "{ <8 x float>, <8 x i32>, <8 x i32> }"
    assert kinds == [(False, own), (True, own), (False, foreign)]
    assert len(heads(func)) == 2  # under the gang's own mask all calls have one
    out = same_on_all_widths(func, N, make)
    agrees_with_oracle(func, N, make, out[2])
    whole = make()
    assert Entry(func, 8, Options(full=True))(N, *whole) == 0
    assert whole[-1].tobytes() == out[-1].tobytes()


def test_forms_that_no_call_has_in_the_end_take_no_room(monkeypatch):
    """What a loop carries from round to round is taken for uniform until it is seen that it varies."""
    read = reader()
    monkeypatch.setattr(gangs, "ROOM", 2 * gangs.size(read))
    k = KernelBuilder((view(f32, 1, (4,)), view(i32, 1, (4,)), i32, view(f32, 1, (4,))))
    x, where, n, y = k.params
    i = k.tid()
    own, _, _ = call(k, read, x, n, i)

    def body(j, total, at):
        found, _, _ = call(k, read, x, n, at)
        return [k.op("add", total, found), k.load(where, i)]

    total, _ = k.for_(k.const(0, i32), k.const(3, i32), k.const(1, i32), [own, k.const(0, i32)], body)
    k.store(y, (i,), total)
    func = k.func()
    results = [result for result, _ in heads(func, full=True)]
    assert "{ <8 x float>, i32, i32 }" in results and "{ <8 x float>, i32, <8 x i32> }" in results
    out = same_on_all_widths(func, N, make)
    agrees_with_oracle(func, N, make, out[2])


def test_a_function_that_would_be_too_much_code_has_one_form_for_all(monkeypatch):
    monkeypatch.setattr(gangs, "ROOM", 9)  # one form of its five ops, one text
    func = kernel()
    (found,) = heads(func, full=True)
    assert "<8 x i1> %mask" in found[1] and found[0] == "{ <8 x float>, <8 x i32>, <8 x i32> }"
    out = same_on_all_widths(func, N, make)
    agrees_with_oracle(func, N, make, out[2])
