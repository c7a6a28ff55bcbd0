"""What the field has and treadle has not, and why: whoever asks for such a name is told its state."""

from __future__ import annotations

_LATER = "not part of this release"

# What a feature is, and the names that belong to it. Names that end in * stand for all that begin so.
_FEATURES: dict[str, str] = {
    f"sparse volumes are {_LATER}": "Volume volume_*",
    f"triangle meshes and their queries are {_LATER}": "Mesh MeshQuery* mesh_* tile_mesh_*",
    f"bounding volume trees are {_LATER}": "Bvh BvhQuery* bvh_* tile_bvh_* tile_query_valid",
    f"hash grids are {_LATER}": "HashGrid HashGridQuery hash_grid_*",
    f"intersection tests are {_LATER}": "intersect_tri_tri closest_point_edge_edge",
    f"textures are {_LATER}": "Texture Texture1D Texture2D Texture3D TextureAddressMode TextureFilterMode "
                              "TextureResourceFlags texture_sample",
    "images shared with OpenGL need a GPU": "GLTextureResource RegisteredGLBuffer",
    "graphs are not written to files": "capture_save capture_load capture_load_from_bytes",
    "exchange with Paddle is not planned": "to_paddle from_paddle dtype_to_paddle dtype_from_paddle device_to_paddle "
                                           "device_from_paddle stream_from_paddle",
    f"wp.load_module compiles now and the cache keeps the code; compilation to other places is {_LATER}":
        "compile_aot_module load_aot_module ModuleBuildOptions",
    "the pools of RMM are its own": "AllocatorRmm",
    "what Warp compiles from C++ is written in the kernel language here": "build_experimental",
    "Warp's own library has no code for it either": "dense_gemm_batched dense_chol_batched dense_solve_batched",
    "Warp's own examples and tests come with the package warp-lang": "examples tests",
    f"finite elements are {_LATER}": "fem",
    f"sparse matrices are {_LATER}": "sparse",
    f"linear solvers are {_LATER}": "optim",
    f"surfaces and triangulations are {_LATER}": "geometry",
    f"viewers of this kind are {_LATER}": "render",
    "it is written as an operator, an index or an assignment": "address array_store assign_copy assign_inplace "
        "add_inplace sub_inplace bit_and_inplace bit_or_inplace bit_xor_inplace transform_add_inplace "
        "transform_sub_inplace extract index indexref iter_next load store slice view assign tile_add_inplace "
        "tile_sub_inplace tile_bit_and_inplace tile_bit_or_inplace tile_bit_xor_inplace tile_slice_indexed "
        "transform_set_rotation_copy transform_set_translation_copy",
}  # fmt: skip

_EXACT = {name: state for state, names in _FEATURES.items() for name in names.split() if not name.endswith("*")}
_BEGINNINGS = {
    name[:-1]: state for state, names in _FEATURES.items() for name in names.split() if name.endswith("*")
}  # fmt: skip


def state(name: str) -> str:
    """Why treadle has no ``name``; empty where the field has no such name either.

    >>> state("Volume")
    'sparse volumes are not part of this release'
    """
    if name in _EXACT:
        return _EXACT[name]
    return next((why for beginning, why in _BEGINNINGS.items() if name.startswith(beginning)), "")


def absent(module: str, name: str) -> AttributeError:
    """The error for a name that ``module`` lacks."""
    part = module.partition(".")[2].partition(".")[0]
    why = "" if name.startswith("_") else state(name) or state(part)
    return AttributeError(f"{module} has no {name!r}{' yet' if why.endswith(_LATER) else ''}{why and ': ' + why}")
