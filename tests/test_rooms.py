"""The rooms of the code: imports point one way, in the order that docs/rooms.md states, and nothing grows too large."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "dsgnar"
PAGE = ROOT / "docs" / "rooms.md"
MODULES = sorted(SOURCE.rglob("*.py"))


def rooms() -> list[str]:
    """The first column of the page's table, from top to bottom."""
    return re.findall(r"^\| `(\w+)/` \|", PAGE.read_text(), flags=re.MULTILINE)


def dotted(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {dotted(path): path for path in MODULES}


def imported(path: Path, for_types: bool = True) -> set[str]:
    """Modules of the package that a module imports, anywhere in it; those for types alone only if asked for."""
    tree, out = ast.parse(path.read_text()), set()
    if not for_types:
        tree.body = [n for n in tree.body if not (isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            out |= {alias.name for alias in node.names if alias.name.split(".")[0] == "dsgnar"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dsgnar":
            assert not node.level
            module = str(node.module)
            out |= {f"{module}.{a.name}" if f"{module}.{a.name}" in NAMES else module for a in node.names}
    return out


def test_the_page_names_every_room_and_no_other():
    found = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert set(rooms()) == found and len(rooms()) == len(found) <= 10
    others = {path.name for path in SOURCE.iterdir()} - found - {"__pycache__"}
    assert others == {"__init__.py", "py.typed"}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "dsgnar"])
def test_imports_point_up_the_table(name):
    order = rooms()
    here = order.index(name.split(".")[1])
    for module in imported(NAMES[name]):
        assert module != "dsgnar", f"{name} imports the package root"
        assert order.index(module.split(".")[1]) <= here, f"{name} imports {module}, which comes after it"


def test_no_module_imports_itself_by_a_detour():
    graph = {name: imported(path, for_types=False) & set(NAMES) for name, path in NAMES.items() if name != "dsgnar"}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail, name))
        if name not in done:
            for other in graph[name]:
                visit(other, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_nothing_is_too_large(path):
    text = path.read_text()
    assert text.count("\n") <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            methods = [n.name for n in node.body if isinstance(n, ast.FunctionDef)]
            assert len(methods) <= 15, f"{node.name}: {methods}"


def test_no_room_asks_which_method_it_is():
    for path in MODULES:
        assert not re.search(r"""method(\.name)?\s*[!=]=\s*["'](fast|paper)""", path.read_text()), path


def test_the_page_fits_on_one_screen():
    lines = PAGE.read_text().splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 160


def test_every_module_says_what_it_is():
    for path in MODULES:
        assert ast.get_docstring(ast.parse(path.read_text())), path
