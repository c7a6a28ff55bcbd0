"""A process that turns LLVM text into object code: requests on standard input, answers on standard output.

Started by :mod:`treadle.codegen.workers`. A frame is its length (8 bytes, little-endian) and its bytes. A request is
two frames, the target as JSON and the text; an answer is two frames, an error message (empty if there is none) and the
code.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from typing import BinaryIO

from ..base.target import Target

_LENGTH = struct.Struct("<Q")


def put(stream: BinaryIO, data: bytes) -> None:
    """Write a frame."""
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)


def get(stream: BinaryIO) -> bytes | None:
    """Read a frame; None where the stream ends before it is complete."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


def put_request(stream: BinaryIO, text: str, target: Target) -> None:
    """Ask for the code of ``text``."""
    put(stream, json.dumps(target).encode())
    put(stream, text.encode())
    stream.flush()


def get_request(stream: BinaryIO) -> tuple[str, Target] | None:
    """The next request; None where there is none."""
    target, text = get(stream), get(stream)
    return None if target is None or text is None else (text.decode(), Target(*json.loads(target)))


def compile_text(text: str, target: Target) -> bytes:
    """What LLVM makes of ``text``: object code, or PTX text for a GPU."""
    if target.kind == "nvptx":
        from . import nvptx

        return nvptx.compile_text(text, target)
    from . import cpu

    return cpu.compile_text(text, target)


def serve() -> None:
    """Answer requests until there are no more."""
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever LLVM or Python prints shall not mix with the answers
    while True:
        request = get_request(requests)
        if request is None:
            return
        try:
            error, code = b"", compile_text(*request)
        except Exception as problem:  # the other process raises it
            error, code = f"{type(problem).__name__}: {problem}".encode(), b""
        put(answers, error)
        put(answers, code)
        answers.flush()


if __name__ == "__main__":
    serve()
