"""Launch graphs: what a launch in one costs, and a chain of element-wise launches beside launches one by one."""

from common import case, load, main, median_time, report, time_per_call

wp = load()
DEVICE = "cpu"


@wp.kernel
def nothing_kernel():
    i = wp.tid()  # noqa: F841


@wp.kernel
def scale_kernel(x: wp.array(dtype=float), a: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a * x[i] + 1.0


def captured(work):
    """The graph of ``work()``, which was done once before."""
    work()
    with wp.ScopedCapture(device=DEVICE) as capture:
        work()
    return capture.graph


@case
def replay(launches: int = 100) -> None:
    def work() -> None:
        for _ in range(launches):
            wp.launch(nothing_kernel, dim=1, device=DEVICE)

    graph = captured(work)
    seconds = time_per_call(lambda: wp.capture_launch(graph)) / launches
    report(f"a launch in a graph of {launches}", seconds, "us", seconds * 1e6)


def chain(name: str, n: int, inner: bool) -> None:
    """Three launches, one working on what the other left; ``inner``: what is between them is allocated in the capture,
    and gone once it is over."""
    x, y = wp.full(n, 0.5, dtype=float, device=DEVICE), wp.zeros(n, dtype=float, device=DEVICE)
    outer = [wp.zeros(n, dtype=float, device=DEVICE) for _ in range(2)]

    def work(temporaries) -> None:
        steps = [x, *temporaries, y]
        for source, into in zip(steps, steps[1:]):
            wp.launch(scale_kernel, dim=n, inputs=[source, 0.5], outputs=[into], device=DEVICE)

    def fresh() -> None:
        work([wp.empty(n, dtype=float, device=DEVICE) for _ in range(2)] if inner else outer)

    graph = captured(fresh)
    y.zero_()
    wp.capture_launch(graph)
    right = bool((y.numpy() == 1.8125).all())
    apart = median_time(lambda: work(outer))
    seconds = median_time(lambda: wp.capture_launch(graph))
    report(name, seconds, "ms", seconds * 1e3, separately_ms=apart * 1e3, times=apart / seconds, right=right)


@case
def chain_of_temporaries(n: int = 1_000_000) -> None:
    chain("chain of 3 launches over 1e6 floats, temporaries", n, True)


@case
def chain_of_results(n: int = 1_000_000) -> None:
    chain("chain of 3 launches over 1e6 floats, all kept", n, False)


if __name__ == "__main__":
    main()
