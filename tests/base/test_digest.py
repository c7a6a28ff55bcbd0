"""Digests tell lists of parts apart, not only their concatenation."""

from treadle.base.digest import digest


def test_parts_are_told_apart():
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("abc", ""), digest()}) == 5


def test_text_and_its_bytes_are_one():
    assert digest("größe") == digest("größe".encode()) and len(digest("x")) == 64
