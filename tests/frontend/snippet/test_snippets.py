"""What snippets in C compute: many in one kernel each, since compiling is what costs."""

import math

import numpy as np
import pytest

import treadle as wp

N = 40


def native(result, snippet, **parameters):
    """A function with the body ``snippet``."""

    def f(*args): ...

    text = f"def f({', '.join(parameters)}): ...\n"
    scope = {}
    exec(compile(text, __file__, "exec"), scope)
    fn = scope["f"]
    fn.__annotations__ = {**parameters, "return": result}
    return wp.func_native(snippet)(fn)


# Each: the snippet of a function of (x: float32, i: int32), its result, and what it gives.
f32, f64 = np.float32, np.float64
FLOATS = [
    ("return x * 2.0 + 1;", lambda x, i: f32(f64(x) * 2.0 + 1)),
    ("return sqrtf(fabsf(x)) + powf(x, 2.0);", lambda x, i: f32(np.sqrt(np.abs(x))) + x * x),
    ("float s = 0; for (int k = 0; k < i; ++k) s += x; return s;", lambda x, i: f32(sum([x] * i, f32(0)))),
    ("float s = 0; for (int k = i; k >= 0; k -= 3) { if (k == 6) continue; s += k; } return s;",
     lambda x, i: sum(k for k in range(i, -1, -3) if k != 6)),
    ("int k = 0; while (true) { if (k * k > i) break; k++; } return k;",
     lambda x, i: next(k for k in range(100) if k * k > i)),
    ("int k = 0; do { k += 2; if (k == 4) continue; } while (k < i); return k;", lambda x, i: max(2, i + i % 2)),
    ("int n = 0; int k; for (k = 0; k < i; k++) { if (k % 2) continue; n += k; } return n + k;",
     lambda x, i: sum(range(0, i, 2)) + i),
    ("int n = i; for (int k = 0; k < n; k++) n--; return n;", lambda x, i: i - (i + 1) // 2),
    ("float x2 = x; { float x = 3.0f; x2 += x; } return x2;", lambda x, i: x + f32(3)),
    ("return x > 0 ? i : x;", lambda x, i: f32(i) if x > 0 else x),
    ("float a = 1, b; b = a = x; return a + b;", lambda x, i: x + x),
    ("float a[4] = {1, 2.5, x}; a[3] = a[0] + a[1]; a[i % 4] *= 2; return a[0] + a[1] * 10 + a[2] * 100 + a[3] * 1000;",
     lambda x, i: np.dot([v * (2 if j == i % 4 else 1) for j, v in enumerate([1, 2.5, x, 3.5])], [1, 10, 100, 1000])),
    ("float m[2][3]; for (int r = 0; r < 2; r++) for (int c = 0; c < 3; c++) m[r][c] = r * 3 + c; return m[1][i % 3];",
     lambda x, i: 3 + i % 3),
    ("auto v = wp::vec3(x, 1, 2.0); v[1] += 3; v.z = v.x; return dot(v, wp::vec_t<3, float>(1, 1, 1));",
     lambda x, i: x + f32(4) + x),
    ("wp::vec2 v(x, x + 1.f); wp::vec2f w{1.f, 2.f}; return wp::dot(v, w);", lambda x, i: x + 2 * (x + f32(1))),
    ("wp::mat22 m = wp::mat_t<2, 2, wp::float32>(x, 0.0f, 1, x); return m.data[0][0] + m.data[1][0];",
     lambda x, i: x + f32(1)),
    ("constexpr int L = 2; wp::vec2 a[L + 1]; a[1] = wp::vec2(x, 1); a[2] = a[1] * 3.f; return a[2][0] + a[1][i % 2];",
     lambda x, i: x * f32(3) + (1 if i % 2 else x)),
    ("switch (i % 5) { case 0: return x; case 1: case 2: { x += 1; break; } default: x = 7; break; case 3: x = -x; }"
     "return x;",
     lambda x, i: {0: x, 1: x + f32(1), 2: x + f32(1), 3: -x, 4: 7}[i % 5]),
    ("int s = 0; switch (i % 8) { case 4: s += 100; case 6: s += 7; break; default: s -= 1; } return s;",
     lambda x, i: {4: 107, 6: 7}.get(i % 8, -1)),
    ("int s = 0; switch (i % 6) { default: s += 1; case 0: case 1: s += 10; case 2: { int t = 5; s += t; } "
     "case 3: { int t = 1000; s += t; break; } case 4: int u = 3; s = u; case 5: s += 2; } return s;",
     lambda x, i: {0: 1015, 1: 1015, 2: 1005, 3: 1000, 4: 5, 5: 2}[i % 6]),
    ("int s = 0; switch (i % 4) { case 0: s = 1; case 1: s += 2; default: s += 4; case 2: if (s > 5) return s; "
     "case 3: for (int k = 0; k < 3; k++) { if (k == 2) break; s += 8; } } return s;",
     lambda x, i: {0: 7, 1: 6, 2: 16, 3: 16}[i % 4]),
    ("#define TWICE 2\nreturn TWICE * x;", lambda x, i: 2 * x),
    ("#if defined(__CUDA_ARCH__) && 1\n__syncthreads();\n#elif !defined(X)\nreturn x; // a comment\n#else\n#endif",
     lambda x, i: x),
    ("#ifdef __CUDA_ARCH__\nreturn 1;\n#endif\n/* two\nlines */ return (float)i / 4;", lambda x, i: f32(i) / 4),
    ("return i / 4 + i % 3;", lambda x, i: i // 4 + i % 3),
    ("return (i & 1) ? -x : +x;", lambda x, i: -x if i & 1 else x),
    ("bool odd = i & 1; return odd + 1;", lambda x, i: (i & 1) + 1),
    ("if (x > 1 && !(i == 3) || i == 5) return 1; else if (i == 7) return 2; return 3;",
     lambda x, i: 1 if (x > 1 and i != 3) or i == 5 else 2 if i == 7 else 3),
    ("return fminf(x, 1) + fmaxf(0.5f, x) + wp::min(i, 3) + fmodf(i, 2);",
     lambda x, i: min(x, f32(1)) + max(f32(0.5), x) + min(i, 3) + i % 2),
    ("float y = M_PI; return y + sizeof(double);", lambda x, i: f32(math.pi) + 8),
    ("const float& y = x; float z = y; float& w = z; w += 1.f; return z;", lambda x, i: x + f32(1)),
    ("int j = 3; j <<= 1; j |= 1; j ^= 2; j %= 4; x -= j; return x;", lambda x, i: x - f32(1)),
    ("return __fmul_rn(x, 3.f) + __fadd_rn(x, 1.f);", lambda x, i: f32(f32(x * f32(3)) + f32(x + f32(1)))),
    ("unsigned int bits; memcpy(&bits, &x, sizeof(bits)); return bits == __float_as_uint(x);", lambda x, i: 1),
    ("return hypotf(x, 2.f) - sqrtf(x * x + 4.f);", lambda x, i: 0),
]  # fmt: skip
U = 0xFFFFFFFF
INTS = [
    ("uint32_t u = reinterpret_cast<uint32_t&>(x); uint32_t m = (uint32_t)(-(int)(u >> 31))|0x80000000; return u ^ m;",
     lambda x, i: int(x.view(np.uint32)) ^ (U if x < 0 else 0x80000000)),
    ("return *(uint32_t*)&x;", lambda x, i: int(x.view(np.uint32))),
    ("return static_cast<int32_t>(0x123456789ull & 0xFFFFFFFFull) + i;", lambda x, i: 0x23456789 + i),
    ("return __builtin_ctz(i + 1) + 100 * __popc(i) + 10000 * __clz(i + 1) + 1000000 * __ffs(i);",
     lambda x, i: ((i + 1) & -(i + 1)).bit_length() - 1 + 100 * bin(i).count("1") + 10000 * (32 - (i + 1).bit_length())
     + 1000000 * (i & -i).bit_length()),
    ("return __brev(i);", lambda x, i: int(f"{i:032b}"[::-1], 2)),
    ("unsigned u = i; return u - 1 > 10u;", lambda x, i: int((i - 1) % 2**32 > 10)),
    ("short s = i * 1000; s = s * 3; return s;", lambda x, i: (i * 1000 * 3 + 2**15) % 2**16 - 2**15),
    ("unsigned char c = ~i; return c;", lambda x, i: ~i & 255),
    ("return 'a' + 010 + (1 << 4);", lambda x, i: 97 + 8 + 16),
    ("long long w = i; w *= 1000000007; return w >> 32;", lambda x, i: i * 1000000007 >> 32),
    ("return ((uint64_t)i << 40) / 3 >> 20;", lambda x, i: (i << 40) // 3 >> 20),
]  # fmt: skip

MADE = [native(float, s, x=float, i=int) for s, _ in FLOATS]
MADE_INTS = [native(wp.uint32, s, x=float, i=int) for s, _ in INTS]


@wp.kernel
def run(x: wp.array(dtype=float), y: wp.array2d(dtype=float), u: wp.array2d(dtype=wp.uint32)):
    i = wp.tid()
    for k in range(wp.static(len(MADE))):
        y[k, i] = wp.static(MADE[k])(x[i], i)
    for k in range(wp.static(len(MADE_INTS))):
        u[k, i] = wp.static(MADE_INTS[k])(x[i], i)


def test_c_as_c_means_it():
    x = (np.arange(N) * 0.37 - 5).astype(np.float32)
    y = wp.zeros((len(FLOATS), N), dtype=float)
    u = wp.zeros((len(INTS), N), dtype=wp.uint32)
    wp.launch(run, N, inputs=[wp.array(x, dtype=float), y, u])
    for k, (snippet, want) in enumerate(FLOATS):
        np.testing.assert_allclose(y.numpy()[k], [want(v, i) for i, v in enumerate(x)], 3e-7, 2e-6, err_msg=snippet)
    for k, (snippet, want) in enumerate(INTS):
        assert u.numpy()[k].tolist() == [want(v, i) % 2**32 for i, v in enumerate(x)], snippet


@wp.func_native("""
    const float* p = &a.data[2 * i];
    float* q = out.data + i;
    int at = i;
    at += 100;
    *q = p[0] + p[1];
    atomicAdd(&total[0], 1);
    atomicMax(total + 1, i);
    wp::store(wp::address(grid, 1, i), *wp::address(a, i) + grid.shape.dims[0]);
    if (i == 0) atomicExch(total.data + 2, at);
""")
def memory(
    a: wp.array(dtype=float), out: wp.array(dtype=float), total: wp.array(dtype=int), grid: wp.array2d(dtype=float),
    i: int,
): ...  # fmt: skip


@wp.struct
class Weights:
    a: wp.array(dtype=float)
    n: int
    v: wp.vec3


@wp.func_native("""
    float s = 0.f;
    for (int k = 0; k < w.n; k++) s += w.a.data[k] * w.v[k % 3];
    total = total + s;
    int row = grid.shape.dims[1];
    grid.data[1 * row + i] *= 100;  // one index counts all elements
""")
def weighted(w: Weights, total: wp.ref[wp.float32], grid: wp.array2d(dtype=float), i: int): ...


@wp.func_native("wp::fixedarray_t<3, wp::float32> r; r[0] = x; r[1] = x + 1.0f; r[2] = x + 2.0f; return r;")
def three(x: float) -> wp.fixedarray(dtype=float, shape=3): ...


@wp.func_native("return a;")
def same(a: wp.array(dtype=float)) -> wp.array(dtype=float): ...


@wp.func_native("return {x, 2 * x, 3};")
def listed(x: float) -> wp.vec3: ...


@wp.kernel
def use_memory(a: wp.array(dtype=float), out: wp.array(dtype=float), total: wp.array(dtype=int),
               grid: wp.array2d(dtype=float)):  # fmt: skip
    i = wp.tid()
    memory(a, out, total, grid, i)
    v = listed(a[i])
    r = three(a[i])
    grid[0, i] = r[0] + 10.0 * r[2] + v[1] + same(a)[i]


@wp.kernel(enable_backward=False)
def use_struct(w: Weights, grid: wp.array2d(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    total = float(1.0)
    weighted(w, total, grid, i)
    out[i] = total


def test_pointers_atomics_arrays_and_lists():
    a = wp.array(np.arange(20, dtype=np.float32), dtype=float)
    out, total, grid = wp.zeros(10, dtype=float), wp.zeros(3, dtype=int), wp.zeros((2, 10), dtype=float)
    wp.launch(use_memory, 10, inputs=[a, out, total, grid])
    i = np.arange(10)
    np.testing.assert_array_equal(out.numpy(), 4 * i + 1)
    assert total.list() == [10, 9, 100]
    np.testing.assert_array_equal(grid.numpy(), [14 * i + 20, i + 2])


def test_structs_references_and_flat_indices():
    w = Weights(a=wp.array(np.arange(5.0), dtype=float), n=5, v=wp.vec3(1.0, 2.0, 3.0))
    grid, out = wp.ones((2, 3), dtype=float), wp.zeros(3, dtype=float)
    wp.launch(use_struct, 3, inputs=[w, grid, out])
    assert out.list() == [20.0] * 3
    assert grid.numpy().tolist() == [[1.0] * 3, [100.0] * 3]


@wp.func_native("""
    float *p = (float *)where;
    p[i] += 1.0f;
    if (i == 0) *(int *)counter = 42;
    reinterpret_cast<float*>(where)[i] *= 2;
    return ((float *)where)[i];
""")
def through_addresses(where: wp.uint64, counter: wp.uint64, i: int) -> float: ...


@wp.kernel
def use_addresses(where: wp.uint64, counter: wp.uint64, out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = through_addresses(where, counter, i)


def test_addresses_are_pointers():
    data, counter, out = wp.array([1.0, 2.0, 3.0], dtype=float), wp.zeros(1, dtype=int), wp.zeros(3, dtype=float)
    wp.launch(use_addresses, 3, inputs=[data.ptr, counter.ptr, out])
    assert data.list() == out.list() == [4.0, 6.0, 8.0]
    assert counter.list() == [42]


def test_called_from_python(capsys):
    assert native(float, 'printf("%d: %.2f\\n", i, x); return x;', x=float, i=int)(1.25, 3) == 1.25
    assert capsys.readouterr().out == "3: 1.25\n"
    assert listed(2.0) == wp.vec3(2.0, 4.0, 3.0)
    assert MADE[0](1.5, 0) == 4.0

    @wp.func_native("return x - y;")
    def minus(x: float, y: float = 2.0) -> float: ...

    assert minus(1.0) == -1.0 and minus(1.0, y=5.0) == -4.0
    with pytest.raises(wp.KernelTypeError, match="minus takes x, y; outside of kernels"):
        minus(1.0, 2.0, 3.0)
    with pytest.raises(wp.KernelTypeError, match="same takes a; outside of kernels"):
        same(wp.zeros(1, dtype=float))


WRONG = [
    ("__shared__ float s[3];\nreturn 1;", 1, "shared memory"),
    ("int k = 1;\nreturn threadIdx.x;", 2, "the index in a block"),
    ("return 1 +;", 1, "not the C that snippets can have"),
    ("int k = 0;\nreturn a[k++];", 2, "name 'a' is not known|inside of an expression"),
    ("float* p;\nreturn 0;", 1, "a pointer without a value"),
    ("switch (1) {\ncase 1: if (x > 0) break; x = 2;\ncase 2: break; }\nreturn 0;", 2, "'break' in the middle of a"),
    ("goto end;\nend: return 0;", 1, "'goto'"),
    ("static int n = 0;\nreturn n;", 1, "a static variable"),
    ("\nreturn foo(x);", 2, "'foo' is not known"),
    ("#define F(x) x\nreturn 0;", 1, "a macro with arguments"),
    ("#include <math.h>\nreturn 0;", 1, "#include"),
    ("auto f = [&](float a) { return a; };\nreturn 0;", 1, "not the C"),
    ("Foo y = x;\nreturn 0;", 1, "not the C"),
]


@pytest.mark.parametrize("snippet, line, what", WRONG)
def test_what_is_beyond_says_so_with_its_line(snippet, line, what):
    with pytest.raises(wp.TreadleError, match=what) as error:
        native(float, snippet, x=float)(1.0)
    assert error.value.span.line == line
    assert error.value.span.text().strip()


def test_without_the_parser_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pycparser", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'treadle\[native\]'"):
        native(float, "return x + 41.0f;", x=float)(1.0)
