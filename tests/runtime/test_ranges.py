"""Sets of byte ranges against sets of integers."""

import random

from treadle.runtime.ranges import Ranges


def test_every_question_agrees_with_a_set_of_integers():
    for seed in range(200):
        rng = random.Random(seed)
        ranges, wanted = Ranges(), set()
        for _ in range(30):
            low = rng.randrange(60)
            high = low + rng.randrange(15)
            if rng.random() < 0.6:
                ranges.add(low, high)
                wanted |= {*range(low, high)}
            else:
                ranges.cut(low, high)
                wanted -= {*range(low, high)}
            found = [*ranges]
            assert {x for a, b in found for x in range(a, b)} == wanted
            assert ranges.nbytes == len(wanted) and len(ranges) == len(found) and bool(ranges) == bool(wanted)
            assert all(end < begin for (_, end), (begin, _) in zip(found, found[1:])), "touching ranges are joined"
            low = rng.randrange(60)
            high = low + 1 + rng.randrange(15)
            asked = {*range(low, high)}
            assert ranges.meets(low, high) == bool(asked & wanted)
            assert ranges.holds(low, high) == (asked <= wanted)
            around = ranges.around(low)
            assert around is None if low not in wanted else around in found and around[0] <= low < around[1]
            assert {x for a, b in ranges.within(low, high) for x in range(a, b)} == asked & wanted
            assert {x for a, b in ranges.outside(low, high) for x in range(a, b)} == asked - wanted


def test_a_copy_changes_by_itself():
    first = Ranges([(0, 4), (8, 12)])
    second = first.copy()
    second.add(4, 8)
    assert [*first] == [(0, 4), (8, 12)] and [*second] == [(0, 12)]
