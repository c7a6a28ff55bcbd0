"""The lock ends free, and the numbers are those of thread order."""

import spin_lock


def test_no_update_is_lost():
    n = 700
    out = spin_lock.run(n)
    total, mixed = 0, 0
    for i in range(n):
        total = (total + i) % 2**32
        mixed = (mixed * 1664525 + total) % 2**32
    assert out["lock"].tolist() == [0]
    assert out["state"].tolist() == [total, mixed]
