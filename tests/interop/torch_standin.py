"""A stand-in for what treadle asks of PyTorch about GPUs: streams, and tensors on ``cuda:0`` of the stand-in for the
driver. It proves which stream waits for which; what PyTorch does on a GPU it does not know."""

from types import SimpleNamespace

import treadle as wp
from treadle.interop import torch_arrays

torch = torch_arrays.torch()


class Tensor:
    """A tensor over the memory of an array of the GPU: what :func:`treadle.from_torch` looks at."""

    __module__ = "torch"
    is_cpu, is_cuda, is_leaf, requires_grad, grad = False, True, True, False, None
    device, layout = torch.device("cuda", 0), torch.strided

    def __init__(self, a):
        self.a, self.shape, self.dtype = a, torch.Size(a.shape), wp.dtype_to_torch(a.dtype)

    def stride(self):
        return tuple([step // 4 for step in self.a.strides])

    def data_ptr(self):
        return self.a.ptr

    def is_neg(self):
        return False

    def _is_view(self):
        return False

    def __dlpack__(self, **options):
        return self.a.__dlpack__(**options)


def install(monkeypatch, stream):
    """From now on PyTorch's current stream of ``cuda:0`` is ``stream.now``."""
    cuda = SimpleNamespace(
        current_stream=lambda device=None: SimpleNamespace(cuda_stream=stream.now, device=torch.device("cuda", 0)),
        is_available=lambda: True, current_device=lambda: 0,
        ExternalStream=lambda handle, device=None: SimpleNamespace(cuda_stream=handle, device=device),
    )  # fmt: skip
    names = SimpleNamespace(**{name: getattr(torch, name) for name in dir(torch) if not name.startswith("_")})
    names.cuda, names.Tensor = cuda, (torch.Tensor, Tensor)  # as what `isinstance` takes
    monkeypatch.setattr(torch_arrays, "torch", lambda: names)
