"""Arrays over memory that others hand over, made by native code: like an array that is there, at another address.

What is the same of both (shape, strides, type, …) is taken over slot by slot; a new descriptor has the new address. So
an array costs less than a tenth of a microsecond, where Python needs one.
"""

from __future__ import annotations

from ...types.records import BYTES, DESC, SIZE, TWIN, TWIN_SLOTS, TYPE
from .text import Code

PARAMS = [("ptr", "self"), ("ptr", "args"), ("i64", "count")]


def twin(name: str) -> str:
    """LLVM text of ``name``, a function of Python's METH_FASTCALL kind: ``twin(like, address, owner)``, where ``like``
    is an array of the CPU without gradient. Nothing is checked but what Python's own functions check."""
    c = Code(name, "ptr", PARAMS)
    record = c.load("ptr", "%self", BYTES)
    like, address, owner = (c.load("ptr", "%args", 8 * k) for k in range(3))
    number = c.call("i64", c.load("ptr", record, TWIN["as_number"]), ("ptr", address))
    desc = c.load("ptr", c.at(like, c.load("i64", record, TWIN["desc"])))
    listed = (("ptr", c.at(desc, BYTES)), ("i64", c.load("i64", desc, SIZE)))
    fresh = c.call("ptr", c.load("ptr", record, TWIN["bytes_from"]), *listed)
    with c.if_(c.op("icmp eq", "ptr", fresh, "null")):
        c.ret("null")
    c.store("i64", number, fresh, BYTES + DESC["data"])
    listed = (("ptr", c.load("ptr", like, TYPE)), ("ptr", c.load("ptr", record, TWIN["no_arguments"])), ("ptr", "null"))
    made = c.call("ptr", c.load("ptr", record, TWIN["new"]), *listed)
    with c.if_(c.op("icmp eq", "ptr", made, "null")):
        c.call("void", c.load("ptr", record, TWIN["decref"]), ("ptr", fresh))
        c.ret("null")
    incref = c.load("ptr", record, TWIN["incref"])
    for k in range(TWIN_SLOTS):
        at = c.load("i64", record, TWIN[f"slot{k}"])
        thing = c.load("ptr", c.at(like, at))
        c.call("void", incref, ("ptr", thing))
        c.store("ptr", thing, c.at(made, at))
    for field, thing in (("address", address), ("owner", owner)):
        c.call("void", incref, ("ptr", thing))
        c.store("ptr", thing, c.at(made, c.load("i64", record, TWIN[field])))
    c.store("ptr", fresh, c.at(made, c.load("i64", record, TWIN["desc"])))
    c.ret(made)
    return c.text()
