"""``wp.config.verify_fp`` names each array with values that are not finite, and those that had some before."""

import treadle as wp


@wp.struct
class Ball:
    x: wp.vec3
    n: int


@wp.struct
class Balls:
    balls: wp.array(dtype=Ball)
    half: wp.array(dtype=wp.bfloat16)


@wp.kernel
def divide(s: Balls, d: wp.array(dtype=float)):
    i = wp.tid()
    s.balls[i].x[1] = 1.0 / d[i]
    s.half[i] = wp.bfloat16(1.0) / wp.bfloat16(d[i])
    s.balls[i].n = i


def test_what_is_not_finite_is_said(monkeypatch, capsys):
    monkeypatch.setattr(wp.config, "verify_fp", True)
    s = Balls()
    s.balls, s.half = wp.zeros(3, dtype=Ball), wp.zeros(3, dtype=wp.bfloat16)
    wp.launch(divide, 3, [s, wp.array([1.0, 2.0, 3.0], dtype=float)])
    assert capsys.readouterr().out == ""
    d = wp.array([1.0, 0.0, 0.0], dtype=float)
    wp.launch(divide, 3, [s, d])
    said = capsys.readouterr().out
    assert "kernel divide: 's.balls.x' has 2 value(s) that are not finite, first inf at [1, 1]\n" in said
    assert "'s.half' has 2 value(s)" in said and "'d'" not in said
    command = wp.launch(divide, 3, [s, d], record_cmd=True)
    command.launch()
    assert "'s.balls.x' has 2 value(s) that are not finite, first inf at [1, 1]; 2 already" in capsys.readouterr().out
