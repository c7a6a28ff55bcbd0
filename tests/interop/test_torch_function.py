"""Kernels as functions of PyTorch."""

import doctest

import pytest

import treadle as wp

torch = pytest.importorskip("torch")


@wp.kernel
def scaled(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = s * x[i] * x[i]


@wp.kernel
def turn(
    q: wp.array(dtype=wp.quat), v: wp.vec3, n: wp.array(dtype=int), o: wp.array(dtype=wp.vec3), m: wp.array(dtype=int)
):
    i = wp.tid()
    o[i] = wp.quat_rotate(q[i], v)
    m[i] = n[i] + 1


@wp.kernel
def square(x: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x[i] = wp.sin(x[i]) * x[i]


def twice(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    half = wp.zeros_like(x, requires_grad=True)
    wp.launch(scaled, dim=x.shape, inputs=[x, 2.0], outputs=[half])
    wp.launch(scaled, dim=x.shape, inputs=[half, 2.0], outputs=[y])


def test_autograd_goes_back_through_it():
    x = torch.arange(3.0, requires_grad=True)
    wp.torch_function(scaled)(x, 3.0).sum().backward()
    assert x.grad.tolist() == [0, 6, 12]
    x = torch.arange(3.0, requires_grad=True)
    y = wp.torch_function(twice)(x)
    y.sum().backward()
    assert y.tolist() == [0, 8, 128] and x.grad.tolist() == [0, 32, 256]
    x = torch.arange(4.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(wp.torch_function(square, in_out_argnames=["x"]), (x,))
    assert x.tolist() == [0, 1, 2, 3]  # an operand stays as it is
    q = torch.tensor([[0.0, 0.0, 1.0, 0.0]], requires_grad=True)
    o, m = wp.torch_function(turn, num_outputs=2)(q, wp.vec3(1.0, 2.0, 3.0), torch.tensor([4], dtype=torch.int32))
    o.sum().backward()
    x = torch.tensor([3.0], requires_grad=True)
    wp.torch_function(scaled)(x.expand(5), 1.0).sum().backward()  # each of the five has a gradient of its own
    assert x.grad.tolist() == [30]
    assert o.tolist() == [[-1, -2, 3]] and m.tolist() == [5] and q.grad.abs().sum() > 0


def test_transforms_and_compilers_know_it():
    f = wp.torch_function(scaled)
    gradient = torch.func.grad(lambda x: f(x, 3.0).sum())
    rows = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(torch.vmap(gradient)(rows), 6 * rows)
    assert torch.equal(torch.vmap(lambda x: f(x, 2.0), in_dims=1)(rows), 2 * rows.t() ** 2)
    compiled = torch.compile(lambda x: torch.sin(f(torch.cos(x), 3.0)).sum(), backend="aot_eager", fullgraph=True)
    x, plain = (torch.arange(3.0, requires_grad=True) for _ in range(2))
    compiled(x).backward()
    torch.sin(3 * torch.cos(plain) ** 2).sum().backward()
    assert torch.allclose(x.grad, plain.grad, rtol=1e-6)


def test_what_does_not_fit_is_said():
    f = wp.torch_function(scaled)
    wrong = [
        ((torch.zeros(3, dtype=torch.int32), 1.0), "must hold torch.float32"),
        ((torch.zeros(2, 2), 1.0), "must have 1 dimensions"),
        ((torch.zeros(2),), "takes 2 arguments"),
        (([0.0, 1.0], 1.0), "a tensor of PyTorch, not list"),
    ]
    for args, words in wrong:
        with pytest.raises((wp.LaunchTypeError, wp.LaunchError), match=words):
            f(*args)
    with pytest.raises(wp.LaunchTypeError, match=r"'s' of kernel scaled must be float(.|\n)*read s\[0\]"):
        wp.torch_function(scaled)(torch.ones(3), torch.tensor(2.0))
    with pytest.raises(ValueError, match="'namespace::name', not 'noname'"):
        wp.torch_function(scaled, name="noname")
    with pytest.raises(ValueError, match="num_outputs"):
        wp.torch_function(scaled, num_outputs=9)
    x = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad(f(x, 2.0).sum(), x, create_graph=True)
    with pytest.raises(wp.KernelGradientError, match="second derivative"):
        g.sum().backward()


def test_examples():
    module = __import__("treadle.interop.torch_function", fromlist=["x"])
    assert doctest.testmod(module).failed == 0
