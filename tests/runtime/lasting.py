"""A program whose kernel would last for minutes or ages, until Ctrl-C ends it; ``test_signals.py`` runs it."""

import os
import signal
import sys
import threading
import time

import treadle as wp

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs this may ignore it, as shells do for jobs
MOST = 2**31 - 1


@wp.kernel
def single(x: wp.array(dtype=float), n: wp.int64):
    i = wp.tid()
    s = float(0.0)
    for _a in range(n):
        s += wp.sin(s + x[i])
    x[i] = s


@wp.kernel
def single32(x: wp.array(dtype=float), n: int):
    i = wp.tid()
    s = float(0.0)
    for _a in range(n, -n, -3):
        s += wp.sin(s + x[i])
    x[i] = s


@wp.kernel
def varying(x: wp.array(dtype=float), n: int):
    i = wp.tid()
    s = float(0.0)
    for _a in range(n - i):
        s += wp.sin(s + x[i])
        if s < -1.0e9:
            break
    x[i] = s


@wp.kernel
def loaded(x: wp.array(dtype=float), n: wp.array(dtype=wp.int64)):
    i = wp.tid()
    s = float(0.0)
    for _a in range(n[0]):
        s += wp.sin(s + x[i])
    x[i] = s


@wp.kernel
def nested(x: wp.array(dtype=float)):
    i = wp.tid()
    s = float(0.0)
    for _a in range(2000000000):
        for _b in range(2000000000):
            s += wp.sin(s + x[i])
    x[i] = s


@wp.kernel
def many(x: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(x, i % 1000, wp.sin(float(i)))


@wp.kernel
def total(x: wp.array(dtype=float)):
    wp.atomic_add(x, 0, float(wp.tid()))


@wp.kernel
def counted(x: wp.array(dtype=float), n: wp.array(dtype=int)):
    x[wp.atomic_add(n, 0, 1) % 1000] = 1.0


def replayed() -> None:
    with wp.ScopedCapture(device="cpu") as capture:
        wp.launch(single32, 3, [x, MOST], device="cpu")
        wp.launch(single32, 3, [x, 5], device="cpu")
    begun()
    wp.capture_launch(capture.graph)


def begun() -> None:
    print("begun", flush=True)


def launch(kernel, dim, *inputs) -> None:
    begun()
    wp.launch(kernel, dim, [x, *inputs], device="cpu")


x = wp.zeros(1000, dtype=float, device="cpu")
runs = {
    "single": lambda: launch(single, 3, 10**15),
    "single32": lambda: launch(single32, 3, MOST),
    "varying": lambda: launch(varying, 3, MOST),
    "loaded": lambda: launch(loaded, 3, wp.array([10**15], dtype=wp.int64, device="cpu")),
    "nested": lambda: launch(nested, 3),
    "many": lambda: launch(many, (MOST, 1000)),
    "total": lambda: launch(total, (MOST, 1000)),
    "counted": lambda: launch(counted, (MOST, 1000), wp.zeros(1, dtype=int, device="cpu")),
    "replayed": replayed,
}
wp.launch(single32, 3, [x, 5], device="cpu")
asked: list[float] = []


def ask() -> None:
    asked.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)


wp.load_module(device="cpu")
threading.Timer(1.0, ask).start()
try:
    runs[sys.argv[1]]()
except KeyboardInterrupt:
    late = time.monotonic() - asked[0]
    x.zero_()
    wp.launch(single32, 3, [x, 5], device="cpu")
    print("ended", late < 2.0 and signal.getsignal(signal.SIGINT) is signal.default_int_handler)
