"""The kernel of solvers: it finds the bonds that its gang has, their rows, and the acceleration.

Nothing that it lists is read by another kernel, so a gang may be as wide as it likes. Which method it is, it knows when
it is compiled.
"""

from functools import cache
from typing import Any

import mujoco

import treadle as wp
from treadle.mujoco.algebra import row, types
from treadle.mujoco.constants import MINVAL
from treadle.mujoco.constraint.kinds import CONE_ELLIPTIC, NO_WARMSTART
from treadle.mujoco.constraint.live import LIVE, ROWS, WEIGHTS, living, places
from treadle.mujoco.constraint.live_bounds import live_bounds
from treadle.mujoco.constraint.live_contacts import live_contacts
from treadle.mujoco.constraint.live_equalities import live_equalities
from treadle.mujoco.solver.bond_products import bond_products
from treadle.mujoco.solver.dual import projecting, slipping, spaces
from treadle.mujoco.solver.forces import forces
from treadle.mujoco.solver.optimum import optimum
from treadle.mujoco.solver.primal import descending, settling, starting
from treadle.mujoco.solver.weights import weighing

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)
PGS, NEWTON = int(mujoco.mjtSolver.mjSOL_PGS), int(mujoco.mjtSolver.mjSOL_NEWTON)
SOLVE, CURVE, FOLLOW = "solve", "curve", "follow"  # what a kernel does with the bonds


@cache
def solver_kernel(real: Any, method: int, cone: int, slips: bool, plain: bool, part: str = SOLVE) -> wp.Kernel:
    """The kernel for one precision, one method (mjtSolver) and one kind of friction cones (mjtCone); ``slips``: as long
    as nobody asks for no slip; ``plain``: of models without equality constraints and tendons, whose code is half as
    long. ``part``: with CURVE and FOLLOW it does what tapes need besides (`optimum`), where a method of the primal
    problem has left ``solver_x``."""
    t = types(real)
    vec2, vec3, vec5, quat, mat33, spatial = t.vec2, t.vec3, t.vec5, t.quat, t.mat33, t.spatial
    matrix, cube, vectors, pairs2, fives = (
        wp.array2d(dtype=real), wp.array3d(dtype=real), wp.array2d(dtype=vec3), wp.array2d(dtype=vec2),
        wp.array2d(dtype=vec5),
    )  # fmt: skip
    by_newton, projects, dual = method == NEWTON, method == PGS, method == PGS or not slips
    equalities, contacts = live_equalities(real).equalities, live_contacts(real).contacts
    bounds, finish = live_bounds(real, not plain), living(real).finish
    frictions, limits = bounds.frictions, bounds.limits
    begin, residuals, minimise = starting(real).begin, starting(real).residuals, descending(real, by_newton, not dual)
    evaluate, add_bt = weighing(real), bond_products(real).add_bt
    settle = settling(real)
    space, force_of = spaces(real), forces(real)
    roots, inward, outward, columns_of = space.roots, space.inward, space.outward, space.columns
    split, join, softness, hand_out = force_of.split, force_of.join, force_of.softness, force_of.hand_out
    noslip, pgs = slipping(real), projecting(real)
    curves, follows, curve, follow = part == CURVE, part == FOLLOW, optimum(real).curve, optimum(real).follow

    @wp.kernel(gang_vectors=2, detached=not (follows or dual))
    def solve(
        most: int, opt_tolerance: wp.array(dtype=real), opt_ls_tolerance: wp.array(dtype=real),
        opt_iterations: int, opt_ls_iterations: int, opt_noslip_iterations: int,
        opt_noslip_tolerance: wp.array(dtype=real), opt_disableflags: int,
        opt_timestep: wp.array(dtype=real), opt_impratio: wp.array(dtype=real), meaninertia: real,
        M_rownnz: ints, M_rowadr: ints, M_colind: ints, bond_first: ints, bond_kind: ints, bond_id: ints,
        bond_part: ints, bond_dim: ints, bond_num: ints, bond_adr: ints, bond_couples: ints, bond_dof: ints,
        bond_sign: ints, bond_weights: ints, bond_reach: ints,
        bond_reached: ints, reach_dof: ints, bond_run: ints, bond_runs: ints,
        run_from: ints, run_to: ints, run_shift: ints, dof_parentid: ints, dof_three: ints,
        pair_first: ints, pair_most: ints,
        # equalities
        eq_type: ints, eq_obj1id: ints, eq_obj2id: ints, eq_objtype: ints, eq_solref: pairs2, eq_solimp: fives,
        eq_data: cube, eq_active: ints2, body_rootid: ints, body_invweight0: pairs2, body_isdofancestor: ints2,
        jnt_type: ints, jnt_dofadr: ints, jnt_qposadr: ints, dof_jntid: ints, dof_bodyid: ints, dof_invweight0: matrix,
        site_bodyid: ints, site_quat: wp.array2d(dtype=quat), ten_J_rownnz: ints, ten_J_rowadr: ints,
        ten_J_colind: ints, tendon_length0: matrix, tendon_invweight0: matrix, qpos0: matrix,
        # dry friction and limits
        dof_frictionloss: matrix, dof_solref: pairs2, dof_solimp: fives, tendon_frictionloss: matrix,
        tendon_solref_fri: pairs2, tendon_solimp_fri: fives, jnt_range: pairs2, jnt_margin: matrix, jnt_solref: pairs2,
        jnt_solimp: fives, tendon_range: pairs2, tendon_margin: matrix, tendon_solref_lim: pairs2,
        tendon_solimp_lim: fives,
        # contacts
        overridden: int, pairs_geom1: ints, pairs_geom2: ints, pairs_explicit: ints, pairs_slot: ints,
        geom_bodyid: ints, opt_o_margin: wp.array(dtype=real), opt_o_solref: wp.array(dtype=vec2),
        opt_o_solimp: wp.array(dtype=vec5), opt_o_friction: wp.array(dtype=vec5), geom_condim: ints,
        geom_priority: ints, geom_solmix: matrix, geom_solref: pairs2, geom_solimp: fives, geom_friction: vectors,
        geom_margin: matrix, pair_dim: ints, pair_solref: pairs2, pair_solreffriction: pairs2, pair_solimp: fives,
        pair_margin: matrix, pair_friction: fives, slot_count: ints2, slot_dist: matrix, slot_pos: vectors,
        slot_normal: vectors, slot_tangent: vectors,
        # the state, and what earlier stages found
        qpos: matrix, qvel: matrix, xpos: vectors, xquat: wp.array2d(dtype=quat), xmat: wp.array2d(dtype=mat33),
        site_xpos: vectors, subtree_com: vectors, cdof: wp.array2d(dtype=spatial), cdof_dot: wp.array2d(dtype=spatial),
        cvel: wp.array2d(dtype=spatial), ten_length: matrix, ten_J: matrix, M: matrix, qLD: matrix, qLDiagInv: matrix,
        qfrc_smooth: matrix, qacc_smooth: matrix, qacc_warmstart: matrix,
        # results
        qacc: matrix, qfrc_constraint: matrix, solver_niter: ints, live_need: ints, efc_force: matrix, efc_state: ints2,
        solver_unsettled: ints,
        # scratch
        live_bond: ints2, live_row: ints2, live_number: ints2, live_weight: ints2, live_state: ints2,
        live_shape: fives, live_J: matrix, live_C: matrix, live_dC: matrix,
        live_Z: matrix, live_A: matrix, live_G: matrix, row_D: matrix, row_mu: matrix, row_damp: matrix, row_b: matrix,
        row_jar: matrix, row_jv: matrix, row_force: matrix, row_up: matrix, row_down: matrix, tree_up: ints2,
        tree_deep: ints2, tree_at: ints2, solver_x: matrix, solver_Mx: matrix, solver_grad: matrix,
        solver_Mgrad: matrix, solver_last: matrix, solver_p: matrix, solver_Mp: matrix,
        solver_H: matrix, solver_L: matrix, solver_diag: matrix, solver_y: matrix, solver_root: matrix,
    ):  # fmt: skip
        """The acceleration that minimises the cost, and the forces of constraints on joints."""
        w = wp.tid()
        flags, timestep = opt_disableflags, opt_timestep[row(w, opt_timestep)]
        impratio = wp.max(real(MINVAL), opt_impratio[row(w, opt_impratio)])
        at = places()
        listed = (live_bond, live_row, live_number, live_weight)
        if not plain:
            at = equalities(
                w, at, flags, timestep, bond_first, bond_id, bond_dim, bond_num, bond_adr, bond_dof, eq_type, eq_obj1id,
                eq_obj2id, eq_objtype, eq_solref, eq_solimp, eq_data, body_rootid, body_invweight0, body_isdofancestor,
                jnt_type, jnt_dofadr, jnt_qposadr, dof_jntid, dof_bodyid, dof_invweight0, site_bodyid, site_quat,
                ten_J_rownnz, ten_J_rowadr, ten_J_colind, tendon_length0, tendon_invweight0, qpos0, qpos, qvel,
                eq_active, xpos, xquat, xmat, site_xpos, subtree_com, cdof, cdof_dot, cvel, ten_length, ten_J,
                listed, live_state, live_J, live_C, row_D, row_mu, row_damp, row_b,
            )  # fmt: skip
        equal = at[LIVE]
        at = frictions(
            w, at, flags, timestep, bond_first, bond_kind, bond_id, bond_num, dof_frictionloss, dof_invweight0,
            dof_solref, dof_solimp, tendon_frictionloss, tendon_invweight0, tendon_solref_fri, tendon_solimp_fri,
            ten_J_rownnz, ten_J_rowadr, ten_J, listed, live_state, live_J, live_C, row_D, row_mu, row_damp, row_b,
        )  # fmt: skip
        sliding = at[LIVE]
        at = limits(
            w, at, flags, timestep, bond_first, bond_kind, bond_id, bond_part, bond_num, jnt_type, jnt_qposadr,
            jnt_dofadr, jnt_range, jnt_margin, jnt_solref, jnt_solimp, dof_invweight0, tendon_range, tendon_margin,
            tendon_solref_lim, tendon_solimp_lim, tendon_invweight0, ten_J_rownnz, ten_J_rowadr, ten_J, ten_length,
            qpos, listed, live_state, live_J, live_C, row_D, row_mu, row_damp, row_b,
        )  # fmt: skip
        limited = at[LIVE]
        at, needed = contacts(
            w, at, most, flags, cone, overridden, timestep, impratio, pairs_geom1, pairs_geom2, pairs_explicit,
            pairs_slot, pair_first, pair_most, bond_dim, bond_num, bond_adr, bond_dof, bond_sign, geom_bodyid,
            body_rootid, body_invweight0, opt_o_margin, opt_o_solref, opt_o_solimp, opt_o_friction, geom_condim,
            geom_priority, geom_solmix, geom_solref, geom_solimp, geom_friction, geom_margin, pair_dim, pair_solref,
            pair_solreffriction, pair_solimp, pair_margin, pair_friction, slot_count, slot_dist, slot_pos,
            slot_normal, slot_tangent, subtree_com, cdof, listed, live_state, live_J, live_C, row_D, row_mu,
            row_damp, row_b,
        )  # fmt: skip
        nv, rows, elliptic = M_rownnz.shape[0], at[ROWS], cone == CONE_ELLIPTIC
        live_need[w] = needed
        finish(
            w, at[LIVE], listed, bond_dim, bond_num, bond_adr, bond_dof, live_J, qvel, qacc_smooth, row_D, row_damp,
            row_b,
        )  # fmt: skip
        stiffest = real(0.0)
        for i in range(rows):
            stiffest = wp.max(stiffest, row_D[w, i])
        running = stiffest > real(0.0)

        parts = (equal, sliding, limited)
        bonds, soft = (at[LIVE], listed, bond_kind, bond_dim, parts), (row_D, row_mu)
        weights = (bond_weights, live_C, live_dC)
        jacobian = (bond_num, bond_run, bond_runs, run_from, run_to, run_shift, live_J)
        mass = (M_rownnz, M_rowadr, M_colind, M, dof_three)
        tree = (dof_parentid, dof_three, tree_up, tree_deep, tree_at)
        joins = (bond_couples, bond_num, bond_adr, bond_dof)
        if curves:
            curve(
                w, rows, elliptic, bonds, jacobian, (bond_adr, bond_dof), joins, tree, mass, soft, weights,
                live_state, solver_x, row_b, row_jar, row_jv, row_force, live_Z, solver_H, solver_L, solver_diag,
            )  # fmt: skip
        elif follows:
            follow(
                w, rows, elliptic, bonds, jacobian, mass, soft, solver_L, solver_diag, solver_x, row_b, row_jar, row_jv,
                row_force, solver_grad, solver_p, solver_Mp, qacc_smooth, qacc, qfrc_constraint,
            )  # fmt: skip
        else:
            scale = real(1.0) / (meaninertia * real(wp.max(nv, 1)))
            tolerance, warm = opt_tolerance[row(w, opt_tolerance)], (flags & NO_WARMSTART) == 0
            count = int(0)
            if projects:
                residuals(
                    w, rows, bonds, jacobian, qacc_warmstart, qacc_smooth, solver_x, row_b, row_jar, row_jv
                )  # fmt: skip
                evaluate(w, bonds, elliptic, soft, weights, live_state, row_jar, row_force)
            else:
                cost, pieces, ready = begin(
                    w, running, warm, rows, elliptic, bonds, jacobian, soft, weights, mass, qacc_warmstart, qacc_smooth,
                    live_state, solver_x, solver_Mx, row_b, row_jar, row_jv, row_force,
                )  # fmt: skip
                count, unsettled = minimise(
                    w, running, ready, cost, pieces, rows, at[WEIGHTS], opt_iterations, opt_ls_iterations, tolerance,
                    tolerance * opt_ls_tolerance[row(w, opt_ls_tolerance)] / scale, scale, elliptic, bonds, jacobian,
                    (bond_adr, bond_dof), joins, tree, mass, soft, weights, (qLD, qLDiagInv), live_state, solver_x,
                    solver_Mx, solver_grad, solver_y, solver_Mgrad, solver_last, solver_p, solver_Mp, row_jar, row_jv,
                    row_force, live_shape, live_Z, solver_H, solver_L, solver_diag,
                )  # fmt: skip
            if not dual:
                solver_unsettled[w] = wp.where(unsettled, 1, 0)
                settle(
                    w, not unsettled, mass, qfrc_smooth, qacc_smooth, solver_x, solver_Mx, solver_grad, solver_p,
                    solver_Mp, qfrc_constraint,
                )  # fmt: skip
            else:
                for c in range(nv):
                    qfrc_constraint[w, c] = real(0.0)
                add_bt(w, real(1.0), bonds, jacobian, row_force, qfrc_constraint)
                inertia = (M_rowadr, M_rownnz, M_colind, qLD, solver_root)
                reaches = (bond_reach, bond_reached, reach_dof)
                roots(w, qLDiagInv, solver_root)
                if not elliptic:
                    split(w, bonds, soft, row_jar, row_up, row_down)
                for c in range(nv):
                    solver_y[w, c] = qfrc_constraint[w, c]
                inward(w, inertia, solver_y)
                columns_of(
                    w, projects, bonds, (bond_num, bond_adr, bond_dof), reaches, inertia, live_J, row_force, solver_p,
                    live_G, live_A,
                )  # fmt: skip
                if projects:
                    cost = softness(w, bonds, elliptic, row_D, row_up, row_down, row_force)
                    for c in range(nv):
                        cost = cost + real(0.5) * solver_y[w, c] * solver_y[w, c]
                    for i in range(rows):
                        cost = cost + row_force[w, i] * row_b[w, i]
                    warm = warm and not cost > real(0.0)  # a start that is worse than none is dropped
                    for i in range(rows):
                        row_force[w, i] = wp.where(warm, row_force[w, i], real(0.0))
                        row_up[w, i] = wp.where(warm, row_up[w, i], real(0.0))
                        row_down[w, i] = wp.where(warm, row_down[w, i], real(0.0))
                    for c in range(nv):
                        solver_y[w, c] = wp.where(warm, solver_y[w, c], real(0.0))
                    count = pgs(
                        w, running, opt_iterations, tolerance / scale, elliptic, bonds, reaches, row_D, row_b, row_mu,
                        row_force, row_up, row_down, live_G, live_A, solver_y,
                    )  # fmt: skip
                    if not elliptic:
                        join(w, bonds, row_mu, row_up, row_down, row_force)
                if not slips:
                    gain = softness(w, bonds, elliptic, row_D, row_up, row_down, row_force)
                    count = count + noslip(
                        w, running, opt_noslip_iterations, opt_noslip_tolerance[row(w, opt_noslip_tolerance)] / scale,
                        gain, elliptic, bonds, reaches, row_b, row_mu, row_force, row_up, row_down, live_G, live_A,
                        solver_y,
                    )  # fmt: skip
                    if not elliptic:
                        join(w, bonds, row_mu, row_up, row_down, row_force)
                outward(w, inertia, solver_y)
                for c in range(nv):
                    solver_x[w, c] = solver_y[w, c]
                    qfrc_constraint[w, c] = real(0.0)
                add_bt(w, real(1.0), bonds, jacobian, row_force, qfrc_constraint)
                hand_out(w, bonds, elliptic, soft, row_up, row_down, row_force, efc_force, efc_state)
            solver_niter[w] = count
            for c in range(nv):
                qacc[w, c] = qacc_smooth[w, c] + solver_x[w, c]

    return solve
