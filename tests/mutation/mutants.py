"""The mutants of a module, by the operators of mutmut.

mutmut's own runner leaves out what this core consists of in good part: tables and other
constants, fields of models, properties, validators, and whatever else is decorated. So the
operators are taken from it, and every mutant is a whole changed module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import libcst as cst
from libcst.metadata import MetadataWrapper
from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
from mutmut.mutation.mutators import OPERATORS_TYPE, mutation_operators, operator_string
from mutmut.mutation.pragma_handling import IgnoredCode

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to a module.

    Attributes:
        module: Dotted name.
        where: The function, class or constant that is changed.
        before: The lines that are changed, without their indentation.
        after: What they become.
        line: The first of them.
        function: The one function whose body is changed; None if it is anything else.
        source: The whole changed module.
    """

    module: str
    where: str
    before: str
    after: str
    line: int
    function: str | None
    source: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What names it however the lines around it move."""
        return self.module, self.where, self.before, self.after


def mutants_of(module: str, source: str) -> Iterator[Mutant]:
    """Every change that the operators make to ``source``; those that change nothing left out."""
    wrapper = MetadataWrapper(cst.parse_module(source))
    visitor = _Everything(_OPERATORS, IgnoredCode(set(), set(), set()))
    wrapper.visit(visitor)
    tree, whole = wrapper.module, ast.parse(source)
    parts = [tree.code_for_node(statement) for statement in tree.body]
    head = "".join(tree.code_for_node(line) for line in tree.header)
    owners = {id(node): at for at, statement in enumerate(tree.body) for node in _walk(statement)}
    shapes = [_Shape.of(part) for part in parts]
    seen: set[tuple[int, str]] = set()
    for mutation in visitor.mutations:
        at = owners[id(mutation.original_node)]
        changed = deep_replace(tree.body[at], mutation.original_node, mutation.mutated_node)
        assert isinstance(changed, cst.CSTNode)
        code = tree.code_for_node(changed)
        if (at, code) in seen:
            continue
        seen.add((at, code))
        shape = _Shape.of(code)
        original = shapes[at]
        if shape is None or original is None or shape == original:
            continue
        line, before, after = _difference(parts[at], code)
        line += (head + "".join(parts[:at])).count("\n")
        yield Mutant(
            module=module,
            where=_where(whole, line),
            before=before,
            after=after,
            line=line,
            function=original.only_difference(shape),
            source=head + "".join([*parts[:at], code, *parts[at + 1 :]]),
        )


def _walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in node.children:
        yield from _walk(child)


def statement_lines(tree: ast.Module, line: int) -> range:
    """The lines of the statement that ``line`` is in; of a block, those of its head."""
    found = range(line, line + 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            body = getattr(node, "body", None)
            end = (node.end_lineno or 0) + 1
            if body and isinstance(body, list):
                end = max(body[0].lineno, node.lineno + 1)
            elif isinstance(node, ast.Match):
                end = node.lineno + 1
            # ast.walk goes from the outside in.
            found = range(node.lineno, end)
    return found


def functions_of(tree: ast.Module) -> dict[str, Function]:
    """Functions and methods by qualified name; functions inside functions belong to these."""
    return dict(_functions(tree.body, ""))


def _functions(body: Iterable[ast.stmt], prefix: str) -> Iterator[tuple[str, Function]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")


@dataclass(frozen=True, slots=True)
class _Shape:
    """A statement's functions apart from the rest of it; line numbers do not count."""

    bodies: dict[str, str]
    rest: str

    @classmethod
    def of(cls, source: str) -> _Shape | None:
        """None if it is no Python."""
        try:
            tree = ast.parse(source)
        except SyntaxError:
            return None
        bodies: dict[str, str] = {}
        for name, function in functions_of(tree).items():
            bodies[name] = "\n".join(ast.dump(statement) for statement in function.body)
            function.body = [ast.Pass()]
        return cls(bodies, ast.dump(tree))

    def only_difference(self, other: _Shape) -> str | None:
        """The one function whose body differs; None if that is not all."""
        if self.rest != other.rest:
            return None
        changed = [name for name, body in self.bodies.items() if other.bodies.get(name) != body]
        return changed[0] if len(changed) == 1 else None


class _Everything(MutationVisitor):
    """mutmut's visitor, for decorated functions as well."""

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef):
            return False
        return super()._skip_node_and_children(node)


def _one_string(node: cst.BaseString) -> Iterator[cst.BaseString]:
    """One changed string for each: other cases of it tell the same tests nothing new."""
    for changed in operator_string(node):
        yield changed
        return


_OPERATORS: Final[OPERATORS_TYPE] = [
    (kind, _one_string if operator is operator_string else operator)
    for kind, operator in mutation_operators
]


def _difference(source: str, changed: str) -> tuple[int, str, str]:
    """The first line that differs, counted from 1, and all lines from there to the last."""
    old, new = source.splitlines(), changed.splitlines()
    shortest = min(len(old), len(new))
    start = next((n for n in range(shortest) if old[n] != new[n]), shortest)
    rest = shortest - start
    end = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    return (
        start + 1,
        _stripped(old[start : len(old) - end]),
        _stripped(new[start : len(new) - end]),
    )


def _stripped(lines: Iterable[str]) -> str:
    return "\n".join(line.strip() for line in lines)


def _where(tree: ast.Module, line: int) -> str:
    names: list[str] = []
    body: Iterable[ast.stmt] = tree.body
    while True:
        for node in body:
            if node.lineno <= line <= (node.end_lineno or 0):
                break
        else:
            return ".".join(names) or "module"
        match node:
            case ast.ClassDef():
                names.append(node.name)
                body = node.body
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return ".".join([*names, node.name])
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                return ".".join([*names, name]) + _element(node.value, line)
            case _:
                return ".".join(names) or "module"


def _element(value: ast.expr | None, line: int) -> str:
    """Which row of a table: the first of what it is made of."""
    for row in value.elts if isinstance(value, ast.Tuple | ast.List) else []:
        if isinstance(row, ast.Call) and row.lineno <= line <= (row.end_lineno or 0):
            named = row.args and isinstance(row.args[0], ast.Constant)
            return f"[{', '.join(ast.unparse(part) for part in row.args[: 1 if named else 3])}]"
    return ""
