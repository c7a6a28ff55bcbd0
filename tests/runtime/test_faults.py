"""Fault records become exceptions that say what, where and in which thread."""

import struct

import pytest

from treadle.base import errors
from treadle.runtime.faults import fault_error, thread_text


def bits(x, code):
    return int.from_bytes(struct.pack(f"<{code}", x).ljust(8, b"\0"), "little", signed=True)


def test_threads_of_grids():
    assert thread_text(7, (10,)) == "7" and thread_text(7, (2, 5)) == "(1, 2)"
    assert thread_text(59, (3, 4, 5)) == "(2, 3, 4)"


@pytest.mark.parametrize(
    ("site", "values", "dims", "error", "words"),
    [
        ({"kind": "index", "array": "a", "ndim": 1}, [4, 3], (9,), errors.IndexOutOfRange,
         "index 4 is out of bounds of array 'a' of shape (3,) (kernel k, thread 5)"),
        ({"kind": "index", "array": "s.a", "ndim": 2}, [-1, 7, 3, 4], (3, 3), errors.IndexOutOfRange,
         "index (-1, 7) is out of bounds of array 's.a' of shape (3, 4) (kernel k, thread (1, 2))"),
        ({"kind": "index", "array": "", "ndim": 1}, [4, 3], (9,), errors.IndexOutOfRange,
         "bounds of array of shape (3,)"),
        ({"kind": "assert", "text": "x > 0: no"}, [], (9,), errors.KernelAssertionError,
         "Assertion failed: x > 0: no (kernel k"),
        ({"kind": "assert", "text": "equal", "types": ["f32", "i32", "bool", "u8", "f64", "u64"]},
         [bits(0.1, "f"), -3, 1, 200, bits(0.1, "d"), -1], (9,), errors.KernelAssertionError,
         "equal [0.1, -3, True, 200, 0.1, 18446744073709551615]"),
        ({"kind": "unassigned", "text": "variable 'x' is read where nothing was assigned"}, [], (9,),
         errors.UnassignedError,
         "variable 'x' is read where nothing was assigned (kernel k, thread 5)"),
        ({"kind": "memory"}, [], (9,), errors.KernelMemoryError, "ran out (kernel k, thread 5)"),
        ({"kind": "other"}, [], (9,), errors.TreadleError, "other (kernel k, thread 5)"),
    ],
)  # fmt: skip
def test_messages(site, values, dims, error, words):
    made = fault_error("k", site, 5, values + [0] * (8 - len(values)), dims)
    assert type(made) is error and words in str(made)


def test_the_source_line_is_shown():
    site = {"kind": "assert", "file": __file__, "line": 1, "column": 0, "end_column": 3}
    made = fault_error("k", site, 0, [0] * 8, (1,))
    assert f"{__file__}:1" in str(made) and "Fault records become" in str(made) and "^^^" in str(made)
