"""Samples are structs like any other."""

import treadle as wp


@wp.kernel
def place(s: wp.fem.Sample, out: wp.array(dtype=wp.vec3)):
    out[0] = s.element_coords * s.qp_weight + wp.vec3(float(s.element_index))


def test_samples_are_structs():
    out = wp.zeros(1, dtype=wp.vec3)
    s = wp.fem.Sample(2, wp.fem.Coords(1.0, 2.0, 3.0), wp.fem.NULL_QP_INDEX, 0.5)
    wp.launch(place, dim=1, inputs=[s, out])
    assert list(out.numpy()[0]) == [2.5, 3.0, 3.5]
