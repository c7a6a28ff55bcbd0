"""``warp._src.context``: modules, devices, versions and the process's runtime."""

from .answers import answers

_ROOMS = {
    "lang.module": "user_modules=MODULES _get_caller_module_name=caller_name",
    "lang.session": "runtime Runtime",
    "base.logs": "log_debug log_info log_warning log_error",
    "types.groups": "scalar_types",
    "runtime.device": "Devicelike=DeviceLike",
    "runtime.allocators": "CpuDefaultAllocator=HostAllocator CpuPinnedAllocator=HostAllocator",
    "lang.diagnostics": "get_warp_version=language_level get_warp_clang_version=language_level "
                     "get_llvm_version=llvm_version get_host_compiler_version=compiler "
                     "get_libmathdx_version=no_version get_nanovdb_version=no_version "
                     "get_nvrtc_version=no_toolkit",
    "types.codes": "type_str",
    "types.inquiry": "type_repr",
    "lang.host": "builtin_functions",
    "lang.recorded": "Launch LaunchBounds=Bounds",
    "lang.graph": "capture_pause capture_resume _is_graph_capture_allocation_supported=allocates",
    "lang.blocks": "_resolve_launch_block_dim=effective_on",
    "runtime.launch": "_canonicalize_dim=normal_dims",
}  # fmt: skip

_MACHINERY = {
    "it reads or writes the C++ text of Warp's compiler; treadle compiles kernels through an IR of its own":
        "ModuleBuilder ModuleHasher ModuleExec ModuleBuildOptions codegen_kernel",
    "builtins are records of treadle's registry, with type rules of their own": "add_builtin "
        "get_builtin_call_desc BuiltinCallDesc get_template_scalars ctype_ret_str",
    "treadle has no native library whose version could differ": "_verify_library_version",
    "there is no GPU code to build here": "_validate_cuda_device_arch _smem_shortfall_clause "
        "_apic_prepare_cuda_source _build_cuda_kernel_params",
    "arguments are packed by native code made for each signature": "pack_arg invoke invoke_cpu_blocks "
        "_build_cpu_args_structs",
}  # fmt: skip

__getattr__ = answers(__name__, _ROOMS, _MACHINERY)
