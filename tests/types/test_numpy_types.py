"""How NumPy sees values and types."""

import numpy as np

from treadle.types import values
from treadle.types.core import b1, bf16, f16, f32, f64, i8, i32, matrix, u8
from treadle.types.values import numpy_dtype, type_of_numpy


def test_numpy_reads_values_and_dtypes():
    assert np.array(values.vec3(1, 2, 3)).dtype == np.float32
    assert np.array([values.vec2(1, 2), values.vec2(3, 4)]).shape == (2, 2)
    assert np.asarray(values.mat33(1.0)).shape == (3, 3)
    assert numpy_dtype(matrix(3, 3, f64)) == np.dtype((np.float64, (3, 3)))
    assert type_of_numpy(np.int8) is i8 and type_of_numpy(">f4") is f32 and type_of_numpy(np.complex64) is None
    assert [numpy_dtype(t) for t in (b1, u8, f16, bf16, i32)] == ["?", "u1", "f2", "u2", "i4"]
