"""Newton's method and conjugate gradients on the primal problem (MuJoCo documentation, Computation, Algorithms).

One kernel finds the bonds that its gang has, their rows, and the acceleration; nothing of it is read by another kernel,
so a gang may be as wide as it likes. Worlds that have converged keep what they have while others of their gang go on.
"""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row, types
from treadle.mujoco.constants import MINVAL
from treadle.mujoco.constraint.kinds import CONE_ELLIPTIC, NO_WARMSTART
from treadle.mujoco.constraint.live import LIVE, ROWS, WEIGHTS, living, places
from treadle.mujoco.constraint.live_bounds import live_bounds
from treadle.mujoco.constraint.live_contacts import live_contacts
from treadle.mujoco.constraint.live_equalities import live_equalities
from treadle.mujoco.factor import factorisation
from treadle.mujoco.solver.bond_products import bond_products
from treadle.mujoco.solver.hessian import hessian
from treadle.mujoco.solver.line import lines
from treadle.mujoco.solver.products import products
from treadle.mujoco.solver.weights import weighing

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)
REBUILD = wp.constant(16)  # iterations after which the Hessian is summed up anew: what was taken off left rounding


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {"primal": _primal(real)}


def _primal(real: Any) -> wp.Kernel:
    t, h, mul, mulb = types(real), hessian(real), products(real), bond_products(real)
    vec2, vec3, vec5, quat, mat33, spatial = t.vec2, t.vec3, t.vec5, t.quat, t.mat33, t.spatial
    matrix, cube, vectors, pairs2, fives = (
        wp.array2d(dtype=real), wp.array3d(dtype=real), wp.array2d(dtype=vec3), wp.array2d(dtype=vec2),
        wp.array2d(dtype=vec5),
    )  # fmt: skip
    equalities, contacts = live_equalities(real).equalities, live_contacts(real).contacts
    frictions, limits, finish = live_bounds(real).frictions, live_bounds(real).limits, living(real).finish
    evaluate, descend, precondition = weighing(real), lines(real).descend, factorisation(real).solve
    mul_m, dot, mul_b, add_bt = mul.mul_m, mul.dot, mulb.mul_b, mulb.add_bt
    pattern, begin, add_bonds, factor, solve = h.pattern, h.begin, h.add_bonds, h.factor, h.solve
    small = 1e-12 if real is wp.float64 else 1e-4  # of M x: a gradient that a Hessian with rounding in it may leave
    least = 1e-30 if real is wp.float64 else 1e-14  # a gain after which Newton's next step would be rounding

    @wp.kernel
    def primal(
        newton: int, most: int, opt_tolerance: wp.array(dtype=real), opt_ls_tolerance: wp.array(dtype=real),
        opt_iterations: int, opt_ls_iterations: int, opt_disableflags: int, opt_cone: int,
        opt_timestep: wp.array(dtype=real), opt_impratio: wp.array(dtype=real), meaninertia: real,
        M_rownnz: ints, M_rowadr: ints, M_colind: ints, bond_first: ints, bond_kind: ints, bond_id: ints,
        bond_part: ints, bond_dim: ints, bond_num: ints, bond_adr: ints, bond_couples: ints, bond_dof: ints,
        bond_sign: ints, bond_low: ints, bond_size: ints, bond_weights: ints, bond_run: ints, bond_runs: ints,
        run_from: ints, run_to: ints, run_shift: ints, dof_row: ints, dof_run: ints, dof_runs: ints, kin_from: ints,
        kin_to: ints, dof_apart: ints2, pair_first: ints, pair_most: ints,
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
        qacc_smooth: matrix, qacc_warmstart: matrix,
        # results
        qacc: matrix, qfrc_constraint: matrix, solver_niter: ints, live_need: ints,
        # scratch
        live_bond: ints2, live_state: ints2, live_quad: vectors, live_J: matrix, live_C: matrix, live_dC: matrix,
        live_Z: matrix, row_D: matrix, row_mu: matrix, row_damp: matrix, row_b: matrix, row_jar: matrix,
        row_jv: matrix, row_force: matrix, dof_low: ints2, solver_x: matrix, solver_Mx: matrix,
        solver_grad: matrix, solver_Mgrad: matrix, solver_last: matrix, solver_p: matrix, solver_Mp: matrix,
        solver_H: matrix, solver_L: matrix, solver_diag: matrix,
    ):  # fmt: skip
        """The acceleration that minimises the cost, and the forces of constraints on joints."""
        w = wp.tid()
        flags, timestep = opt_disableflags, opt_timestep[row(w, opt_timestep)]
        impratio = wp.max(real(MINVAL), opt_impratio[row(w, opt_impratio)])
        at = places()
        at = equalities(
            w, at, flags, timestep, bond_first, bond_id, bond_dim, bond_num, bond_adr, bond_dof, eq_type, eq_obj1id,
            eq_obj2id, eq_objtype, eq_solref, eq_solimp, eq_data, body_rootid, body_invweight0, body_isdofancestor,
            jnt_type, jnt_dofadr, jnt_qposadr, dof_jntid, dof_bodyid, dof_invweight0, site_bodyid, site_quat,
            ten_J_rownnz, ten_J_rowadr, ten_J_colind, tendon_length0, tendon_invweight0, qpos0, qpos, qvel, eq_active,
            xpos, xquat, xmat, site_xpos, subtree_com, cdof, cdof_dot, cvel, ten_length, ten_J, live_bond, live_state,
            live_J, live_C, row_D, row_mu, row_damp, row_b,
        )  # fmt: skip
        at = frictions(
            w, at, flags, timestep, bond_first, bond_kind, bond_id, bond_num, dof_frictionloss, dof_invweight0,
            dof_solref, dof_solimp, tendon_frictionloss, tendon_invweight0, tendon_solref_fri, tendon_solimp_fri,
            ten_J_rownnz, ten_J_rowadr, ten_J, live_bond, live_state, live_J, live_C, row_D, row_mu, row_damp, row_b,
        )  # fmt: skip
        at = limits(
            w, at, flags, timestep, bond_first, bond_kind, bond_id, bond_part, bond_num, jnt_type, jnt_qposadr,
            jnt_dofadr, jnt_range, jnt_margin, jnt_solref, jnt_solimp, dof_invweight0, tendon_range, tendon_margin,
            tendon_solref_lim, tendon_solimp_lim, tendon_invweight0, ten_J_rownnz, ten_J_rowadr, ten_J, ten_length,
            qpos, live_bond, live_state, live_J, live_C, row_D, row_mu, row_damp, row_b,
        )  # fmt: skip
        at, needed = contacts(
            w, at, most, flags, opt_cone, overridden, timestep, impratio, pairs_geom1, pairs_geom2, pairs_explicit,
            pairs_slot, pair_first, pair_most, bond_dim, bond_num, bond_adr, bond_dof, bond_sign, geom_bodyid,
            body_rootid, body_invweight0, opt_o_margin, opt_o_solref, opt_o_solimp, opt_o_friction, geom_condim,
            geom_priority, geom_solmix, geom_solref, geom_solimp, geom_friction, geom_margin, pair_dim, pair_solref,
            pair_solreffriction, pair_solimp, pair_margin, pair_friction, slot_count, slot_dist, slot_pos,
            slot_normal, slot_tangent, subtree_com, cdof, live_bond, live_state, live_J, live_C, row_D, row_mu,
            row_damp, row_b,
        )  # fmt: skip
        nv, live, rows = M_rownnz.shape[0], at[LIVE], at[ROWS]
        live_need[w] = needed
        finish(
            w, live, live_bond, bond_dim, bond_num, bond_adr, bond_dof, live_J, qvel, qacc_smooth, row_D, row_damp,
            row_b,
        )  # fmt: skip
        running = False
        for i in range(rows):
            running = running or row_D[w, i] > real(0.0)

        # begin at the acceleration of the step before, or, if that costs less, at that without constraints
        cold, warm = real(0.0), (flags & NO_WARMSTART) == 0
        for turn in range(2):
            for k in range(nv):
                solver_x[w, k] = real(turn) * (qacc_warmstart[w, k] - qacc_smooth[w, k])
            if turn > 0:
                mul_b(
                    w, live, live_bond, bond_dim, bond_num, bond_size, bond_run, bond_runs, run_from, run_to,
                    run_shift, live_J,
                    solver_x, row_jv,
                )  # fmt: skip
                mul_m(w, M_rownnz, M_rowadr, M_colind, M, solver_x, solver_Mx)
            for i in range(rows):
                row_jar[w, i] = row_b[w, i]
                if turn > 0:
                    row_jar[w, i] = row_b[w, i] + row_jv[w, i]
            cost, changed = evaluate(
                w, live, opt_cone, live_bond, live_state, bond_kind, bond_dim, bond_weights, row_D, row_mu, row_jar,
                row_force,
                live_C, live_dC,
            )  # fmt: skip
            if turn == 0:
                cold = cost
            else:
                warm = warm and cost + real(0.5) * dot(w, solver_x, solver_Mx) < cold
        warm = warm and running
        for k in range(nv):
            solver_x[w, k] = wp.where(warm, solver_x[w, k], real(0.0))
            solver_Mx[w, k] = wp.where(warm, solver_Mx[w, k], real(0.0))
            solver_p[w, k] = real(0.0)
            solver_last[w, k] = real(0.0)
        for i in range(rows):
            row_jar[w, i] = wp.where(warm, row_jar[w, i], row_b[w, i])

        if newton != 0:
            pattern(
                w, live, live_bond, bond_couples, bond_num, bond_adr, bond_dof, bond_low, dof_apart, dof_low
            )  # fmt: skip
        tolerance = opt_tolerance[row(w, opt_tolerance)]
        scale = real(1.0) / (meaninertia * real(wp.max(nv, 1)))
        flat = tolerance * opt_ls_tolerance[row(w, opt_ls_tolerance)] / scale
        count, k = int(0), int(0)
        size = real(1.0)  # of the last gradient, by the preconditioner (conjugate gradients)
        a, slope, exact, fresh = real(0.0), real(0.0), False, True
        while k <= opt_iterations and wp.any_lane(running):
            cost, changed = evaluate(
                w, live, opt_cone, live_bond, live_state, bond_kind, bond_dim, bond_weights, row_D, row_mu, row_jar,
                row_force,
                live_C, live_dC,
            )  # fmt: skip
            for c in range(nv):
                solver_grad[w, c] = solver_Mx[w, c]
            add_bt(
                w, live, real(-1.0), live_bond, bond_dim, bond_num, bond_size, bond_run, bond_runs, run_from, run_to,
                run_shift,
                live_J, row_force, solver_grad,
            )  # fmt: skip
            rest = wp.sqrt(dot(w, solver_grad, solver_grad))
            renewed, fresh = fresh, k % REBUILD == 0
            if k > 0:
                # what a step gains follows from slope and length; the difference of two costs would be rounding
                gain = real(-0.5) * a * slope
                if newton != 0:
                    solved = exact and changed == 0
                    if solved and not renewed and rest > real(small) * wp.sqrt(dot(w, solver_Mx, solver_Mx)):
                        solved, fresh = False, True
                    if solved or scale * gain < tolerance or gain <= real(least) * cost:
                        running = False
                elif scale * gain < tolerance or a == real(0.0):
                    running = False
            if scale * rest < tolerance:
                running = False
            if k < opt_iterations and wp.any_lane(running):
                if newton != 0:
                    if wp.any_lane(fresh):
                        begin(
                            w, fresh, dof_row, dof_run, dof_runs, kin_from, kin_to, dof_low, M_rownnz, M_rowadr,
                            M_colind, M,
                            solver_H,
                        )  # fmt: skip
                        for e in range(at[WEIGHTS]):
                            live_dC[w, e] = wp.where(fresh, live_C[w, e], live_dC[w, e])
                    add_bonds(
                        w, live, live_bond, bond_dim, bond_num, bond_adr, bond_dof, bond_size, bond_weights, bond_run,
                        bond_runs, run_from, run_to, run_shift, dof_row, live_J, live_dC, live_Z, solver_H,
                    )  # fmt: skip
                    factor(w, dof_row, dof_run, dof_runs, kin_from, kin_to, dof_low, solver_H, solver_L, solver_diag)
                    for c in range(nv):
                        solver_p[w, c] = -solver_grad[w, c]
                    solve(w, dof_row, dof_run, dof_runs, kin_from, kin_to, dof_low, solver_L, solver_diag, solver_p)
                else:
                    for c in range(nv):
                        solver_Mgrad[w, c] = solver_grad[w, c]
                    precondition(w, M_rowadr, M_rownnz, M_colind, qLD, qLDiagInv, solver_Mgrad)
                    now = dot(w, solver_grad, solver_Mgrad)
                    keep = wp.max((now - dot(w, solver_Mgrad, solver_last)) / size, real(0.0))
                    size = wp.max(now, real(1e-30))
                    for c in range(nv):
                        solver_p[w, c] = keep * solver_p[w, c] - solver_Mgrad[w, c]
                        solver_last[w, c] = solver_grad[w, c]
                a, slope, exact = descend(
                    w, live, rows, running, opt_ls_iterations, flat, opt_cone == CONE_ELLIPTIC, M_rownnz, M_rowadr,
                    M_colind, M, live_bond, bond_kind, bond_dim, bond_num, bond_size, bond_run, bond_runs, run_from,
                    run_to,
                    run_shift, live_J, row_D, row_mu, solver_x, solver_Mx, row_jar, solver_p, solver_Mp, row_jv,
                    live_quad,
                )  # fmt: skip
                if running:
                    count = count + 1
            k = k + 1
        solver_niter[w] = count
        for c in range(nv):
            qacc[w, c] = qacc_smooth[w, c] + solver_x[w, c]
            qfrc_constraint[w, c] = real(0.0)
        add_bt(
            w, live, real(1.0), live_bond, bond_dim, bond_num, bond_size, bond_run, bond_runs, run_from, run_to,
            run_shift, live_J,
            row_force, qfrc_constraint,
        )  # fmt: skip

    return primal
