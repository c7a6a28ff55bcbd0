"""Snippets against what a C compiler makes of the same text."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import treadle as wp

from .random_c import Writer

PROGRAMS, THREADS = 12, 16
C_TYPES = {"double": ctypes.c_double, "long long": ctypes.c_longlong}


def _native(body, result):
    def f(a: int, b: wp.uint32, x: float, y: wp.float64) -> result: ...

    return wp.func_native(body)(f)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_random_programs_compute_what_c_does(tmp_path):
    writer = Writer(7)
    texts = [writer.program() for _ in range(PROGRAMS)]
    head = "#include <stdint.h>\n#include <math.h>\n"
    parameters = "int a, unsigned int b, float x, double y"
    functions = [f"{t} p{i}({parameters}) {{ {body} }}\n" for i, (body, t) in enumerate(texts)]
    (tmp_path / "p.c").write_text(head + "".join(functions))
    flags = ["-O0", "-w", "-fwrapv", "-ffp-contract=off", "-fPIC", "-shared"]
    subprocess.run(["cc", *flags, "-o", tmp_path / "p.so", tmp_path / "p.c", "-lm"], check=True, timeout=60)
    library = ctypes.CDLL(str(tmp_path / "p.so"))

    rng = np.random.default_rng(3)
    a, b = rng.integers(-50, 50, THREADS, np.int32), rng.integers(0, 2**32, THREADS, np.uint32)
    x, y = rng.uniform(-9, 9, THREADS).astype(np.float32), rng.uniform(-9, 9, THREADS)
    made = [_native(body, wp.float64 if t == "double" else wp.int64) for body, t in texts]

    @wp.kernel(module="unique", module_options={"fuse_fp": False}, enable_backward=False)
    def run(a: wp.array(dtype=int), b: wp.array(dtype=wp.uint32), x: wp.array(dtype=float),
            y: wp.array(dtype=wp.float64), out: wp.array2d(dtype=wp.int64)):  # fmt: skip
        i = wp.tid()
        for k in range(wp.static(PROGRAMS)):
            out[k, i] = wp.cast(wp.static(made[k])(a[i], b[i], x[i], y[i]), wp.int64)

    out = wp.zeros((PROGRAMS, THREADS), dtype=wp.int64)
    given = [wp.array(v, dtype=t) for v, t in ((a, int), (b, wp.uint32), (x, float), (y, wp.float64))]
    wp.launch(run, THREADS, inputs=[*given, out])
    for i, (body, t) in enumerate(texts):
        function = library[f"p{i}"]
        function.restype = C_TYPES[t]
        function.argtypes = [ctypes.c_int, ctypes.c_uint, ctypes.c_float, ctypes.c_double]
        want = [function(int(a[j]), int(b[j]), float(x[j]), float(y[j])) for j in range(THREADS)]
        got = out.numpy()[i].view(np.float64) if t == "double" else out.numpy()[i]
        np.testing.assert_array_equal(got, want, err_msg=body)
