"""Kernels of every kind that has a derivative, for scalars of a given float type. The language's annotations are made
of that type, so they are evaluated where they stand."""

from typing import Any, NamedTuple

import numpy as np

import treadle as wp

N = 5  # threads, mostly


class Case(NamedTuple):
    """A launch. ``outputs`` are written, perhaps read as well."""

    kernel: Any
    dim: Any
    inputs: list
    outputs: list


def loops(F):
    A = wp.array(dtype=F)

    @wp.kernel
    def product_of_a_dynamic_loop(x: A, n: int, y: A):
        i = wp.tid()
        p = F(1.0)
        for j in range(n):
            p = p * (x[i] + F(0.1) * x[j])
        y[i] = p

    @wp.kernel
    def used_after_the_loop(x: A, n: int, y: A):
        i = wp.tid()
        early = x[i] * x[i]
        sum = F(5.0)
        for j in range(n):
            sum = sum + early * x[j]
        y[i] = sum * early

    @wp.kernel
    def two_values_change_places(x: A, n: int, y: A):
        i = wp.tid()
        a = x[i]
        b = F(1.0)
        for j in range(n):
            old = a
            a = b * F(0.7) + x[j]
            b = old * b
        y[i] = a * b

    @wp.kernel
    def nested_with_own_bounds(x: A, n: int, y: A):
        i = wp.tid()
        s = F(1.0)
        for j in range(n):
            t = s
            for k in range(j + 1):
                t = t * F(0.5) + x[k] * x[i]
            s = s + t * t
        y[i] = s

    @wp.kernel
    def divergent_trip_counts(x: A, counts: wp.array(dtype=int), y: A):
        i = wp.tid()
        v = x[i]
        for j in range(counts[i]):
            v = wp.sin(v) + F(0.3) * v * v
        y[i] = v

    @wp.kernel
    def backwards_by_twos(x: A, n: int, y: A):
        i = wp.tid()
        v = F(0.5)
        for j in range(n - 1, -1, -2):
            v = v * x[j] + x[i]
        y[i] = v

    @wp.kernel
    def newton_while(x: A, y: A):
        i = wp.tid()
        a = x[i] * x[i] + F(1.0)
        v = a
        steps = int(0)
        while wp.abs(v * v - a) > F(1e-3) and steps < 30:
            v = F(0.5) * (v + a / v)
            steps += 1
        y[i] = v * x[i]

    @wp.kernel
    def breaks(x: A, n: int, y: A):
        i = wp.tid()
        p = F(1.0)
        for j in range(n):
            p = p * (x[j] + F(1.2))
            if p > F(2.0) + x[i]:
                break
            p = p + x[i]
        y[i] = p * p

    @wp.kernel
    def continues_to_the_greatest(c: wp.array2d(dtype=F), x: A, n: int, y: A):
        i = wp.tid()
        best = F(-1e20)
        for p in range(n):
            for q in range(n):
                if c[p, q] < F(0.0):
                    continue
                v = c[p, q] * x[i] * F(p + 2 * q + 1)
                if v > best:
                    best = v
        y[i] = best

    @wp.kernel
    def returns_from_within(x: A, n: int, y: A):
        i = wp.tid()
        v = x[i]
        for j in range(n):
            v = v * F(1.3) + x[j] * x[j]
            if v > F(1.0):
                y[i] = v * v
                return
        y[i] = -v

    @wp.kernel
    def unrolled(x: A, y: A):
        i = wp.tid()
        p = F(1.0)
        for j in range(4):
            if j == 2:
                continue
            p = p * x[i] + x[j]
        y[i] = p

    @wp.kernel
    def loop_that_never_runs(x: A, n: int, y: A):
        i = wp.tid()
        v = x[i]
        for j in range(n, n):
            v = v * v
        y[i] = v * F(3.0)

    one = ([("x", N)], [("y", N)])
    counted = ([("x", N), 4], [("y", N)])
    return {
        "product_of_a_dynamic_loop": (product_of_a_dynamic_loop, *counted),
        "used_after_the_loop": (used_after_the_loop, *counted),
        "two_values_change_places": (two_values_change_places, *counted),
        "nested_with_own_bounds": (nested_with_own_bounds, *counted),
        "divergent_trip_counts": (divergent_trip_counts, [("x", N), np.array([0, 3, 1, 7, 2])], [("y", N)]),
        "backwards_by_twos": (backwards_by_twos, *counted),
        "newton_while": (newton_while, *one),
        "breaks": (breaks, *counted),
        "continues_to_the_greatest": (continues_to_the_greatest, [("c", (4, 4)), ("x", N), 4], [("y", N)]),
        "returns_from_within": (returns_from_within, *counted),
        "unrolled": (unrolled, *one),
        "loop_that_never_runs": (loop_that_never_runs, *counted),
    }


def functions(F):
    A = wp.array(dtype=F)

    @wp.func
    def sum_of_powers(v: F, n: int):
        s = F(0.0)
        p = F(1.0)
        for k in range(n):
            p = p * v
            s = s + p * p
        return F(1.0) / (s + F(0.5))

    @wp.func
    def aliased(a: F):
        b = a
        if b > F(0.0):
            b = a * a
        else:
            b = a * a * a
        return b, b * a

    @wp.func
    def first_above(a: wp.array(dtype=F), limit: F):
        for k in range(a.shape[0]):
            if a[k] > limit:
                return a[k] * limit
        return limit * limit

    @wp.func
    def moved(v: F, by: F):
        v = v + by * v
        return v

    @wp.kernel
    def loops_in_functions(x: A, n: int, y: A):
        i = wp.tid()
        y[i] = sum_of_powers(x[i], n) * sum_of_powers(x[0], n)

    @wp.kernel
    def several_results(x: A, y: A):
        i = wp.tid()
        a, b = aliased(x[i])
        y[i] = a * b + moved(a, x[i])

    @wp.kernel
    def functions_of_arrays(x: A, y: A):
        i = wp.tid()
        y[i] = first_above(x, x[i] * F(0.5)) + moved(x[i], moved(x[0], x[1]))

    @wp.kernel
    def arms_that_are_not_run(x: A, d: A, y: A):
        i = wp.tid()
        y[i] = x[i] / d[i] if x[i] > F(0.0) else x[i] * F(2.0)

    @wp.kernel
    def short_circuits(x: A, y: A):
        i = wp.tid()
        v = x[i]
        if v > F(0.0) and wp.sqrt(v) > F(0.3) or v < F(-0.5):
            v = v * x[0]
        y[i] = v * v

    return {
        "loops_in_functions": (loops_in_functions, [("x", N), 4], [("y", N)]),
        "several_results": (several_results, [("x", N)], [("y", N)]),
        "functions_of_arrays": (functions_of_arrays, [("x", N)], [("y", N)]),
        "arms_that_are_not_run": (arms_that_are_not_run, [("x", N), ("d", N)], [("y", N)]),
        "short_circuits": (short_circuits, [("x", N)], [("y", N)]),
    }


def memory(F):
    A, A2 = wp.array(dtype=F), wp.array2d(dtype=F)
    vec3 = wp.types.vector(3, F)

    @wp.kernel
    def stepped_in_place(x: A, y: A):
        i = wp.tid()
        y[i] = x[i] * y[i]
        y[i] = y[i] * y[i] + x[i]
        y[i] *= x[i]

    @wp.kernel
    def in_place_in_a_loop(x: A, n: int, y: A):
        i = wp.tid()
        for j in range(n):
            y[i] = y[i] * F(0.5) + x[i] * x[j]
            y[i] += y[i] * x[j]

    @wp.kernel
    def local_array(x: A, n: int, y: A):
        i = wp.tid()
        a = wp.zeros(shape=6, dtype=F)
        a[0] = x[i]
        for j in range(n):
            a[j + 1] = a[j] * x[j] + F(0.3)
        s = F(0.0)
        for j in range(n):
            s += a[j] * a[j + 1]
        y[i] = s

    @wp.kernel
    def local_array_overwritten(x: A, n: int, y: A):
        i = wp.tid()
        a = wp.zeros(shape=2, dtype=F)
        a[0] = x[i]
        a[1] = F(1.0)
        for j in range(n):
            k = j % 2
            a[k] = a[1 - k] * a[k] + x[j]
        y[i] = a[0] * a[1]

    @wp.kernel
    def atomic_sums(x: A, at: wp.array(dtype=int), y: A):
        i = wp.tid()
        wp.atomic_add(y, at[i], x[i] * x[i])
        wp.atomic_sub(y, 0, x[i] * x[(i + 1) % 5])

    @wp.kernel
    def least_and_greatest(x: A, y: A):
        i = wp.tid()
        v = wp.sin(F(3.0) * x[i])
        if i < 3:
            wp.atomic_min(y, 0, v)
        wp.atomic_max(y, 1, v * x[i])

    @wp.kernel
    def grid_of_two(a: A2, b: A2, y: A2):
        i, j = wp.tid()
        s = F(0.0)
        for k in range(a.shape[1]):
            s += a[i, k] * b[k, j]
        y[i, j] = s * a[i, j % 3]

    @wp.kernel
    def rows_and_slices(a: A2, y: A2):
        i = wp.tid()
        row = a[i]
        out = y[i]
        part = row[1:4]
        for k in range(part.shape[0]):
            out[k] = part[k] * row[0] * a[(i + 1) % 5, k]

    @wp.kernel
    def written_along_time(n: int, x: A2):
        i = wp.tid()
        for t in range(n):
            x[t + 1, i] = wp.sin(x[t, i]) + F(0.5) * x[0, (i + 1) % 5] * x[t, i]

    @wp.kernel
    def neighbours(x: wp.array(dtype=vec3), y: wp.array(dtype=vec3)):
        i = wp.tid()
        d = x[(i + 1) % 5] - x[i]
        y[i] += d * wp.dot(d, d)

    whole = [np.array([0, 1, 1, 2, 0])]
    return {
        "stepped_in_place": (stepped_in_place, [("x", N)], [("y", N)]),
        "in_place_in_a_loop": (in_place_in_a_loop, [("x", N), 3], [("y", N)]),
        "local_array": (local_array, [("x", N), 4], [("y", N)]),
        "local_array_overwritten": (local_array_overwritten, [("x", N), 4], [("y", N)]),
        "atomic_sums": (atomic_sums, [("x", N), *whole], [("y", 3)]),
        "least_and_greatest": (least_and_greatest, [("x", N)], [("y", 2)]),
        "grid_of_two": (grid_of_two, [("a", (3, 4)), ("b", (4, 5))], [("y", (3, 5))], (3, 5)),
        "rows_and_slices": (rows_and_slices, [("a", (5, 4))], [("y", (5, 3))]),
        "neighbours": (neighbours, [("x", N, vec3)], [("y", N, vec3)]),
        "written_along_time": (written_along_time, [3], [("x", (4, 5))]),
    }


def composites(F):
    A = wp.array(dtype=F)
    vec3, mat33, vec4 = wp.types.vector(3, F), wp.types.matrix((3, 3), F), wp.types.vector(4, F)
    quat, transform = wp.types.quaternion(F), wp.types.transformation(F)
    V = wp.array(dtype=vec3)

    @wp.struct
    class Inner:
        weight: F
        place: vec3

    @wp.struct
    class Outer:
        inner: Inner
        scale: F
        count: int

    @wp.func
    def stretched(o: Outer, by: F):
        o.inner.place = o.inner.place * by
        o.scale = o.scale * o.inner.weight
        return o

    @wp.kernel
    def components(x: A, v: V, n: int, y: V):
        i = wp.tid()
        w = vec3(F(0.0), F(1.0), F(2.0))
        w[0] = x[i]
        w.y *= x[i] + v[i].z
        for k in range(n):
            w[k % 3] = w[(k + 1) % 3] * v[i][k % 3] + F(0.2)
        y[i] = w
        y[i].x = w[0] * w[1]

    @wp.kernel
    def matrices(x: A, v: V, y: V):
        i = wp.tid()
        m = mat33()
        for k in range(3):
            m[k, k] = x[i] + F(2.0)
            m[k, (k + 1) % 3] = v[i][k]
        m[0] = m[0] * F(0.5)
        y[i] = wp.inverse(m) * (wp.transpose(m) * v[i]) * wp.determinant(m) + wp.cross(v[i], m[1])

    @wp.kernel
    def rotations(q: wp.array(dtype=quat), v: V, y: V):
        i = wp.tid()
        r = wp.normalize(q[i])
        half = wp.quat_from_axis_angle(wp.normalize(v[i]), wp.length(v[i]))
        y[i] = wp.quat_rotate(r * half, v[i]) + wp.quat_rotate_inv(half, vec3(r[0], r[3], F(1.0)))

    @wp.kernel
    def transforms(t: wp.array(dtype=transform), v: V, y: V):
        i = wp.tid()
        own = transform(wp.transform_get_translation(t[i]), wp.normalize(wp.transform_get_rotation(t[i])))
        both = own * wp.transform_inverse(own) * own
        y[i] = wp.transform_point(both, v[i]) + wp.transform_vector(own, v[(i + 1) % 5])

    @wp.kernel
    def structs(x: A, v: V, y: A):
        i = wp.tid()
        o = Outer()
        o.scale = x[i]
        o.inner.weight = x[0] * F(2.0)
        o.inner.place = v[i]
        o.count = 3
        for k in range(o.count):
            o = stretched(o, x[i] + F(0.5))
        y[i] = wp.dot(o.inner.place, o.inner.place) * o.scale

    @wp.kernel
    def outer_products(v: V, w: wp.array(dtype=vec4), y: A):
        i = wp.tid()
        m = wp.outer(v[i], w[i])
        y[i] = wp.ddot(m, m) * m[1, 2] + wp.norm_l2(m[0])

    return {
        "components": (components, [("x", N), ("v", N, vec3), 5], [("y", N, vec3)]),
        "matrices": (matrices, [("x", N), ("v", N, vec3)], [("y", N, vec3)]),
        "rotations": (rotations, [("q", N, quat), ("v", N, vec3)], [("y", N, vec3)]),
        "transforms": (transforms, [("t", N, transform), ("v", N, vec3)], [("y", N, vec3)]),
        "structs": (structs, [("x", N), ("v", N, vec3)], [("y", N)]),
        "outer_products": (outer_products, [("v", N, vec3), ("w", N, vec4)], [("y", N)]),
    }


def thickets(F):
    """Control flow and memory entangled."""
    A, A2 = wp.array(dtype=F), wp.array2d(dtype=F)
    vec3 = wp.types.vector(3, F)

    @wp.func
    def until(v: F, limit: F, n: int):
        k = int(0)
        while True:
            k += 1
            if k > n:
                break
            if v > limit:
                v = v * F(0.6)
                continue
            v = v * F(1.5) + F(0.1)
            if v < F(-3.0):
                return v * limit
        return v

    @wp.func
    def sorted_sum(a: A, n: int):
        t = wp.zeros(shape=5, dtype=F)
        for k in range(n):
            t[k] = a[k]
        for k in range(n):
            for m in range(n - 1 - k):
                if t[m] > t[m + 1]:
                    old = t[m]
                    t[m] = t[m + 1]
                    t[m + 1] = old
        s = F(0.0)
        for k in range(n):
            s += t[k] * F(k + 1)
        return s

    @wp.kernel
    def loops_without_end(x: A, n: int, y: A):
        i = wp.tid()
        s = F(0.0)
        for j in range(n):
            s = until(x[i] + s, x[j], i + j)
            if s > F(4.0):
                break
        y[i] = s * x[i]

    @wp.kernel
    def bubbles(x: A, y: A):
        i = wp.tid()
        y[i] = sorted_sum(x, 5) * x[i]

    @wp.kernel
    def elements_change_places(n: int, x: A2, y: A):
        i = wp.tid()
        for j in range(n):
            old = x[i, j]
            if old > x[i, j + 1]:
                x[i, j] = x[i, j + 1] * F(1.1)
                x[i, j + 1] = old
            y[i] += x[i, j] * old
            if y[i] > F(1.0):
                continue
            x[i, 0] = x[i, 0] + y[i] * F(0.25)

    @wp.kernel
    def two_views_of_one_array(n: int, x: A2, y: A):
        i = wp.tid()
        row = x[i]
        late = row[1:]
        for j in range(n):
            late[j] = late[j] * row[j] + F(0.5)
            row[0] = row[0] * F(0.9) + late[j]
        y[i] = row[0] * row[n]

    @wp.kernel
    def vectors_in_a_local_array(v: wp.array(dtype=vec3), n: int, y: wp.array(dtype=vec3)):
        i = wp.tid()
        t = wp.zeros(shape=(2, 2), dtype=vec3)
        t[0, 0] = v[i]
        t[1, 1] = v[0]
        for j in range(n):
            k = j % 2
            t[k, 1 - k] = wp.cross(t[0, 0], t[1, 1]) + t[1 - k, k] * F(0.5)
            t[k, k] = t[k, 1 - k] + v[j] * t[k, k][j % 3]
            if t[k, k].x > F(1.0):
                break
        y[i] = t[0, 1] + t[1, 0] * t[1, 1][2]

    @wp.kernel
    def updates_from_divergent_loops(x: A, counts: wp.array(dtype=int), y: A):
        i = wp.tid()
        v = x[i]
        for j in range(counts[i]):
            v = v * x[j] + F(0.3)
            if v < F(0.0):
                continue
            wp.atomic_add(y, (i + j) % 3, v * x[i])
            if j == 4:
                return
            y[(i + j) % 3] -= v * v

    @wp.kernel
    def deep(x: A, n: int, y: A):
        i = wp.tid()
        s = x[i]
        for a in range(n):
            k = int(0)
            while k < i:
                t = s
                for b in range(k, n):
                    if t * t > F(2.0):
                        break
                    t = t * F(1.1) + x[b] * s
                s = s * F(0.4) + t * F(0.3)
                k += 2
            if s < F(-1.0):
                s = -s * x[a]
        y[i] = s

    @wp.kernel
    def guarded(x: A, y: A):
        i = wp.tid()
        v = x[i]
        zero = v - v
        a = wp.where(zero > F(0.0), wp.sqrt(zero), v * v)
        b = v / zero if zero > F(0.0) else v
        c = wp.sqrt(wp.max(zero, v * v)) + wp.clamp(v * F(3.0), F(-1.0), F(1.0)) + wp.abs(v)
        y[i] = a * b * c

    @wp.kernel
    def three_axes(x: wp.array3d(dtype=F), y: wp.array3d(dtype=F)):
        i, j, k = wp.tid()
        s = F(0.0)
        for d in range(2):
            s = s * F(0.5) + x[(i + d) % 2, j, k] * x[i, (j + d) % 3, k] * x[i, j, (k + d) % 4]
        y[i, k % 2, j] += s

    counts = np.array([0, 3, 1, 6, 2])
    return {
        "loops_without_end": (loops_without_end, [("x", N), 4], [("y", N)]),
        "bubbles": (bubbles, [("x", N)], [("y", N)]),
        "elements_change_places": (elements_change_places, [3], [("x", (5, 4)), ("y", N)]),
        "two_views_of_one_array": (two_views_of_one_array, [3], [("x", (5, 4)), ("y", N)]),
        "vectors_in_a_local_array": (vectors_in_a_local_array, [("v", N, vec3), 4], [("y", N, vec3)]),
        "updates_from_divergent_loops": (updates_from_divergent_loops, [("x", 6), counts], [("y", 3)]),
        "deep": (deep, [("x", N), 3], [("y", N)]),
        "guarded": (guarded, [("x", N)], [("y", N)]),
        "three_axes": (three_axes, [("x", (2, 3, 4))], [("y", (2, 2, 3))], (2, 3, 4)),
    }


def zoo(F):
    """All kernels, by name."""
    return {**loops(F), **functions(F), **memory(F), **composites(F), **thickets(F)}


def case(F, name, seed=0):
    """The launch called ``name``: kernel, grid, and arguments, the floats among them drawn at random."""
    rng = np.random.default_rng(seed)
    kernel, inputs, outputs, *grid = zoo(F)[name]

    def made(spec):
        if isinstance(spec, np.ndarray):
            return wp.array(spec, dtype=int)
        if not isinstance(spec, tuple):
            return spec
        _, shape, *kind = spec
        dtype = kind[0] if kind else F
        inner = wp.zeros(shape, dtype=dtype).numpy().shape
        return wp.array(rng.uniform(-1.0, 1.0, inner), dtype=dtype, requires_grad=True)

    return Case(kernel, grid[0] if grid else N, [made(s) for s in inputs], [made(s) for s in outputs])
