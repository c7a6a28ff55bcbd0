"""Object code for processors and systems that this machine is not: made, and looked into, never run.

``install`` makes whatever is compiled from then on into objects for other targets too: ``pytest --objects=all`` for the
kernels of the tests, ``CONFORMANCE_OBJECTS=folder python tests/conformance/run.py …`` for those of the conformance
suite, whose failures are listed in that folder (``python -m tests.targets folder`` adds them up).
"""

from __future__ import annotations

import functools
import os
import struct
import sys
from collections import Counter
from pathlib import Path

from treadle.base.digest import digest
from treadle.base.target import Target
from treadle.codegen import cpu

MACHINES = {
    "avx512": Target("cpu", "x86_64-unknown-linux-gnu", "znver4", "+avx512f,+avx512vl,+avx512bw,+avx512dq", 16),
    "avx2": Target("cpu", "x86_64-pc-windows-msvc", "x86-64-v3", "+avx2,+fma,+f16c", 8),
    "sse2": Target("cpu", "x86_64-unknown-linux-gnu", "x86-64", "", 4),
    "neon": Target("cpu", "aarch64-unknown-linux-gnu", "neoverse-n1", "", 4),
    "apple": Target("cpu", "arm64-apple-darwin23", "apple-m1", "", 4),
    "mac": Target("cpu", "x86_64-apple-darwin22", "haswell", "+avx2,+fma,+f16c", 8),
}
FOREIGN = ("avx2", "neon", "apple", "mac")  # what is neither this system nor this kind of processor
# What every process of a system has: a function of ntdll for frames of more than a page, and those that fill memory.
GIVEN = {"avx2": {"__chkstk"}, "apple": {"bzero"}, "mac": {"__bzero"}}
MAGIC = {"avx2": b"\x64\x86", "apple": b"\xcf\xfa\xed\xfe", "mac": b"\xcf\xfa\xed\xfe"}  # others are ELF


def symbols(code: bytes) -> tuple[set[str], set[str]]:
    """The names that an object defines for others, and those that it wants from others."""
    if code.startswith(b"\x7fELF"):
        return _elf(code)
    return _macho(code) if code.startswith(b"\xcf\xfa\xed\xfe") else _coff(code)


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()


def _elf(code: bytes) -> tuple[set[str], set[str]]:
    start, size, count = struct.unpack_from("<Q", code, 40)[0], *struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, start + k * size) for k in range(count)]
    made, wanted = set(), set()
    for _, kind, _, _, offset, length, link, *_ in sections:
        for at in range(offset, offset + length, 24) if kind == 2 else ():
            name, info, _, section = struct.unpack_from("<IBBH", code, at)
            if name and info >> 4:  # global or weak
                (made if section else wanted).add(_text(code, sections[link][4] + name))
    return made, wanted


def _coff(code: bytes) -> tuple[set[str], set[str]]:
    table, count = struct.unpack_from("<II", code, 8)
    made, wanted, k = set(), set(), 0
    while k < count:
        raw, _, section, _, storage, extra = struct.unpack_from("<8sIhHBB", code, table + 18 * k)
        name = _text(code, table + 18 * count + struct.unpack("<4xI", raw)[0]) if raw[:4] == b"\0\0\0\0" else \
            raw.rstrip(b"\0").decode()  # fmt: skip
        if storage == 2:  # external
            (made if section else wanted).add(name)
        k += 1 + extra
    return made, wanted


def _macho(code: bytes) -> tuple[set[str], set[str]]:
    at, made, wanted = 32, set(), set()
    for _ in range(struct.unpack_from("<I", code, 16)[0]):
        command, size = struct.unpack_from("<II", code, at)
        if command == 2:  # the table of symbols
            first, count, names, _ = struct.unpack_from("<IIII", code, at + 8)
            for k in range(count):
                name, kind, _, _, _ = struct.unpack_from("<IBBHQ", code, first + 16 * k)
                if kind & 1:  # external
                    (made if kind & 0x0E else wanted).add(_text(code, names + name).removeprefix("_"))
        at += size
    return made, wanted


def complaint(made: cpu.Draft, machine: str, code: bytes) -> str:
    """What is wrong with the object of ``made``: its format, what it defines, or what nobody would give it."""
    if not code.startswith(MAGIC.get(machine, b"\x7fELF")):
        return "not an object of this system"
    defined, wanted = symbols(code)
    missing, unknown = {*made.symbols} - defined, wanted - {*cpu._IMPORTS} - GIVEN.get(machine, set())
    return " ".join([*[f"lacks {name}" for name in missing], *[f"wants {name}" for name in unknown]])


def install(machines: list[str], folder: str | None = None) -> None:
    """From now on ``cpu.draft`` makes objects for ``machines`` too. What fails is raised, or noted in ``folder``."""
    real, seen = cpu.draft, set()
    if folder is not None:
        os.makedirs(folder, exist_ok=True)

    @functools.wraps(real)
    def draft(func, target, options=None, symbol="kernel"):
        made = real(func, target, options, symbol)
        key = digest(made.text)
        for name in machines if key not in seen else ():
            seen.add(key)
            try:
                other = real(func, MACHINES[name], options, symbol)
                said = complaint(other, name, cpu.compile_text(other.text, other.target))
            except Exception as error:
                if folder is None:
                    raise
                said = f"{type(error).__name__}: {error}".replace("\n", " ")
            if folder is not None:
                with open(Path(folder, f"{os.getpid()}.txt"), "a", encoding="utf-8") as file:
                    file.write(f"{name}\t{func.name}\t{said}\n")
            elif said:
                raise AssertionError(f"the object of {func.name} for {name} {said}")
        return made

    cpu.draft = draft


def report(folder: Path) -> int:
    """Say how many objects were made for each machine, and which failed; how many did."""
    lines = [line.split("\t") for path in sorted(folder.glob("*.txt")) for line in path.read_text().splitlines()]
    for machine, count in Counter(machine for machine, *_ in lines).items():
        print(f"{MACHINES[machine].triple}: {count} objects")
    failed = sorted({(machine, kernel, said) for machine, kernel, said in lines if said})
    for machine, kernel, said in failed:
        print(f"{kernel} for {machine}: {said}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(report(Path(sys.argv[1])) > 0)
