"""The package installs as it says: pinned by name and version, no faulty JAX, a public interface."""

import re
import subprocess
import tomllib
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import dsgnar
from dsgnar.tools import doctor

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text().splitlines()
PINS = {canonicalize_name(name): pin for name, _, pin in (line.partition("==") for line in CONSTRAINTS)}
EXTRAS = PROJECT["optional-dependencies"]


def test_constraints_are_names_and_versions_only():
    line_form = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.!]*")
    odd = [line for line in CONSTRAINTS if not line_form.fullmatch(line)]
    assert not odd, f"not of the form name==version: {odd}"
    assert len(PINS) == len(CONSTRAINTS), "a package is pinned twice"


@pytest.mark.parametrize("text", PROJECT["dependencies"] + EXTRAS["dev"])
def test_every_requirement_has_a_pin_that_satisfies_it(text):
    requirement = Requirement(text)
    pin = PINS[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(pin)


@pytest.mark.parametrize("faulty", doctor.BAD_JAX)
def test_faulty_jax_is_excluded_wherever_jax_is_required(faulty):
    texts = PROJECT["dependencies"] + [text for extra in EXTRAS.values() for text in extra]
    of_jax = [r for r in map(Requirement, texts) if r.name in ("jax", "jaxlib")]
    assert {r.name for r in of_jax} == {"jax", "jaxlib"}
    for requirement in of_jax:
        assert not requirement.specifier.contains(faulty), f"{requirement} admits {faulty}"


def test_extras():
    assert set(EXTRAS) == {"cuda", "shapes", "export", "slurm", "baselines", "docs", "dev"}


def test_installed_version_is_the_projects():
    assert version("dsgnar") == PROJECT["version"]


def test_type_checkers_may_read_the_types():
    """py.typed says so. The wheel holds all of src/dsgnar, beside what git ignores."""
    package = Path(dsgnar.__file__).parent
    data = [
        package / "py.typed",
        package / "cli" / "example.txt",
        *(package / "suite" / "truth" / "data").glob("*.npz"),
    ]
    assert all(path.is_file() for path in data) and len(data) == 9
    assert PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/dsgnar"]}
    ignored = subprocess.run(["git", "-C", str(ROOT), "check-ignore", *map(str, data)], capture_output=True, text=True)
    assert not ignored.stdout
    assert "Typing :: Typed" in PROJECT["classifiers"]


def test_command_line_entry_point_exists():
    (script,) = entry_points(group="console_scripts", name="dsgnar")
    assert callable(script.load())


def test_public_names_exist():
    missing = [name for name in dsgnar.__all__ if not hasattr(dsgnar, name)]
    assert not missing, f"in dsgnar.__all__ but not in dsgnar: {missing}"
    assert len(set(dsgnar.__all__)) == len(dsgnar.__all__)
