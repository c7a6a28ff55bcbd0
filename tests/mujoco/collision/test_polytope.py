"""The expanding polytope stays convex, also where a new point has several old ones behind it."""

import numpy as np

import treadle as wp
from treadle.mujoco.collision.polytope import FACES, polytopes
from treadle.mujoco.collision.shapes import NEVER

polytope = polytopes(wp.float64)
begin, expand = polytope.begin, polytope.expand
vectors, reals, ints = wp.array(dtype=wp.vec3d), wp.array(dtype=wp.float64), wp.array(dtype=int)


@wp.kernel
def grow(x: vectors, normals: vectors, dists: reals, corners: ints, border: ints, seen: ints, freed: ints, size: ints):
    none, far = wp.float64(0.0), wp.float64(1e9)
    count = begin(x, normals, dists, corners)
    for k in range(3, x.shape[0]):
        count = expand(k, -1, count, -far, far, none, x, normals, dists, corners, border, seen, freed)
    size[0] = count


def test_a_point_over_two_others_leaves_none_of_their_faces():
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0.2, 0.2, 0.3], [0.4, 0.3, 0.3], [0.3, 0.3, 5.0]])
    normals, dists = wp.zeros(FACES, dtype=wp.vec3d), wp.zeros(FACES, dtype=wp.float64)
    corners, border, seen, freed, size = [wp.zeros(FACES + 3, dtype=int) for _ in range(5)]
    x = wp.array(points, dtype=wp.vec3d)
    wp.launch(grow, dim=1, inputs=[x, normals, dists, corners, border, seen, freed, size])
    there = np.flatnonzero(dists.numpy()[: size.numpy()[0]] < NEVER)
    heights = points @ normals.numpy()[there].T - dists.numpy()[there]
    assert len(there) == 4 and heights.max() < 1e-12
    # Each is a face of three of the four points that are left.
    assert (np.isclose(heights[[0, 1, 2, 5]], 0).sum(axis=0) == 3).all()
