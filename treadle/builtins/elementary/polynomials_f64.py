"""Minimax polynomials of the float64 functions, by Horner's rule; written by ``tools/fit/generate.py``."""

from .dsl import float64, fma


def sine(z: float64) -> float64:
    """``sin(r) = r + r**3 p(r*r)`` for a quarter turn. Largest error of the fit, relative to the result:
    2^-57.8."""
    p = float64(1.5893462834714948e-10)
    p = fma(p, z, float64(-2.505070102625425e-08))
    p = fma(p, z, float64(2.7557313329908997e-06))
    p = fma(p, z, float64(-0.00019841269828771622))
    p = fma(p, z, float64(0.008333333333321128))
    return fma(p, z, float64(-0.16666666666666627))


def cosine(z: float64) -> float64:
    """``cos(r) = 1 - r*r/2 + r**4 p(r*r)`` for a quarter turn. Largest error of the fit, relative to the result:
    2^-63.8."""
    p = float64(-1.1357001019508324e-11)
    p = fma(p, z, float64(2.0875672278346884e-09))
    p = fma(p, z, float64(-2.755731397869884e-07))
    p = fma(p, z, float64(2.4801587288197845e-05))
    p = fma(p, z, float64(-0.0013888888888872093))
    return fma(p, z, float64(0.04166666666666659))


def tangent(z: float64) -> float64:
    """``tan(r) = r + r**3 p(r*r)`` for a quarter turn. Largest error of the fit, relative to the result:
    2^-59.6."""
    p = float64(1.0096483237389309e-05)
    p = fma(p, z, float64(-2.5609572152236543e-05))
    p = fma(p, z, float64(5.1330298899258356e-05))
    p = fma(p, z, float64(-2.8858512168676895e-05))
    p = fma(p, z, float64(6.976919809557297e-05))
    p = fma(p, z, float64(8.21611402111881e-05))
    p = fma(p, z, float64(0.00024429719547348043))
    p = fma(p, z, float64(0.0005887113840271767))
    p = fma(p, z, float64(0.0014560762689676803))
    p = fma(p, z, float64(0.0035920965520548818))
    p = fma(p, z, float64(0.008863238337477946))
    p = fma(p, z, float64(0.02186948837363138))
    p = fma(p, z, float64(0.053968253973842355))
    p = fma(p, z, float64(0.13333333333323613))
    return fma(p, z, float64(0.3333333333333339))


def arcsine(z: float64) -> float64:
    """``asin(x) = x + x**3 p(x*x)`` for ``|x| <= 1/2``. Largest error of the fit, relative to the result:
    2^-59.9."""
    p = float64(0.032626542847822806)
    p = fma(p, z, float64(-0.020995561065087844))
    p = fma(p, z, float64(0.021704830998775376))
    p = fma(p, z, float64(0.00370755196498758))
    p = fma(p, z, float64(0.010779928856668624))
    p = fma(p, z, float64(0.01139897456794911))
    p = fma(p, z, float64(0.013980812246927545))
    p = fma(p, z, float64(0.017351612777885467))
    p = fma(p, z, float64(0.022372214939830586))
    p = fma(p, z, float64(0.030381942709740182))
    p = fma(p, z, float64(0.04464285717456307))
    p = fma(p, z, float64(0.07499999999970865))
    return fma(p, z, float64(0.1666666666666676))


def arctangent(z: float64) -> float64:
    """``atan(x) = x + x**3 p(x*x)`` for ``|x| <= 1/2``. Largest error of the fit, relative to the result:
    2^-62.0."""
    p = float64(-0.008369238031210114)
    p = fma(p, z, float64(0.023661117448548354))
    p = fma(p, z, float64(-0.03712345787168449))
    p = fma(p, z, float64(0.04589665743303678))
    p = fma(p, z, float64(-0.052300792946814285))
    p = fma(p, z, float64(0.05877821216406113))
    p = fma(p, z, float64(-0.06666225633295234))
    p = fma(p, z, float64(0.0769227768953265))
    p = fma(p, z, float64(-0.09090907707797292))
    p = fma(p, z, float64(0.11111111070113602))
    p = fma(p, z, float64(-0.1428571428499932))
    p = fma(p, z, float64(0.19999999999993773))
    return fma(p, z, float64(-0.33333333333333315))


def exponential(r: float64) -> float64:
    """``exp(r) = 1 + r + r*r p(r)`` for ``|r| <= log(2)/2``. Largest error of the fit, relative to the result:
    2^-60.1."""
    p = float64(2.082654432446804e-09)
    p = fma(p, r, float64(2.5112141786128256e-08))
    p = fma(p, r, float64(2.755758275637465e-07))
    p = fma(p, r, float64(2.755723456650965e-06))
    p = fma(p, r, float64(2.4801586924667977e-05))
    p = fma(p, r, float64(0.0001984126989667321))
    p = fma(p, r, float64(0.001388888888911722))
    p = fma(p, r, float64(0.008333333333316921))
    p = fma(p, r, float64(0.04166666666666609))
    p = fma(p, r, float64(0.16666666666666682))
    return fma(p, r, float64(0.5))


def exponential_short(r: float64) -> float64:
    """the same to 33 bits, for ``pow`` in float32. Largest error of the fit, relative to the result: 2^-34.2."""
    p = float64(0.00019790242209476668)
    p = fma(p, r, float64(0.0013944756207076407))
    p = fma(p, r, float64(0.008333497666413744))
    p = fma(p, r, float64(0.041666293665068355))
    p = fma(p, r, float64(0.16666665864672778))
    return fma(p, r, float64(0.5000000068029704))


def hyperbolic_sine(z: float64) -> float64:
    """``sinh(x) = x + x**3 p(x*x)`` for ``|x| <= 1``. Largest error of the fit, relative to the result: 2^-61.8."""
    p = float64(7.776595013180353e-13)
    p = fma(p, z, float64(1.6056659292746568e-10))
    p = fma(p, z, float64(2.5052130997632785e-08))
    p = fma(p, z, float64(2.75573191067607e-06))
    p = fma(p, z, float64(0.00019841269841593405))
    p = fma(p, z, float64(0.008333333333332912))
    return fma(p, z, float64(0.16666666666666669))


def hyperbolic_tangent(z: float64) -> float64:
    """``tanh(x) = x + x**3 p(x*x)`` for ``|x| <= 0.6``. Largest error of the fit, relative to the result:
    2^-57.8."""
    p = float64(-1.7179787180931698e-05)
    p = fma(p, z, float64(7.931614476497446e-05))
    p = fma(p, z, float64(-0.00023039877807686396))
    p = fma(p, z, float64(0.0005871894079433091))
    p = fma(p, z, float64(-0.0014552156824305924))
    p = fma(p, z, float64(0.0035920374452968755))
    p = fma(p, z, float64(-0.00886322678632515))
    p = fma(p, z, float64(0.021869488003319015))
    p = fma(p, z, float64(-0.05396825394933415))
    p = fma(p, z, float64(0.13333333333299766))
    return fma(p, z, float64(-0.33333333333333126))


def log_remainder(z: float64) -> float64:
    """``log(1 + f) = f - (f*f/2 - s (f*f/2 + z p(z)))``, ``s = f/(2 + f)``, ``z = s*s``. Largest error of the fit,
    relative to the result: 2^-59.5."""
    p = float64(0.14795364565399535)
    p = fma(p, z, float64(0.1531411078002208))
    p = fma(p, z, float64(0.18183561893410122))
    p = fma(p, z, float64(0.22222198621796274))
    p = fma(p, z, float64(0.28571428741891763))
    p = fma(p, z, float64(0.39999999999417046))
    return fma(p, z, float64(0.6666666666666734))


def log_remainder_short(z: float64) -> float64:
    """the same to 44 bits, for ``pow`` in float32. Largest error of the fit, relative to the result: 2^-44.9."""
    p = float64(0.19583451608299982)
    p = fma(p, z, float64(0.22176237602709298))
    p = fma(p, z, float64(0.2857210798204911))
    p = fma(p, z, float64(0.3999999563297077))
    return fma(p, z, float64(0.666666666757682))


def log_series(z: float64) -> float64:
    """``log(1 + f) = 2 s + s**3 (2/3 + z p(z))``, ``s = f/(2 + f)``, ``z = s*s``. Largest error of the fit,
    relative to the result: 2^-73.5."""
    p = float64(0.11981608080732108)
    p = fma(p, z, float64(0.11675798336658096))
    p = fma(p, z, float64(0.1333626363514877))
    p = fma(p, z, float64(0.1538455845033284))
    p = fma(p, z, float64(0.18181818843696312))
    p = fma(p, z, float64(0.22222222217791787))
    p = fma(p, z, float64(0.28571428571443835))
    return fma(p, z, float64(0.3999999999999998))


def error_function(z: float64) -> float64:
    """``erf(x) = x + x p(x*x)`` for ``|x| <= 7/8``. Largest error of the fit, relative to the result: 2^-56.3."""
    p = float64(-1.287273164783838e-09)
    p = fma(p, z, float64(1.5911083020918497e-08))
    p = fma(p, z, float64(-1.661777433879186e-07))
    p = fma(p, z, float64(1.6490742487655975e-06))
    p = fma(p, z, float64(-1.4927591553032636e-05))
    p = fma(p, z, float64(0.00012055416109839202))
    p = fma(p, z, float64(-0.0008548329290743375))
    p = fma(p, z, float64(0.005223977663838497))
    p = fma(p, z, float64(-0.026866170648918608))
    p = fma(p, z, float64(0.11283791670974289))
    p = fma(p, z, float64(-0.3761263890318413))
    return fma(p, z, float64(0.1283791670955126))


def scaled_erfc(t: float64) -> float64:
    """``exp(a*a) erfc(a) (a + 3.5) = c + p(t)``, ``t = (a - 3.5)/(a + 3.5)``, ``a >= 11/16``. Largest error of the
    fit, relative to the result: 2^-54.6."""
    p = float64(-1.9890957719875964e-09)
    p = fma(p, t, float64(2.936190854187089e-09))
    p = fma(p, t, float64(1.497483241138911e-08))
    p = fma(p, t, float64(-2.0372070447954368e-08))
    p = fma(p, t, float64(-9.125462001503288e-08))
    p = fma(p, t, float64(1.1405554319967507e-07))
    p = fma(p, t, float64(5.563303315396353e-07))
    p = fma(p, t, float64(-7.947198043977356e-07))
    p = fma(p, t, float64(-3.3947776476744445e-06))
    p = fma(p, t, float64(7.2433785194258234e-06))
    p = fma(p, t, float64(1.864804793731212e-05))
    p = fma(p, t, float64(-7.477686064819588e-05))
    p = fma(p, t, float64(-4.2062341130367855e-05))
    p = fma(p, t, float64(0.0007145316447599721))
    p = fma(p, t, float64(-0.0013053546685176587))
    p = fma(p, t, float64(-0.0031770503384723017))
    p = fma(p, t, float64(0.026518619879812678))
    p = fma(p, t, float64(-0.09231870663870088))
    p = fma(p, t, float64(0.22573862164748867))
    p = fma(p, t, float64(-0.4352560267168846))
    p = fma(p, t, float64(0.6941136466346431))
    p = fma(p, t, float64(-0.937799724567112))
    return fma(p, t, float64(1.0156440998572544e-16))


def inverse_erf_near(w: float64) -> float64:
    """``erfinv(x) = x (c + p(w))``, ``w = -log(1 - x*x) <= 4``. Largest error of the fit, relative to the result:
    2^-56.9."""
    p = float64(-3.209849869623583e-17)
    p = fma(p, w, float64(1.479244136706295e-15))
    p = fma(p, w, float64(-3.011457769066009e-14))
    p = fma(p, w, float64(3.480524972398194e-13))
    p = fma(p, w, float64(-2.403301970439588e-12))
    p = fma(p, w, float64(9.220889395502565e-12))
    p = fma(p, w, float64(-1.5480244088447854e-11))
    p = fma(p, w, float64(5.0292022060153795e-11))
    p = fma(p, w, float64(-6.476588341112842e-10))
    p = fma(p, w, float64(9.318806873606152e-10))
    p = fma(p, w, float64(2.2596443983658437e-08))
    p = fma(p, w, float64(-3.7128019645532474e-08))
    p = fma(p, w, float64(-1.0126608661379893e-06))
    p = fma(p, w, float64(2.0200384278167713e-06))
    p = fma(p, w, float64(4.661142415709767e-05))
    p = fma(p, w, float64(-0.0001280432907208469))
    p = fma(p, w, float64(-0.0023351016420805355))
    p = fma(p, w, float64(0.011549342038303776))
    p = fma(p, w, float64(0.23201366653465358))
    return fma(p, w, float64(-3.410652259704479e-17))


def inverse_erf_far_a(u: float64) -> float64:
    """``erfinv(x) = s (c + p(1/s - m))``, ``s = sqrt(w)`` from 2 to 3.6. Largest error of the fit, relative to the
    result: 2^-55.2."""
    p = float64(37298606.97400514)
    p = fma(p, u, float64(-1194150.4438145275))
    p = fma(p, u, float64(-4994347.392710523))
    p = fma(p, u, float64(1031153.0315504425))
    p = fma(p, u, float64(151693.46397971048))
    p = fma(p, u, float64(-113724.6455565612))
    p = fma(p, u, float64(18906.523600814777))
    p = fma(p, u, float64(3940.9287573820898))
    p = fma(p, u, float64(-2464.0340160893243))
    p = fma(p, u, float64(248.79561705688468))
    p = fma(p, u, float64(143.38419231746954))
    p = fma(p, u, float64(-46.52142266370442))
    p = fma(p, u, float64(-4.103009058953753))
    p = fma(p, u, float64(4.083438278109325))
    p = fma(p, u, float64(0.5571149706510766))
    p = fma(p, u, float64(-0.8820414419921396))
    p = fma(p, u, float64(0.08407338763635418))
    p = fma(p, u, float64(0.21531274672520762))
    p = fma(p, u, float64(-0.15273853697039796))
    return fma(p, u, float64(7.007528291009008e-17))


def inverse_erf_far_b(u: float64) -> float64:
    """the same for ``s`` from 3.6 to 9. Largest error of the fit, relative to the result: 2^-54.4."""
    p = float64(804376137.2102275)
    p = fma(p, u, float64(122665513.18592325))
    p = fma(p, u, float64(-41646362.12561457))
    p = fma(p, u, float64(-5475971.142763574))
    p = fma(p, u, float64(449626.22021764074))
    p = fma(p, u, float64(209281.05666752235))
    p = fma(p, u, float64(-5075.335420816944))
    p = fma(p, u, float64(517.9673791836093))
    p = fma(p, u, float64(-1034.5779892611315))
    p = fma(p, u, float64(158.2447611053664))
    p = fma(p, u, float64(-57.91306105596786))
    p = fma(p, u, float64(16.977815290651467))
    p = fma(p, u, float64(-5.447131841633657))
    p = fma(p, u, float64(2.0963381507139314))
    p = fma(p, u, float64(-1.2736405584447812))
    p = fma(p, u, float64(0.7868568553616239))
    p = fma(p, u, float64(-0.030469096166142937))
    p = fma(p, u, float64(-0.2013255826139587))
    return fma(p, u, float64(3.8955280415462854e-17))


def inverse_erf_far_c(u: float64) -> float64:
    """the same for ``s`` from 9 to 27.4. Largest error of the fit, relative to the result: 2^-55.1."""
    p = float64(-762320786998462.9)
    p = fma(p, u, float64(59067080866440.484))
    p = fma(p, u, float64(-169837594289.93558))
    p = fma(p, u, float64(69742869405.08748))
    p = fma(p, u, float64(-21050750402.77275))
    p = fma(p, u, float64(1833029199.7566175))
    p = fma(p, u, float64(-153016940.2812508))
    p = fma(p, u, float64(15284147.100509144))
    p = fma(p, u, float64(-1574265.1348325762))
    p = fma(p, u, float64(165952.18824668226))
    p = fma(p, u, float64(-18378.454825918263))
    p = fma(p, u, float64(2172.9862756698467))
    p = fma(p, u, float64(-280.565172685674))
    p = fma(p, u, float64(41.01877243368957))
    p = fma(p, u, float64(-7.627360291606953))
    p = fma(p, u, float64(2.2293718514413547))
    p = fma(p, u, float64(-0.4991943135845646))
    p = fma(p, u, float64(-0.14708806346393394))
    return fma(p, u, float64(-1.2443731403773884e-17))
