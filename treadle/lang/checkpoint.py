"""Which states a tape keeps."""

from __future__ import annotations

from .recorder import Recorder


def recorder_for(checkpoint: int | str) -> Recorder:
    """The recorder for ``wp.Tape(checkpoint=…)``.

    Raises:
        ValueError: no schedule of that name.
    """
    if checkpoint != "all":
        raise ValueError(f"checkpoint must be 'all', not {checkpoint!r}")
    return Recorder()
