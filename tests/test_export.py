"""Solutions for other programs: grids, files and a function without dsgnar."""

import base64
import subprocess
import sys
import xml.etree.ElementTree as ET

import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.showing import export
from dsgnar.solving import evaluation
from small import invented, problem

pytestmark = pytest.mark.filterwarnings("error:.*outside the domain")  # a warning for people who evaluate


@pytest.fixture(scope="module")
def heat():
    """Two time intervals, so that every export has to choose between networks."""
    return invented(problem(), intervals=2)


@pytest.fixture(scope="module")
def flow():
    """Two unknowns over two axes of space and time."""
    return invented(
        ds.Problem(
            domain=ds.Box(x=(0, 1), y=(0, 2), t=(0, 1)),
            unknowns=("u", "v"),
            conditions={"pde": ds.interior(lambda u, v: u.x + v.y), "ic": ds.initial(lambda u: u)},
        )
    )


# --- grids and tables -------------------------------------------------------------------------------------------------


def test_xarray_holds_the_values_of_the_solution(heat):
    data = heat.to_xarray(counts={"x": 5}, t=[0.0, 0.3, 1.0])
    assert data.u.dims == ("x", "t") and data.u.shape == (5, 3)
    np.testing.assert_array_equal(data.x, np.linspace(0, 1, 5))
    np.testing.assert_allclose(data.u, heat(x=np.linspace(0, 1, 5)[:, None], t=np.array([0.0, 0.3, 1.0])), rtol=1e-14)
    assert data.attrs["precision"] == "double" and data.attrs["held_out_heat"] == 1e-10


def test_one_value_cuts_the_domain(flow):
    data = flow.to_xarray(counts=4, t=0.25)
    assert data.v.dims == ("x", "y") and float(data.t) == 0.25
    np.testing.assert_allclose(data.v[1, 3], flow(x=1 / 3, y=2.0, t=0.25)["v"], rtol=1e-14)


def test_grids_have_a_bounded_size_unless_asked():
    for axes in (1, 2, 3, 6):
        domain = ds.Box(time=None, **{f"x{k}": (0, 1) for k in range(axes)})
        sizes = [a.size for a in export.grid(domain, None, {}).values()]
        assert max(sizes) <= 201 and np.prod(sizes) <= 1_000_000


def test_netcdf_can_be_read_again(heat, tmp_path):
    import xarray

    heat.to_netcdf(tmp_path / "heat.nc", counts=6)
    with xarray.open_dataset(tmp_path / "heat.nc") as data:
        assert data.identical(heat.to_xarray(counts=6))


def test_csv_has_a_row_for_each_point_with_all_digits(flow, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "CHUNK", 7)  # more than one chunk
    flow.to_csv(tmp_path / "flow.csv", counts=3, t=0.5)
    assert (tmp_path / "flow.csv").read_text().splitlines()[0] == "x,y,t,u,v"
    rows = np.loadtxt(tmp_path / "flow.csv", delimiter=",", skiprows=1)
    assert rows.shape == (9, 5)
    np.testing.assert_allclose(rows[:, 3:], flow.at(rows[:, :3]), rtol=1e-14)


# --- ParaView ---------------------------------------------------------------------------------------------------------


def read_vtr(path):
    """Extent, coordinates and point data of a rectilinear grid."""
    piece = ET.parse(path).getroot().find("RectilinearGrid/Piece")

    def array(element):
        raw = base64.b64decode(element.text)
        assert int.from_bytes(raw[:8], "little") == len(raw) - 8
        values = np.frombuffer(raw[8:], {"Float64": "<f8", "Float32": "<f4"}[element.get("type")])
        return values.reshape(-1, int(element.get("NumberOfComponents"))).squeeze(
            1 if element.get("NumberOfComponents") == "1" else ()
        )

    coordinates = [array(e) for e in piece.find("Coordinates")]
    return piece.get("Extent"), coordinates, {e.get("Name"): array(e) for e in piece.find("PointData")}


def test_a_series_over_time_for_paraview(flow, tmp_path):
    flow.to_vtk(tmp_path / "flow.pvd", counts={"x": 4, "y": 3}, t=[0.0, 0.5], vectors={"velocity": ("u", "v")})
    entries = ET.parse(tmp_path / "flow.pvd").getroot().findall("Collection/DataSet")
    assert [float(e.get("timestep")) for e in entries] == [0.0, 0.5]
    extent, (x, y, z), data = read_vtr(tmp_path / entries[1].get("file"))
    assert extent == "0 3 0 2 0 0" and (x.size, y.size, z.size) == (4, 3, 1)
    expected = flow(x=x[None, :], y=y[:, None], t=0.5)["u"].ravel()  # the first axis is fastest
    np.testing.assert_allclose(data["u"], expected, rtol=1e-14)
    np.testing.assert_array_equal(data["velocity"], np.stack([data["u"], data["v"], 0 * data["u"]], axis=1))


def test_one_grid_has_time_as_an_axis(heat, tmp_path):
    heat.to_vtk(tmp_path / "heat.vtr", counts=5)
    extent, (x, t, _), data = read_vtr(tmp_path / "heat.vtr")
    assert extent == "0 4 0 4 0 0"
    np.testing.assert_allclose(data["u"].reshape(5, 5), heat(x=x, t=t[:, None]), rtol=1e-14)


def test_a_grid_may_reach_beyond_the_domain(heat, tmp_path):
    heat.to_csv(tmp_path / "heat.csv", x=[0.5], t=[0.0, 1.5])
    rows = np.loadtxt(tmp_path / "heat.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(rows[:, 2], heat(x=0.5, t=rows[:, 1], extrapolate=True), rtol=1e-14)


# --- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, p: s.to_xarray(y=0.5), "no axis 'y'"),
        (lambda s, p: s.to_xarray(counts={"z": 3}), "no axis 'z'"),
        (lambda s, p: s.to_xarray(counts=1), "at least 2 points.*x=0.5"),
        (lambda s, p: s.to_xarray(x=[[0.0]]), "one-dimensional"),
        (lambda s, p: s.to_vtk(p / "a.vtk"), r"\.vtr.*\.pvd"),
        (lambda s, p: s.to_vtk(p / "a.vtr", x=0.5, t=0.5), "one to three axes"),
        (lambda s, p: s.to_vtk(p / "a.vtr", vectors={"w": ("u", "q")}), "'w'.*unknowns u"),
        (lambda s, p: s.residual("nonsense"), "no condition 'nonsense'.*heat, start"),
    ],
)
def test_wrong_calls_say_what_is_wrong(heat, tmp_path, call, message):
    with pytest.raises(ValueError, match=message):
        call(heat, tmp_path)


def test_a_steady_problem_has_no_series(tmp_path):
    steady = ds.Problem(domain=ds.Box(x=(0, 1)), unknowns="u", conditions={"pde": ds.interior(lambda u: u.xx)})
    with pytest.raises(ValueError, match="no time: write a .vtr"):
        invented(steady).to_vtk(tmp_path / "a.pvd")


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("xarray", lambda s, p: s.to_xarray(counts=3)),
        ("netCDF4", lambda s, p: s.to_netcdf(p / "a.nc", counts=3)),
        ("flatbuffers", lambda s, p: s.export(p / "a")),
    ],
)
def test_a_missing_library_is_named_with_the_way_to_get_it(heat, tmp_path, monkeypatch, module, call):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {module}; .*pip install 'dsgnar\[export\]'"):
        call(heat, tmp_path)


# --- a function without dsgnar ----------------------------------------------------------------------------------------

ALONE = """
import sys
sys.modules["dsgnar"] = None  # importing it is an error
import jax, jax.export
import numpy as np

with jax.enable_x64(True):
    for path in sys.argv[1:]:
        with open(path + ".stablehlo", "rb") as file:
            function = jax.export.deserialize(file.read())
        data = np.load(path + ".npz")
        for count in (1, 2, len(data["u"])):
            got = function.call(x=data["x"][:count], t=data["t"][:count])
            assert list(got) == ["u"] and got["u"].dtype == data["u"].dtype
            np.testing.assert_allclose(got["u"], data["u"][:count], rtol=0, atol=50 * np.finfo(data["u"].dtype).eps)
        slope = jax.grad(lambda x: function.call(x=x, t=data["t"])["u"].sum())(data["x"])
        np.testing.assert_allclose(slope, data["slope"], rtol=1e-3, atol=1e-3)
print("same")
"""


def test_an_exported_function_runs_without_dsgnar(heat, tmp_path):
    single = invented(problem(), dtype=np.float32)
    for name, solution in (("double", heat), ("single", single)):
        solution.export(tmp_path / f"{name}.stablehlo")
        dtype = solution.thetas.dtype
        x, t = (np.linspace(0, 1, 9).astype(dtype) for _ in range(2))  # 0.5 ends the first time interval
        slope = solution.derivative("u", "x")(x=x, t=t)
        np.savez(tmp_path / f"{name}.npz", x=x, t=t, u=solution(x=x, t=t), slope=slope)
    paths = [str(tmp_path / name) for name in ("double", "single")]
    done = subprocess.run([sys.executable, "-c", ALONE, *paths], capture_output=True, text=True)
    assert done.stdout == "same\n", done.stderr


# --- evaluation -------------------------------------------------------------------------------------------------------


def test_any_number_of_points_is_evaluated_in_batches(heat, monkeypatch):
    sizes = []

    def kernel(theta, x):
        sizes.append(x.shape)
        return jnp.sum(x, axis=1)

    points = np.random.default_rng(0).random((3 * evaluation.BATCH + 5, 2))
    values = heat._batches(kernel, points)
    np.testing.assert_allclose(values, points.sum(axis=1), rtol=1e-15)
    assert len(sizes) > 3 and max(n for n, _ in sizes) <= evaluation.BATCH


def test_derivatives_of_any_order(heat):
    x = np.linspace(0.1, 0.9, 5)
    h = 1e-4
    third = heat.derivative("u", "xxt")
    difference = (third(x=x + h, t=0.3) - third(x=x - h, t=0.3)) / (2 * h)
    exact = heat.derivative("u", "xxxt")(x=x, t=0.3)
    np.testing.assert_allclose(exact, difference, atol=1e-4 * np.abs(exact).max())


def test_the_residual_of_a_condition_is_made_of_derivatives(heat):
    x, t = np.linspace(0, 1, 5), np.linspace(0, 1, 5)
    expected = heat.derivative("u", "t")(x=x, t=t) - 0.1 * heat.derivative("u", "xx")(x=x, t=t)
    np.testing.assert_allclose(heat.residual("heat")(x=x, t=t), expected, rtol=1e-9, atol=1e-12)
