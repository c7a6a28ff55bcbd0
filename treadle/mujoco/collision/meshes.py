"""The convex hulls of meshes: vertices, which are farthest where, and polygons, as MuJoCo's compiler found them.

Vertices inside a hull are left out; numbers of vertices count within a hull. A mesh with which nothing collides has
none.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from treadle.mujoco.collision.cells import CELLS, candidates
from treadle.mujoco.collision.pairs import MESH


@dataclass(frozen=True)
class Hulls:
    """All hulls one after the other; ``first`` and ``count`` say for each geom which vertices are its mesh's.

    ``vert`` (n, 3); the polygons that meet in vertex i are ``map[mapadr[i] : mapadr[i + 1]]``; polygon p has the normal
    ``polynormal[p]`` and, counterclockwise as seen from outside, vertices ``polyvert[polyadr[p] : polyadr[p + 1]]``.
    Around each hull lies a cube of ``6 CELLS²`` cells, those of geom g from ``cells[g]`` on; what can be farthest in
    the directions through cell c are ``far[celladr[c] : celladr[c + 1]]`` (`cells.candidates`), each a vertex and its
    number: so a look at a list is one at memory in its order. ``tops[c]`` is how far the hull reaches along the
    directions to the four corners of cell c.
    ``middle`` and ``half`` are the box around a geom's hull.
    """

    first: np.ndarray
    count: np.ndarray
    cells: np.ndarray
    middle: np.ndarray
    half: np.ndarray
    vert: np.ndarray
    celladr: np.ndarray
    far: np.ndarray
    tops: np.ndarray
    mapadr: np.ndarray
    map: np.ndarray
    polynormal: np.ndarray
    polyadr: np.ndarray
    polyvert: np.ndarray

    @property
    def corners(self) -> int:
        """The most vertices that a polygon has, and polygons that meet in a vertex."""
        return int(max(np.diff(self.polyadr).max(initial=0), np.diff(self.mapadr).max(initial=0)))

    @classmethod
    def of(cls, mjm: mujoco.MjModel) -> Hulls:
        """The hulls of all meshes of geoms."""
        made: dict[int, tuple[int, int, int]] = {}
        parts = _Parts()
        first, count, cells = (np.zeros(mjm.ngeom, np.int32) for _ in range(3))
        middle, half = np.zeros((mjm.ngeom, 3)), np.zeros((mjm.ngeom, 3))
        for g in np.flatnonzero(
            (mjm.geom_type == MESH) & (mjm.geom_contype | mjm.geom_conaffinity != 0) | _paired(mjm)
        ):
            mesh = int(mjm.geom_dataid[g])
            if mjm.geom_type[g] == MESH and mesh >= 0:
                if mesh not in made:
                    made[mesh] = parts.add(mjm, mesh)
                first[g], count[g], cells[g] = made[mesh]
                low, high = parts.bounds(made[mesh][2])
                middle[g], half[g] = (high + low) / 2, (high - low) / 2
        return cls(first, count, cells, middle, half, *parts.joined())


def _paired(mjm: mujoco.MjModel) -> np.ndarray:
    """Which geoms explicit pairs name."""
    found = np.zeros(mjm.ngeom, bool)
    found[mjm.pair_geom1] = found[mjm.pair_geom2] = True
    return found


class _Parts:
    """Tables that grow hull by hull. A list of lists is kept as two arrays: their lengths, and all they hold."""

    def __init__(self) -> None:
        self.vert: list[np.ndarray] = []
        self.cells: list[tuple[np.ndarray, np.ndarray]] = []
        self.tops: list[np.ndarray] = []
        self.maps: list[tuple[np.ndarray, np.ndarray]] = []
        self.normals: list[np.ndarray] = []
        self.polygons: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, mjm: mujoco.MjModel, mesh: int) -> tuple[int, int, int]:
        """Append the hull of a mesh; gives its first vertex, their number, and the first of its cells."""
        begin, polygons = sum(map(len, self.vert)), sum(map(len, self.normals))
        points = mjm.mesh_vert[mjm.mesh_vertadr[mesh] :][: mjm.mesh_vertnum[mesh]]
        kept, *neighbours = _graph(mjm, mesh)
        number = np.full(len(points), -1)
        number[kept] = np.arange(len(kept))
        self.vert.append(points[kept])
        starts = np.concatenate([[0], np.cumsum(neighbours[0])])
        cell, vertex, tops = candidates(points[kept].astype(float), starts, neighbours[1])
        self.tops.append(tops)
        far = np.concatenate([points[kept][vertex], vertex[:, None]], axis=1)
        self.cells.append((np.bincount(cell, minlength=6 * CELLS**2), far))
        faces = slice(mjm.mesh_polyadr[mesh], mjm.mesh_polyadr[mesh] + mjm.mesh_polynum[mesh])
        lengths = mjm.mesh_polyvertnum[faces]
        corners = mjm.mesh_polyvert[_ranges(mjm.mesh_polyvertadr[faces], lengths)]
        self.polygons.append((lengths, number[corners]))
        self.normals.append(mjm.mesh_polynormal[faces])
        at = mjm.mesh_vertadr[mesh] + kept
        lengths = mjm.mesh_polymapnum[at]
        self.maps.append((lengths, polygons + mjm.mesh_polymap[_ranges(mjm.mesh_polymapadr[at], lengths)]))
        return begin, len(kept), (len(self.cells) - 1) * 6 * CELLS**2

    def bounds(self, cells: int) -> tuple[np.ndarray, np.ndarray]:
        """The lower and upper corner of the box around the hull whose first cell is ``cells``."""
        points = self.vert[cells // (6 * CELLS**2)]
        return points.min(axis=0), points.max(axis=0)

    def joined(self) -> tuple[np.ndarray, ...]:
        """The tables of `Hulls` that are not by geom, none of them empty."""
        vert = np.concatenate(self.vert) if self.vert else np.zeros((1, 3))
        normals = np.concatenate([*self.normals, np.zeros((1, 3))])
        (maps, map_), (polygons, corners) = (_ragged(lists) for lists in (self.maps, self.polygons))
        far = np.concatenate([*(part[1] for part in self.cells), np.zeros((1, 4))])
        ends = _ends([part[0] for part in self.cells])
        tops = np.concatenate([*self.tops, np.zeros((1, 4))])
        return vert, ends, far, tops, maps, map_, normals, polygons, corners


def _graph(mjm: mujoco.MjModel, mesh: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The vertices on a mesh's hull, of each how many neighbours it has, and the numbers of these, vertex by vertex.

    A mesh without a graph, which MuJoCo makes for those that may collide, has all vertices there and no neighbours.
    """
    adr = mjm.mesh_graphadr[mesh]
    if adr < 0:
        count = int(mjm.mesh_vertnum[mesh])
        return np.arange(count), np.zeros(count, int), np.zeros(0, int)
    count, faces = (int(n) for n in mjm.mesh_graph[adr : adr + 2])
    starts = mjm.mesh_graph[adr + 2 :][:count]
    kept = mjm.mesh_graph[adr + 2 + count :][:count]
    edges = mjm.mesh_graph[adr + 2 + 2 * count :][: count + 3 * faces]
    stops = np.flatnonzero(edges < 0)  # each vertex's neighbours end with -1
    lengths = stops[np.searchsorted(stops, starts)] - starts
    return kept, lengths, edges[_ranges(starts, lengths)]


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """``starts[i] … starts[i] + lengths[i] - 1`` for each i, one after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(np.sum(lengths)))


def _ends(lengths: list[np.ndarray]) -> np.ndarray:
    """Where each list begins, and the last one ends."""
    return np.cumsum(np.concatenate([np.zeros(1, np.int32), *lengths])).astype(np.int32)


def _ragged(lists: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Where each list begins (and the last one ends), and all of them one after the other."""
    flat = np.concatenate([*(part[1] for part in lists), np.zeros(1, np.int32)])
    return _ends([part[0] for part in lists]), flat.astype(np.int32)
