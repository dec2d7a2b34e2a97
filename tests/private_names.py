"""Finds the private names of other packages that a Python file uses.

A name is private if it starts with one underscore. Four uses are found:

- an imported name or an attribute of an imported module, as in `torch._C._is_tracing`;
- a method or attribute of a class that derives from another package's class, if that class has the
  same private name, as in `Trainer._save`: an override, a call through `self` or `super()`, or an
  attribute that happens to collide;
- an attribute of any other object, if no file of the package defines an attribute of this name, as
  in `*._is_zerotensor`; getattr() and its like with a text count too;
- a keyword argument that no function of the package has, as in `*(_internal_call=)`.
"""

import ast
import contextlib
import importlib
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

# Documented names that only look private: those of named tuples.
PUBLIC = {"_asdict", "_fields", "_make", "_replace"}
# These modules are part of the language: their classes have no private names that matter here.
LANGUAGE = {"abc", "builtins", "collections", "enum", "typing"}


@dataclass(frozen=True)
class Use:
    """A private name of another package, and the line that uses it."""

    name: str
    file: str
    line: int


@dataclass
class Package:
    """The files of one package, and the private names that they define themselves."""

    name: str
    trees: dict[str, ast.Module]
    own: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.own = {name for tree in self.trees.values() for name in defined_names(tree)}

    @classmethod
    def of(cls, folder: Path) -> "Package":
        """Parse all files of an installed package."""
        files = sorted(folder.rglob("*.py"))
        trees = {
            path.relative_to(folder).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
            for path in files
        }
        return cls(folder.name, trees)

    def uses(self) -> list[Use]:
        return [
            Use(name, file, line)
            for file, tree in self.trees.items()
            for name, line in Reader(self, file).read(tree)
        ]

    def module(self, file: str) -> str:
        """Return the dotted name of a file's module."""
        parts = [self.name, *Path(file).with_suffix("").parts]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Reader(ast.NodeVisitor):
    """Collects the private names of other packages in one file."""

    def __init__(self, package: Package, file: str) -> None:
        self.package = package
        self.module = package.module(file)
        # what the names of imports and of the file's own classes stand for
        self.meaning: dict[str, str] = {}
        # the foreign private names of each class around the node that is visited
        self.inherited: list[dict[str, str]] = []
        self.found: list[tuple[str, int]] = []

    def read(self, tree: ast.Module) -> list[tuple[str, int]]:
        for node in ast.walk(tree):
            self.meaning.update(imports(node))
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                self.meaning[node.name] = f"{self.module}.{node.name}"
        self.visit(tree)
        return self.found

    def note(self, name: str, node: ast.AST) -> None:
        self.found.append((name, getattr(node, "lineno", 0)))

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for dotted in (f"{start}{alias.name}" for alias in node.names):
            if not self.is_own(dotted) and any(map(is_private, dotted.split("."))):
                self.note(dotted, node)

    visit_ImportFrom = visit_Import

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        names: dict[str, str] = {}
        for base in node.bases:
            names |= private_names_of(self.dotted(base), self.package.name)
        self.inherited.append(names)
        for name in class_level_names(node):
            if name in names:
                self.note(names[name], node)
        self.generic_visit(node)
        self.inherited.pop()

    def visit_Attribute(self, node: ast.Attribute) -> None:
        dotted = self.dotted(node)
        if dotted is not None and not self.is_own(dotted):
            if any(map(is_private, dotted.split("."))):
                # the whole chain is one name, so its first parts are not visited
                self.note(dotted, node)
            return
        if is_private(node.attr):
            self.note_attribute(node.attr, node.value, node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        asked = asked_by_text(node)
        if asked is not None and is_private(asked):
            self.note_attribute(asked, node.args[0], node)
        for keyword in node.keywords:
            if keyword.arg and is_private(keyword.arg) and keyword.arg not in self.package.own:
                self.note(f"*({keyword.arg}=)", node)
        self.generic_visit(node)

    def note_attribute(self, name: str, owner: ast.expr, node: ast.AST) -> None:
        if is_self(owner) and self.inherited and name in self.inherited[-1]:
            self.note(self.inherited[-1][name], node)
        elif not is_self(owner) and name not in self.package.own | PUBLIC:
            self.note(f"*.{name}", node)

    def dotted(self, node: ast.expr) -> str | None:
        """Return what an expression of names and attributes stands for, or None."""
        if isinstance(node, ast.Subscript):
            return self.dotted(node.value)
        if isinstance(node, ast.Name):
            return self.meaning.get(node.id)
        if isinstance(node, ast.Attribute):
            start = self.dotted(node.value)
            return None if start is None else f"{start}.{node.attr}"
        return None

    def is_own(self, dotted: str) -> bool:
        return dotted.split(".")[0] == self.package.name


def is_private(name: str) -> bool:
    """
    >>> [name for name in ("_x", "__x__", "_fields_", "_", "x") if is_private(name)]
    ['_x']
    """
    return name.startswith("_") and not name.endswith("_")


def is_self(node: ast.expr) -> bool:
    """Tell whether an expression is `self`, `cls` or `super()`."""
    if isinstance(node, ast.Call):
        node = node.func
    return isinstance(node, ast.Name) and node.id in {"self", "cls", "super"}


def imports(node: ast.AST) -> dict[str, str]:
    """Return the names that an import statement binds, with what they stand for."""
    if isinstance(node, ast.Import):
        return {
            alias.asname or alias.name.split(".")[0]: alias.name
            if alias.asname
            else alias.name.split(".")[0]
            for alias in node.names
        }
    if isinstance(node, ast.ImportFrom) and node.module:
        return {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return {}


def defined_names(tree: ast.AST) -> Iterator[str]:
    """Yield the private names that a file defines: functions, classes, parameters, attributes."""
    for node in ast.walk(tree):
        name = None
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr if is_self(node.value) else None
        if name is not None and is_private(name):
            yield name


def class_level_names(node: ast.ClassDef) -> Iterator[str]:
    """Yield the private names that the body of a class defines."""
    for item in node.body:
        targets: Iterable[ast.expr] = ()
        if isinstance(item, ast.FunctionDef):
            yield from [item.name] if is_private(item.name) else []
        elif isinstance(item, ast.Assign):
            targets = item.targets
        elif isinstance(item, ast.AnnAssign):
            targets = [item.target]
        for target in targets:
            if isinstance(target, ast.Name) and is_private(target.id):
                yield target.id


@cache
def private_names_of(dotted: str | None, package: str) -> dict[str, str]:
    """Return the private names of a class and its bases, as far as other packages define them."""
    kind = find(dotted)
    bases = [
        base
        for base in (kind.__mro__ if isinstance(kind, type) else ())
        if base.__module__.split(".")[0] not in {package, *LANGUAGE}
    ]
    names: dict[str, str] = {}
    # a class that defines a name owns it; of several it is the one furthest up
    for mentioned in (asked_names, defined_in_body):
        for base in bases:
            home = f"{base.__module__.split('.')[0]}.{base.__name__}"
            names |= {name: f"{home}.{name}" for name in mentioned(base) if is_private(name)}
    return names


def find(dotted: str | None) -> object:
    """Import what a dotted name stands for; None if it cannot be found."""
    module, _, name = (dotted or "").rpartition(".")
    if not module:
        return None
    with contextlib.suppress(ImportError):
        return getattr(importlib.import_module(module), name, None)
    return None


def defined_in_body(kind: type) -> set[str]:
    return {*vars(kind), *vars(kind).get("__annotations__", {})}


def asked_names(kind: type) -> set[str]:
    """Return the attributes that the methods of a class read or set on themselves."""
    names = set()
    with contextlib.suppress(OSError, TypeError):
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(kind)))):
            if isinstance(node, ast.Attribute) and is_self(node.value):
                names.add(node.attr)
            elif (asked := asked_by_text(node)) and is_self(node.args[0]):
                names.add(asked)
    return names


def asked_by_text(node: ast.AST) -> str | None:
    """Return the attribute that getattr(), hasattr() or setattr() is called with, if it is one."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"getattr", "hasattr", "setattr"}
        and isinstance(node.args[1], ast.Constant)
    ):
        return str(node.args[1].value)
    return None
