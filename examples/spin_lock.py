"""A lock made of compare-and-swap. Each thread waits for it, changes two numbers that must change together, and
gives it back. Programs like this hang on SIMD machines that run all lanes in step; treadle runs them in thread order.
"""

import numpy as np

import treadle as wp


@wp.kernel
def update(lock: wp.array(dtype=int), state: wp.array(dtype=wp.uint32)):
    i = wp.tid()
    while wp.atomic_cas(lock, 0, 0, 1) == 1:
        pass
    state[0] = state[0] + wp.uint32(i)
    state[1] = state[1] * wp.uint32(1664525) + state[0]
    wp.atomic_exch(lock, 0, 0)


def run(n: int = 5000) -> dict[str, np.ndarray]:
    """The two numbers after ``n`` threads, and the lock, which must be free again."""
    lock, state = wp.zeros(1, dtype=int), wp.zeros(2, dtype=wp.uint32)
    wp.launch(update, dim=n, inputs=[lock, state])
    return {"lock": lock.numpy(), "state": state.numpy()}


if __name__ == "__main__":
    out = run()
    print(f"state {out['state']}, lock {out['lock'][0]}")
