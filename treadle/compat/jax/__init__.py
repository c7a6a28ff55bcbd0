"""``warp._src.jax``: arrays, types and devices of JAX."""

from ..answers import answers

_ROOMS = {
    "interop.jax_arrays": "dtype_to_jax dtype_from_jax device_to_jax device_from_jax to_jax from_jax "
                          "get_jax_device=current_device",
    "interop.jax_kernel": "jax_kernel",
    "interop.jax_callable": "jax_callable",
}  # fmt: skip

__getattr__ = answers(__name__, _ROOMS, {})
