"""Live names, assigned names and exits, read off the syntax."""

from __future__ import annotations

import ast
import textwrap

from treadle.frontend.facts import Facts, root_name


def facts_of(text: str) -> tuple[Facts, ast.FunctionDef]:
    tree = ast.parse(textwrap.dedent(text)).body[0]
    assert isinstance(tree, ast.FunctionDef)
    return Facts(tree), tree


def test_names_live_after_a_branch():
    facts, tree = facts_of("""
        def f(c, a):
            if c:
                x = 1
                y = 2
            else:
                z = a
            y = 3
            return x + y
    """)
    assert facts.after[tree.body[0]] == {"x"}
    assert list(facts.of[tree.body[0]].rebinds) == ["x", "y", "z"]
    assert facts.locals == {"c", "a", "x", "y", "z"}


def test_names_live_around_a_loop():
    facts, tree = facts_of("""
        def f(n):
            s = 0
            for i in range(n):
                t = i * 2
                s = s + t
                if s > 9:
                    last = i
                    break
            return last
    """)
    loop = tree.body[1]
    assert facts.after[loop] == {"last"}
    assert facts.head[loop] == {"s", "last"}
    branch = loop.body[2]
    assert facts.after[branch] == {"s", "last"}


def test_continue_leads_to_the_head_and_break_behind_the_loop():
    facts, tree = facts_of("""
        def f(n, a, b):
            while n > 0:
                if a:
                    continue
                if b:
                    break
                c = 1
            return c
    """)
    loop = tree.body[0]
    assert facts.head[loop] == {"n", "a", "b", "c"}
    assert facts.loop_exits(loop).breaks and facts.loop_exits(loop).continues
    assert not facts.of[loop].leaves


def test_exits():
    facts, tree = facts_of("""
        def f(a, b):
            if a:
                if b:
                    return
                else:
                    return
            if b:
                a = 1
            for i in range(3):
                return
            pass
    """)
    assert facts.always_leaves(tree.body[0].body)
    assert not facts.always_leaves(tree.body[1:2])
    assert facts.any_leaves(tree.body[2:3]) and not facts.any_leaves(tree.body[3:])
    assert facts.of[tree.body[2]].returns


def test_stores_below_a_name():
    facts, tree = facts_of("""
        def f(a, s):
            a[0], s.x[1].y = 1, 2
            (b, c), d = a
    """)
    assert list(facts.of[tree.body[0]].touches) == ["a", "s"]
    assert list(facts.of[tree.body[1]].rebinds) == ["b", "c", "d"]
    assert root_name(ast.parse("f(x).y[0]").body[0].value) is None
