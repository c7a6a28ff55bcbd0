"""A program that Ctrl-C ends while kernels run inside ``jax.jit``; ``test_jax_kernel.py`` runs it.

They run in the thread that calls them, as their inputs are there: XLA does what has to wait in threads of its own,
which hear of no signals.
"""

import os
import signal
import threading

import jax
import jax.numpy as jnp

import treadle as wp


@wp.kernel
def forever(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    while v < 2.0:
        v = v * 0.5 + 0.5
    y[i] = v


def launches(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    wp.launch(forever, dim=4, inputs=[x, y])
    wp.launch(forever, dim=4, inputs=[x, y])


kernel, graph = wp.jax_kernel(forever), wp.jax_callable(launches)
for name, call in {
    "kernel": lambda x: kernel(x)[0],
    "graph": lambda x: graph(x)[0],
    "batch": jax.vmap(lambda x: kernel(x)[0]),
}.items():
    run, shape = jax.jit(call), (2, 4) if name == "batch" else (4,)
    ones = jax.block_until_ready(jnp.ones(shape))
    jax.block_until_ready(run(jnp.full(shape, 3.0)))
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        jax.block_until_ready(run(ones))
        jnp.zeros(1).block_until_ready()
    except (KeyboardInterrupt, jax.errors.JaxRuntimeError) as error:
        print(name, type(error).__name__, ascii(str(error)))
    print(run(jnp.full(shape, 3.0)).sum())
