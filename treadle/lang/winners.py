"""Gradients of least and greatest values where a graph is captured: what belongs to elements that a launch did not
change is put aside by kernels, as a graph cannot ask NumPy."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..base.errors import CaptureError
from ..runtime.array import array
from ..runtime.construct import zeros_like
from ..runtime.writes import put_value
from ..types.annotations import ArrayAnnotation
from ..types.core import Matrix, Scalar, Vector
from ..types.values import class_of
from .contents import copied
from .kernel import Kernel
from .launch import launch


@cache
def _kernel() -> Kernel:
    from ..builtins.language import tid

    def set_aside(grad, before, after, kept):  # noqa: ANN001, ANN202
        i = tid()
        if before[i] == after[i]:
            kept[i] = grad[i]
            grad[i] = grad.dtype(0.0)

    set_aside.__annotations__ = dict.fromkeys(("grad", "before", "after", "kept"), ArrayAnnotation(Any, 1))
    return Kernel(set_aside)


def set_aside(grad: array, before: array, after: array) -> array:
    """Take out of ``grad`` what belongs to elements that are the same ``before`` and ``after``, both dense; an array of
    it, to be added back.

    Raises:
        CaptureError: the elements are structs.
    """
    t = grad._element.type
    scalar = t.elem if isinstance(t, Vector | Matrix) else t
    if not isinstance(scalar, Scalar):
        raise CaptureError(f"the adjoint of atomic minima and maxima of {grad!r} cannot be captured")
    dense = copied(grad)
    kept = zeros_like(dense, requires_grad=False)
    flat = [a.flatten().view(class_of(scalar)).flatten() for a in (dense, before, after, kept)]
    launch(_kernel(), flat[0].size, flat, record_tape=False)
    put_value(grad, dense)
    return kept
