"""Bytes read as values of other types."""

import numpy as np

import treadle as wp


@wp.struct
class Halves:
    f: wp.float16
    i: wp.int16


@wp.struct
class Mixed:
    small: wp.uint8
    wide: wp.uint16
    real: wp.float32
    flag: wp.bool


@wp.kernel
def read_bytes(numbers: wp.array(dtype=wp.int32), back: wp.array(dtype=wp.float32)):
    halves = Halves()
    halves.f = wp.float16(2.0)
    halves.i = wp.int16(-123)
    numbers[0] = wp.cast(halves, wp.int32)
    again = wp.cast(numbers[0], Halves)
    back[0] = wp.float32(again.f)
    back[1] = wp.float32(again.i)
    mixed = Mixed()
    mixed.small = wp.uint8(7)
    mixed.wide = wp.uint16(300)
    mixed.real = 1.5
    mixed.flag = True
    words = wp.cast(mixed, wp.vec3i)
    for k in range(3):
        numbers[1 + k] = words[k]
    same = wp.cast(words, Mixed)
    back[2] = same.real
    back[3] = wp.where(same.flag, float(same.wide), 0.0)
    numbers[4] = int(wp.cast(wp.vec2d(wp.float64(1.0), wp.float64(2.0)), wp.vec4ui)[3])


def test_bytes_of_structs_vectors_and_numbers_can_be_read_as_each_other():
    numbers, back = wp.zeros(5, dtype=wp.int32), wp.zeros(4, dtype=wp.float32)
    wp.launch(read_bytes, dim=1, inputs=[numbers, back])
    halves = np.array([(2.0, -123)], dtype=[("f", np.float16), ("i", np.int16)]).view(np.int32)[0]
    mixed = np.zeros(1, dtype=np.dtype("u1, u2, f4, u1", align=True))
    mixed[0] = (7, 300, 1.5, 1)
    assert numbers.numpy().tolist() == [halves, *mixed.view(np.int32).tolist(), np.float64(2.0).view(np.int64) >> 32]
    assert back.numpy().tolist() == [2.0, -123.0, 1.5, 300.0]
