"""The names of all builtins and the files they are in, so that a name costs no import until it is used.

Kept by hand; a test compares it with what the files register.
"""

from __future__ import annotations

_FILES = {  # in the order in which the overloads of one name are tried
    "operators": """
        add sub mul div mod floordiv neg pos eq ne lt le gt ge logical_not bitand bitor bitxor invert shl shr""",
    "scalar": """
        min max abs sqrt floor ceil trunc rint copysign fma isnan isinf isfinite popcount""",
    "powers": """
        pow""",
    "transcendental": """
        sin cos tan asin acos atan atan2 exp sinh cosh tanh log log2 log10 pow cbrt erf erfc erfinv erfcinv""",
    "transcendental_f64": """
        sin cos tan asin acos atan atan2 exp sinh cosh tanh log log2 log10 pow cbrt erf erfc erfinv erfcinv""",
    "composed": """
        clamp sign step nonzero round frac degrees radians lerp smoothstep floordiv mod""",
    "memory": """
        atomic_add atomic_sub atomic_min atomic_max atomic_and atomic_or atomic_xor atomic_exch atomic_cas len zeros
        empty array lower_bound""",
    "utility": """
        where select any_lane max_lane same_lane tid block_dim address_of breakpoint printf print expect_eq expect_neq
        expect_near""",
    "generic": """
        vector matrix quaternion transformation cast""",
    "vectors": """
        dot cross outer cw_mul cw_div length_sq length normalize norm_l1 norm_l2 norm_huber norm_pseudo_huber
        smooth_normalize min max argmin argmax isnan isinf isfinite sign lerp""",
    "matrices": """
        mul ddot transpose trace diag get_diag skew identity matrix_from_rows matrix_from_cols determinant inverse""",
    "decompositions": """
        svd2 svd3 qr3 eig3""",
    "quaternions": """
        mul quat_identity quat_inverse quat_rotate quat_rotate_inv quat_from_axis_angle quat_to_axis_angle quat_rpy
        quat_to_matrix quat_from_matrix quat_slerp quat_twist quat_twist_angle quat_twist_angle_signed
        quat_between_vectors""",
    "euler": """
        quat_from_euler quat_to_euler quat_to_rpy""",
    "transforms": """
        mul transform_identity transform_get_translation transform_get_rotation transform_set_translation
        transform_set_rotation transform_multiply transform_inverse transform_point transform_vector
        transform_to_matrix transform_from_matrix transform_compose transform_decompose""",
    "spatial": """
        spatial_top spatial_bottom spatial_dot spatial_cross spatial_cross_dual velocity_at_point transform_twist
        transform_wrench spatial_adjoint""",
    "tiles": """
        tile_zeros tile_ones tile_empty tile_full tile_from_thread tile_arange tile untile tile_load tile_store
        tile_atomic_add tile_view tile_assign tile_reshape tile_squeeze tile_transpose tile_broadcast tile_astype
        tile_extract""",
    "tile_math": """
        mul div tile_map tile_sum tile_reduce tile_min tile_max tile_argmin tile_argmax tile_scan_inclusive
        tile_scan_exclusive tile_scan_max_inclusive tile_scan_min_inclusive tile_sort tile_dot tile_axpy tile_diag_add
        tile_matmul""",
    "tile_algebra": """
        tile_cholesky tile_cholesky_inplace tile_cholesky_solve tile_cholesky_solve_inplace tile_lower_solve
        tile_lower_solve_inplace tile_upper_solve tile_upper_solve_inplace""",
    "dense": """
        dense_gemm dense_chol dense_subs dense_solve""",
    "tile_fft": """
        tile_fft tile_ifft""",
    "tile_stacks": """
        tile_stack tile_stack_push tile_stack_pop tile_stack_clear tile_stack_count""",
    "tile_indexed": """
        tile_load_indexed tile_store_indexed tile_atomic_add_indexed tile_scatter_add tile_scatter_masked tile_randf
        tile_randi""",
    "random": """
        pcg_hash rand_init randi randu randf randn sample_triangle sample_unit_ring sample_unit_disk
        sample_unit_sphere_surface sample_unit_sphere sample_unit_hemisphere_surface sample_unit_hemisphere
        sample_unit_square sample_unit_cube sample_cdf poisson""",
    "noise": """
        noise pnoise curlnoise""",
}  # fmt: skip

MODULES: dict[str, list[str]] = {}
for _module, _names in _FILES.items():
    for _name in _names.split():
        MODULES.setdefault(_name, []).append(_module)

ALIASES = {
    "bit_and": "bitand", "bit_or": "bitor", "bit_xor": "bitxor", "lshift": "shl", "rshift": "shr",
    "unot": "logical_not", "bit_count": "popcount", "matmul": "mul", "div_approx": "div", "inverse_approx": "inverse",
}  # fmt: skip

_CHANGED = {  # the parameters that a call changes, by position and by name
    (0, "state"): """randi randu randf randn sample_triangle sample_unit_ring sample_unit_disk
        sample_unit_sphere_surface sample_unit_sphere sample_unit_hemisphere_surface sample_unit_hemisphere
        sample_unit_square sample_unit_cube sample_cdf poisson""",
    (0, "xform"): "transform_set_translation transform_set_rotation",
    (1, 2, 3, "U", "sigma", "V"): "svd2 svd3",
    (1, 2, "Q", "R"): "qr3",
    (1, 2, "Q", "d"): "eig3",
    (1, 2, "axis", "angle"): "quat_to_axis_angle",
}  # fmt: skip

UPDATING: dict[str, tuple[int | str, ...]] = {n: which for which, names in _CHANGED.items() for n in names.split()}
"""Builtins that give variables passed to them new values, and which arguments these are: by position and by name."""
UPDATING.update(
    address_of=(0,),  # whoever has the address may write there
    tile_assign=(0, "dst"), tile_matmul=(2, "out"), tile_sort=(0, 1, "keys", "values"), tile_axpy=(2, "dest"),
    tile_stack_push=(0, "s"), tile_stack_pop=(0, "s"), tile_stack_clear=(0, "s"), tile_fft=(0, "inout"),
    tile_ifft=(0, "inout"), tile_scatter_add=(0, "a"), tile_scatter_masked=(0, "a"), tile_cholesky_inplace=(0, "A"),
    tile_cholesky_solve_inplace=(1, "y"), tile_lower_solve_inplace=(1, "y"), tile_upper_solve_inplace=(1, "z"),
)  # fmt: skip

HIDDEN = frozenset("eq ne lt le gt ge logical_not bitand bitor bitxor shl shr popcount matmul".split())
PUBLIC: tuple[str, ...] = tuple(sorted({*MODULES, *ALIASES} - HIDDEN))
"""What ``treadle`` offers under its own name; operators under the names Warp gives them."""
