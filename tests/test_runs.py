"""Run directories: what is written can be read again, and wrong directories say what is wrong."""

import dataclasses
import json
import math
import shutil
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.solving.method import METHODS
from dsgnar.storing import configuration, runs
from dsgnar.suite.own_file import find, from_file
from dsgnar.suite.statement import Statement, StatementError, from_suite
from small import invented, problem

SMALL = dict(network=ds.MLP(widths=(6, 6)), points=64, max_points=64, held_out=64, max_iterations=6)
pytestmark = pytest.mark.usefixtures("shared_kernels")
FILE = """
import dsgnar as ds
from helper import SPEED

problem = ds.Problem(
    domain=ds.Box(x=(0, 1), t=(0, 1)),
    unknowns="u",
    conditions={"pde": ds.interior(lambda u: u.t + SPEED * u.x), "ic": ds.initial(lambda u, x: u - x)},
)
network = ds.MLP(widths=(6, 6))
settings = dict(points=64, max_points=64, held_out=64, max_iterations=2)
"""
ALONE = FILE.replace("from helper import SPEED", "SPEED = 1")


@pytest.fixture(scope="module")
def marched(shared_kernels):
    """A run over two time intervals with a reference."""
    reference = ds.Reference.on_grid(
        {"x": np.linspace(0, 1, 9), "t": np.linspace(0.1, 0.9, 5)},
        lambda x, t: {"u": np.exp(-0.1 * (2 * np.pi) ** 2 * t) * np.sin(2 * np.pi * x)},
        accuracy=0.0,
        source="closed form",
    )
    with jax.enable_x64(True):
        return ds.solve(problem(), reference=reference, intervals=2, **SMALL)


def same_outcome(one: ds.Solution, other: ds.Solution) -> None:
    assert one.outcome is not None and other.outcome is not None
    for field in dataclasses.fields(one.outcome):
        mine, others = getattr(one.outcome, field.name), getattr(other.outcome, field.name)
        if field.name == "seconds":
            assert others == pytest.approx(mine, abs=1e-3)
        else:
            assert repr(mine) == repr(others), field.name  # nan is not equal to itself, but looks the same


def test_a_solution_that_is_saved_and_loaded_is_the_same(marched, tmp_path):
    marched.save(tmp_path / "run")
    again = ds.load(tmp_path / "run", problem=problem())
    assert again.thetas.tobytes() == marched.thetas.tobytes() and again.thetas.dtype == marched.thetas.dtype
    assert again.march == marched.march and again.model.network == marched.model.network
    same_outcome(marched, again)
    x, t = np.linspace(0, 1, 5), np.array([[0.2], [0.7]])
    np.testing.assert_array_equal(again(x=x, t=t), marched(x=x, t=t))
    np.testing.assert_array_equal(again.derivative("u", "xt")(x=x, t=t), marched.derivative("u", "xt")(x=x, t=t))


def test_of_several_attempts_a_directory_holds_the_one_that_counts(tmp_path):
    """Also if it is not the last; with the time of all of them."""
    kept = ds.RunDirectory(tmp_path / "run", warn=lambda message: None)
    with jax.enable_x64(True):
        first = ds.solve(problem(), observers=[kept], **SMALL)
        last = ds.solve(problem(), observers=[kept], seed=1, **SMALL)
    long = dataclasses.replace(first, outcome=dataclasses.replace(first.outcome, seconds={"solve": 7.0, "compile": 1.0}))
    kept.settled(long)
    result = runs.read_result(tmp_path / "run")
    assert result["seed"] == 0 and result["seconds"]["solve"] == 7.0
    assert {runs.read_result(tmp_path / "run" / f"earlier-{k}")["seed"] for k in (1, 2)} == {0, 1}
    assert np.array_equal(ds.load(tmp_path / "run", problem=problem()).thetas, first.thetas)
    kept.settled(last)  # the seconds alone would have changed if it were the last
    assert runs.read_result(tmp_path / "run")["seed"] == 1


def test_a_run_of_the_suite_is_loaded_by_its_directory_alone(tmp_path):
    statement = from_suite("burgers", "default")
    solution = invented(statement.problem, statement.network, dtype=np.float32)
    runs.write(tmp_path, solution, statement)
    again = ds.load(tmp_path)
    assert again.thetas.tobytes() == solution.thetas.tobytes()
    assert runs.recall(tmp_path).title == "Burgers, default" and runs.recall(tmp_path).reference() is not None


def test_the_configuration_holds_every_constant_of_the_method(marched, tmp_path):
    marched.save(tmp_path)
    config = runs.read_config(tmp_path)
    assert set(config["method"]) == {f.name for f in dataclasses.fields(ds.Method)}
    assert configuration.settings_of(config) == marched.outcome.settings
    assert config["method_changes"] == ["fallen", "fallen_loss", "held_out", "max_points", "no_damping", "points", "targets"]
    json.dumps(config, allow_nan=False)  # what other programs can read: infinity is null
    before = configuration.fingerprint(config)
    for name, value in config["method"].items():
        changed = config | {"method": config["method"] | {name: "another" if value is None else None}}
        assert configuration.fingerprint(changed) != before, name
    limits = config["settings"] | {"max_iterations": 1, "max_seconds": 3.0}
    assert configuration.fingerprint(config | {"settings": limits}) == before  # when to stop does not count
    assert configuration.fingerprint(config | {"settings": config["settings"] | {"seed": 7}}) != before


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("precision", ["single", "double"])
def test_methods_survive_json(name, precision):
    settings = ds.Settings(method=name, precision=precision, max_seconds=None, intervals=(0.5,)).resolve(100)
    described = json.loads(
        json.dumps(configuration.describe(Statement(problem()), ds.MLP(), settings), allow_nan=False)
    )
    assert configuration.settings_of(described) == settings and settings.max_seconds == math.inf
    assert described["method_changes"] == []


# --- a person's file and the modules beside it ------------------------------------------------------------------------


def home(folder, speed, file=FILE, **others):
    """A folder with a file and its helper."""
    folder.mkdir()
    (folder / "helper.py").write_text(f"SPEED = {speed}\n")
    (folder / "mine.py").write_text(file)
    for name, text in others.items():
        (folder / f"{name}.py").write_text(text)
    return folder / "mine.py"


def speed(statement) -> float:
    """The constant of the helper, as the equation sees it: u = x leaves the speed as residual."""
    return float(statement.problem.residual("pde", lambda p: p[:1], jnp.array([0.3, 0.4])))


def kept_run(file, directory) -> ds.Solution:
    """A short run of a file, in a directory."""
    statement = find(str(file))
    observers = [ds.RunDirectory(directory, statement)]
    return ds.solve(statement.problem, network=statement.network, settings=statement.settings, observers=observers)


def test_two_files_may_each_have_a_helper_of_the_same_name(tmp_path, monkeypatch):
    one, two = home(tmp_path / "one", 0.5), home(tmp_path / "two", 0.7)
    somebody_elses = type(sys)("helper")
    somebody_elses.__file__, somebody_elses.SPEED = "/elsewhere/helper.py", 9.0
    monkeypatch.setitem(sys.modules, "helper", somebody_elses)
    assert [speed(find(str(file))) for file in (one, two, one)] == pytest.approx([0.5, 0.7, 0.5])
    assert sys.modules["helper"] is somebody_elses
    assert str(tmp_path) not in " ".join(sys.path)
    for file, name in ((one, "a"), (two, "b")):
        statement = find(str(file))
        runs.write(tmp_path / name, invented(statement.problem, statement.network), statement)
    assert [speed(runs.recall(tmp_path / name)) for name in "ab"] == pytest.approx([0.5, 0.7])
    assert speed(find(str(one))) == pytest.approx(0.5)


def test_helpers_may_be_imported_late_and_from_packages(tmp_path):
    late = """
def reference():
    from table import points, values
    return ds.Reference(points, values, accuracy=0.0, source="table")
"""
    table = "from parts.numbers import points\nfrom helper import SPEED\nvalues = {'u': [SPEED]}\n"
    files = []
    for name, value in (("one", 0.5), ("two", 0.7)):
        file = home(tmp_path / name, value, FILE + late, table=table)
        (file.parent / "parts").mkdir()  # a package without __init__.py
        (file.parent / "parts" / "numbers.py").write_text("from .more import points\n")
        (file.parent / "parts" / "more.py").write_text(f"points = [[{value}, 0.0]]\n")
        files.append(find(str(file)))
    for statement, value in zip(files, (0.5, 0.7), strict=True):
        found = statement.reference()
        assert found is not None and found.values["u"] == [value] and found.points.tolist() == [[value, 0.0]]
        assert set(statement.digests()) == {"problem.py", "helper.py", "table.py", "parts/numbers.py", "parts/more.py"}
    assert not {"parts", "table", "parts.numbers"} & set(sys.modules)


def test_a_residual_may_import_when_it_is_called(tmp_path):
    residual = "def pde(u):\n    from helper import SPEED\n    return u.t + SPEED * u.x\n\nproblem = "
    text = FILE.replace("from helper import SPEED\n", "").replace("lambda u: u.t + SPEED * u.x", "pde")
    text = text.replace("problem = ", residual)
    statements = [find(str(home(tmp_path / str(k), k, text))) for k in (2, 3)]
    assert [speed(statement) for statement in statements] == pytest.approx([2, 3])
    assert all("helper.py" in statement.helpers for statement in statements)


def test_installed_modules_are_not_taken_for_helpers(tmp_path, monkeypatch):
    file = home(tmp_path / "one", 0.5, FILE + "import colorsys, json.tool, installed.part\n")
    (file.parent / "jax").mkdir()  # a clone beside it, say
    installed = file.parent / ".venv" / "site-packages" / "installed"  # an environment in the same folder
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    (installed / "part.py").write_text("")
    monkeypatch.syspath_prepend(str(installed.parent))
    assert set(find(str(file)).helpers) == {"helper.py"}
    assert {"colorsys", "installed", "installed.part"} <= set(sys.modules)
    del sys.modules["installed"], sys.modules["installed.part"]


def test_a_run_of_a_file_goes_on_without_the_original_helper(tmp_path):
    file, directory = home(tmp_path / "home", 0.5), tmp_path / "run"
    solution = kept_run(file, directory)
    config = runs.read_config(directory)
    assert set(config["files_sha256"]) == {"problem.py", "helper.py"}
    assert (directory / "helpers" / "helper.py").read_text() == "SPEED = 0.5\n"
    (file.parent / "helper.py").write_text("SPEED = 0.7\n")
    file.write_text("changed since")
    again = ds.load(directory)
    assert again.thetas.tobytes() == solution.thetas.tobytes() and speed(runs.recall(directory)) == pytest.approx(0.5)
    assert runs.recall(directory).name == "mine" and again.problem.unknowns == ("u",)
    shutil.rmtree(file.parent)
    assert len(ds.resume(directory, max_iterations=3).history) == 3


@pytest.mark.parametrize("name", ["problem.py", "helpers/helper.py"])
def test_a_changed_copy_is_noticed_on_resuming(name, tmp_path):
    statement = find(str(home(tmp_path / "home", 0.5)))
    runs.write(tmp_path / "run", invented(statement.problem, statement.network), statement)
    copy = tmp_path / "run" / name
    copy.write_text(copy.read_text() + "# changed\n")
    with pytest.raises(runs.WrongDirectory, match=f"{name} changed since the run began"):
        ds.resume(tmp_path / "run")
    copy.unlink()
    with pytest.raises(ValueError, match=name):
        ds.resume(tmp_path / "run")


def test_data_beside_a_file_is_found_from_a_stored_copy_too(tmp_path):
    reads = "from pathlib import Path\nSPEED = float(Path(__file__).with_name('data.txt').read_text())\n"
    file = home(tmp_path / "home", 0.5, FILE.replace("helper", "reader"), reader=reads)
    (file.parent / "data.txt").write_text("0.25")
    statement = find(str(file))
    runs.write(tmp_path / "run", invented(statement.problem, statement.network), statement)
    assert speed(runs.recall(tmp_path / "run")) == pytest.approx(0.25)


def test_a_network_of_a_helper_is_a_network(tmp_path):
    text = FILE.replace("network = ds.MLP(widths=(6, 6))", "from net import Mine\nnetwork = Mine()")
    net = (
        "import equinox as eqx, jax, jax.numpy as jnp, numpy as np\n"
        "class Mine(eqx.Module):\n"
        "    w: jax.Array = eqx.field(default_factory=lambda: jnp.ones((2, 5), np.float32))\n"
        "    def __call__(self, x):\n"
        "        return jnp.tanh(x @ self.w)[:1]\n"
    )
    solution = kept_run(home(tmp_path / "home", 0.5, text, net=net), tmp_path / "run")
    assert ds.load(tmp_path / "run").parameters == solution.parameters == 10


def test_names_that_look_misspelt_are_pointed_out(tmp_path):
    said = []
    text = (
        ALONE.replace("settings =", "setting =")
        + "from dsgnar import Reference\nimport json as references\ntitel = 1\n"
    )
    (tmp_path / "mine.py").write_text(text)
    find(str(tmp_path / "mine.py"), warn=said.append)
    assert len(said) == 2 and "defines `setting`, which is ignored; did you mean `settings`?" in said[0]
    assert "did you mean `title`?" in said[1]
    with pytest.warns(UserWarning) as warned:  # in a program of one's own
        find(str(tmp_path / "mine.py"))
    assert [str(w.message) for w in warned] == said
    from_file(tmp_path / "mine.py")  # stored copies say nothing again


def test_a_network_of_ones_own_is_asked_for_again(tmp_path):
    class Mine(eqx.Module):
        w: jax.Array

        def __call__(self, x):
            return jnp.tanh(x @ self.w)[:1]

    network = Mine(jnp.ones((2, 5), jnp.float32))
    ds.solve(problem(), **(SMALL | dict(network=network, max_iterations=1))).save(tmp_path)
    with pytest.raises(runs.WrongDirectory, match="Mine of your own.*network="):
        ds.load(tmp_path, problem())
    assert ds.load(tmp_path, problem(), network=network).parameters == 10


def test_what_is_wrong_with_a_directory_is_said(marched, tmp_path):
    with pytest.raises(runs.WrongDirectory, match="no run in"):
        ds.load(tmp_path)
    marched.save(tmp_path)
    with pytest.raises(runs.WrongDirectory, match="stated in a program.*problem="):
        ds.load(tmp_path)
    other = ds.Problem(ds.Box(x=(0, 2), t=(0, 1)), ("u",), problem().conditions, periodic=("x",))
    with pytest.raises(runs.WrongDirectory, match=r"not the problem.*domain.*\[0.0, 2.0\]"):
        ds.load(tmp_path, other)
    with pytest.raises(runs.WrongDirectory, match=r"not the problem.*its known is \['u'\], and there None"):
        ds.load(tmp_path, dataclasses.replace(problem(), known={"u": lambda x: x}))
    (tmp_path / "solution.npz").write_bytes(b"PK nonsense")
    with pytest.raises(runs.RunError, match="solution.npz cannot be read"):
        ds.load(tmp_path, problem())
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(runs.RunError, match="config.json cannot be read"):
        ds.load(tmp_path, problem())


@pytest.mark.parametrize(
    "text", ["{}", "[]", "3", '{"problem": 1, "stop_reason": "interrupted"}', '{"stop_reason": []}']
)
@pytest.mark.parametrize("name", ["config.json", "result.json"])
def test_a_file_that_says_nothing_is_refused_in_a_sentence(name, text, marched, tmp_path):
    marched.save(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(runs.RunError, match=f"{name} was changed, or another version of dsgnar wrote it: "):
        ds.load(tmp_path, problem())
    with pytest.raises(runs.RunError, match=f"{name} was changed|no checkpoint"):
        ds.resume(tmp_path, problem())


def test_parameters_with_code_in_them_are_refused(marched, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (exec, ("raise SystemExit('executed')",))

    marched.save(tmp_path)
    np.savez(tmp_path / "solution.npz", thetas=np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(runs.RunError, match="cannot be read"):
        ds.load(tmp_path, problem())


def test_the_history_is_a_table_that_loses_nothing(marched, tmp_path):
    marched.save(tmp_path)
    header = (tmp_path / "history.csv").read_text().splitlines()[0].split(",")
    assert {"interval", "error", "error[u]", "lambda", "held_out"} <= set(header)
    assert json.loads((tmp_path / "result.json").read_text())["iterations"] == 12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = = 1", "mine.py, line 1: invalid syntax"),
        ("a = 1\nb = 1 / 0", "mine.py, line 2: ZeroDivisionError"),
        ("a = 1", "no `problem`.*dsgnar init"),
        ("problem = 3", "its `problem` is a int"),
        (ALONE + "settings = 3", "settings"),
        (ALONE + "settings = dict(pointz=3)", "did you mean points"),
        (ALONE + "settings = dict(points=-3)", "positive integer"),
        (ALONE + "settings = dict(hashes=0)", "mine.py: hashes must be a positive integer"),
        ("\nimport nowhere_to_be_found", "line 2: ModuleNotFoundError"),
    ],
)
def test_errors_in_a_file_name_the_place(text, message, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(StatementError, match=message):
        find(str(path))


def test_unknown_names_are_met_with_the_closest_known_ones(tmp_path):
    with pytest.raises(StatementError, match="did you mean burgers"):
        find("burger")
    with pytest.raises(StatementError, match="did you mean double"):
        find("burgers", "doubel")
    with pytest.raises(StatementError, match="did you mean single"):  # an alias
        find("burgers", "singel")
    with pytest.raises(StatementError, match="cannot read"):
        find(str(tmp_path / "missing.py"))
    with pytest.raises(StatementError, match="no presets"):
        find("mine.py", "double")


def test_a_statement_in_python_needs_only_a_problem():
    statement = Statement(problem())
    assert statement.source == "python" and statement.reference() is None
