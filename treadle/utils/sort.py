"""Sorting pairs by key, whole arrays and segments of them.

Radix sort from the least digit up, eight bits a digit (D. Knuth, The Art of Computer Programming 3, 5.2.5), in blocks
of neighbours: each thread counts the digits of its block; a prefix sum over all counts, digit by digit and block by
block, says where each thread's pairs of a digit begin; then each thread moves its pairs there, in order. Nothing
depends on which thread comes first. Keys are compared as unsigned integers: signed ones with their sign flipped; floats
with their sign flipped, negative ones with all bits. So -0.0 comes before 0.0, and NaNs go to the ends by their sign.

What is sorted are words, of which tapes know no derivative. Where floats are to have one, the order is found aside, and
they move by it, in a launch that tapes follow. A sort is a permutation, and the same one nearby if no keys are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import treadle as wp

from ..base.errors import ArrayError
from ..lang.tape import followed
from ..runtime.capture import recording
from ..types.layout import has_floats
from .arrays import same_device, words
from .scan import array_scan

DIGIT = 8  # bits
VALUES = 1 << DIGIT  # that a digit can have
BLOCK = 4096  # pairs of a thread
FEW = 24  # pairs of a segment that are sorted sooner by insertion
MOST = 2**31 - 1  # pairs: indices are int32
KEYS = (wp.int32, wp.uint32, wp.float32, wp.int64, wp.uint64, wp.float64)


class Order:
    """How the bits of keys of one dtype become digits: constants of the type ``word`` that kernels are made with."""

    def __init__(self, dtype: Any):
        self.bits = 8 * wp.types.type_size_in_bytes(dtype)
        self.word = {32: wp.uint32, 64: wp.uint64}[self.bits]
        unsigned, floating = dtype in (wp.uint32, wp.uint64), wp.types.type_is_float(dtype)
        self.sign = self.word(0 if unsigned else 1 << (self.bits - 1))
        self.negative = self.word((1 << self.bits) - 1 if floating else 0)


@cache
def _digit(dtype: Any) -> wp.Function:
    """The function that finds a digit of a key: what ``mask`` leaves of its bits from ``shift`` on."""
    order = Order(dtype)
    word, sign, negative, top = order.word, order.sign, order.negative, order.word(order.bits - 1)

    @wp.func(module="unique")
    def digit(key: word, shift: word, mask: word):
        ordered = key ^ (sign | (negative & (word(0) - (key >> top))))
        return (ordered >> shift) & mask

    return digit


@cache
def _passes(dtype: Any) -> tuple[wp.Kernel, wp.Kernel]:
    """The two kernels of a pass over keys of ``dtype``: counting, and moving. Places are unsigned: none counts from the
    end."""
    word, digit = Order(dtype).word, _digit(dtype)

    @wp.kernel(module="unique", gang_width=1, detached=True)
    def count_digits(keys: wp.array(dtype=word), shift: word, mask: word, counts: wp.array2d(dtype=int)):
        block = wp.tid()
        count = wp.zeros(shape=VALUES, dtype=int)
        for i in range(BLOCK * block, wp.min(BLOCK * (block + 1), keys.shape[0])):
            count[digit(keys[i], shift, mask)] += 1
        for d in range(VALUES):
            counts[d, block] = count[d]

    @wp.kernel(module="unique", gang_width=1, detached=True)
    def move_pairs(
        keys: wp.array(dtype=word), values: wp.array(dtype=Any), shift: word, mask: word, starts: wp.array2d(dtype=int),
        sorted_keys: wp.array(dtype=word), sorted_values: wp.array(dtype=Any),
    ):  # fmt: skip
        block = wp.tid()
        place = wp.zeros(shape=VALUES, dtype=wp.uint32)
        for d in range(VALUES):
            place[d] = wp.uint32(starts[d, block])
        for i in range(BLOCK * block, wp.min(BLOCK * (block + 1), keys.shape[0])):
            key = keys[i]
            d = digit(key, shift, mask)
            at = place[d]
            place[d] = at + wp.uint32(1)
            sorted_keys[at] = key
            sorted_values[at] = values[i]

    return count_digits, move_pairs


@wp.kernel
def place_numbers(order: wp.array(dtype=int)):
    i = wp.tid()
    order[i] = i


@wp.kernel
def move_by(order: wp.array(dtype=int), source: wp.array(dtype=Any), target: wp.array(dtype=Any)):
    i = wp.tid()
    target[i] = source[order[i]]


def _sorted(keys: wp.array, values: wp.array, count: int, sort: Callable[[wp.array, wp.array], None]) -> None:
    """Let ``sort`` the first ``count`` pairs, given as words; where tapes and tangents follow floats they go along."""
    floats = [a for a in (keys, values) if has_floats(a.type.elem)]
    if not floats or not followed():
        sort(words(keys, keys.dtype), words(values, values.dtype))
        return
    order = wp.empty(2 * count, dtype=int, device=keys.device)
    wp.launch(place_numbers, count, outputs=[order], device=keys.device)
    aside = wp.clone(keys.flatten()[: 2 * count], requires_grad=False)
    sort(words(aside, keys.dtype), words(order, wp.int32))
    for a in (keys, values):
        flat = a.flatten()[:count]
        wp.launch(move_by, count, inputs=[order, wp.clone(flat)], outputs=[flat], device=keys.device)


def radix_sort_pairs(
    keys: wp.array, values: wp.array, count: int, begin_bit: int = 0, end_bit: int | None = None
) -> None:
    """Sort the first ``count`` pairs of a key and a value by key, upwards; equal keys keep their order.

    Args:
        keys: int32, uint32, float32, int64, uint64 or float64, without gaps, with room for ``2 * count``: the second
            half is scratch.
        values: elements of 4 or 8 bytes, without gaps, with room for ``2 * count`` too.
        count: how many pairs.
        begin_bit, end_bit: compare only these bits of the keys, as they stand in sorting order.

    Raises:
        ArrayError: devices that differ, too little room, gaps, other dtypes, or bits that keys do not have.

    Gradients of ``values``, and of ``keys`` that are floats, go where these came from (beyond Warp).

    >>> import treadle as wp
    >>> keys, values = wp.array([3, 1, 2, 0, 0, 0], dtype=int), wp.array([30, 10, 20, 0, 0, 0], dtype=int)
    >>> wp.utils.radix_sort_pairs(keys, values, 3)
    >>> keys.list()[:3], values.list()[:3]
    ([1, 2, 3], [10, 20, 30])
    """
    same_device(keys, values, "keys and values lie on different devices")
    if keys.dtype not in KEYS or wp.types.type_size_in_bytes(values.dtype) not in (4, 8):
        raise ArrayError(f"Unsupported keys and values data types: {keys.dtype.__name__}, {values.dtype.__name__}")
    _require_contiguous("radix_sort_pairs", keys=keys, values=values)
    bits = 8 * wp.types.type_size_in_bytes(keys.dtype)
    end_bit = bits if end_bit is None else end_bit
    if not 0 <= begin_bit <= end_bit <= bits:
        raise ArrayError(f"Invalid radix sort bit range [{begin_bit}, {end_bit}) for {bits}-bit keys")
    if count < 0:
        raise ArrayError(f"count must be non-negative, got {count}")
    if keys.size < 2 * count or values.size < 2 * count:
        raise ArrayError(f"keys and values need room for 2 * count = {2 * count} elements each")
    _sorted(keys, values, count, lambda k, v: _radix_sort(k, v, count, begin_bit, end_bit, keys.dtype))


def _radix_sort(k: wp.array, v: wp.array, count: int, begin_bit: int, end_bit: int, dtype: Any) -> None:
    """The same of keys of ``dtype`` and values as words."""
    source, target = (k[:count], v[:count]), (k[count : 2 * count], v[count : 2 * count])
    blocks = -(-count // BLOCK)
    counts = wp.empty((VALUES, blocks), dtype=int, device=k.device)
    count_digits, move_pairs = _passes(dtype)
    for bit in range(begin_bit, end_bit, DIGIT):
        shift, mask = k.dtype(bit), k.dtype((1 << min(DIGIT, end_bit - bit)) - 1)
        wp.launch(count_digits, blocks, inputs=[source[0], shift, mask], outputs=[counts], device=k.device)
        array_scan(counts, counts, inclusive=False)
        wp.launch(move_pairs, blocks, inputs=[*source, shift, mask, counts], outputs=target, device=k.device)
        source, target = target, source
    if source[0]._address != k._address:
        wp.copy(k, source[0], count=count)
        wp.copy(v, source[1], count=count)


def _require_contiguous(function: str, **arrays: wp.array) -> None:
    """Refuse arrays with gaps between their elements, also if there is one element and the next launch would fail."""
    types = ", ".join([a.dtype.__name__ for a in arrays.values()])
    for name, a in arrays.items():
        if not a.is_contiguous or (a.ndim == 1 and a.strides[0] != wp.types.type_size_in_bytes(a.dtype)):
            raise ArrayError(
                f"{function}() requires a contiguous {name} array, got non-contiguous {name} with data types: {types}"
            )


@wp.kernel
def first_wrong(starts: wp.array(dtype=int), ends: wp.array(dtype=int), count: int, wrong: wp.array(dtype=int)):
    """The first segment that does not lie within ``count`` elements."""
    i = wp.tid()
    if starts[i] < 0 or ends[i] < starts[i] or count < ends[i]:
        wp.atomic_min(wrong, 0, i)


@wp.kernel
def check_segments(starts: wp.array(dtype=int), ends: wp.array(dtype=int), count: int):
    """Complain about a segment that does not lie within ``count`` elements."""
    i = wp.tid()
    assert starts[i] >= 0 and ends[i] >= starts[i] and ends[i] <= count, "Invalid segment range"


def _refuse_wrong(starts: wp.array, ends: wp.array, count: int) -> None:
    wrong = wp.full(1, starts.size, dtype=int, device=starts.device)
    wp.launch(first_wrong, starts.size, inputs=[starts, ends, count, wrong], device=starts.device)
    found = int(wrong.numpy()[0])
    if found < starts.size:
        at = f"[{starts.numpy()[found]}, {ends.numpy()[found]})"
        raise ArrayError(f"Invalid segment range at index {found}: {at} does not lie in [0, {count})")


@cache
def _segments(dtype: Any) -> wp.Kernel:
    """The kernel that sorts segments with keys of ``dtype``, one a thread."""
    order, digit = Order(dtype), _digit(dtype)
    word, sign, negative, top = order.word, order.sign, order.negative, order.word(order.bits - 1)
    bits = order.bits

    @wp.func(module="unique")
    def less(a: word, b: word):
        return (a ^ (sign | (negative & (word(0) - (a >> top))))) < (b ^ (sign | (negative & (word(0) - (b >> top)))))

    @wp.func(module="unique")
    def insert(keys: wp.array(dtype=word), values: wp.array(dtype=Any), begin: int, end: int):
        for i in range(begin + 1, end):
            key, value, j = keys[i], values[i], i
            while j > begin and less(key, keys[j - 1]):
                keys[j] = keys[j - 1]
                values[j] = values[j - 1]
                j -= 1
            keys[j] = key
            values[j] = value

    @wp.func(module="unique")
    def move(keys: wp.array(dtype=word), values: wp.array(dtype=Any), source: int, target: int, n: int, shift: int):
        """Move ``n`` pairs from ``source`` on to ``target`` in the order of a digit, unless it is the same in all."""
        bit, mask = word(shift), word(VALUES - 1)
        place = wp.zeros(shape=VALUES, dtype=wp.uint32)
        for i in range(source, source + n):
            place[digit(keys[i], bit, mask)] += wp.uint32(1)
        if place[digit(keys[source], bit, mask)] == wp.uint32(n):
            return False
        total = wp.uint32(target)
        for d in range(VALUES):
            count = place[d]
            place[d] = total
            total += count
        for i in range(source, source + n):
            key = keys[i]
            d = digit(key, bit, mask)
            at = place[d]
            place[d] = at + wp.uint32(1)
            keys[at] = key
            values[at] = values[i]
        return True

    @wp.kernel(module="unique", gang_width=1, detached=True)
    def sort_segments(
        keys: wp.array(dtype=word), values: wp.array(dtype=Any), count: int, starts: wp.array(dtype=int),
        ends: wp.array(dtype=int),
    ):  # fmt: skip
        s = wp.tid()
        begin, n = starts[s], ends[s] - starts[s]
        if n <= FEW:
            insert(keys, values, begin, begin + n)
        else:
            source, target = begin, count + begin
            for shift in range(0, bits, DIGIT):
                if move(keys, values, source, target, n, shift):
                    source, target = target, source
            if source != begin:
                for i in range(n):
                    keys[begin + i] = keys[source + i]
                    values[begin + i] = values[source + i]

    return sort_segments


def segmented_sort_pairs(
    keys: wp.array, values: wp.array, count: int, segment_start_indices: wp.array,
    segment_end_indices: wp.array | None = None,
) -> None:  # fmt: skip
    """Sort the pairs of a key and a value within each segment by key, upwards; equal keys keep their order.

    Args:
        keys: int32 or float32 (beyond Warp: the key types of :func:`radix_sort_pairs`), without gaps, with room for
            ``2 * count``: the second half is scratch.
        values: int32, without gaps, with room for ``2 * count`` too.
        count: how many pairs the segments lie among.
        segment_start_indices: where segments begin, int32. Segments must not overlap.
        segment_end_indices: where they end (the first element that is not part of one); left out, each segment ends
            where the next one begins, and the last entry begins none.

    Raises:
        ArrayError: devices or dtypes that do not fit, gaps, too little room, or segments that reach outside; nothing
            has been sorted then.
        TypeError: ``count`` is not an int.

    Each segment is sorted by one thread, all of them at the same time. Gradients of keys that are floats go where these
    came from (beyond Warp).

    >>> import treadle as wp
    >>> keys = wp.array([9, 7, 8, 2, 1, 0, 0, 0, 0, 0], dtype=int)
    >>> values = wp.array([0, 1, 2, 3, 4, 0, 0, 0, 0, 0], dtype=int)
    >>> wp.utils.segmented_sort_pairs(keys, values, 5, wp.array([0, 3, 5], dtype=int))
    >>> keys.list()[:5], values.list()[:5]
    ([7, 8, 9, 1, 2], [1, 2, 0, 4, 3])
    """
    starts, ends = segment_start_indices, segment_end_indices
    if isinstance(count, bool) or not hasattr(count, "__index__"):
        raise TypeError(f"count must be an integer, not {type(count).__name__}")
    if count < 0:
        raise ArrayError(f"count must be non-negative, got {count}")
    if count > MOST:
        raise ArrayError(f"count must not exceed {MOST}, got {count}")
    given = [keys, values, starts] + ([] if ends is None else [ends])
    if any(a.device != keys.device for a in given):
        raise ArrayError("keys, values and segment indices lie on different devices")
    indices = {"segment_start_indices": starts} | ({} if ends is None else {"segment_end_indices": ends})
    for name, a in indices.items():
        if a.ndim != 1:
            raise ArrayError(f"{name} must be one-dimensional, not of {a.ndim} dimensions")
        if a.dtype is not wp.int32:
            raise ArrayError(f"{name} array must be of type int32")
    _require_contiguous("segmented_sort_pairs", keys=keys, values=values, **indices)
    if keys.size < 2 * count or values.size < 2 * count:
        raise ArrayError(f"keys and values need room for 2 * count = {2 * count} elements each")
    if ends is None:
        starts, ends = starts[:-1], starts[1:]
    if starts.size != ends.size:
        sizes = f"({starts.size} vs {ends.size})"
        raise ArrayError(f"segment_start_indices and segment_end_indices must have the same size {sizes}")
    if keys.dtype not in KEYS:
        known = ", ".join([t.__name__ for t in KEYS])
        raise ArrayError(f"Unsupported data type: {keys.dtype.__name__}, of the keys, which are one of {known}")
    if values.dtype is not wp.int32:
        raise ArrayError(
            f"segments are sorted with values of int32 (numbers of what goes along, say), not {values.dtype.__name__}; "
            f"with such values keys are of an Unsupported data type: {keys.dtype.__name__}"
        )
    if not starts.size:
        return
    if recording():  # a graph looks each time it runs
        wp.launch(check_segments, starts.size, inputs=[starts, ends, count], device=keys.device, checked=True)
    else:
        _refuse_wrong(starts, ends, count)
    kernel, device = _segments(keys.dtype), keys.device
    _sorted(keys, values, count, lambda k, v: wp.launch(
        kernel, starts.size, inputs=[k, v, count, starts, ends], device=device))  # fmt: skip
