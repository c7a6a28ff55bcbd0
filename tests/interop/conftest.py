"""JAX gets two CPU devices, so that meshes can be tested; it reads the flag when it is imported."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
