"""``warp._src.codegen``: its error classes."""

from .answers import answers

_MACHINERY = {
    "it reads or writes the C++ text of Warp's compiler; treadle compiles kernels through an IR of its own":
        "Adjoint Var Block codegen_func codegen_func_forward codegen_func_reverse codegen_kernel codegen_module "
           "codegen_snippet codegen_struct compute_type_str constant_str cuda_kernel_forward_name "
           "cuda_kernel_backward_name cuda_module_header cpu_module_header get_arg_type resolve_grid_stride "
           "_is_tid_call _substitute_nodes",
    "compiling takes no lock that a program could hold": "_codegen_lock",
    "sources are not shared through a table": "_SharedFunctionSource _shared_function_sources "
                                              "_shared_source_for_code _store_shared_source",
}  # fmt: skip

__getattr__ = answers(__name__, {}, _MACHINERY, (".types",))
