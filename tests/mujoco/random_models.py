"""Random models: trees with joints of all kinds, geoms, sites, tendons, actuators, equalities, a medium, options.

Equal seeds give equal models. Names count up: bodies ``b0 …``, joints ``j0 …``, sites ``s0 …``, tendons ``t0 …``.
"""

from __future__ import annotations

import mujoco
import numpy as np

GEOMS = ("sphere", "capsule", "ellipsoid", "cylinder", "box")


class Maker:
    """Writes MJCF by chance; ``contacts``: geoms may meet."""

    def __init__(self, seed: int, contacts: bool = False):
        self.rng = np.random.default_rng(seed)
        self.contacts = contacts
        self.joints: list[tuple[str, str]] = []  # name and type
        self.sites = ["ground"]
        self.wraps: list[str] = []
        self.tendons: list[str] = []
        self.straight: list[str] = []  # those that go around no geom: they may have rotors
        self.bodies = 0

    def chance(self, p: float) -> bool:
        """True with probability ``p``."""
        return bool(self.rng.random() < p)

    def numbers(self, n: int, low: float = -1.0, high: float = 1.0) -> str:
        """``n`` numbers between ``low`` and ``high``, as text."""
        return " ".join(f"{x:.4g}" for x in self.rng.uniform(low, high, n))

    def number(self, low: float, high: float) -> str:
        """One number, as text."""
        return self.numbers(1, low, high)

    def one_of(self, *choices: str) -> str:
        """One of the texts."""
        return choices[self.rng.integers(len(choices))]

    def geom(self) -> str:
        """A geom anywhere near its body."""
        kind = self.one_of(*GEOMS)
        fluid = ' fluidshape="ellipsoid"' if self.chance(0.2) else ""
        return (
            f'<geom type="{kind}" size="{self.numbers(3, 0.05, 0.2)}" pos="{self.numbers(3, -0.2, 0.2)}" '
            f'euler="{self.numbers(3, -90, 90)}" density="{self.number(300, 2000)}"{fluid}/>'
        )

    def joint(self, kind: str) -> str:
        """A joint, maybe with a spring, damping and a rotor."""
        name = f"j{len(self.joints)}"
        self.joints.append((name, kind))
        text = f'<joint name="{name}" type="{kind}"'
        if kind != "free":
            text += f' pos="{self.numbers(3, -0.1, 0.1)}" axis="{self.numbers(3)}" armature="{self.number(0, 0.1)}"'
        if kind in ("hinge", "slide"):
            text += f' ref="{self.number(-0.3, 0.3)}" springref="{self.number(-0.3, 0.3)}"'
            if self.chance(0.3):
                text += f' actuatorfrcrange="-{self.number(0.1, 2)} {self.number(0.1, 2)}"'
        if self.chance(0.5):
            text += f' stiffness="{self.number(0.1, 20)}"'
        if self.chance(0.5):
            text += f' damping="{self.numbers(int(self.rng.integers(1, 4)), 0, 1)}"'
        if kind != "free" and self.chance(0.2):
            text += f' frictionloss="{self.number(0.01, 0.5)}"'
        if kind != "free" and self.chance(0.3):
            bounds = f"{self.number(-1, -0.1)} {self.number(0.1, 1)}" if kind != "ball" else f"0 {self.number(0.2, 1)}"
            text += f' limited="true" range="{bounds}"'
        return text + "/>"

    def body(self, depth: int) -> str:
        """A body with what is in it."""
        name = f"b{self.bodies}"
        self.bodies += 1
        kinds = []
        if depth == 0 and self.chance(0.4):
            kinds = ["free"]
        elif self.chance(0.85):
            kinds = [self.one_of("hinge", "slide") for _ in range(self.rng.integers(0, 3))]
            kinds += ["ball"] if not kinds or self.chance(0.2) else []  # nothing may turn behind a ball
        comp = f' gravcomp="{self.number(0, 1)}"' if self.chance(0.2) else ""
        far = 2.0 if depth == 0 else 0.4
        text = f'<body name="{name}" pos="{self.numbers(3, -far, far)}" euler="{self.numbers(3, -90, 90)}"{comp}>'
        text += "".join(map(self.joint, kinds)) + "".join(self.geom() for _ in range(self.rng.integers(1, 3)))
        if self.chance(0.7):
            self.sites.append(f"s{len(self.sites)}")
            place = f'pos="{self.numbers(3, -0.3, 0.3)}" euler="{self.numbers(3, -90, 90)}"'
            text += f'<site name="{self.sites[-1]}" {place}/>'
        if self.chance(0.3):
            self.wraps.append(f"w{len(self.wraps)}")
            kind = self.one_of("sphere", "cylinder")
            text += f'<geom name="{self.wraps[-1]}" type="{kind}" size="{self.numbers(2, 0.03, 0.1)}" mass="0.01"/>'
        if depth < 4:
            text += "".join(self.body(depth + 1) for _ in range(self.rng.choice([0, 1, 1, 2])))
        return text + "</body>"

    def scalars(self) -> list[str]:
        """Names of hinges and slides."""
        return [name for name, kind in self.joints if kind in ("hinge", "slide")]

    def tendon(self) -> str:
        """A tendon, fixed or spatial."""
        name = f"t{len(self.tendons)}"
        common = f'name="{name}" stiffness="{self.number(0, 5)}" damping="{self.number(0, 1)}"'
        if self.chance(0.3):
            common += f' springlength="{self.number(0.1, 0.3)} {self.number(0.4, 0.8)}"'
        if self.chance(0.2):
            common += f' limited="true" range="-{self.number(0.1, 1)} {self.number(0.1, 2)}"'
        if self.chance(0.2):
            common += f' frictionloss="{self.number(0.01, 0.2)}"'
        scalars = self.scalars()
        if scalars and self.chance(0.4):
            self.tendons.append(name)
            self.straight.append(name)
            chosen = self.rng.choice(scalars, min(len(scalars), 3), replace=False)
            pulled = "".join(f'<joint joint="{j}" coef="{self.number(-1, 1)}"/>' for j in chosen)
            return f'<fixed {common} armature="{self.number(0, 0.1)}">{pulled}</fixed>'
        if len(self.sites) < 2:
            return ""
        sites = [f'<site site="{s}"/>' for s in self.rng.permutation(self.sites)[: self.rng.integers(2, 6)]]
        path, straight = [sites.pop()], True
        while sites:
            apart = len(path) > 1 and "pulley" not in path[-2]  # a branch has two sites at least
            if apart and len(sites) > 1 and self.chance(0.2):
                path.append(f'<pulley divisor="{self.number(1, 3)}"/>')
            elif self.wraps and self.chance(0.5):
                side = f' sidesite="{self.one_of(*self.sites)}"' if self.chance(0.5) else ""
                path.append(f'<geom geom="{self.one_of(*self.wraps)}"{side}/>')
                straight = False
            path.append(sites.pop())
        self.tendons.append(name)
        self.straight += [name] if straight else []
        rotor = f' armature="{self.number(0, 0.1)}"' if straight and self.chance(0.3) else ""
        return f"<spatial {common}{rotor}>{''.join(path)}</spatial>"

    def actuator(self) -> str:
        """An actuator with any transmission, dynamics and law."""
        drives = [f'joint="{self.one_of(*(n for n, _ in self.joints))}"'] if self.joints else []
        drives += [f'jointinparent="{self.one_of(*(n for n, _ in self.joints))}"'] if self.joints else []
        drives += [f'tendon="{self.one_of(*self.tendons)}"'] if self.tendons else []
        drives += [f'site="{self.one_of(*self.sites)}"']
        if len(self.sites) > 2:
            one, two = self.rng.choice(self.sites, 2, replace=False)
            drives += [f'site="{one}" refsite="{two}"', f'cranksite="{one}" slidersite="{two}" cranklength=".9"']
        drive = self.one_of(*drives)
        text = f'<general {drive} gear="{self.numbers(6)}" gainprm="{self.numbers(3)}"'
        text += f' gaintype="{self.one_of("fixed", "affine")}" biastype="{self.one_of("none", "affine")}"'
        text += f' biasprm="{self.numbers(3)}"'
        if drive.startswith("joint") or drive in [f'tendon="{name}"' for name in self.straight]:
            text += f' armature="{self.number(0, 0.05)}" damping="{self.number(0, 0.3)}"'
        dynamics = self.one_of("none", "integrator", "filter", "filterexact", "muscle")
        text += f' dyntype="{dynamics}"'
        if dynamics != "none":
            text += f' dynprm="{self.numbers(2, 0.02, 0.5)}" actearly="{self.one_of("true", "false")}"'
            if self.chance(0.5):
                text += ' actlimited="true" actrange="-0.4 0.5"'
        if self.chance(0.5):
            text += f' ctrlrange="-{self.number(0.1, 1)} {self.number(0.1, 1)}"'
        if self.chance(0.4):
            text += f' forcerange="-{self.number(0.1, 1)} {self.number(0.1, 1)}"'
        return text + "/>"

    def equality(self) -> str:
        """An equality constraint."""
        kinds = []
        if self.bodies > 1:
            one, two = self.rng.choice(self.bodies, 2, replace=False)
            kinds.append(f'<connect body1="b{one}" body2="b{two}" anchor="{self.numbers(3, -0.2, 0.2)}"/>')
            kinds.append(f'<weld body1="b{one}" body2="b{two}"/>')
        if len(self.scalars()) > 1:
            one, two = self.rng.choice(self.scalars(), 2, replace=False)
            kinds.append(f'<joint joint1="{one}" joint2="{two}" polycoef="{self.numbers(5, -0.3, 0.3)}"/>')
        if len(self.tendons) > 1:
            one, two = self.rng.choice(self.tendons, 2, replace=False)
            kinds.append(f'<tendon tendon1="{one}" tendon2="{two}"/>')
        return self.one_of(*kinds) if kinds else ""

    def model(self) -> str:
        """The whole model."""
        trees = "".join(self.body(0) for _ in range(self.rng.integers(1, 4)))
        tendons = "".join(self.tendon() for _ in range(self.rng.integers(0, 4)))
        actuators = "".join(self.actuator() for _ in range(self.rng.integers(0, 5)))
        equalities = "".join(self.equality() for _ in range(self.rng.integers(0, 3)))
        medium = f'density="{self.number(0, 2)}" viscosity="{self.number(0, 1)}" wind="{self.numbers(3)}"'
        cone, solver = self.one_of("pyramidal", "elliptic"), self.one_of("Newton", "CG")
        option = (
            f'<option gravity="{self.numbers(3, -9, 9)}" {medium if self.chance(0.3) else ""} cone="{cone}" '
            f'solver="{solver}" integrator="{self.one_of("Euler", "RK4", "implicit", "implicitfast")}"/>'
        )
        meeting = "" if self.contacts else '<geom contype="0" conaffinity="0"/>'
        return (
            f"<mujoco>{option}<default>{meeting}</default><worldbody><site name='ground' pos='0 0 1'/>{trees}"
            f"</worldbody><tendon>{tendons}</tendon><actuator>{actuators}</actuator>"
            f"<equality>{equalities}</equality></mujoco>"
        )


def random_model(seed: int, contacts: bool = False) -> mujoco.MjModel:
    """The model of a seed."""
    return mujoco.MjModel.from_xml_string(Maker(seed, contacts).model())
