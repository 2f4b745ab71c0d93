"""Hard values as conditions: in linear spaces, and in time intervals, of which only the first could hold them."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.problem.scales import estimate
from dsgnar.problem.softened import _free, begins_hard, softened
from dsgnar.solving.march import possible, restated
from dsgnar.solving.settings import Settings
from dsgnar.solving.survey import survey
from dsgnar.solving.tolerance import _tries
from small import NETWORK, SIZES

pytestmark = pytest.mark.usefixtures("shared_kernels")

WAVE = {"pde": ds.interior(lambda u: u.tt - u.xx)}
ENDS = ds.Boundary()
START = ds.Hard(lambda x: jnp.sin(jnp.pi * x), on=ds.Initial(), rate=0.5)


def wave(**given) -> ds.Problem:
    return ds.Problem(ds.Box(x=(0, 1), t=(0, 1)), ("u",), WAVE, **given)


def rod(**given) -> ds.Problem:
    heat = {"heat": ds.interior(lambda u: u.t - 0.1 * u.xx)}
    return ds.Problem(ds.Box(x=(0, 1), t=(0, 1)), ("u",), heat, periodic="x", **given)


SINE = {"u": ds.Hard(lambda x: jnp.sin(2 * jnp.pi * x), on=ds.Initial())}


def test_hard_values_become_conditions_that_say_the_same():
    stated = wave(hard={"u": ds.Hard(lambda x: jnp.sin(jnp.pi * x), on=(ds.Initial(), ENDS), rate=0.0)})
    soft = softened(stated)
    assert not soft.hard
    assert list(soft.conditions) == ["pde", "u at the start", "u.t at the start", "u on the face x=lower, x=upper"]
    exact = lambda x: jnp.sin(jnp.pi * x[:1]) * jnp.cos(jnp.pi * x[1:])
    at = {"u at the start": [0.3, 0.0], "u.t at the start": [0.3, 0.0], "u on the face x=lower, x=upper": [1.0, 0.7]}
    for name, x in at.items():
        assert abs(soft.residual(name, exact, jnp.array(x))) < 1e-15
        moved = soft.residual(name, lambda x: exact(x) + 0.25 + 0.5 * x[1:], jnp.array(x))
        np.testing.assert_allclose(moved, 0.5 if name.startswith("u.t") else 0.25 + 0.5 * x[1], rtol=1e-12)


def test_only_some_parts_are_softened_and_nothing_is_made_twice():
    stated = wave(hard={"u": ds.Hard(0.0, on=(ds.Initial(), ENDS))})
    soft = softened(stated, (ds.Initial,))
    assert list(soft.conditions) == ["pde", "u at the start"]
    assert [part.describe() for part in soft.hard["u"].on] == [part.describe() for part in stated.hard["u"].on[1:]]
    assert softened(stated, (ds.Initial,)) is soft
    plain = wave()
    assert softened(plain) is plain
    assert begins_hard(stated) and not begins_hard(soft)


def test_names_that_people_use_stay_theirs():
    taken = WAVE | {"u at the start": ds.initial(lambda u: u.t)}
    start = ds.Problem(ds.Box(x=(0, 1), t=(0, 1)), ("u",), taken, hard={"u": ds.Hard(0.0, on=ds.Initial())})
    assert list(softened(start).conditions) == ["pde", "u at the start", "u at the start (2)"]
    assert softened(start).conditions["u at the start"] is start.conditions["u at the start"]
    assert [_free("u", dict.fromkeys(names)) for names in ((), ("u",), ("u", "u (2)"))] == ["u", "u (2)", "u (3)"]


def test_residuals_need_not_be_finite_far_from_hard_values():
    """Checks of the statement add hard values to what they try; conditions alone leave functions about zero."""
    law = {"pde": ds.interior(lambda u: u.t - jnp.sqrt(u.value - 200) * u.xx)}
    stated = ds.Problem(ds.Box(x=(0, 1), t=(0, 1)), ("u",), law, hard={"u": ds.Hard(300.0, on=ds.Initial())})
    soft = softened(stated)
    assert list(soft.conditions) == ["pde", "u at the start"] and not soft.hard
    assert soft.requests.keys() == soft.conditions.keys() and stated.requests.keys() == {"pde"}
    assert float(soft.residual("u at the start", lambda x: jnp.full(1, 301.0), jnp.array([0.5, 0.0]))) == 1.0


def test_initial_values_are_conditions_only_where_time_is_cut():
    stated = wave(hard={"u": START})
    assert possible(stated, "auto") == "auto"
    assert restated(stated, 1) is stated
    assert "u at the start" in restated(stated, 4).conditions


def test_hard_initial_values_are_held_at_first_and_then_marched():
    stated, last = rod(hard=SINE), lambda: ds.MLP(widths=(30,) * 4)
    assert [s.intervals for _, s in _tries(stated, None, Settings(), last)] == [1, "auto", "auto"]
    once, *_ = [s for _, s in _tries(stated, None, Settings(max_seconds=100), last)]
    assert once.max_seconds == 40 and once.chosen_method().restarts == 0
    assert [s.intervals for _, s in _tries(stated, None, Settings(intervals=3), last)] == [3, 3]
    assert len(list(_tries(stated, None, Settings(method="paper"), last))) == possible(stated, "auto", scaled=False) == 1
    tolerances = itertools.islice(_tries(stated, None, Settings(tol=1e-3), last), 2)
    assert [s.intervals for _, s in tolerances] == [1, "auto"]
    circuit = {"law": ds.interior(lambda i: i.t + i)}
    single = ds.Problem(ds.Box(t=(0, 1)), ("i",), circuit, hard={"i": ds.Hard(1.0, on=ds.Initial())})
    assert {s.intervals for _, s in _tries(single, None, Settings(), last)} == {"auto"}


def test_a_march_from_hard_initial_values(tmp_path):
    stated = rod(hard=SINE)
    run = SIZES | dict(network=NETWORK, wait=10, intervals=2, precision="double", max_iterations=60)
    solution = ds.solve(stated, **run)
    x, t = np.meshgrid(np.linspace(0, 1, 11), np.linspace(0, 1, 11))
    exact = np.exp(-0.1 * (2 * np.pi) ** 2 * t) * np.sin(2 * np.pi * x)
    assert solution.march.count == 2
    np.testing.assert_allclose(solution(x=x, t=t), exact, atol=2e-3)
    solution.save(tmp_path / "run")
    again = ds.load(tmp_path / "run", problem=stated)
    np.testing.assert_array_equal(again(x=x, t=t), solution(x=x, t=t))
    assert again.history[-1] == solution.history[-1]


def test_an_initial_value_problem_with_hard_values_holds_them_in_every_interval():
    law = {"law": ds.interior(lambda u: u.tt + u)}
    stated = ds.Problem(ds.Box(t=(0, 6)), ("u",), law, hard={"u": ds.Hard(1.0, on=ds.Initial(), rate=0.5)})
    solution = ds.solve(stated, max_seconds=20)
    t = np.linspace(0, 6, 61)
    np.testing.assert_allclose(solution(t=t), np.cos(t) + 0.5 * np.sin(t), atol=1e-6)
    np.testing.assert_allclose(solution(t=0.0), 1.0, rtol=1e-15)
    np.testing.assert_allclose(solution.derivative("u", "t")(t=0.0), 0.5, rtol=1e-14)
    assert solution.verdict == "solved"


def test_hard_values_are_part_of_the_survey():
    k = 3 * jnp.pi
    source = lambda u, x, y: ds.laplacian(u) + k**2 * u + k**2 * jnp.sin(k * x) * jnp.sin(k * y)
    square = ds.Box(x=(-1, 1), y=(-1, 1))
    hard = ds.Problem(square, ("u",), {"pde": ds.interior(source)}, hard={"u": ds.Hard(0.0, on=ENDS)})
    soft = ds.Problem(square, ("u",), {"pde": ds.interior(source), "walls": ds.boundary(lambda u: u)})
    seen, known = (survey(p, estimate(p)) for p in (hard, soft))
    assert seen is not None and known is not None
    assert seen.fast and seen.begin_with() == known.begin_with()
