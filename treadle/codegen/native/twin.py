"""Arrays over memory that others hand over, made by native code: like an array that is there, at another address.

What is the same of both (shape, strides, type, …) is taken over slot by slot; a new descriptor has the new address. So
an array costs less than a tenth of a microsecond, where Python needs one.
"""

from __future__ import annotations

from ...types.records import BYTES, DESC, SIZE, TWIN, TWIN_SLOTS, TYPE, VIEWED
from .text import Code

PARAMS = [("ptr", "self"), ("ptr", "args"), ("i64", "count")]


def twin(name: str) -> str:
    """LLVM text of ``name``, a function of Python's METH_FASTCALL kind: ``twin(like, owner, address)``, where ``like``
    is an array of the CPU without gradient. Without ``address`` the owner is a memoryview, which knows it. Nothing is
    checked."""
    c = Code(name, "ptr", PARAMS)
    record = c.load("ptr", "%self", BYTES)
    like, owner = (c.load("ptr", "%args", 8 * k) for k in range(2))
    address, number = c.var("ptr", "null"), c.var("i64", 0)
    given = c.op("icmp eq", "i64", "%count", 3)
    with c.if_(given):
        address.set(c.load("ptr", "%args", 16))
        number.set(c.call("i64", c.load("ptr", record, TWIN["as_number"]), ("ptr", address.get())))
        c.call("void", c.load("ptr", record, TWIN["incref"]), ("ptr", address.get()))
    with c.if_(c.op("xor", "i1", given, "true")):
        number.set(c.load("i64", owner, VIEWED))
        address.set(c.call("ptr", c.load("ptr", record, TWIN["from_number"]), ("i64", number.get())))
        with c.if_(c.op("icmp eq", "ptr", address.get(), "null")):
            c.ret("null")
    desc = c.load("ptr", c.at(like, c.load("i64", record, TWIN["desc"])))
    listed = (("ptr", c.at(desc, BYTES)), ("i64", c.load("i64", desc, SIZE)))
    fresh = c.call("ptr", c.load("ptr", record, TWIN["bytes_from"]), *listed)
    decref = c.load("ptr", record, TWIN["decref"])
    with c.if_(c.op("icmp eq", "ptr", fresh, "null")):
        c.call("void", decref, ("ptr", address.get()))
        c.ret("null")
    c.store("i64", number.get(), fresh, BYTES + DESC["data"])
    listed = (("ptr", c.load("ptr", like, TYPE)), ("ptr", c.load("ptr", record, TWIN["no_arguments"])), ("ptr", "null"))
    made = c.call("ptr", c.load("ptr", record, TWIN["new"]), *listed)
    with c.if_(c.op("icmp eq", "ptr", made, "null")):
        c.call("void", decref, ("ptr", fresh))
        c.call("void", decref, ("ptr", address.get()))
        c.ret("null")
    incref = c.load("ptr", record, TWIN["incref"])
    for k in range(TWIN_SLOTS):
        at = c.load("i64", record, TWIN[f"slot{k}"])
        thing = c.load("ptr", c.at(like, at))
        c.call("void", incref, ("ptr", thing))
        c.store("ptr", thing, c.at(made, at))
    c.call("void", incref, ("ptr", owner))
    for field, thing in (("address", address.get()), ("owner", owner), ("desc", fresh)):
        c.store("ptr", thing, c.at(made, c.load("i64", record, TWIN[field])))
    c.ret(made)
    return c.text()
