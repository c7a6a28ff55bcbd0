"""Which part of the language or library each test file of the wheel is about."""

from __future__ import annotations

_FILES = {
    "core": """arithmetic assert bit_count bool builtins_resolution codegen codegen_continue compile_consts conditional
        constant_precision enum factory_style_array_annotations future_annotations implicit_init iter lvalue operators
        ref rounding scalar_ops special_values static subscript_types tuple unpack""",
    "types_math": """bf16 fp16 ctypes dense lerp math quat quat_assign_copy smoothstep spatial spatial_assign_copy types
        vec vec_assign_copy vec_constructors vec_lite vec_scalar_ops mat mat_assign_copy mat_basics mat_constructors
        mat_elementwise_ops mat_linalg mat_lite""",
    "arrays": "array array_reduce array_subclass copy fabricarray fixedarray indexedarray large",
    "atomics": "atomic atomic_bitwise atomic_cas",
    "launch": """allocation_tracker allocator block_dim_dispatch context cpu_block_codegen cpu_block_dim devices launch
        template_launch_bounds""",
    "adjoint": "composite_component_adjoint grad grad_customs grad_debug overwrite tape",
    "structs": "struct",
    "functions": "codegen_instancing func func_inline func_parameter_targets generics map snippet",
    "rand_noise": "noise rand",
    "utils": "coloring runlength_encode utils",
    "module_cache": """compilation core_library_binary cpu_precompiled_headers cpu_vectorization fast_math import
        kernel_cache module_contamination module_hashing module_parallel_load module_variants modules_lite options
        reload transient_module unique_module version""",
    "debug": "diagnostics logger print sanitize verify_fp",
    "graph": "apic apic_load_from_bytes apic_mesh apic_utility_algorithms graph",
    "sparse": "sparse",
    "optim": "adam fsai linear_solvers sgd",
    "geometry": "closest_point_edge_edge intersect triangle_closest_point",
    "examples": "examples fem_examples",
}  # fmt: skip
_FOLDERS = {"matrix": "types_math"}  # others are areas of their own name
_AREA = {name: area for area, names in _FILES.items() for name in names.split()}


def area_of(file: str) -> str:
    """The area of a file such as ``tile/test_tile.py``.

    >>> from tests.conformance.areas import area_of
    >>> area_of("test_vec.py"), area_of("matrix/test_mat.py"), area_of("tile/test_tile.py")
    ('types_math', 'types_math', 'tile')
    """
    *folders, name = file.split("/")
    known = _AREA.get(name.removeprefix("test_").removesuffix(".py"))
    if known:
        return known
    return _FOLDERS.get(folders[0], folders[0]) if folders else "other"


ORDER = (*_FILES, "tile", "interop", "fem", "deterministic", "aot", "cuda", "other")
