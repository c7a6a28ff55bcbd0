"""Compiling several kernels at once.

LLVM has one lock a process. So a thread beside the main one compiles what will be needed soon (:class:`Job`), while the
main one translates the next kernel; where much waits for it, processes help. And of many texts that are there already
several processes compile some each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from ..base.config import config
from ..base.errors import InternalError
from ..base.target import Target
from .worker import compile_text, get, put_request

# Where a worker finds this package, however this process found it.
_COMMAND = "import sys; sys.path.insert(0, sys.argv[1]); from treadle.codegen.worker import serve; serve()"
_ROOT = str(Path(__file__).resolve().parents[2])
WORTH = 4  # texts from which on starting processes (about 0.3 s) pays
BACKLOG = 500_000  # characters that wait for a helper, from which on one more process pays

_jobs: list[Job] = []  # begun, and taken by nobody yet
_lock = threading.Lock()
_helpers: list[threading.Thread] = []  # who compile them; the first one does so in this process
_begun: list[Job] = []  # taken, and not done
_llvm = threading.RLock()  # held while this process is inside LLVM for a job: no moment to fork


class Job:
    """The object code of a text: compiled when :meth:`code` is first asked for it, or earlier, beside what this thread
    does, if it has been begun."""

    __slots__ = ("_code", "_done", "_error", "_target", "_taken", "_text")

    def __init__(self, text: str, target: Target):
        self._text, self._target = text, target
        self._taken, self._done = False, threading.Event()
        self._code: bytes = b""
        self._error: Exception | None = None

    def begin(self) -> Job:
        """Let a thread of its own compile it; that ends once nothing is left to do."""
        with _lock:
            _jobs.append(self)
            waiting = sum([len(job._text) for job in _jobs])
            if not _helpers or (waiting > BACKLOG * len(_helpers) and len(_helpers) < _most() and sys.executable):
                helper = threading.Thread(target=_help if not _helpers else _help_by_process, name="treadle compiler")
                _helpers.append(helper)
                helper.start()
        return self

    def code(self) -> bytes:
        """The code; compiled here and now if nobody has begun with it.

        Raises:
            InternalError: LLVM rejects the text.
        """
        if self._take():
            self._compile()
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._code

    def _take(self) -> bool:
        with _lock:
            first, self._taken = not self._taken, True
            if first:
                _begun.append(self)
        return first

    def _compile(self, by: Callable[[str, Target], bytes] | None = None) -> None:
        try:
            self._code = (by or _here)(self._text, self._target)
        except Exception as error:  # raised where somebody asks
            self._error = error
        with _lock:
            _begun.remove(self)
            self._text = ""
            self._done.set()

    def _untake(self) -> None:
        """Who compiled it is gone."""
        self._taken, self._done = False, threading.Event()


def _here(text: str, target: Target) -> bytes:
    """What LLVM makes of ``text`` in this process."""
    with _llvm:
        return compile_text(text, target)


def _before_fork() -> None:
    """Let whoever is inside LLVM come out: it has one state and one lock a process."""
    _llvm.acquire()
    _lock.acquire()


def _after_fork() -> None:
    _lock.release()
    _llvm.release()


def _forked() -> None:
    """In a child process the helpers are gone. What they compiled is for who asks for it."""
    _after_fork()
    for job in _begun:
        job._untake()
    for left in (_begun, _jobs, _helpers):
        left.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_forked)


def _most() -> int:
    """How many may compile at once."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return config.compile_workers or cores


def _help(by: Callable[[str, Target], bytes] | None = None) -> None:
    """Compile jobs until there are none, or until the program ends."""
    while True:
        with _lock:
            if not _jobs or not threading.main_thread().is_alive():
                _jobs.clear()
                _helpers.remove(threading.current_thread())
                return
            job = max(_jobs, key=lambda waiting: len(waiting._text))  # nobody shall be left alone with a long one
            _jobs.remove(job)
        if job._take():
            job._compile(by)


def _help_by_process() -> None:
    """The same in a process of its own; what that cannot do is done in this one."""
    try:
        worker = _started()
    except OSError:  # the system lets this program start none
        _help()
        return

    def ask(text: str, target: Target) -> bytes:
        try:
            return _ask(worker, text, target)
        except InternalError:  # the worker has ended, or LLVM will reject the text here too
            return _here(text, target)

    with worker:
        _help(ask)
        worker.stdin.close()  # type: ignore[union-attr]


def compile_all(jobs: Sequence[tuple[str, Target]], processes: int | None = None) -> list[bytes]:
    """The object code of each text for its target, in order.

    Args:
        jobs: LLVM texts with their targets.
        processes: how many work at once; None takes ``wp.config.compile_workers``, or every core where there are
            enough texts to pay for starting processes.

    Raises:
        InternalError: a text that LLVM rejects, or a worker that died of one.
    """
    if processes is None:
        processes = _most() if len(jobs) >= WORTH else config.compile_workers or 1
    processes = min(processes, len(jobs))
    if processes <= 1 or not sys.executable:
        return [compile_text(text, target) for text, target in jobs]
    waiting: SimpleQueue[int] = SimpleQueue()
    for i in sorted(range(len(jobs)), key=lambda i: -len(jobs[i][0])):  # the long ones first
        waiting.put(i)
    done: list[bytes] = [b""] * len(jobs)
    errors: list[InternalError] = []
    args = (jobs, waiting, done, errors)
    helpers = [threading.Thread(target=_tend, args=args, daemon=True) for _ in range(processes)]
    for helper in helpers:
        helper.start()
    for helper in helpers:
        helper.join()
    if errors:
        raise errors[0]
    return done


def _tend(jobs: Sequence[tuple[str, Target]], waiting: SimpleQueue[int], done: list[bytes],
          errors: list[InternalError]) -> None:  # fmt: skip
    """Start one worker and give it texts until there are none."""
    with _started() as worker:
        try:
            while not errors:
                done_one = waiting.get_nowait()
                done[done_one] = _ask(worker, *jobs[done_one])
        except Empty:
            return
        except InternalError as error:
            errors.append(error)
        finally:
            worker.stdin.close()  # type: ignore[union-attr]


def _started() -> subprocess.Popen:
    """A new worker."""
    return subprocess.Popen([sys.executable, "-c", _COMMAND, _ROOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _ask(worker: subprocess.Popen, text: str, target: Target) -> bytes:
    try:
        put_request(worker.stdin, text, target)  # type: ignore[arg-type]
        error, code = get(worker.stdout), get(worker.stdout)  # type: ignore[arg-type]
    except OSError:
        error = code = None
    if error is None or code is None:
        raise InternalError(f"a compile worker ended while it compiled for {target.key()}")
    if error:
        raise InternalError(error.decode())
    return code
