"""Every kernel that a test compiles also becomes PTX, so that no habit of the CPU gets into the IR unseen.

The text is made when the kernel is compiled, in the same process, and a failure fails that test. Where ``ptxas`` is
present, the texts of the run are assembled at its end; a rejected one fails the run. Each kernel is made for one
architecture, by its digest: all for each would take as long as all tests. Some ten programs of half a megabyte take
``ptxas`` as long as a thousand short ones: of those with one name (a solver for each kind of cone and precision) it
sees one, by their digests. ``TREADLE_PTXAS=all`` shows it every text.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from treadle.base.digest import digest
from treadle.codegen import cpu, nvptx
from treadle.ir.show import show

ARCHITECTURES = (75, 80, 90, 100, 120)
LONG = 500_000  # bytes of PTX
texts: dict[str, tuple[str, int, bytes]] = {}  # by digest of the program: kernel's name, architecture, PTX


def install() -> None:
    """From now on ``cpu.draft`` makes PTX too."""
    real = cpu.draft

    @functools.wraps(real)
    def draft(func, target, options=None, symbol="kernel"):
        made = real(func, target, options, symbol)
        checked = options is not None and options.checked
        key = digest(show(func), str(checked))
        if key not in texts:
            wanted = cpu.Options(False, checked, options.order if options is not None else "free")
            arch = ARCHITECTURES[int(key[:4], 16) % len(ARCHITECTURES)]
            texts[key] = func.name, arch, nvptx.build(func, nvptx.target(arch), wanted).code
        return made

    cpu.draft = draft


def assemble_too(name: str, arch: int, ptx: bytes) -> None:
    """Let ``ptxas`` see one more text at the end of the run."""
    texts[digest(ptx.decode())] = name, arch, ptx


def chosen() -> list[tuple[str, int, bytes]]:
    """The texts that ``ptxas`` is to see, the longest first, so that none is waited for at the end."""
    found: dict[str, tuple[str, int, bytes]] = {}
    for key in sorted(texts):
        name, _, text = texts[key]
        every = len(text) < LONG or os.environ.get("TREADLE_PTXAS") == "all"
        found.setdefault(key if every else name, texts[key])
    return sorted(found.values(), key=lambda made: -len(made[2]))


def rejected() -> list[str]:
    """Assemble the chosen texts; what ``ptxas`` says of those it does not accept."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = [(*made, Path(folder, str(k))) for k, made in enumerate(chosen())]

        def assemble(job: tuple) -> str:
            name, arch, text, path = job
            path.with_suffix(".ptx").write_bytes(text)
            command = [
                "ptxas",
                f"-arch=sm_{arch}",
                "-O0",
                str(path.with_suffix(".ptx")),
                "-o",
                str(path.with_suffix(".cubin")),
            ]
            done = subprocess.run(command, capture_output=True, text=True)
            return "" if done.returncode == 0 else f"{name} for sm_{arch}: {done.stderr.strip()[:2000]}"

        with ThreadPoolExecutor(2) as pool:
            return [said for said in pool.map(assemble, jobs) if said]


def finish(session: pytest.Session) -> None:
    """Report at the end of the run. A worker of several hands its report to the run that started it."""
    if not texts:
        return
    said = None if shutil.which("ptxas") is None else rejected()
    output = getattr(session.config, "workeroutput", None)
    if output is None:
        report(len(chosen()), said)
    else:
        output["ptx"] = len(chosen()), said
    if said:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def finished(node: object) -> bool:
    """A worker of several has ended: report what it handed over; whether ``ptxas`` accepted all."""
    made, said = getattr(node, "workeroutput", {}).get("ptx", (0, []))
    if made:
        report(made, said)
    return not said


def report(made: int, said: list[str] | None) -> None:
    """Print what ``ptxas`` said of so many kernels; None: there is none here."""
    if said is None:
        print(f"\nPTX: {made} kernels made for sm_{ARCHITECTURES}; no ptxas here to assemble them")
        return
    print(f"\nPTX: ptxas rejected {len(said)} of {made} kernels")
    for line in said:
        print(line)
