"""A log of records becomes the text that C's printf would have written."""

import struct

import pytest

from treadle.runtime.prints import formatted, write


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("%d %i %u\n", [1, -2, 3], "1 -2 3\n"),
        ("%u %x %X %o", [-1, 255, 255, 8], "4294967295 ff FF 10"),
        ("%llu", [-(2**40)], str(2**64 - 2**40)),
        ("%5.2f|%-8d|%+d|%08.3f", [3.14159, 7, 7, 2.5], " 3.14|7       |+7|0002.500"),
        ("%g %g %e", [0.1, 1e20, 12345.678], "0.1 1e+20 1.234568e+04"),
        ("100%% %s %s", ["a", True], "100% a True"),
        ("%f %d", [2, 3.0], "2.000000 3"),
        ("%c", [65], "A"),
        ("%d %d", [1], "1 %d"),
        ("inf %f %g", [float("inf"), float("nan")], "inf inf nan"),
    ],
)
def test_formats(text, values, expected):
    assert formatted(text, values) == expected


def test_records_follow_each_other(capsys):
    sites = [
        {"format": "%d is %s of %g\n", "values": ["i32", {"text": "half"}, "f32"]},
        {"format": "%s %llu\n", "values": ["bool", "u64"]},
    ]
    log = struct.pack("<qqd", 0, -5, 2.5) + struct.pack("<qqQ", 1, 1, 2**64 - 1) + struct.pack("<qqd", 0, 7, 0.5)
    write(log, sites)
    assert capsys.readouterr().out == f"-5 is half of 2.5\nTrue {2**64 - 1}\n7 is half of 0.5\n"
