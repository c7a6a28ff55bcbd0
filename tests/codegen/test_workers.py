"""Compile workers give the same code as this process, report what LLVM rejects, and survive nothing silently."""

import io
import os
import signal
import threading

import pytest

from treadle.base.errors import InternalError
from treadle.base.target import Target
from treadle.codegen import worker, workers
from treadle.codegen.cpu import compile_text, host_target

TEXTS = [f"define i32 @f{i}(i32 %x) {{\n  %y = mul i32 %x, {i}\n  ret i32 %y\n}}\n" for i in range(6)]


def test_frames_and_requests_come_back():
    stream = io.BytesIO()
    target = Target("cpu", "x86_64-unknown-linux-gnu", "znver3", "+avx2", 8)
    worker.put_request(stream, "some text é", target)
    worker.put(stream, b"")
    stream.seek(0)
    assert worker.get_request(stream) == ("some text é", target)
    assert worker.get(stream) == b"" and worker.get(stream) is None and worker.get_request(stream) is None


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_the_code_is_that_of_one_process(processes):
    target = host_target()
    made = workers.compile_all([(text, target) for text in TEXTS], processes)
    assert made == [compile_text(text, target) for text in TEXTS]


def test_few_texts_start_no_process(monkeypatch):
    monkeypatch.setattr(workers.subprocess, "Popen", None)
    target = host_target()
    assert workers.compile_all([(TEXTS[0], target)]) == [compile_text(TEXTS[0], target)]
    assert workers.compile_all([]) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_rejected_text_is_an_error(processes):
    target = host_target()
    with pytest.raises(InternalError, match="LLVM rejects"):
        workers.compile_all([(TEXTS[0], target), ("define nonsense", target)], processes)


def test_a_worker_that_ends_is_an_error(monkeypatch):
    monkeypatch.setattr(workers, "_COMMAND", "import sys; sys.exit(3)")
    with pytest.raises(InternalError, match="a compile worker ended"):
        workers.compile_all([(text, host_target()) for text in TEXTS], 2)


def test_jobs_that_were_begun_and_those_that_were_not_give_the_same_code():
    target = host_target()
    want = [compile_text(text, target) for text in TEXTS]
    begun, idle = ([workers.Job(text, target) for text in TEXTS] for _ in range(2))
    assert [job.begin().code() for job in begun] == want
    assert [job.code() for job in reversed(idle)] == want[::-1]
    assert [job.code() for job in begun] == want


def test_the_thread_of_jobs_ends_when_nothing_is_left_and_errors_come_to_who_asks():
    jobs = [workers.Job(text, host_target()).begin() for text in (*TEXTS, "define nonsense")]
    assert all(job._done.wait(60) for job in jobs), "the thread does them all, as nobody else has asked"
    _all_come_and_helpers_end(jobs)


@pytest.mark.parametrize("command", [workers._COMMAND, "import sys; sys.exit(3)"], ids=["works", "ends"])
def test_processes_help_where_much_waits(monkeypatch, command):
    started = []
    monkeypatch.setattr(workers, "_COMMAND", command)
    monkeypatch.setattr(workers, "BACKLOG", 50)
    monkeypatch.setattr(workers, "_most", lambda: 2)
    monkeypatch.setattr(workers, "_started", lambda begin=workers._started: started.append(begin()) or started[-1])
    with workers._lock:  # nobody takes anything before all are there
        jobs = [workers.Job(text, host_target()) for text in (*TEXTS, "define nonsense")]
        workers._jobs.extend(jobs[:-1])
    jobs[-1].begin()
    workers.Job(TEXTS[0], host_target()).begin()
    _all_come_and_helpers_end(jobs)
    assert len(started) <= 1 and all(worker.returncode is not None for worker in started)


def _all_come_and_helpers_end(jobs):
    helpers = [*workers._helpers]
    with pytest.raises(InternalError, match="LLVM rejects"):
        jobs[-1].code()
    want = [compile_text(text, host_target()) for text in TEXTS]
    assert [job.code() for job in jobs[:-1]] == want
    for helper in helpers:
        helper.join(60)
        assert not helper.is_alive()
    assert not workers._helpers


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("inside", [True, False], ids=["in LLVM", "in a process"])
def test_a_forked_process_compiles_what_a_helper_was_at(monkeypatch, inside):
    """The fork waits until LLVM is left; a job that somebody has taken is there for who asks in the child."""
    begun, go, order = threading.Event(), threading.Event(), []

    def slowly(text, target):
        begun.set()
        go.wait(60)
        made = compile_text(text, target)
        order.append("compiled")
        return made

    want = compile_text(TEXTS[2], host_target())
    job, waiting = workers.Job(TEXTS[2], host_target()), workers.Job(TEXTS[3], host_target())
    monkeypatch.setattr(workers, "compile_text", slowly)
    by = None if inside else slowly  # what a process of its own does holds nobody up
    helper = threading.Thread(target=lambda: job._take() and job._compile(by))
    helper.start()
    assert begun.wait(60)
    if inside:
        threading.Timer(0.2, go.set).start()
    child = os.fork()
    order.append("forked")
    if not child:
        status = 2
        try:
            signal.alarm(20)
            monkeypatch.setattr(workers, "compile_text", compile_text)
            waiting.begin()
            status = int(job.code() != want or not waiting.code())
        finally:
            os._exit(status)
    go.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    helper.join()
    assert job.code() == want and order == (["compiled", "forked"] if inside else ["forked", "compiled"])
