"""``tape.visualize``: the recorded operations as a graph."""

import re

import treadle as wp


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


def made():
    x, y, z = (wp.ones(2, dtype=float, requires_grad=True) for _ in range(3))
    with wp.Tape() as tape:
        tape.record_scope_begin("outer", metadata={"n": 1})
        wp.launch(double, dim=2, inputs=[x], outputs=[y])
        tape.record_scope_begin("inner")
        wp.copy(z, y)
        tape.record_scope_end()
        tape.record_scope_end()
        tape.record_scope_begin("empty")
        tape.record_scope_end()
        wp.launch(double, dim=2, inputs=[z], outputs=[y])
    return x, y, z, tape


def labels(text: str, pattern: str) -> list[str]:
    return re.findall(pattern, text, re.MULTILINE)


def test_operations_arrays_and_scopes(tmp_path):
    x, _, z, tape = made()
    assert [name for _, name, _ in tape.scopes] == ["outer", "inner", None, None]
    text = tape.visualize(tmp_path / "tape.dot", array_labels={x: "X"}, track_outputs=[z], track_output_names=["Z"])
    assert (tmp_path / "tape.dot").read_text(encoding="utf-8") == text
    assert text.startswith("digraph") and text.count("{") == text.count("}") and "rankdir=LR" in text
    assert labels(text, r'^ *op\d+ \[label="(\w+)"\]') == ["double", "copy", "double"]
    assert labels(text, r'subgraph cluster\d+ \{ label="(\w+)"') == ["outer", "inner"]
    assert labels(text, r'ellipse, label="(\w+)"') == ["X", "source", "Z"]


def test_versions_and_hidden_arrays():
    _, _, _, tape = made()
    text = tape.visualize(simplify_graph=False, ignore_graph_scopes=True, graph_direction="TB")
    assert "subgraph" not in text and "rankdir=TB" in text
    assert text.count("shape=ellipse") == 4  # y twice
    text = tape.visualize(hide_readonly_arrays=True)
    assert text.count("shape=ellipse") == 2  # x is only read


def test_what_comes_again_and_again_stands_once():
    x, y, z = (wp.ones(2, dtype=float, requires_grad=True) for _ in range(3))
    with wp.Tape() as tape:
        wp.launch(double, dim=2, inputs=[x], outputs=[y])
        tape.record_scope_begin("loop")
        for _ in range(16):
            wp.launch(double, dim=2, inputs=[x], outputs=[y])
            wp.launch(double, dim=2, inputs=[y], outputs=[z])
        tape.record_scope_end()
        wp.launch(double, dim=2, inputs=[y], outputs=[z])
    text = tape.visualize()
    assert labels(text, r'subgraph cluster\d+ \{ label="([\w ]+)"') == ["loop", "repeated 16x"]
    assert text.count('[label="double"]') == 4 and text.count("{") == text.count("}")
    assert tape.visualize(simplify_graph=False).count('[label="double"]') == 34
