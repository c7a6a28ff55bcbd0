"""LLVM's options are those of the whole process: whoever emits code meanwhile must not see them changed."""

import threading

from treadle.codegen import llvm


def test_options_of_one_thread_do_not_reach_another(monkeypatch):
    polished, seen = [True], {}
    monkeypatch.setattr(llvm, "_set", lambda options, which: polished.__setitem__(0, bool(which) or not options))
    inside, asked = threading.Event(), threading.Event()

    def slow(module):
        inside.set()
        asked.wait(10)
        seen["plain"] = polished[0]
        return b""

    def other():
        inside.wait(10)
        threading.Timer(0.05, asked.set).start()
        llvm.emitted(lambda module: seen.update(other=polished[0]) or b"", None, plain=False)

    threads = [threading.Thread(target=llvm.emitted, args=(slow, None, True)), threading.Thread(target=other)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(20)
    assert seen == {"plain": False, "other": True}
