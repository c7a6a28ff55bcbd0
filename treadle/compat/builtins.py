"""``warp._src.builtins``: the tables of its builtins."""

from .answers import answers

_MACHINERY = {
    "builtins are records of treadle's registry, with type rules of their own": "tile_full_value_func "
        "tile_randf_dispatch_func tile_randi_dispatch_func sametypes_create_value_func",
}  # fmt: skip

__getattr__ = answers(__name__, {}, _MACHINERY)
