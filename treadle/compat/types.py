"""``warp._src.types``: type sets, type helpers, array annotations."""

from .answers import answers

_ROOMS = {
    "types.groups": "int_types float_types scalar_types scalar_and_bool_types native_scalar_types value_types "
                    "vector_types non_atomic_types np_dtype_to_warp_type warp_type_to_np_dtype scalar_base int_base "
                    "float_base",
    "types.numbers": "_np_bfloat16_bits_to_float32=bf16_values _np_float32_to_bfloat16_bits=bf16_bits",
    "types.codes": "get_type_code get_signature strides_from_shape check_array_shape",
    "types.annotations": "_ArrayAnnotationBase=ArrayAnnotation _ArrayAnnotation=ArrayAnnotation "
                         "_IndexedArrayAnnotation=ArrayAnnotation Reference",
    "lang.families": "ARRAY_TYPE_REGULAR ARRAY_TYPE_INDEXED ARRAY_TYPE_FABRIC ARRAY_TYPE_FABRIC_INDEXED "
                     "array_types array_type_id concrete_array_type matches_array_class",
    "types.composite_values": "Vector=VectorValue Matrix=MatrixValue Quaternion=QuaternionValue "
                              "Transformation=TransformValue",
    "types.records": "ARRAY_MAX_DIMS=MAX_DIMS LAUNCH_MAX_DIMS=MAX_DIMS",
}  # fmt: skip

_MACHINERY = {
    "the bounds of a launch, and arrays, are no ctypes structures here": "launch_bounds_t _launch_bounds_classes "
        "array_t indexedarray_t",
}  # fmt: skip

__getattr__ = answers(__name__, _ROOMS, _MACHINERY, (".types",))
