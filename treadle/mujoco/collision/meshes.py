"""The convex hulls of meshes: vertices, neighbours, and the polygons of the surface, as MuJoCo's compiler found them.

Vertices inside a hull are left out; numbers of vertices count within a hull. A mesh with which nothing collides has
none.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from treadle.mujoco.collision.pairs import MESH

CELLS = 8  # along each edge of the cube


@dataclass(frozen=True)
class Hulls:
    """All hulls one after the other; ``first`` and ``count`` say for each geom which vertices are its mesh's.

    ``vert`` (n, 3); the neighbours of vertex i are ``edge[edgeadr[i] : edgeadr[i + 1]]``, the polygons that meet in it
    ``map[mapadr[i] : mapadr[i + 1]]``; polygon p has the normal ``polynormal[p]`` and, counterclockwise as seen from
    outside, the vertices ``polyvert[polyadr[p] : polyadr[p + 1]]``. Around each hull lies a cube of
    ``6 CELLS²`` cells; ``start[startadr[g] + cell]`` is the vertex that is farthest in the cell's direction
    (`solids.guess`).
    """

    first: np.ndarray
    count: np.ndarray
    vert: np.ndarray
    edgeadr: np.ndarray
    edge: np.ndarray
    mapadr: np.ndarray
    map: np.ndarray
    startadr: np.ndarray
    start: np.ndarray
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
        first, count, startadr = (np.zeros(mjm.ngeom, np.int32) for _ in range(3))
        for g in np.flatnonzero(
            (mjm.geom_type == MESH) & (mjm.geom_contype | mjm.geom_conaffinity != 0) | _paired(mjm)
        ):
            mesh = int(mjm.geom_dataid[g])
            if mjm.geom_type[g] == MESH and mesh >= 0:
                if mesh not in made:
                    made[mesh] = parts.add(mjm, mesh)
                first[g], count[g], startadr[g] = made[mesh]
        return cls(first, count, *parts.joined(startadr))


def _paired(mjm: mujoco.MjModel) -> np.ndarray:
    """Which geoms explicit pairs name."""
    found = np.zeros(mjm.ngeom, bool)
    found[mjm.pair_geom1] = found[mjm.pair_geom2] = True
    return found


class _Parts:
    """Tables that grow hull by hull. A list of lists is kept as two arrays: their lengths, and all they hold."""

    def __init__(self) -> None:
        self.vert: list[np.ndarray] = []
        self.edges: list[tuple[np.ndarray, np.ndarray]] = []
        self.maps: list[tuple[np.ndarray, np.ndarray]] = []
        self.normals: list[np.ndarray] = []
        self.polygons: list[tuple[np.ndarray, np.ndarray]] = []
        self.starts: list[np.ndarray] = []

    def add(self, mjm: mujoco.MjModel, mesh: int) -> tuple[int, int, int]:
        """Append the hull of a mesh; gives its first vertex, their number, and the first of its starts."""
        begin, polygons = sum(map(len, self.vert)), sum(map(len, self.normals))
        points = mjm.mesh_vert[mjm.mesh_vertadr[mesh] :][: mjm.mesh_vertnum[mesh]]
        kept, *neighbours = _graph(mjm, mesh)
        number = np.full(len(points), -1)
        number[kept] = np.arange(len(kept))
        self.vert.append(points[kept])
        self.edges.append((neighbours[0], neighbours[1]))
        faces = slice(mjm.mesh_polyadr[mesh], mjm.mesh_polyadr[mesh] + mjm.mesh_polynum[mesh])
        lengths = mjm.mesh_polyvertnum[faces]
        corners = mjm.mesh_polyvert[_ranges(mjm.mesh_polyvertadr[faces], lengths)]
        self.polygons.append((lengths, number[corners]))
        self.normals.append(mjm.mesh_polynormal[faces])
        at = mjm.mesh_vertadr[mesh] + kept
        lengths = mjm.mesh_polymapnum[at]
        self.maps.append((lengths, polygons + mjm.mesh_polymap[_ranges(mjm.mesh_polymapadr[at], lengths)]))
        self.starts.append(np.argmax(_cells() @ points[kept].T, axis=1))
        return begin, len(kept), (len(self.starts) - 1) * 6 * CELLS**2

    def joined(self, startadr: np.ndarray) -> tuple[np.ndarray, ...]:
        """All but the first two tables of `Hulls`, none of them empty."""
        vert = np.concatenate(self.vert) if self.vert else np.zeros((1, 3))
        normals = np.concatenate([*self.normals, np.zeros((1, 3))])
        starts = np.concatenate(self.starts or [np.zeros(1)]).astype(np.int32)
        edges, maps, polygons = (_ragged(lists) for lists in (self.edges, self.maps, self.polygons))
        return (vert, *edges, *maps, startadr, starts, normals, *polygons)


def _cells() -> np.ndarray:
    """Directions to the middles of the cells: by axis, side, then two coordinates on the side."""
    middles = (np.arange(CELLS) + 0.5) * 2 / CELLS - 1
    found = []
    for k in range(3):
        for side in (-1.0, 1.0):
            for u in middles:
                for v in middles:
                    d = np.zeros(3)
                    d[k], d[(k + 1) % 3], d[(k + 2) % 3] = side, u, v
                    found.append(d)
    return np.array(found)


def _graph(mjm: mujoco.MjModel, mesh: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The vertices on a mesh's hull, of each how many neighbours it has, and the numbers of these, vertex by vertex.

    Without a graph, which MuJoCo makes for meshes that may collide, all vertices count as neighbours of each other.
    """
    adr = mjm.mesh_graphadr[mesh]
    if adr < 0:
        count = int(mjm.mesh_vertnum[mesh])
        others = np.tile(np.arange(count), (count, 1))[~np.eye(count, dtype=bool)]
        return np.arange(count), np.full(count, count - 1), others
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


def _ragged(lists: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Where each list begins (and the last one ends), and all of them one after the other."""
    lengths = np.concatenate([np.zeros(1, np.int32), *(part[0] for part in lists)])
    flat = np.concatenate([*(part[1] for part in lists), np.zeros(1, np.int32)])
    return np.cumsum(lengths).astype(np.int32), flat.astype(np.int32)
