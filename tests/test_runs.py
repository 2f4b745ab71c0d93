"""Run directories: what is written can be read again, and wrong directories say what is wrong."""

import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar import runs
from dsgnar.statement import Statement, StatementError, find, from_suite
from small import problem

SMALL = dict(network=ds.MLP(widths=(6, 6)), points=128, max_points=128, max_iterations=6)
pytestmark = pytest.mark.usefixtures("shared_kernels")
FILE = """
import dsgnar as ds
from neighbour import SPEED

problem = ds.Problem(
    domain=ds.Box(x=(0, 1), t=(0, 1)),
    unknowns="u",
    conditions={"pde": ds.interior(lambda u: u.t + SPEED * u.x), "ic": ds.initial(lambda u, x: u - x)},
)
network = ds.MLP(widths=(6, 6))
settings = dict(points=128, max_points=128, max_iterations=6)
"""


@pytest.fixture(scope="module")
def marched():
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
    assert again.march == marched.march and again.architecture == marched.architecture
    same_outcome(marched, again)
    x, t = np.linspace(0, 1, 5), np.array([[0.2], [0.7]])
    np.testing.assert_array_equal(again(x=x, t=t), marched(x=x, t=t))
    np.testing.assert_array_equal(again.derivative("u", "xt")(x=x, t=t), marched.derivative("u", "xt")(x=x, t=t))


def test_a_run_of_the_suite_is_loaded_by_its_directory_alone(tmp_path):
    statement = from_suite("burgers", "default")
    settings = dataclasses.replace(statement.settings, sketch=50, points=128, max_points=128, max_iterations=2)
    solution = ds.solve(statement.problem, network=statement.network, settings=settings)
    runs.write(tmp_path, solution, statement)
    again = ds.load(tmp_path)
    assert again.thetas.tobytes() == solution.thetas.tobytes()
    assert runs.recall(tmp_path).title == "Burgers, default" and runs.recall(tmp_path).reference() is not None


def test_a_file_is_remembered_with_its_neighbours(tmp_path):
    home, run = tmp_path / "home", tmp_path / "run"
    home.mkdir()
    (home / "neighbour.py").write_text("SPEED = 0.5\n")
    (home / "mine.py").write_text(FILE)
    statement = find(str(home / "mine.py"))
    solution = ds.solve(statement.problem, network=statement.network, settings=statement.settings)
    runs.write(run, solution, statement)
    (home / "mine.py").write_text("changed since")
    again = ds.load(run)
    assert again.thetas.tobytes() == solution.thetas.tobytes()
    assert runs.recall(run).name == "mine" and again.problem.unknowns == ("u",)


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
        (FILE.replace("from neighbour import SPEED", "SPEED = 1") + "settings = 3", "settings"),
        (FILE.replace("from neighbour import SPEED", "SPEED = 1") + "settings = dict(pointz=3)", "did you mean points"),
        (FILE.replace("from neighbour import SPEED", "SPEED = 1") + "settings = dict(points=-3)", "positive integer"),
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
    with pytest.raises(StatementError, match="cannot read"):
        find(str(tmp_path / "missing.py"))
    with pytest.raises(StatementError, match="no presets"):
        find("mine.py", "double")


def test_a_statement_in_python_needs_only_a_problem():
    statement = Statement(problem())
    assert statement.source == "python" and statement.reference() is None
