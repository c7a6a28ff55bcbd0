"""What a launch costs before any work is done: kernels of one thread."""

from common import case, load, main, report, time_per_call

wp = load()
DEVICE = "cpu"


@wp.kernel
def nothing_kernel():
    i = wp.tid()  # noqa: F841


@wp.kernel
def five_kernel(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=wp.vec3), a: float, n: int):
    i = wp.tid()
    if n > 100:
        x[i] = y[i] * a + z[i][0]


X = wp.zeros(8, dtype=float, device=DEVICE)
Z = wp.zeros(8, dtype=wp.vec3, device=DEVICE)


def microseconds(name: str, call) -> None:
    seconds = time_per_call(call)
    report(name, seconds, "us", seconds * 1e6)


@case
def empty() -> None:
    microseconds("launch, no arguments", lambda: wp.launch(nothing_kernel, dim=1, device=DEVICE))


@case
def five() -> None:
    inputs = [X, X, Z, 1.0, 1]
    microseconds("launch, 3 arrays 2 scalars", lambda: wp.launch(five_kernel, dim=1, inputs=inputs, device=DEVICE))


@case
def recorded() -> None:
    command = wp.launch(five_kernel, dim=1, inputs=[X, X, Z, 1.0, 1], device=DEVICE, record_cmd=True)
    microseconds("launch, recorded", command.launch)


@case
def allocate() -> None:
    microseconds("zeros(8)", lambda: wp.zeros(8, dtype=float, device=DEVICE))


if __name__ == "__main__":
    main()
