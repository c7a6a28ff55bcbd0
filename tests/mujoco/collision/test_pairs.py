"""Which pairs are tested: MuJoCo's filters."""

import mujoco
import numpy as np
import pytest

from treadle.mujoco.collision.pairs import MOST, Pairs

TREE = """
<mujoco>
  <option><flag filterparent="{filterparent}"/></option>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <geom name="wall" type="plane" size="1 1 1"/>
    <body name="a"><joint/><geom name="a1" size="1"/><geom name="a2" type="box" size="1 1 1"/>
      <body name="fixed"><geom name="f" size="1"/></body>
      <body name="b"><joint/><geom name="b1" type="capsule" size="1 1"/>
        <body name="c"><joint/><geom name="c1" size="1"/></body>
      </body>
    </body>
    <body name="other"><joint/><geom name="o" contype="2" conaffinity="4" size="1"/></body>
    <body name="third"><joint/><geom name="t" contype="4" conaffinity="2" size="1"/></body>
    <body name="free"><joint/><geom name="u" contype="0" conaffinity="0" size="1"/></body>
  </worldbody>
  <contact><exclude body1="a" body2="c"/><pair geom1="a1" geom2="c1"/><pair geom1="u" geom2="a2"/></contact>
</mujoco>
"""


def named(mjm: mujoco.MjModel, pairs: Pairs) -> set[tuple[str, str]]:
    return {tuple(sorted((mjm.geom(a).name, mjm.geom(b).name))) for a, b in zip(pairs.geom1, pairs.geom2)}


@pytest.mark.parametrize("filterparent", ["enable", "disable"])
def test_pairs_pass_the_filters_of_bodies_and_types_of_contact(filterparent):
    mjm = mujoco.MjModel.from_xml_string(TREE.format(filterparent=filterparent))
    pairs = Pairs.of(mjm)
    floors = {(g, p) for p in ("floor", "wall") for g in ("a1", "a2", "b1", "c1", "f")}
    expected = {tuple(sorted(pair)) for pair in floors} | {("a1", "c1"), ("a2", "u"), ("o", "t"), ("c1", "f")}
    if filterparent == "disable":
        expected |= {("b1", "c1"), ("a1", "b1"), ("a2", "b1"), ("b1", "f")}
    assert named(mjm, pairs) == expected
    explicit = {tuple(sorted((mjm.geom(a).name, mjm.geom(b).name))): k
                for a, b, k in zip(pairs.geom1, pairs.geom2, pairs.explicit) if k >= 0}  # fmt: skip
    assert set(explicit) == {("a1", "c1"), ("a2", "u")}


def test_geoms_of_a_pair_are_in_the_order_of_their_types():
    mjm = mujoco.MjModel.from_xml_string(TREE.format(filterparent="disable"))
    pairs = Pairs.of(mjm)
    assert (mjm.geom_type[pairs.geom1] <= mjm.geom_type[pairs.geom2]).all()
    by_method = pairs.by_method()
    assert sorted(np.concatenate(list(by_method.values()))) == list(range(len(pairs)))
    assert pairs.most() == sum(MOST[name] * len(numbers) for name, numbers in by_method.items())


def test_nothing_is_tested_where_contacts_are_switched_off():
    mjm = mujoco.MjModel.from_xml_string(TREE.format(filterparent="enable"))
    mjm.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    assert len(Pairs.of(mjm)) == 0
