"""What ``print`` shows of values that have parts."""

import pytest

import treadle as wp


@wp.struct
class Ball:
    radius: float
    centre: wp.vec3
    marks: wp.array(dtype=int)


@wp.kernel
def show(ball: Ball, balls: wp.array2d(dtype=Ball), some: wp.indexedarray(dtype=float)):
    print(ball)
    print("100 %", balls, some, sep=" | ")
    print(balls[0, 0].centre, wp.identity(n=2, dtype=int))


def test_structs_show_their_fields_and_arrays_what_they_are(capsys):
    ball = Ball(0.5, wp.vec3(1.0, 2.0, 3.0), wp.zeros(3, dtype=int))
    some = wp.indexedarray(wp.zeros(3, dtype=float), wp.zeros(1, dtype=int))
    wp.launch(show, dim=1, inputs=[ball, wp.zeros((1, 1), dtype=Ball), some])
    assert capsys.readouterr().out == (
        "Ball(radius=0.5, centre=1 2 3, marks=array(dtype=int32))\n"
        "100 % | array(dtype=Ball, ndim=2) | indexedarray(dtype=float32)\n"
        "0 0 0 1 0\n0 1\n"
    )


@wp.kernel
def components(v: wp.vec3):
    wp.printf("%f\n", v)


def test_printf_takes_no_vectors():
    with pytest.raises(wp.KernelTypeError, match="printf shows numbers and strings, not a vec3"):
        wp.launch(components, dim=1, inputs=[wp.vec3()])
