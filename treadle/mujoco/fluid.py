"""Forces of the medium on bodies: MuJoCo's two models, and how they change with velocity.

A body is a box with its inertia, or else, where a geom asks for it, a set of ellipsoids (MuJoCo documentation,
Computation, Fluid forces). Forces and velocities are (rotation, translation) in the axes of the box, or of the geom.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.constants import CAPSULE, CYLINDER, MINVAL, SPHERE

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_force(real), **_derivative(real)}


@cache
def models(real: Any) -> SimpleNamespace:
    """Kernel functions for one precision: ``on_box`` and ``on_ellipsoid``."""
    t = types(real)
    vec3, spatial, pair = t.vec3, t.spatial, algebra(real).pair
    rotation, translation = algebra(real).rotation, algebra(real).translation
    zero, tiny, pi = real(0.0), real(MINVAL), real(wp.PI)

    @wp.func
    def on_box(velocity: spatial, moments: vec3, mass: real, density: real, viscosity: real):
        """The force on a box with these principal moments: Stokes drag on a ball of its size, and quadratic drag."""
        scale = real(6.0) / mass
        x = wp.sqrt(wp.max(tiny, moments[1] + moments[2] - moments[0]) * scale)
        y = wp.sqrt(wp.max(tiny, moments[0] + moments[2] - moments[1]) * scale)
        z = wp.sqrt(wp.max(tiny, moments[0] + moments[1] - moments[2]) * scale)
        size = (x + y + z) / real(3.0)
        turn = pi * size * size * size * viscosity
        move = real(3.0) * pi * size * viscosity
        x4, y4, z4 = x * x * x * x, y * y * y * y, z * z * z * z
        swirl = density / real(64.0)
        press = density * real(0.5)
        w, v = rotation(velocity), translation(velocity)
        return pair(
            vec3(
                -w[0] * (turn + swirl * x * (y4 + z4) * wp.abs(w[0])),
                -w[1] * (turn + swirl * y * (x4 + z4) * wp.abs(w[1])),
                -w[2] * (turn + swirl * z * (x4 + y4) * wp.abs(w[2])),
            ),
            vec3(
                -v[0] * (move + press * y * z * wp.abs(v[0])),
                -v[1] * (move + press * x * z * wp.abs(v[1])),
                -v[2] * (move + press * x * y * wp.abs(v[2])),
            ),
        )

    @wp.func
    def greatest(along: real, a: real, b: real):
        """Moment of the area of the ellipsoid's largest section that turns about the axis ``along``."""
        r = wp.max(a, b)
        return real(8.0 / 15.0) * pi * along * r * r * r * r

    @wp.func
    def on_ellipsoid(
        velocity: spatial, axes: vec3, g: int, fluid: wp.array2d(dtype=real), density: real, viscosity: real
    ):
        """The force on an ellipsoid: of the medium that it drags along, of lift, and of drag.

        Row ``g`` of ``fluid`` has: weight, drag of the blunt and of the slender section, angular drag, Kutta and Magnus
        lift, virtual mass (3), virtual inertia (3).
        """
        w, v = rotation(velocity), translation(velocity)
        speed = wp.length(v)
        large = wp.max(axes[0], wp.max(axes[1], axes[2]))
        small = wp.min(axes[0], wp.min(axes[1], axes[2]))
        middle = axes[0] + axes[1] + axes[2] - large - small
        # momentum of the medium that moves along
        p = vec3(fluid[g, 6] * v[0], fluid[g, 7] * v[1], fluid[g, 8] * v[2]) * density
        l = vec3(fluid[g, 9] * w[0], fluid[g, 10] * w[1], fluid[g, 11] * w[2]) * density
        force = wp.cross(p, w)
        torque = wp.cross(p, v) + wp.cross(l, w)
        # Magnus: turning across the flow lifts
        volume = real(4.0 / 3.0) * pi * axes[0] * axes[1] * axes[2]
        force = force + wp.cross(w, v) * (fluid[g, 5] * density * volume)
        # the area that the flow sees, and the lift of Kutta and Joukowski on it
        yz = axes[1] * axes[2]
        zx = axes[2] * axes[0]
        xy = axes[0] * axes[1]
        faces = vec3(yz * yz, zx * zx, xy * xy)
        near = wp.dot(wp.cw_mul(faces, v), v)
        far = wp.dot(wp.cw_mul(wp.cw_mul(faces, faces), v), v)
        area = zero
        if speed > tiny:
            area = pi * wp.sqrt(far / wp.max(near, tiny * tiny))
            slope = wp.cross(wp.cw_mul(faces, v), v) * (near / wp.max(far * speed, tiny * tiny))
            force = force + wp.cross(slope, v) * (fluid[g, 4] * density * area)
        # drag
        size = real(2.0 / 3.0) * (axes[0] + axes[1] + axes[2])
        most = pi * large * middle
        push = viscosity * real(3.0) * pi * size
        push = push + density * speed * (area * fluid[g, 1] + fluid[g, 2] * (most - area))
        turning = real(8.0 / 15.0) * pi * middle * large * large * large * large
        about = vec3(
            greatest(axes[0], axes[1], axes[2]),
            greatest(axes[1], axes[2], axes[0]),
            greatest(axes[2], axes[0], axes[1]),
        )
        swirl = wp.cw_mul(about * fluid[g, 3] + (vec3(turning, turning, turning) - about) * fluid[g, 2], w)
        twist = viscosity * pi * size * size * size + density * wp.length(swirl)
        return pair(torque - twist * w, force - push * v) * fluid[g, 0]

    return SimpleNamespace(on_box=on_box, on_ellipsoid=on_ellipsoid)


@cache
def motion(real: Any) -> SimpleNamespace:
    """Kernel functions for one precision: ``semiaxes`` of geoms, ``through`` the medium: how fast a point moves."""
    t, a = types(real), algebra(real)
    vec3, mat33, spatial = t.vec3, t.mat33, t.spatial
    pair, rotation, translation = a.pair, a.rotation, a.translation

    @wp.func
    def semiaxes(kind: int, size: vec3):
        """Half the axes of the ellipsoid that stands for a geom."""
        found = size
        if kind == SPHERE:
            found = vec3(size[0], size[0], size[0])
        if kind == CAPSULE:
            found = vec3(size[0], size[0], size[0] + size[1])
        if kind == CYLINDER:
            found = vec3(size[0], size[0], size[1])
        return found

    @wp.func
    def through(motion: spatial, arm: vec3, mat: mat33, wind: vec3):
        """The velocity of a point, and of what turns with it, against the medium, in the axes of ``mat``."""
        local = wp.transpose(mat)
        return pair(local * rotation(motion), local * (translation(motion) + wp.cross(rotation(motion), arm) - wind))

    return SimpleNamespace(semiaxes=semiaxes, through=through)


def _force(real: Any) -> dict[str, wp.Kernel]:
    t, a, medium, way = types(real), algebra(real), models(real), motion(real)
    vec3, mat33, spatial = t.vec3, t.mat33, t.spatial
    pair, rotation, translation = a.pair, a.rotation, a.translation
    on_box, on_ellipsoid, semiaxes, through = medium.on_box, medium.on_ellipsoid, way.semiaxes, way.through

    @wp.func
    def push(
        w: int, b: int, force: spatial, mat: mat33, arm: vec3, parentid: ints, dofadr: ints, dofnum: ints,
        cdof: wp.array2d(dtype=spatial), qfrc: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Apply a force, given in the axes of ``mat``, at ``arm`` from the tree's centre of mass."""
        pull = mat * translation(force)
        whole = pair(mat * rotation(force) + wp.cross(arm, pull), pull)
        above = b
        while above > 0:
            for i in range(dofadr[above], dofadr[above] + dofnum[above]):
                qfrc[w, i] = qfrc[w, i] + wp.dot(cdof[w, i], whole)
            above = parentid[above]

    @wp.kernel
    def fluid(
        opt_density: wp.array(dtype=real), opt_viscosity: wp.array(dtype=real), opt_wind: wp.array(dtype=vec3),
        body_parentid: ints, body_rootid: ints, body_dofadr: ints, body_dofnum: ints, body_geomadr: ints,
        body_geomnum: ints, body_swims: ints, body_mass: wp.array2d(dtype=real), body_inertia: wp.array2d(dtype=vec3),
        geom_type: ints, geom_size: wp.array2d(dtype=vec3), geom_fluid: wp.array2d(dtype=real),
        xipos: wp.array2d(dtype=vec3), ximat: wp.array2d(dtype=mat33), geom_xpos: wp.array2d(dtype=vec3),
        geom_xmat: wp.array2d(dtype=mat33), subtree_com: wp.array2d(dtype=vec3), cvel: wp.array2d(dtype=spatial),
        cdof: wp.array2d(dtype=spatial), qfrc_fluid: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Forces of the medium on all bodies that have mass."""
        w = wp.tid()
        density = opt_density[row(w, opt_density)]
        viscosity = opt_viscosity[row(w, opt_viscosity)]
        wind = opt_wind[row(w, opt_wind)]
        for i in range(qfrc_fluid.shape[1]):
            qfrc_fluid[w, i] = real(0.0)
        for b in range(1, body_parentid.shape[0]):
            mass = body_mass[row(w, body_mass), b]
            centre = subtree_com[w, body_rootid[b]]
            if body_swims[b] != 0:
                for g in range(body_geomadr[b], body_geomadr[b] + body_geomnum[b]):
                    if geom_fluid[g, 0] > real(0.0) and mass >= real(MINVAL):
                        arm = geom_xpos[w, g] - centre
                        axes = semiaxes(geom_type[g], geom_size[row(w, geom_size), g])
                        velocity = through(cvel[w, b], arm, geom_xmat[w, g], wind)
                        force = on_ellipsoid(velocity, axes, g, geom_fluid, density, viscosity)
                        push(w, b, force, geom_xmat[w, g], arm, body_parentid, body_dofadr, body_dofnum, cdof,
                             qfrc_fluid)  # fmt: skip
            elif mass >= real(MINVAL):
                arm = xipos[w, b] - centre
                velocity = through(cvel[w, b], arm, ximat[w, b], wind)
                force = on_box(velocity, body_inertia[row(w, body_inertia), b], mass, density, viscosity)
                push(w, b, force, ximat[w, b], arm, body_parentid, body_dofadr, body_dofnum, cdof, qfrc_fluid)

    return dict(fluid=fluid)


@cache
def slopes(real: Any) -> SimpleNamespace:
    """Kernel functions for one precision: how a force changes with velocity, ``box_slope`` and ``ellipsoid_slope``.

    The rows of the matrix are derivatives, made by the compiler, of one component of the force each.
    """
    t, medium = types(real), models(real)
    vec3, spatial = t.vec3, t.spatial
    six = wp.types.matrix(shape=(6, 6), dtype=real)
    on_box, on_ellipsoid = medium.on_box, medium.on_ellipsoid
    numbers = wp.array2d(dtype=real)

    @wp.func
    def part_on_box(velocity: spatial, k: int, moments: vec3, mass: real, density: real, viscosity: real):
        return on_box(velocity, moments, mass, density, viscosity)[k]

    @wp.func
    def part_on_ellipsoid(
        velocity: spatial, k: int, axes: vec3, g: int, fluid: numbers, density: real, viscosity: real
    ):
        return on_ellipsoid(velocity, axes, g, fluid, density, viscosity)[k]

    @wp.func
    def box_slope(velocity: spatial, moments: vec3, mass: real, density: real, viscosity: real):
        found = six()
        for k in range(6):
            by = wp.grad(part_on_box)(velocity, k, moments, mass, density, viscosity)
            for j in range(6):
                found[k, j] = by[0][j]
        return found

    @wp.func
    def ellipsoid_slope(velocity: spatial, axes: vec3, g: int, fluid: numbers, density: real, viscosity: real):
        found = six()
        for k in range(6):
            by = wp.grad(part_on_ellipsoid)(velocity, k, axes, g, fluid, density, viscosity)
            for j in range(6):
                found[k, j] = by[0][j]
        return found

    return SimpleNamespace(box_slope=box_slope, ellipsoid_slope=ellipsoid_slope)


@cache
def drag_on_body(real: Any) -> wp.Function:
    """The kernel function ``drag`` for one precision: how the force on a free body changes with its velocity."""
    t, slope, way = types(real), slopes(real), motion(real)
    vec3, mat33, spatial = t.vec3, t.mat33, t.spatial
    six = wp.types.matrix(shape=(6, 6), dtype=real)
    box_slope, ellipsoid_slope, semiaxes, through = slope.box_slope, slope.ellipsoid_slope, way.semiaxes, way.through

    @wp.func
    def seen(w: int, B: six, mat: mat33, arm: vec3, first: int, cdof: wp.array2d(dtype=spatial)):
        """``J' B J`` for the six degrees of freedom from ``first`` on."""
        none = vec3(real(0.0), real(0.0), real(0.0))
        found = six()
        for j in range(6):
            by = B * through(cdof[w, first + j], arm, mat, none)
            for i in range(6):
                found[i, j] = wp.dot(through(cdof[w, first + i], arm, mat, none), by)
        return found

    @wp.func
    def drag(
        w: int, b: int, first: int, opt_density: wp.array(dtype=real), opt_viscosity: wp.array(dtype=real),
        opt_wind: wp.array(dtype=vec3), rootid: ints, geomadr: ints, geomnum: ints, swims: ints,
        body_mass: wp.array2d(dtype=real), body_inertia: wp.array2d(dtype=vec3),
        geom_type: ints, geom_size: wp.array2d(dtype=vec3), geom_fluid: wp.array2d(dtype=real),
        xipos: wp.array2d(dtype=vec3), ximat: wp.array2d(dtype=mat33), geom_xpos: wp.array2d(dtype=vec3),
        geom_xmat: wp.array2d(dtype=mat33), subtree_com: wp.array2d(dtype=vec3), cvel: wp.array2d(dtype=spatial),
        cdof: wp.array2d(dtype=spatial),
    ):  # fmt: skip
        """``J' (d force / d velocity) J`` of body ``b``."""
        density = opt_density[row(w, opt_density)]
        viscosity = opt_viscosity[row(w, opt_viscosity)]
        wind = opt_wind[row(w, opt_wind)]
        mass = body_mass[row(w, body_mass), b]
        centre = subtree_com[w, rootid[b]]
        found = six()
        if swims[b] != 0:
            for g in range(geomadr[b], geomadr[b] + geomnum[b]):
                if geom_fluid[g, 0] > real(0.0) and mass >= real(MINVAL):
                    arm = geom_xpos[w, g] - centre
                    velocity = through(cvel[w, b], arm, geom_xmat[w, g], wind)
                    axes = semiaxes(geom_type[g], geom_size[row(w, geom_size), g])
                    B = ellipsoid_slope(velocity, axes, g, geom_fluid, density, viscosity)
                    found = found + seen(w, B, geom_xmat[w, g], arm, first, cdof)
        elif mass >= real(MINVAL):
            arm = xipos[w, b] - centre
            velocity = through(cvel[w, b], arm, ximat[w, b], wind)
            B = box_slope(velocity, body_inertia[row(w, body_inertia), b], mass, density, viscosity)
            found = seen(w, B, ximat[w, b], arm, first, cdof)
        return found

    return drag


def _derivative(real: Any) -> dict[str, wp.Kernel]:
    t, slope, way = types(real), slopes(real), motion(real)
    vec3, mat33, spatial = t.vec3, t.mat33, t.spatial
    six = wp.types.matrix(shape=(6, 6), dtype=real)
    box_slope, ellipsoid_slope, semiaxes, through = slope.box_slope, slope.ellipsoid_slope, way.semiaxes, way.through

    @wp.func
    def spread(
        w: int, b: int, B: six, mat: mat33, arm: vec3, symmetric: bool, ancestor: ints2,
        D_rowadr: ints, D_rownnz: ints, D_colind: ints, cdof: wp.array2d(dtype=spatial), D: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Add ``J' B J`` of a place on body ``b`` to the matrix ``D``."""
        none = vec3(real(0.0), real(0.0), real(0.0))
        A = B
        if symmetric:
            A = (B + wp.transpose(B)) * real(0.5)
        for i in range(D_rowadr.shape[0]):
            if ancestor[b, i] != 0:
                left = through(cdof[w, i], arm, mat, none)
                by = wp.transpose(A) * left
                for e in range(D_rowadr[i], D_rowadr[i] + D_rownnz[i]):
                    j = D_colind[e]
                    if ancestor[b, j] != 0:
                        D[w, e] = D[w, e] + wp.dot(by, through(cdof[w, j], arm, mat, none))

    @wp.kernel
    def deriv_fluid(
        symmetric: bool, opt_density: wp.array(dtype=real), opt_viscosity: wp.array(dtype=real),
        opt_wind: wp.array(dtype=vec3), body_rootid: ints, body_isdofancestor: ints2, body_floats: ints,
        body_geomadr: ints, body_geomnum: ints, body_swims: ints,
        body_mass: wp.array2d(dtype=real), body_inertia: wp.array2d(dtype=vec3),
        geom_type: ints, geom_size: wp.array2d(dtype=vec3), geom_fluid: wp.array2d(dtype=real),
        D_rowadr: ints, D_rownnz: ints, D_colind: ints,
        xipos: wp.array2d(dtype=vec3), ximat: wp.array2d(dtype=mat33), geom_xpos: wp.array2d(dtype=vec3),
        geom_xmat: wp.array2d(dtype=mat33), subtree_com: wp.array2d(dtype=vec3), cvel: wp.array2d(dtype=spatial),
        cdof: wp.array2d(dtype=spatial), qDeriv: wp.array2d(dtype=real),
    ):  # fmt: skip
        """What the medium adds to qDeriv, but for bodies that float freely (`drag_on_body`).

        ``symmetric``: half of that and half of its transpose.
        """
        w = wp.tid()
        density = opt_density[row(w, opt_density)]
        viscosity = opt_viscosity[row(w, opt_viscosity)]
        wind = opt_wind[row(w, opt_wind)]
        for b in range(1, body_rootid.shape[0]):
            mass = body_mass[row(w, body_mass), b]
            if body_floats[body_rootid[b]] != 0:
                mass = real(0.0)
            centre = subtree_com[w, body_rootid[b]]
            if body_swims[b] != 0:
                for g in range(body_geomadr[b], body_geomadr[b] + body_geomnum[b]):
                    if geom_fluid[g, 0] > real(0.0) and mass >= real(MINVAL):
                        arm = geom_xpos[w, g] - centre
                        axes = semiaxes(geom_type[g], geom_size[row(w, geom_size), g])
                        velocity = through(cvel[w, b], arm, geom_xmat[w, g], wind)
                        B = ellipsoid_slope(velocity, axes, g, geom_fluid, density, viscosity)
                        spread(w, b, B, geom_xmat[w, g], arm, symmetric, body_isdofancestor, D_rowadr, D_rownnz,
                               D_colind, cdof, qDeriv)  # fmt: skip
            elif mass >= real(MINVAL):
                arm = xipos[w, b] - centre
                velocity = through(cvel[w, b], arm, ximat[w, b], wind)
                B = box_slope(velocity, body_inertia[row(w, body_inertia), b], mass, density, viscosity)
                spread(w, b, B, ximat[w, b], arm, symmetric, body_isdofancestor, D_rowadr, D_rownnz, D_colind, cdof,
                       qDeriv)  # fmt: skip

    return dict(deriv_fluid=deriv_fluid)
