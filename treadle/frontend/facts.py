"""What the syntax alone tells: which names a statement assigns, which are read later, what leaves early.

One walk forwards collects assignments and exits, one walk backwards the names still *live* (perhaps read later) after
each statement that owns a block. Branches then yield, and loops carry, only names that matter.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .groups import groups, last_name

Names = frozenset[str]
NONE: Names = frozenset()

STOPS = (ast.Return, ast.Break, ast.Continue)


@dataclass(slots=True)
class BlockFacts:
    """Facts of one statement.

    ``rebinds``: names given a new value, in order of appearance. ``touches``: per name, the targets below it that are
    stored to (``v[0] = …``, ``s.x = …``). ``returns``, ``breaks``, ``continues``: exits inside, the last two out of
    the innermost loop around the statement. ``passes``: names given to functions, which may change tiles.
    """

    rebinds: dict[str, None] = field(default_factory=dict)
    touches: dict[str, list[ast.expr]] = field(default_factory=dict)
    returns: bool = False
    breaks: bool = False
    continues: bool = False

    @property
    def leaves(self) -> bool:
        """Whether control may leave in the middle."""
        return self.returns or self.breaks or self.continues

    passes: dict[str, None] = field(default_factory=dict)

    def add(self, other: BlockFacts, loop: bool = False) -> None:
        """Take in the facts of a statement inside; ``loop``: its breaks end there."""
        self.rebinds.update(other.rebinds)
        for name, targets in other.touches.items():
            self.touches.setdefault(name, []).extend(targets)
        self.passes.update(other.passes)
        self.returns |= other.returns
        if not loop:
            self.breaks |= other.breaks
            self.continues |= other.continues


class Facts:
    """The facts of a whole function.

    ``locals``: every name the function assigns. ``of[s]``: :class:`BlockFacts` of statement ``s``. ``after[s]``: names
    live after ``s``. ``head[s]``: names live at the head of loop ``s``. ``updated``: arguments that calls change.

    ``groups``: for variables that may be parts of others all that may share elements with them.
    ``updating``: the names under which the function calls what changes arguments, and which these are.
    ``kept``: names that somebody reads after the function has ended.
    """

    def __init__(
        self,
        tree: ast.FunctionDef,
        names: Names = NONE,
        updating: Mapping[str, tuple[int | str, ...]] | None = None,
        tiles: bool = False,
        kept: Names = NONE,
    ):
        self.groups, self.tiles = groups(tree) if tiles else {}, tiles
        self.names, self.updating, self.kept = names, updating or {}, kept
        self.updated: set[ast.expr] = set()
        self.of: dict[ast.stmt, BlockFacts] = {}
        self.after: dict[ast.stmt, Names] = {}
        self.head: dict[ast.stmt, Names] = {}
        self._reads: dict[ast.AST, Names] = {}
        whole = BlockFacts()
        for s in tree.body:
            whole.add(self._collect(s))
        self.whole = whole
        self.locals: set[str] = {*whole.rebinds, *(a.arg for a in _arguments(tree))}
        self._block(tree.body, kept, NONE, NONE)

    # -- forwards ------------------------------------------------------------------------------------------------------

    def _collect(self, s: ast.stmt) -> BlockFacts:
        facts = self.of[s] = BlockFacts()
        if self.updating:
            self._updated(s, facts)
        if self.tiles:
            self._passed(s, facts)
        match s:
            case ast.Assign():
                for target in s.targets:
                    _assign(target, facts)
                    if isinstance(target, ast.Subscript | ast.Attribute):
                        self._shared(target, facts)
            case ast.AugAssign() | ast.AnnAssign():
                _assign(s.target, facts)
                if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
                    self._shared(s.target, facts)
            case ast.Return():
                facts.returns = True
            case ast.Break():
                facts.breaks = True
            case ast.Continue():
                facts.continues = True
            case ast.FunctionDef() | ast.ClassDef():  # refused, but then the name is not told missing as well
                facts.rebinds[s.name] = None
            case ast.Import() | ast.ImportFrom():
                facts.rebinds.update((a.asname or a.name.split(".")[0], None) for a in s.names)
            case ast.If():
                for inner in (*s.body, *s.orelse):
                    facts.add(self._collect(inner))
            case ast.For() | ast.While():
                if isinstance(s, ast.For):
                    _assign(s.target, facts)
                for inner in s.body:
                    facts.add(self._collect(inner), loop=True)
                for inner in s.orelse:
                    facts.add(self._collect(inner))
        return facts

    def _updated(self, s: ast.stmt, facts: BlockFacts) -> None:
        """Note the variables that ``s`` passes to builtins which change them, as ``randf(state)`` does."""
        for part in ast.iter_child_nodes(s):
            if isinstance(part, ast.stmt):
                continue
            for node in ast.walk(part):
                if isinstance(node, ast.Call):
                    for target in _arguments_at(node, self.updating.get(last_name(node.func), ())):
                        if root_name(target) in self.names:
                            self.updated.add(target)
                            _assign(target, facts)
                            self._shared(target, facts)

    def _passed(self, s: ast.stmt, facts: BlockFacts) -> None:
        """Note the variables that ``s`` passes to functions: these may change tiles."""
        for part in ast.iter_child_nodes(s):
            for node in ast.walk(part) if not isinstance(part, ast.stmt) else ():
                if isinstance(node, ast.Call) and not last_name(node.func).startswith("tile_"):
                    for given in (*node.args, *[k.value for k in node.keywords]):
                        name = root_name(given)
                        if name in self.names:
                            facts.passes[name] = None

    def _shared(self, target: ast.expr, facts: BlockFacts) -> None:
        """What shares elements with the variable below ``target`` may change with it."""
        for name in self.groups.get(root_name(target) or "", ()):
            facts.touches.setdefault(name, []).append(target)

    def loop_exits(self, s: ast.For | ast.While) -> BlockFacts:
        """The exits in the body of loop ``s``: its own breaks and continues, and returns."""
        found = BlockFacts()
        for inner in s.body:
            found.add(self.of[inner])
        return found

    def any_leaves(self, statements: Sequence[ast.stmt]) -> bool:
        """Whether control may leave from inside ``statements``."""
        return any(self.of[s].leaves for s in statements)

    def always_leaves(self, statements: Sequence[ast.stmt]) -> bool:
        """Whether every path through ``statements`` ends in return, break or continue."""
        return any(self._always(s) for s in statements)

    def _always(self, s: ast.stmt) -> bool:
        if isinstance(s, STOPS):
            return True
        return isinstance(s, ast.If) and self.always_leaves(s.body) and self.always_leaves(s.orelse)

    # -- backwards -----------------------------------------------------------------------------------------------------

    def _block(self, statements: Sequence[ast.stmt], live: Names, broken: Names, continued: Names) -> Names:
        """Names live before ``statements``, when ``live`` are so after them, ``broken`` after a break."""
        for s in reversed(statements):
            live = self._before(s, live, broken, continued)
        return live

    def _before(self, s: ast.stmt, live: Names, broken: Names, continued: Names) -> Names:
        match s:
            case ast.Assign():
                stored = {t.id for t in _flat(s.targets) if isinstance(t, ast.Name)}
                return (live - stored) | self.reads(s)
            case ast.AnnAssign() if isinstance(s.target, ast.Name):
                return (live - {s.target.id}) | self.reads(s.value)
            case ast.AugAssign():
                return live | self.reads(s) | self.reads(s.target) | _names_of(s.target)
            case ast.If():
                self.after[s] = live
                taken = self._block(s.body, live, broken, continued)
                other = self._block(s.orelse, live, broken, continued)
                return taken | other | self.reads(s.test)
            case ast.For() | ast.While():
                return self._loop(s, live, broken, continued)
            case ast.Return():
                return self.reads(s.value) | self.kept
            case ast.Break():
                return broken
            case ast.Continue():
                return continued
        return live | self.reads(s)

    def _loop(self, s: ast.For | ast.While, live: Names, broken: Names, continued: Names) -> Names:
        self.after[s] = live
        exits = self._block(s.orelse, live, broken, continued)
        target = _names_of(s.target) if isinstance(s, ast.For) else NONE
        test = NONE if isinstance(s, ast.For) else self.reads(s.test)
        head = exits | test
        while True:
            inside = (self._block(s.body, head, live, head) - target) | head
            if inside == head:
                break
            head = inside
        self.head[s] = head
        return head | self.reads(s.iter) if isinstance(s, ast.For) else head

    def reads(self, node: ast.AST | None) -> Names:
        """Names that ``node`` may read."""
        if node is None:
            return NONE
        found = self._reads.get(node)
        if found is None:
            names: set[str] = set()
            _loads(node, names)
            for group in [self.groups[name] for name in names if name in self.groups]:
                names |= group
            found = self._reads[node] = frozenset(names)
        return found


def _loads(node: ast.AST, names: set[str]) -> None:
    """Add the names that ``node`` reads. Written out, since it visits every node of every function."""
    kind = type(node)
    if kind is ast.Name:
        if type(node.ctx) is ast.Load:
            names.add(node.id)
    elif kind is ast.Attribute or kind is ast.UnaryOp or kind is ast.Starred:
        _loads(node.operand if kind is ast.UnaryOp else node.value, names)
    elif kind is ast.BinOp:
        _loads(node.left, names)
        _loads(node.right, names)
    elif kind is not ast.Constant:
        for value in node.__dict__.values():
            if type(value) is list:
                for inner in value:
                    if isinstance(inner, ast.AST):
                        _loads(inner, names)
            elif isinstance(value, ast.AST):
                _loads(value, names)


def _arguments_at(call: ast.Call, places: tuple[int | str, ...]) -> list[ast.expr]:
    """The arguments of ``call`` at these positions, or by these names."""
    named = [k.value for k in call.keywords if k.arg in places]
    return [call.args[k] for k in places if isinstance(k, int) and k < len(call.args)] + named


def _arguments(tree: ast.FunctionDef) -> list[ast.arg]:
    return [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]


def _flat(targets: Sequence[ast.expr]):
    """The single targets in ``a, (b, c[0])``."""
    for t in targets:
        if isinstance(t, ast.Tuple | ast.List):
            yield from _flat(t.elts)
        else:
            yield t


def _names_of(target: ast.expr) -> Names:
    return frozenset(t.id for t in _flat([target]) if isinstance(t, ast.Name))


def _assign(target: ast.expr, facts: BlockFacts) -> None:
    for t in _flat([target]):
        if isinstance(t, ast.Name):
            facts.rebinds[t.id] = None
        else:
            name = root_name(t)
            if name is not None:
                facts.touches.setdefault(name, []).append(t)


def root_name(target: ast.expr) -> str | None:
    """The variable at the left end of ``a[i].x[0]``."""
    while isinstance(target, ast.Subscript | ast.Attribute):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None
