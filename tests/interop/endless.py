"""A program that Ctrl-C ends while kernels and functions run inside ``jax.jit``; ``test_jax_kernel.py`` runs it.

They run in the thread that calls them, as their inputs are there: XLA does what has to wait in threads of its own,
which hear of no signals.
"""

import os
import signal
import threading
import time

import jax
import jax.numpy as jnp

import treadle as wp

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs this may ignore it, as shells do for jobs


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


def sleeps(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    wp.copy(y, x)
    while x.numpy()[0] < 2.0:
        time.sleep(0.01)


def waits():
    for _ in range(500):
        time.sleep(0.01)


kernel, graph = wp.jax_kernel(forever), wp.jax_callable(launches)
called = [wp.jax_callable(f, graph_mode=wp.JaxCallableGraphMode.NONE) for f in (sleeps, launches)]
for name, call in {
    "kernel": lambda x: kernel(x)[0],
    "graph": lambda x: graph(x)[0],
    "batch": jax.vmap(lambda x: kernel(x)[0]),
    "python": lambda x: called[0](x)[0],
    "launch": lambda x: called[1](x)[0],
    "turns": jax.vmap(lambda x: called[0](x)[0]),
}.items():
    run, shape = jax.jit(call), (2, 4) if name in ("batch", "turns") else (4,)
    ones = jax.block_until_ready(jnp.ones(shape))
    jax.block_until_ready(run(jnp.full(shape, 3.0)))
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    told = ""
    try:
        try:
            jax.block_until_ready(run(ones))
        except jax.errors.JaxRuntimeError as error:
            told = ascii(str(error))
        waits()
        print(name, "nothing", told)
    except KeyboardInterrupt:
        print(name, "KeyboardInterrupt", told)
    later = time.monotonic() + 0.05  # once is enough
    while time.monotonic() < later:
        pass
    print(run(jnp.full(shape, 3.0)).sum())
