"""How many threads share a block in the kernel that is being compiled: one, unless a launch asks for more and
``wp.config.enable_cpu_blocks`` is set. ``wp.block_dim()`` reads it, and what was compiled is kept under it."""

from contextvars import ContextVar

SIZE: ContextVar[int] = ContextVar("SIZE", default=1)
