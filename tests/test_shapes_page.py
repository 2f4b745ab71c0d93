"""The examples of docs/shapes.md run."""

import re
from functools import partial
from pathlib import Path

import pytest

import dsgnar as ds
from small import invented

PAGE = (Path(__file__).parent.parent / "docs" / "shapes.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


def test_the_examples_of_the_page_state_what_they_say(monkeypatch, tmp_path):
    """Statements are made and checked; solving is left to the measured runs."""
    monkeypatch.setattr(ds, "solve", partial(invented, network=ds.MLP(widths=(4,))))
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in BLOCKS:
        exec(block, names)
    assert len(BLOCKS) == 5 and (tmp_path / "plate.vtu").exists()
    assert names["solution"](x=0.5, t=1.0, nu=[0.02, 0.05, 0.1]).shape == (3,)


@pytest.mark.slow
def test_a_corner_that_is_known_is_worth_a_hundred():
    """r^(2/3) at the corner of an L: with the term known the rest is smooth."""
    import numpy as np

    names: dict = {}
    text = next(block for block in BLOCKS if "known=" in block)
    errors = []
    for change in ("", '    known={"u": corner},\n'):
        source = f"import jax.numpy as jnp\nimport dsgnar as ds\n{text}".replace(change, "") if change else None
        exec(source or f"import jax.numpy as jnp\nimport dsgnar as ds\n{text}", names)
        points = np.random.default_rng(0).uniform(-1, 1, (8000, 2))
        points = points[~((points[:, 0] > 0) & (points[:, 1] < 0))]
        exact = np.asarray(names["corner"](*points.T) + names["smooth"](*points.T))
        errors.append(names["solution"].relative_l2(ds.Reference(points, {"u": exact}, 1e-14, "exact"))["u"])
    assert errors[0] < 1e-5 and errors[1] < 1e-2
