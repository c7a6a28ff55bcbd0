"""What runs here: versions of treadle and of what it stands on, the processor, the devices."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from typing import Any

import numpy as np

from ..base.config import LANGUAGE_LEVEL, VERSION, config
from ..runtime.device import get_devices, processor_name

_NEIGHBOURS = ("torch", "jax", "jaxlib")  # libraries whose arrays programs exchange with ours


def language_level() -> str:
    """The release of Warp whose language this one speaks, as in ``wp.config.version``."""
    return LANGUAGE_LEVEL


def llvm_version() -> str:
    """The version of LLVM that generates code, as ``major.minor.patch``."""
    from ..codegen.llvm import library_version

    return library_version()


def compiler() -> str:
    """What compiles kernels. No C++ compiler takes part."""
    return f"LLVM {llvm_version()}"


def no_version() -> str:
    """The version of a library that treadle does not use."""
    return ""


def no_toolkit() -> None:
    """The version of a CUDA library: None, as there is none here."""


def print_diagnostics() -> dict[str, Any]:
    """Print what runs here, for reports of faults; also returns it.

    The keys are the field's: ``warp_python`` is the version of treadle, ``warp_native`` the level of the language.

    >>> import treadle as wp
    >>> facts = wp.print_diagnostics()  # doctest: +ELLIPSIS
    Software
    ...
    >>> facts["devices"][0]["alias"]
    'cpu'
    """
    from ..codegen.cpu import host_target

    target = host_target()
    features = [name[1:] for name in target.features.split(",") if name.startswith("+")]
    neighbours = {name: version for name in _NEIGHBOURS if (version := _installed(name))}
    facts: dict[str, Any] = {
        "warp_python": VERSION, "warp_native": LANGUAGE_LEVEL, "warp_clang": compiler(), "llvm": llvm_version(),
        "numpy": np.__version__, **neighbours, "python": sys.version, "platform": platform.platform(),
        "cuda_enabled": False, "cuda_toolkit": None, "cuda_driver": None, "nvrtc": None, "cuda_compatibility": False,
        "mathdx_enabled": False, "libmathdx": no_version(), "cubql_enabled": False, "nanovdb": no_version(),
        "host_compiler": compiler(), "cpu_name": target.cpu, "cpu_features": features,
        "debug": config.mode == "debug", "verify_fp": config.verify_fp, "fast_math": False, "sanitizer": "",
        "devices": [{"alias": d.alias, "name": d.name} for d in get_devices()],
    }  # fmt: skip
    print(_report(facts, neighbours))
    return facts


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _report(facts: dict[str, Any], neighbours: dict[str, str]) -> str:
    sections: dict[str, dict[str, Any]] = {
        "Software": {
            "treadle": facts["warp_python"], "language level": facts["warp_native"], "LLVM": facts["llvm"],
            "NumPy": facts["numpy"], **neighbours, "Python": facts["python"].split(" (")[0],
            "platform": facts["platform"],
        },
        "Processor": {
            "model": processor_name(), "LLVM's name": facts["cpu_name"], "features": ", ".join(facts["cpu_features"]),
        },
        "Settings": {
            "mode": config.mode, "verify_fp": config.verify_fp, "kernel cache": config.kernel_cache_dir,
        },
        "Devices": {device["alias"]: device["name"] for device in facts["devices"]},
    }  # fmt: skip
    lines = []
    for title, entries in sections.items():
        lines += [title, *(f"  {name + ':':<16} {value}" for name, value in entries.items()), ""]
    return "\n".join(lines)
