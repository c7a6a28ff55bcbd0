"""Minimax polynomials of the float32 functions, by Horner's rule; written by ``tools/fit/generate.py``."""

from .dsl import float32, fma


def sine(z: float32) -> float32:
    """``sin(r) = r + r**3 p(r*r)`` for a quarter turn. Largest error of the fit, relative to the result:
    2^-27.8."""
    p = float32(-0.00019507887191139162)
    p = fma(p, z, float32(0.008332106284797192))
    return fma(p, z, float32(-0.16666653752326965))


def cosine(z: float32) -> float32:
    """``cos(r) = 1 - r*r/2 + r**4 p(r*r)`` for a quarter turn. Largest error of the fit, relative to the result:
    2^-32.8."""
    p = float32(2.44307448156178e-05)
    p = fma(p, z, float32(-0.00138873013202101))
    return fma(p, z, float32(0.04166664555668831))


def tangent(z: float32) -> float32:
    """``tan(r) = r + r**3 p(r*r)`` for a quarter turn. Largest error of the fit, relative to the result:
    2^-29.3."""
    p = float32(0.0044671474024653435)
    p = fma(p, z, float32(-9.131532715400681e-05))
    p = fma(p, z, float32(0.010975677520036697))
    p = fma(p, z, float32(0.02122935838997364))
    p = fma(p, z, float32(0.054069921374320984))
    p = fma(p, z, float32(0.13332577049732208))
    return fma(p, z, float32(0.3333335220813751))


def arcsine(z: float32) -> float32:
    """``asin(x) = x + x**3 p(x*x)`` for ``|x| <= 1/2``. Largest error of the fit, relative to the result:
    2^-27.6."""
    p = float32(0.042158305644989014)
    p = fma(p, z, float32(0.024184778332710266))
    p = fma(p, z, float32(0.04546914994716644))
    p = fma(p, z, float32(0.074953094124794))
    return fma(p, z, float32(0.16666752099990845))


def arctangent(z: float32) -> float32:
    """``atan(x) = x + x**3 p(x*x)`` for ``|x| <= 1``. Largest error of the fit, relative to the result: 2^-28.5."""
    p = float32(-0.0017889650771394372)
    p = fma(p, z, float32(0.010892814956605434))
    p = fma(p, z, float32(-0.03113524802029133))
    p = fma(p, z, float32(0.05791259557008743))
    p = fma(p, z, float32(-0.08400678634643555))
    p = fma(p, z, float32(0.10951186716556549))
    p = fma(p, z, float32(-0.14264042675495148))
    p = fma(p, z, float32(0.1999852955341339))
    return fma(p, z, float32(-0.33333298563957214))


def exponential(r: float32) -> float32:
    """``exp(r) = 1 + r + r*r p(r)`` for ``|r| <= log(2)/2``. Largest error of the fit, relative to the result:
    2^-27.8."""
    p = float32(0.0013814551057294011)
    p = fma(p, r, float32(0.0083687799051404))
    p = fma(p, r, float32(0.04166839271783829))
    p = fma(p, r, float32(0.1666651964187622))
    return fma(p, r, float32(0.4999999403953552))


def hyperbolic_sine(z: float32) -> float32:
    """``sinh(x) = x + x**3 p(x*x)`` for ``|x| <= 1``. Largest error of the fit, relative to the result: 2^-31.6."""
    p = float32(2.7822131869470468e-06)
    p = fma(p, z, float32(0.00019842895562760532))
    p = fma(p, z, float32(0.00833331048488617))
    return fma(p, z, float32(0.1666666716337204))


def hyperbolic_tangent(z: float32) -> float32:
    """``tanh(x) = x + x**3 p(x*x)`` for ``|x| <= 0.6``. Largest error of the fit, relative to the result:
    2^-28.4."""
    p = float32(-0.005897966679185629)
    p = fma(p, z, float32(0.02079862542450428))
    p = fma(p, z, float32(-0.05378471687436104))
    p = fma(p, z, float32(0.13331936299800873))
    return fma(p, z, float32(-0.33333298563957214))


def logarithm(f: float32) -> float32:
    """``log(1 + f) = f + f*f p(f)`` for a significand ``1 + f`` between the roots of 1/2 and 2. Largest error of
    the fit, relative to the result: 2^-27.5."""
    p = float32(-0.0762183740735054)
    p = fma(p, f, float32(0.1290448009967804))
    p = fma(p, f, float32(-0.13242985308170319))
    p = fma(p, f, float32(0.14181818068027496))
    p = fma(p, f, float32(-0.16609081625938416))
    p = fma(p, f, float32(0.2000197470188141))
    p = fma(p, f, float32(-0.25001582503318787))
    p = fma(p, f, float32(0.33333325386047363))
    return fma(p, f, float32(-0.49999988079071045))


def binary_logarithm(f: float32) -> float32:
    """``log2(1 + f) = f/log(2) + f*f p(f)``, the same range. Largest error of the fit, relative to the result:
    2^-28.8."""
    p = float32(0.09702286869287491)
    p = fma(p, f, float32(-0.1684502214193344))
    p = fma(p, f, float32(0.17169435322284698))
    p = fma(p, f, float32(-0.17899996042251587))
    p = fma(p, f, float32(0.20511779189109802))
    p = fma(p, f, float32(-0.24046392738819122))
    p = fma(p, f, float32(0.2885710299015045))
    p = fma(p, f, float32(-0.3606741428375244))
    p = fma(p, f, float32(0.48089802265167236))
    return fma(p, f, float32(-0.7213475108146667))


def decimal_logarithm(f: float32) -> float32:
    """``log10(1 + f) = f/log(10) + f*f p(f)``, the same range. Largest error of the fit, relative to the result:
    2^-27.5."""
    p = float32(0.029206793755292892)
    p = fma(p, f, float32(-0.05070856958627701))
    p = fma(p, f, float32(0.0516851507127285))
    p = fma(p, f, float32(-0.053884357213974))
    p = fma(p, f, float32(0.06174660474061966))
    p = fma(p, f, float32(-0.07238685339689255))
    p = fma(p, f, float32(0.0868685394525528))
    p = fma(p, f, float32(-0.10857373476028442))
    p = fma(p, f, float32(0.1447647362947464))
    return fma(p, f, float32(-0.21714724600315094))


def error_function(z: float32) -> float32:
    """``erf(x) = x + x p(x*x)`` for ``|x| <= 7/8``. Largest error of the fit, relative to the result: 2^-30.1."""
    p = float32(7.867855310905725e-05)
    p = fma(p, z, float32(-0.0008026440045796335))
    p = fma(p, z, float32(0.005190941970795393))
    p = fma(p, z, float32(-0.026855364441871643))
    p = fma(p, z, float32(0.11283622682094574))
    p = fma(p, z, float32(-0.3761262893676758))
    return fma(p, z, float32(0.12837916612625122))


def minus_log_erfc(x: float32) -> float32:
    """``erfc(x) = exp(-p(x))`` for ``7/8 <= x <= 4``; the error counts relative to ``erf``. Largest error of the
    fit, relative to the result: 2^-33.4."""
    p = float32(2.0450655938475393e-05)
    p = fma(p, x, float32(-0.00042708031833171844))
    p = fma(p, x, float32(0.00413565244525671))
    p = fma(p, x, float32(-0.025027194991707802))
    p = fma(p, x, float32(0.10813912749290466))
    p = fma(p, x, float32(0.6334733963012695))
    p = fma(p, x, float32(1.129453182220459))
    return fma(p, x, float32(-0.00016202432743739337))


def scaled_erfc(t: float32) -> float32:
    """``exp(a*a) erfc(a) (a + 2.5) = c + p(t)``, ``t = (a - 2.5)/(a + 2.5)``, ``a >= 11/16``. Largest error of the
    fit, relative to the result: 2^-27.0."""
    p = float32(1.0355553968111053e-05)
    p = fma(p, t, float32(0.0006188153056427836))
    p = fma(p, t, float32(-0.00041098069050349295))
    p = fma(p, t, float32(-0.004795704036951065))
    p = fma(p, t, float32(0.008386823348701))
    p = fma(p, t, float32(0.028358932584524155))
    p = fma(p, t, float32(-0.1712506264448166))
    p = fma(p, t, float32(0.45391422510147095))
    p = fma(p, t, float32(-0.8046518564224243))
    return fma(p, t, float32(-2.9245688537571368e-08))


def inverse_erf_near(w: float32) -> float32:
    """``erfinv(x) = x (c + p(w))``, ``w = -log(1 - x*x) <= 4``. Largest error of the fit, relative to the result:
    2^-29.8."""
    p = float32(-9.755729557525683e-09)
    p = fma(p, w, float32(2.4084872052299033e-07))
    p = fma(p, w, float32(-2.1453681711136596e-06))
    p = fma(p, w, float32(4.756308044306934e-06))
    p = fma(p, w, float32(4.251120117260143e-05))
    p = fma(p, w, float32(-0.00012428710761014372))
    p = fma(p, w, float32(-0.0023370799608528614))
    p = fma(p, w, float32(0.011549868620932102))
    p = fma(p, w, float32(0.23201361298561096))
    return fma(p, w, float32(-2.578314983736618e-08))


def inverse_erf_far(u: float32) -> float32:
    """``erfinv(x) = s (c + p(1/s - m))``, ``s = sqrt(w)`` from 2 to 10.2. Largest error of the fit, relative to the
    result: 2^-26.1."""
    p = float32(-247.53346252441406)
    p = fma(p, u, float32(-11.932068824768066))
    p = fma(p, u, float32(29.255971908569336))
    p = fma(p, u, float32(8.251912117004395))
    p = fma(p, u, float32(-2.7052977085113525))
    p = fma(p, u, float32(-0.17191281914710999))
    p = fma(p, u, float32(-0.7924982905387878))
    p = fma(p, u, float32(0.39569494128227234))
    p = fma(p, u, float32(0.1495804488658905))
    p = fma(p, u, float32(-0.18678857386112213))
    return fma(p, u, float32(-1.8703927295860012e-08))
