"""``warp._src.build``: all of it is machinery."""

from .answers import answers

_MACHINERY = {
    "no C++ compiler takes part in compiling kernels": "build_cpu build_cuda build_dll build_lto_dot build_lto_solver "
        "build_lto_fft load_cpu load_cuda clear_lto_cache warp _gemm_lto_alignment_unsupported "
        "_gemm_operand_alignments",
}  # fmt: skip

__getattr__ = answers(__name__, {"lang.session": "clear_kernel_cache"}, _MACHINERY)
