"""What differs between operating systems and processors: sleeping on a word, waking sleepers, pausing, SIGINT.

Everything else in :mod:`treadle.codegen.native` is the same everywhere. The addresses of the system's functions come
from the runtime (``runtime/system.py``), in the records ``POOL`` and ``ENV``.
"""

from __future__ import annotations

from ...types.records import ENV, POOL
from .text import Code

SIGINT = 2


def kind_of(triple: str) -> str:
    """The way of waiting that the system of ``triple`` has: "futex", "ulock", "address", or "sleep" for any other."""
    if "linux" in triple:
        return "futex"
    if "darwin" in triple or "macos" in triple:
        return "ulock"
    return "address" if "windows" in triple else "sleep"


def pause(triple: str) -> tuple[str, str]:
    """The instruction that tells the processor it is spinning, and the declaration that it needs."""
    arch = triple.split("-")[0]
    if arch in ("x86_64", "i686", "amd64"):
        return "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()\n"
    if arch in ("aarch64", "arm64"):
        return "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)\n"
    return "fence seq_cst", ""


def waiting(triple: str) -> str:
    """``@sleep_on(pool, word, seen)`` returns when ``*word`` may differ from ``seen``; ``@wake(pool, word, n)``."""
    wait = Code("sleep_on", "void", [("ptr", "pool"), ("ptr", "word"), ("i32", "seen")], "internal")
    wake = Code("wake", "void", [("ptr", "pool"), ("ptr", "word"), ("i32", "n")], "internal")
    wait_function, wake_function = wait.load("ptr", "%pool", POOL["wait"]), wake.load("ptr", "%pool", POOL["wake"])
    kind = kind_of(triple)
    if kind == "futex":
        # long syscall(long number, uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
        number = 98 if triple.startswith(("aarch64", "riscv64")) else 221 if triple.startswith("powerpc64") else 202
        private_wait, private_wake = 128, 129
        wait.call("i64 (i64, ...)", wait_function, ("i64", number), ("ptr", "%word"), ("i32", private_wait),
                  ("i32", "%seen"), ("ptr", "null"))  # fmt: skip
        wake.call(
            "i64 (i64, ...)", wake_function, ("i64", number), ("ptr", "%word"), ("i32", private_wake), ("i32", "%n")
        )
    elif kind == "ulock":
        # int __ulock_wait(uint32_t op, void *word, uint64_t value, uint32_t microseconds)
        # int __ulock_wake(uint32_t op, void *word, uint64_t)
        compare_and_wait, wake_all = 1, 0x101
        seen = wait.cast("zext", "i32", "%seen", "i64")
        wait.call("i32", wait_function, ("i32", compare_and_wait), ("ptr", "%word"), ("i64", seen), ("i32", 0))
        wake.call("i32", wake_function, ("i32", wake_all), ("ptr", "%word"), ("i64", 0))
    elif kind == "address":
        # BOOL WaitOnAddress(void *word, void *seen, SIZE_T size, DWORD milliseconds); void WakeByAddressAll(void *word)
        slot = wait.var("i32", "%seen").slot
        wait.call("i32", wait_function, ("ptr", "%word"), ("ptr", slot), ("i64", 4), ("i32", -1))
        wake.call("void", wake_function, ("ptr", "%word"))
    else:
        wait.call("i32", wait_function, ("i32", 200))  # int usleep(useconds_t): look again every 0.2 ms
    return wait.text() + wake.text()


def interrupt(triple: str) -> str:
    """Ctrl-C during a launch: ``@listen(env, saved)`` and ``@unlisten(env, saved)``.

    In between, SIGINT sets ``@interrupted`` and then calls the handler that was there before (Python's, which raises
    KeyboardInterrupt once the launch has returned). ``saved`` is 256 bytes for the system's description of that
    handler, whose first field is its address on all systems. Nothing is installed where SIGINT is ignored or ends the
    process.
    """
    handler = Code("on_interrupt", "void", [("i32", "number")], "internal")
    handler.atomic_store("i32", 1, "@interrupted", 0, "monotonic")
    previous = handler.load("ptr", "@previous")
    with handler.if_(handler.op("icmp ne", "ptr", previous, "null")):
        handler.call("void", previous, ("i32", "%number"), ("ptr", "null"), ("ptr", "null"))

    begin = Code("listen", "i1", [("ptr", "env"), ("ptr", "saved")])
    act = begin.load("ptr", "%env", ENV["sigaction"])
    with begin.if_(begin.op("icmp eq", "ptr", act, "null")):
        begin.ret("false")
    end = Code("unlisten", "void", [("ptr", "env"), ("ptr", "saved")])
    restore = end.load("ptr", "%env", ENV["sigaction"])
    if kind_of(triple) == "address":
        # void (*signal(int, void (*)(int)))(int)
        old = begin.call("ptr", act, ("i32", SIGINT), ("ptr", "@on_interrupt"))
        begin.store("ptr", old, "%saved")
        own = begin.call("ptr", act, ("i32", SIGINT), ("ptr", old))
        with begin.if_(_is_no_function(begin, old)):
            begin.ret("false")
        begin.store("ptr", old, "@previous")
        begin.atomic_store("i32", 0, "@interrupted", 0, "monotonic")
        begin.call("ptr", act, ("i32", SIGINT), ("ptr", own))
        end.call("ptr", restore, ("i32", SIGINT), ("ptr", end.load("ptr", "%saved")))
    else:
        # int sigaction(int, const struct sigaction *new, struct sigaction *old)
        begin.call("i32", act, ("i32", SIGINT), ("ptr", "null"), ("ptr", "%saved"))
        old = begin.load("ptr", "%saved")
        with begin.if_(_is_no_function(begin, old)):
            begin.ret("false")
        begin.store("ptr", old, "@previous")
        begin.atomic_store("i32", 0, "@interrupted", 0, "monotonic")
        new = begin.stack(256)
        begin.line(f"call void @llvm.memset.p0.i64(ptr {new}, i8 0, i64 256, i1 false)")
        begin.store("ptr", "@on_interrupt", new)
        begin.call("i32", act, ("i32", SIGINT), ("ptr", new), ("ptr", "null"))
        end.call("i32", restore, ("i32", SIGINT), ("ptr", "%saved"), ("ptr", "null"))
    begin.ret("true")
    return (
        "@interrupted = global i32 0, align 64\n@previous = internal global ptr null\n"
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n" + handler.text() + begin.text() + end.text()
    )


def _is_no_function(code: Code, handler: str) -> str:
    """Whether ``handler`` is SIG_DFL (0), SIG_IGN (1), SIG_ERR (-1) or our own."""
    address = code.cast("ptrtoint", "ptr", handler, "i64")
    special = code.op("icmp ule", "i64", code.op("add", "i64", address, 1), 2)
    return code.op("or", "i1", special, code.op("icmp eq", "ptr", handler, "@on_interrupt"))
