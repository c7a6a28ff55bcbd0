"""An integrand holds its function and knows what each parameter stands for; nothing evaluates it yet."""

from typing import Any

import pytest

import treadle as wp
from treadle import fem


@fem.integrand
def mass(s: fem.Sample, domain: fem.Domain, u: fem.Field, v: "fem.Field", scale: float, free):
    """A mass form."""
    return scale * u(s) * v(s)


def test_an_integrand_knows_its_parameters():
    assert isinstance(mass, fem.Integrand) and mass.name == "mass" and mass.__doc__ == "A mass form."
    assert mass.parameters == {
        "s": fem.Sample, "domain": fem.Domain, "u": fem.Field, "v": fem.Field, "scale": float, "free": Any
    }  # fmt: skip
    assert mass.module is wp.get_module(__name__)


def test_options_are_kept_and_checked():
    @fem.integrand(kernel_options={"enable_backward": False, "max_unroll": 1})
    def quiet(s: fem.Sample_f64):
        return s.qp_weight

    assert quiet.kernel_options == {"enable_backward": False, "max_unroll": 1}
    with pytest.raises(ValueError, match="there is no module option 'speed'"):
        fem.integrand(kernel_options={"speed": 1})(quiet.func)


def test_annotations_are_checked_where_the_integrand_is_declared():
    with pytest.raises(TypeError, match="parameter 'x' of integrand wrong: "):

        @fem.integrand
        def wrong(s: fem.Sample, x: 3):
            return 0.0

    with pytest.raises(SyntaxError, match="many takes .* name each parameter"):

        @fem.integrand
        def many(s: fem.Sample, *fields):
            return 0.0


def test_nothing_pretends_to_evaluate_it():
    with pytest.raises(TypeError, match="not callable"):
        mass(1.0)
    with pytest.raises(AttributeError, match="treadle.fem has no 'integrate' yet: finite elements are not part of"):
        _ = fem.integrate
