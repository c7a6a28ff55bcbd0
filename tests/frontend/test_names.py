"""Names from outside: where they are looked up, what the manifest remembers."""

from __future__ import annotations

import enum
import math

import numpy as np

from tests.frontend.language import outputs, wp
from treadle.frontend.names import MISSING, Manifest, look_up
from treadle.frontend.parse import parse
from treadle.frontend.source import Source
from treadle.types.core import f32, view

K = 2.5
HIDDEN = 1.0


class Mode(enum.IntEnum):
    FAST = 1
    SLOW = 2


def test_captured_values_of_every_kind():
    HIDDEN = 7.0
    half, v, m = wp.float16(0.5), wp.vec3(1.0, 2.0, 3.0), wp.mat22(1.0, 2.0, 3.0, 4.0)
    single, flag, big = np.float32(1.25), True, np.int64(3)

    def kernel(out):
        out[0] = K + HIDDEN
        out[1] = float(half) + v[1] + m[1, 0]
        out[2] = single
        if flag and Mode.SLOW == 2:
            out[3] = float(Mode.SLOW) + float(big)
        out[4] = math.pi
        u = v * 2.0
        out[5] = u.z

    assert outputs(kernel, 6) == [9.5, 5.5, 1.25, 5.0, float(np.float32(math.pi)), 6.0]


def test_the_manifest_names_what_was_found():
    factor = 3

    def kernel(out):
        for k in range(2):
            out[k] = float(factor) + wp.pi + wp.static(K * k)

    manifest = Manifest()
    source = Source(kernel)
    parse(source, [view(f32, 1)], manifest=manifest)
    found = {(e.text, e.constants): e.value for e in manifest}
    assert found["factor", ()] == 3
    assert found["wp.pi", ()] == wp.pi
    assert found["K * k", (("k", 1),)] == 2.5
    for entry in manifest:
        assert look_up(source, entry.text, dict(entry.constants)) == entry.value
    factor = 4
    assert look_up(source, "factor", {}) == 4
    assert look_up(source, "no_such_name", {}) is MISSING
    assert look_up(source, "wp.pi.nothing", {}) is MISSING


def test_the_languages_own_names_need_no_module():
    def kernel(out):
        v = vec3(1.0, 2.0, 3.0)  # noqa: F821
        out[0] = max(sqrt(v[1] + 2.0), 0.5)  # noqa: F821
        out[1] = float(v.length)
        m = mat22(1.0, 2.0, 3.0, 4.0)  # noqa: F821
        out[2] = float(m.shape[1])
        u = v.dtype(3)
        out[3] = u

    assert outputs(kernel, 4) == [2.0, 3.0, 2.0, 3.0]
