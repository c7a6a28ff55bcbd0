"""``warp._src.jax.ffi``: functions of JAX."""

from ..answers import answers

_ROOMS = {
    "interop.jax_kernel": "jax_kernel JaxModulePreloadMode ModulePreloadMode=JaxModulePreloadMode FfiKernel=JaxKernel",
    "interop.jax_callable": "jax_callable JaxCallableGraphMode GraphMode=JaxCallableGraphMode FfiCallable=JaxCallable "
                            "clear_jax_callable_graph_cache "
                            "JAX_CALLABLE_DEFAULT_GRAPH_CACHE_MAX=GRAPH_CACHE_MAX",
}  # fmt: skip

_MACHINERY = {
    "XLA calls machine code here; a function of Python is reached by wp.jax_callable": "register_ffi_callback",
    "code is compiled when JAX compiles what calls it": "_preload_ffi_module",
    "the grid of a launch is checked by the program that is launched": "_build_kernel_launch_bounds",
}  # fmt: skip

__getattr__ = answers(__name__, _ROOMS, _MACHINERY)
