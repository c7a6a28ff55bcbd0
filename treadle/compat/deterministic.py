"""``warp._src.deterministic``: the modes. The records that Warp keeps of what threads add are its own machinery."""

from ..base.config import DeterministicMode
from .answers import answers

DETERMINISTIC_NOT_GUARANTEED, DETERMINISTIC_RUN_TO_RUN, DETERMINISTIC_GPU_TO_GPU = DeterministicMode

_MACHINERY = {
    "results repeat without records of what threads add":
        "DETERMINISTIC_FAMILY_ADD DETERMINISTIC_SCATTER_MAX_CAPACITY REDUCE_OP_ADD REDUCE_OP_MIN REDUCE_OP_MAX "
        "ScatterTarget allocate_scatter_buffers get_scatter_record_count run_sort_reduce",
}  # fmt: skip

__getattr__ = answers(__name__, {}, _MACHINERY)
