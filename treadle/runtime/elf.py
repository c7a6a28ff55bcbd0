"""Object code laid out before it is kept, so that loading it needs no linker: ELF for x86-64, as LLVM writes it.

What such an object asks of a loader is little: sections laid out in memory, distances between them filled in, and the
functions found that it calls. All but the last is done here, once; the rest is a copy and some addresses
(:func:`treadle.runtime.loader.link`), in a hundredth of the time that loading and starting LLVM's linker takes.
Whatever is not among the few cases known here stays an object, for that linker. Names and numbers are those of the
System V ABI and of its AMD64 supplement, chapter 4.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ..base.binary import Binary

# What the header of a 64-bit little-endian relocatable file for x86-64 says in e_ident, e_type and e_machine.
_MAGIC, _RELOCATABLE, _X86_64 = b"\x7fELF\x02\x01\x01", 1, 62
_HEADER = struct.Struct("<16xHH20xQ10xHHH")  # e_type, e_machine, e_shoff, e_shentsize, e_shnum, e_shstrndx
_SECTION, _SYMBOL, _RELOCATION = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ"), struct.Struct("<QIIq")

_PROGBITS, _SYMTAB, _RELA, _NOBITS, _UNWIND = 1, 2, 4, 8, 0x70000001
_PLAIN = (".text", ".rodata", ".data", ".bss")  # what sections are called that nobody treats in a special way
_WRITE, _ALLOC, _THREAD_LOCAL = 0x1, 0x2, 0x400
_ADDRESS, _DISTANCE, _CALL, _SLOTS = 1, 2, 4, (9, 41, 42)  # R_X86_64_64, PC32, PLT32, [REX_]GOTPCREL[X]

# A slot holds the address of a symbol, for code that reads it there, and a jump to it, for calls: jmp *-14(%rip).
_SLOT, _JUMP_AT, _JUMP = 16, 8, b"\xff\x25\xf2\xff\xff\xff\xcc\xcc"
_PAGE = 4096


class Unusual(Exception):
    """The object asks for something that is not known here."""


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int

    @property
    def loaded(self) -> bool:
        """Whether it lies in memory. Nothing unwinds through kernels; the tables for that are left out."""
        return bool(self.flags & _ALLOC) and self.type != _UNWIND


class _Symbol(NamedTuple):
    name: str
    section: int  # 0: defined elsewhere
    value: int


class _Relocation(NamedTuple):
    section: int  # in which something is to be filled in
    offset: int
    type: int
    symbol: int
    addend: int


def laid_out(binary: Binary) -> Binary:
    """``binary`` with its code laid out in memory's order and ``layout`` saying what remains to be done; unchanged if
    its code is not an object file of the kind known here."""
    if not binary.code.startswith(_MAGIC):
        return binary
    try:
        code, layout = _lay_out(binary.code, binary.symbols)
    except Unusual:
        return binary
    return binary._replace(code=code, layout=layout)


def _lay_out(code: bytes, wanted: tuple[str, ...]) -> tuple[bytes, dict]:
    """The image of an object file, and its layout: the ``size`` of the whole, zeros behind the image included; from
    where on its pages are ``writable``; the offsets of the ``symbols`` wanted; and ``words``, the offsets of 8 bytes
    that take an address, that of a function outside (by its name) or of a place in the image (by its offset)."""
    sections, symbols = _sections(code), []
    for table in (s for s in sections if s.type == _SYMTAB):
        names = sections[table.link].offset
        for name, _, _, section, value, _ in _SYMBOL.iter_unpack(code[table.offset : table.offset + table.size]):
            symbols.append(_Symbol(_text(code, names + name), section, value))
    relocations = [
        _Relocation(section.info, *entry)
        for section in sections
        if section.type == _RELA and sections[section.info].loaded
        for entry in _RELOCATION.iter_unpack(code[section.offset : section.offset + section.size])
    ]
    used = dict.fromkeys(r.symbol for r in relocations if r.type in _SLOTS or symbols[r.symbol].section == 0)
    bases, slots_at, writable, size = _places(sections, len(used) * _SLOT)
    slots = {number: slots_at + _SLOT * i for i, number in enumerate(used)}

    image = bytearray(size)
    for number, base in bases.items():
        section = sections[number]
        if section.type == _PROGBITS:
            image[base : base + section.size] = code[section.offset : section.offset + section.size]
    words: list[tuple[int, str | int]] = []
    for number, at in slots.items():
        symbol = symbols[number]
        image[at + _JUMP_AT : at + _SLOT] = _JUMP
        words.append((at, symbol.name if symbol.section == 0 else _place(symbol, bases)))
    for r in relocations:
        at, symbol = bases[r.section] + r.offset, symbols[r.symbol]
        if r.type in _SLOTS:
            target = slots[r.symbol]
        elif symbol.section:
            target = _place(symbol, bases)
        elif r.type == _CALL:
            target = slots[r.symbol] + _JUMP_AT
        else:
            raise Unusual(f"{symbol.name} lies outside")
        if r.type == _ADDRESS:
            words.append((at, target + r.addend))
        elif r.type in (_DISTANCE, _CALL, *_SLOTS):
            struct.pack_into("<i", image, at, target + r.addend - at)
        else:
            raise Unusual(f"relocations of type {r.type}")
    defined = {s.name: s for s in symbols if s.section}
    if any(name not in defined for name in wanted):
        raise Unusual("a symbol is missing")
    offsets = {name: _place(defined[name], bases) for name in wanted}
    return bytes(image).rstrip(b"\0"), {"size": size, "writable": writable, "symbols": offsets, "words": words}


def _sections(code: bytes) -> list[_Section]:
    kind, processor, offset, size, count, texts = _HEADER.unpack_from(code)
    if (kind, processor, size) != (_RELOCATABLE, _X86_64, _SECTION.size):
        raise Unusual("another kind of file or processor")
    sections = [_Section(*_SECTION.unpack_from(code, offset + i * size)) for i in range(count)]
    for section in (s for s in sections if s.loaded):
        plain = section.type in (_PROGBITS, _NOBITS) and not section.flags & _THREAD_LOCAL and section.align <= _PAGE
        if not plain or not _text(code, sections[texts].offset + section.name).startswith(_PLAIN):
            raise Unusual("sections that are neither code nor plain data")
    return sections


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()


def _places(sections: list[_Section], slots: int) -> tuple[dict[int, int], int, int, int]:
    """Where things lie in the image: loaded sections by their number, ``slots`` bytes of slots, the first page of what
    can be written, and the end."""
    bases, end = {}, 0

    def lay(flags: int) -> None:
        nonlocal end
        for number, section in enumerate(sections):
            if section.loaded and section.flags & _WRITE == flags:
                bases[number] = _up(end, max(section.align, 1))
                end = bases[number] + section.size

    lay(0)
    slots_at = _up(end, _SLOT)
    end = writable = _up(slots_at + slots, _PAGE)
    lay(_WRITE)
    return bases, slots_at, writable, _up(end, _PAGE)


def _up(n: int, step: int) -> int:
    return -(-n // step) * step


def _place(symbol: _Symbol, bases: dict[int, int]) -> int:
    """The offset of ``symbol`` in the image."""
    if symbol.section not in bases:
        raise Unusual(f"{symbol.name} is not in memory")
    return bases[symbol.section] + symbol.value
