"""Modules beside a person's file, imported for that file alone.

Python keeps one module for each name. Two files that each have a `helper.py` beside them would share the one that came
first. So the modules beside a file are in `sys.modules` only while code of that file imports: all its imports, also those
inside functions that run later, go through `Neighbours`. It notes the text of each module, so that a run directory can keep
copies; a stored file finds those copies first.
"""

import builtins
import importlib
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

LIBRARY = sysconfig.get_path("stdlib")


class Neighbours:
    """Finds modules in `folders`, the first one first; `home` is where they lay originally, and what `__file__` says."""

    def __init__(self, folders: Sequence[Path], home: Path):
        self.folders = tuple(folder.resolve() for folder in folders)
        self.home = home.resolve()
        self.texts: dict[str, str] = {}  # of the modules imported so far, by their path relative to the folder
        self._modules: dict[str, ModuleType] = {}
        self._at_hand = False

    @property
    def builtins(self) -> dict[str, Any]:
        """Python's own, but with an import statement that sees the neighbours."""
        return vars(builtins) | {"__import__": self._import}

    def _import(self, *args: Any, **named: Any) -> Any:
        with self.at_hand():
            return builtins.__import__(*args, **named)

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        """Within, the neighbours can be imported."""
        if self._at_hand:
            yield
            return
        hidden = {name: sys.modules.pop(name) for name in self._in_the_way()}
        before, path = set(sys.modules), [str(folder) for folder in self.folders]
        sys.modules.update(self._modules)
        sys.meta_path.insert(0, self)
        sys.path[:0] = path  # for packages without __init__.py, and for extension modules
        importlib.invalidate_caches()
        self._at_hand = True
        try:
            yield
        finally:
            self._at_hand = False
            for folder in path:
                sys.path.remove(folder)
            sys.meta_path.remove(self)
            mine = [name for name in sys.modules if name not in before and self._is_mine(name)]
            self._modules = {name: sys.modules.pop(name) for name in mine}
            sys.modules.update(hidden)

    def _in_the_way(self) -> list[str]:
        """Modules of other programs that have the name of a neighbour; what is installed comes first, as ever."""
        tops = [name for name, module in list(sys.modules.items()) if "." not in name and _is_loose(name, module)]
        found = {top for top in tops if self._find(self.folders, top) is not None}
        return [name for name in sys.modules if name.split(".")[0] in found]

    def _is_mine(self, name: str) -> bool:
        module = sys.modules[name]
        loader = getattr(getattr(module, "__spec__", None), "loader", None)
        if isinstance(loader, _Loader):
            return loader.neighbours is self
        if getattr(module, "__file__", None) is not None:
            return False
        packages = {str(folder.joinpath(*name.split("."))) for folder in self.folders}
        return not packages.isdisjoint(getattr(module, "__path__", ()))  # a package without __init__.py

    # --- as Python's import system asks -------------------------------------------------------------------------------

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        package, _, last = name.rpartition(".")
        if name == "dsgnar" or (package and not self._is_mine(package)):
            return None
        file = self._find(self.folders if path is None else [Path(place) for place in path], last)
        if file is None:
            return None
        relative = file.relative_to(self._folder_of(file) or self.home)
        inside = [str(folder / relative.parent) for folder in self.folders] if file.name == "__init__.py" else None
        loader = _Loader(name, str(file), relative, self)
        return spec_from_file_location(name, file, loader=loader, submodule_search_locations=inside)

    @staticmethod
    def _find(places: Sequence[Path], name: str) -> Path | None:
        for place in places:
            for file in (place / name / "__init__.py", place / f"{name}.py"):
                if file.is_file():
                    return file
        return None

    def _folder_of(self, path: Path) -> Path | None:
        return next((folder for folder in self.folders if path.resolve().is_relative_to(folder)), None)


class _Loader(SourceFileLoader):
    """Executes exactly the text that it notes; compiled files could be stale."""

    def __init__(self, name: str, path: str, relative: Path, neighbours: Neighbours):
        super().__init__(name, path)
        self.relative, self.neighbours = relative, neighbours

    def get_code(self, fullname: str) -> CodeType:
        text = Path(self.path).read_text(encoding="utf-8")
        self.neighbours.texts[self.relative.as_posix()] = text
        return compile(text, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self.neighbours.home / self.relative)  # data files beside it are found there
        vars(module)["__builtins__"] = self.neighbours.builtins
        super().exec_module(module)


def _is_loose(name: str, module: ModuleType | None) -> bool:
    """Whether a module lies in some folder of a person, not in an installation."""
    file = getattr(module, "__file__", None)
    if file is None or name in ("__main__", "dsgnar"):
        return False
    return not (file.startswith(LIBRARY) or {"site-packages", "dist-packages"} & set(Path(file).parts))
