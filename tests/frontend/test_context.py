"""What the frontend gives the builtins: programs of their bodies, and of the rules for their derivatives."""

import treadle as wp
from treadle.builtins import registry
from treadle.frontend.context import CONTEXT, context_of
from treadle.frontend.parse import Options, parse
from treadle.frontend.source import Source
from treadle.ir.node import Func
from treadle.ir.walk import ops_of
from treadle.passes.pipeline import NORMALIZE, run
from treadle.types.core import f32, i32, vector


@wp.func
def heading(v: wp.vec3):
    return wp.normalize(v)


def turned(v, x):
    return heading(v) * wp.sin(x) + wp.lerp(v, heading(v + v), x)


def ruled(gradient: int) -> list[str]:
    """The functions that stay calls because they have rules."""
    func = run(NORMALIZE, parse(Source(turned), [vector(3, f32), f32], Options(gradient=gradient), "function"))
    return [op.attrs["func"].name for op in ops_of(func.body) if op.name == "call" and "adjoint" in op.attrs]


def test_calls_of_builtins_bring_rules_only_where_programs_are_differentiated():
    assert ruled(0) == []
    assert ruled(1) == ["body", "sin_f32", "body"]  # also inside the user's function, which is inlined


def test_a_program_is_made_once_for_each_list_of_types():
    (record, *_) = [r for r in registry.records("normalize") if r.kind == "body"]
    body = record.part("body")
    assert CONTEXT is context_of(0)
    assert CONTEXT.instantiate(body, [vector(3, f32)]) is CONTEXT.instantiate(body, [vector(3, f32)])
    assert CONTEXT.instantiate(body, [vector(3, f32)]) is not CONTEXT.instantiate(body, [vector(2, f32)])


def test_rules_take_arguments_results_and_what_moves():
    (record, *_) = [r for r in registry.records("normalize") if r.kind == "body"]
    v = vector(3, f32)
    attrs = context_of(1).call(record, [v])
    assert set(attrs) == {"func", "adjoint", "tangent"} and set(CONTEXT.call(record, [v])) == {"func", "apart"}
    for name in ("adjoint", "tangent"):
        rule: Func = attrs[name]
        assert [p.type for p in rule.params] == [v, v, v] and [y.type for y in rule.body.yields] == [v]


def test_integers_have_no_rules():
    (record, *_) = registry.records("clamp")
    assert set(context_of(1).call(record, [i32, i32, i32])) == {"func"}
