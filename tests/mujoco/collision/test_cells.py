"""The list of a cell has what is farthest in each direction through it, and little else; and a bound of how far."""

import mujoco
import numpy as np

from tests.mujoco.collision import poses
from treadle.mujoco.collision.cells import CELLS
from treadle.mujoco.collision.meshes import Hulls


def cell_of(d: np.ndarray) -> tuple[int, float, float]:
    """The cell of a direction, and where in it that leaves the cube."""
    k = int(np.argmax(np.abs(d)))
    x, y = ((d[(k + i) % 3] / abs(d[k]) + 1) * CELLS / 2 for i in (1, 2))
    u, v = min(int(x), CELLS - 1), min(int(y), CELLS - 1)
    return ((2 * k + (d[k] > 0)) * CELLS + u) * CELLS + v, x - u, y - v


def test_what_is_farthest_in_a_direction_is_in_the_list_of_its_cell():
    mjm = mujoco.MjModel.from_xml_string(
        f"<mujoco><asset>{poses.mesh_asset('round', poses.hull(400, 1))}<mesh name='box' vertex='{corners()}'/></asset>"
        "<worldbody><geom type='mesh' mesh='round'/><geom type='mesh' mesh='box'/></worldbody></mujoco>"
    )
    hulls, rng = Hulls.of(mjm), np.random.default_rng(0)
    for g, most in ((0, 12), (1, 4)):
        points, lengths = hulls.vert[hulls.first[g] :][: hulls.count[g]], []
        for d in (*rng.normal(size=(500, 3)), *np.eye(3), *-np.eye(3)):
            cell, x, y = cell_of(d)
            cell += hulls.cells[g]
            listed = hulls.far[hulls.celladr[cell] : hulls.celladr[cell + 1]]
            assert np.array_equal(listed[:, :3], points[listed[:, 3].astype(int)])
            assert (listed[:, :3] @ d).max() >= (points @ d).max() - 1e-14
            lengths.append(len(listed))
            weights = np.outer([1 - x, x], [1 - y, y]).ravel()
            bound, height = abs(d).max() * (weights @ hulls.tops[cell]), (points @ d).max()
            assert height - 1e-14 <= bound <= height + 0.02 * np.linalg.norm(d) * hulls.half[g].max()
        assert 1 <= np.mean(lengths) < most
        assert np.allclose(hulls.middle[g] + hulls.half[g], points.max(axis=0))


def corners() -> str:
    """A box off the origin."""
    points = [(x, y, z) for x in (0.1, 0.5) for y in (-0.2, 0.4) for z in (0.0, 0.3)]
    return " ".join(str(x) for point in points for x in point)
