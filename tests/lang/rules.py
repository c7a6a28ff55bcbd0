"""A launch taken back from ones, and arrays with gradients: what the tests of custom gradients share."""

import numpy as np

import treadle as wp


def backward(kernel, dim, inputs, outputs, seeds=None):
    """Launch ``kernel`` on a tape and go back from ones, or from ``seeds``."""
    for a in inputs:
        if isinstance(a, wp.array) and a.grad is not None:
            a.grad.zero_()
    with wp.Tape() as tape:
        wp.launch(kernel, dim, inputs=inputs, outputs=outputs)
    seeds = [np.ones(y.numpy().shape) for y in outputs] if seeds is None else seeds
    tape.backward(grads={y: wp.array(s, dtype=y.dtype) for y, s in zip(outputs, seeds, strict=True)})


def floats(values, dtype=float, grad=True):
    return wp.array(np.asarray(values), dtype=dtype, requires_grad=grad)


def results(n, dtype=float):
    return wp.zeros(n, dtype=dtype, requires_grad=True)
