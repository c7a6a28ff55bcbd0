"""What exchange with JAX and PyTorch costs: arrays handed over, kernels and functions inside ``jax.jit``.

A call inside ``jit`` is timed as the difference of programs with one call and with 51, so that JAX's own share drops
out; a function of several launches beside ``jit`` of an addition. Arrays are handed over in short batches, of which the
quickest counts.
"""

import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
import torch
from common import arguments, case, load, main, report, time_per_call

wp = load()
CHAIN = 50


@wp.kernel
def add_kernel(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + 1.0


def add_function(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    wp.launch(add_kernel, dim=x.shape, inputs=[x], outputs=[y])


X = jnp.zeros(8)
A = wp.zeros(8, dtype=float, device="cpu")
T = torch.zeros(8)


def microseconds(name: str, seconds: float) -> None:
    report(name, seconds, "us", seconds * 1e6)


def difference(long, short, calls: int = 300) -> float:
    """Median over seven rounds of how much longer ``long`` takes, the two run in turn."""
    rounds = 7
    return statistics.median([time_per_call(long, calls) - time_per_call(short, calls) for _ in range(rounds)])


def least(*several, calls: int = 200) -> list[float]:
    """The least mean seconds of each of ``several`` calls over many short batches, which take turns."""
    best = [float("inf")] * len(several)
    for _ in range(60 if arguments().quick else 400):
        for k, call in enumerate(several):
            start = time.perf_counter()
            for _ in range(calls):
                call()
            best[k] = min(best[k], (time.perf_counter() - start) / calls)
    return best


@case
def kernel_in_jit() -> None:
    f = wp.jax_kernel(add_kernel)

    def chain(n: int):
        def run(x):
            for _ in range(n):
                x = f(x)[0]
            return x

        return jax.jit(run)

    one, many = chain(1), chain(CHAIN + 1)
    assert many(X).tolist() == [CHAIN + 1.0] * 8
    seconds = difference(lambda: many(X).block_until_ready(), lambda: one(X).block_until_ready())
    microseconds("jax_kernel in jit, one more call", seconds / CHAIN)


@case
def function_in_jit() -> None:
    f = wp.jax_callable(add_function)
    own, plain = jax.jit(lambda x: f(x)[0]), jax.jit(lambda x: x + 1.0)
    assert own(X).tolist() == plain(X).tolist()
    seconds = difference(lambda: own(X).block_until_ready(), lambda: plain(X).block_until_ready())
    microseconds("jax_callable in jit, over plain jit", seconds)


@case
def hand_over() -> None:
    assert np.array_equal(wp.to_jax(A), A.numpy()) and wp.from_torch(T).ptr == T.data_ptr()
    rows = A.numpy()
    ours, theirs = least(lambda: wp.to_jax(A), lambda: jax.dlpack.from_dlpack(rows), calls=25)
    report("to_jax", ours, "us", ours * 1e6, over_from_dlpack=ours / theirs)
    microseconds("jax.dlpack.from_dlpack of NumPy", theirs)
    calls = {
        "from_jax": lambda: wp.from_jax(X),
        "to_torch": lambda: wp.to_torch(A),
        "from_torch": lambda: wp.from_torch(T),
    }
    for name, seconds in zip(calls, least(*calls.values()), strict=True):
        microseconds(name, seconds)


if __name__ == "__main__":
    main()
