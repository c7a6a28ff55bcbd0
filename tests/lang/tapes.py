"""Kernels, arrays and a chain of two launches that the tests of ``wp.Tape`` share."""

import treadle as wp


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def squares(y: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, 5.0 * y[i] * y[i])


@wp.kernel
def grow(x: wp.array(dtype=float), k: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + k[0] * x[i] * x[i]


def arr(values, grad=True):
    return wp.array(values, dtype=float, requires_grad=grad)


def chain():
    x, y, out = arr([1.0, 2.0]), arr([0.0, 0.0]), arr([0.0])
    with wp.Tape() as tape:
        wp.launch(double, dim=2, inputs=[x], outputs=[y])
        wp.launch(squares, dim=2, inputs=[y], outputs=[out])
    return x, y, out, tape
