"""``warp._src.apic.types``: all of it is machinery."""

from ..answers import answers

_MACHINERY = {
    "graphs are not written to files": "APIC_CUDA_ARCH_SUFFIX_A APIC_CUDA_BINARY_CUBIN APIC_CUDA_BINARY_NONE "
        "APIC_CUDA_BINARY_PTX APIC_CUDA_FALLBACK_AVAILABLE APIC_CUDA_FALLBACK_SOURCE_UNAVAILABLE "
        "APICCudaCompileRecipe APICModuleBytes",
}  # fmt: skip

__getattr__ = answers(__name__, {}, _MACHINERY)
