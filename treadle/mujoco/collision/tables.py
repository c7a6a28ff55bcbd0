"""Tables of a model that collisions use and MuJoCo does not have: the list of pairs, and the hulls of meshes."""

from __future__ import annotations

from typing import Any

import mujoco

import treadle as wp
from treadle.mujoco.collision.meshes import Hulls
from treadle.mujoco.collision.pairs import Pairs
from treadle.mujoco.fields import Fields, constant

LEAST_CORNERS = 128  # room for polygons in any case, so that one kernel serves almost all models


class Tables(Fields):
    """The list of pairs in its order (`pairs.Pairs`) and by method; hulls one after the other (`meshes.Hulls`)."""

    pairs_geom1 = constant("int", "pairs", "first geom of each pair")
    pairs_geom2 = constant("int", "pairs", "second geom")
    pairs_explicit = constant("int", "pairs", "number of the explicit pair, -1 if the geoms' own numbers are mixed")
    pairs_slot = constant("int", "pairs", "first slot of its contacts (`Pairs.places`)")
    pairs_of_method = constant("int", "pairs", "numbers of pairs, method after method")
    hull_first = constant("int", "ngeom", "first vertex of the hull of the geom's mesh")
    hull_count = constant("int", "ngeom", "number of vertices")
    hull_vert = constant("vec3", "vertices", "vertices in the mesh's frame, m")
    hull_middle = constant("vec3", "ngeom", "middle of the box around it")
    hull_half = constant("vec3", "ngeom", "half of its sides")
    hull_cells = constant("int", "ngeom", "first cell of the cube around it")
    hull_celladr = constant("int", "cell_ends", "first candidate of each cell, and the end")
    hull_far = constant("vec4", "candidates", "what can be farthest there: vertices, and their numbers in the hull")
    hull_tops = constant("vec4", "cells", "how far the hull reaches towards the four corners of each cell, m")
    hull_mapadr = constant("int", "ends", "first polygon of each vertex, and the end")
    hull_map = constant("int", "corners", "polygons that meet in each vertex")
    hull_polynormal = constant("vec3", "polygons", "outward normals")
    hull_polyadr = constant("int", "polygon_ends", "first corner of each polygon, and the end")
    hull_polyvert = constant("int", "polygon_corners", "corners: numbers of vertices within the hull")

    def __init__(self, real: Any, mjm: mujoco.MjModel, pairs: Pairs):
        hulls = Hulls.of(mjm)
        self.pairs = pairs
        self.methods, order = pairs.in_runs()
        self.bent = pairs.bent(mjm)
        values = {
            "pairs_geom1": pairs.geom1,
            "pairs_geom2": pairs.geom2,
            "pairs_explicit": pairs.explicit,
            "pairs_slot": pairs.places(),
            "pairs_of_method": order,
            **{f"hull_{name}": table for name, table in vars(hulls).items()},
        }
        sizes = {row.shape[0]: len(values[row.name]) for row in Tables.rows()}
        super().__init__(real, sizes)
        for row in Tables.rows():
            self.fill(row, values[row.name])
        self.corners = LEAST_CORNERS
        while self.corners < hulls.corners:
            self.corners *= 2

    def arrays(self) -> dict[str, wp.array]:
        """All arrays, by name."""
        return {row.name: self.read(row) for row in Tables.rows()}
