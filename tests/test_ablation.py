"""`dsgnar reproduce ablation`: each variant changes what it says and nothing else; runs are kept and continued."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from dsgnar.cli import app
from dsgnar.solving.method import PAPER
from dsgnar.tools.bench import ablation
from dsgnar.tools.bench.ablation import GROUPS, TARGETS, TWO_STAGES, Run, Study, Variant

pytestmark = pytest.mark.usefixtures("shared_kernels")


def methods(study, group):
    return {v.name: v.settings.chosen_method() for v in study.variants([group])}


def test_with_the_papers_method_the_two_stages_are_the_paper():
    study = Study("burgers", "paper-double", "paper")
    paper = replace(PAPER.at("double"), search_patience=PAPER.probe_range)  # which probes do not use
    found = methods(study, "targets")
    assert list(found) == [*(f"{t:g}" for t in TARGETS), TWO_STAGES] and min(TARGETS) == 0.05 and max(TARGETS) == 0.8
    assert found[TWO_STAGES] == paper
    assert found["0.2"] == replace(paper, targets=(0.2, 0.2), wait=ablation.NEVER)
    assert methods(study, "hashes")["K = 1"] == replace(paper, hashes=1)
    assert methods(study, "search")["bracket"] == replace(paper, search="bracket")
    assert methods(study, "window")["W = 5"] == replace(paper, window=5)
    assert methods(study, "weights")["off"] == replace(paper, exponent=0.0)
    assert methods(study, "columns")["all"].column_sketch == "all"
    assert [v.settings.sketch for v in study.variants(["sketch"])] == [1000, 2000, 4000, 6000]


def test_with_fast_parts_the_rules_are_still_the_papers():
    fast, paper = methods(Study(), "targets")[TWO_STAGES], PAPER.at("double")
    assert fast.name == "fast" and (fast.search, fast.row_sketch) == ("bracket", "buckets")
    assert all(getattr(fast, name) == getattr(paper, name) for name in ablation.RULES)


def test_equal_settings_share_their_runs():
    shared = {}
    for variant in Study("burgers", "paper-double", "paper").variants():
        shared.setdefault(variant.directory, []).append((variant.group, variant.name))
    assert shared["targets-two-stages"] == [
        ("targets", TWO_STAGES), ("hashes", "K = 4"), ("columns", "srct"), ("sketch", "s x 1"), ("window", "W = 30"),
        ("search", "probes"), ("weights", "on"),
    ]  # fmt: skip
    assert len(shared) == sum(map(len, GROUPS.values())) - 6
    with pytest.raises(ValueError, match="no group 'nonsense'"):
        Study().variants(["nonsense"])


def invented(name, error, lam, iterations, stop="radius_below_minimum", seed=0):
    """A run that never was."""
    variant = Variant("targets", name, Study.__new__(Study), "")
    result = {"relative_l2": {"u": error}, "iterations": iterations, "seconds": {"solve": 1.0}, "stop_reason": stop}
    last = SimpleNamespace(lam=lam, accepted=True, loss=error**2)
    return Run(variant, seed, result, (SimpleNamespace(lam=lam / 10, accepted=False, loss=1.0), last), True)


def test_claims_are_judged_by_the_medians():
    found = [invented(f"{t:g}", t * 1e-6, t * 1e-9, round(100 / t)) for t in TARGETS]
    found += [invented("0.05", 1.0, 1.0, 1, seed=1), invented("0.05", 4e-8, 4e-11, 1900, seed=2)]
    found.append(invented(TWO_STAGES, 1e-7, 5e-11, 400))
    said = ablation.claims(found)
    assert [claim.split(": ")[1] for claim in said[:2]] == ["15 of 15 pairs of targets are in this order"] * 2
    assert said[3].endswith("400 where the best fixed target, 0.05, needs 1900; their error is 2 times as large")
    text = ablation.markdown(found)
    assert "| 0.05 | 5.0e-08 (4.0e-08 to 1.0e+00) | 2.5e-15 | 5.0e-11 | 1900 | 1 | 3 | radius below minimum |" in text
    assert f"* {said[0]}" in text
    stopped = [*found, invented("0.1", 1.0, 1.0, 5, "max_iterations", seed=1)]
    assert "cannot be judged: a limit" in ablation.claims(stopped)[0]
    assert "cannot be judged: some" in ablation.claims(found[:1])[0]


def test_runs_are_kept_and_continued(tmp_path):
    def call(iterations):
        args = (
            "weights",
            "--problem",
            "poisson5d",
            "--preset",
            "default",
            "--seeds",
            "1",
            "-q",
            "--out",
            str(tmp_path),
        )
        result = CliRunner().invoke(app, ["reproduce", "ablation", *args, "--max-iterations", str(iterations)])
        assert result.exit_code == 0, result.output
        place = tmp_path / "poisson5d-default-fast"
        kept = sorted(path.parent for path in place.glob("*/result.json"))
        assert [path.name for path in kept] == ["targets-two-stages-seed0", "weights-off-seed0"]
        results = [json.loads((path / "result.json").read_text()) for path in kept]
        assert [r["iterations"] for r in results] == [iterations] * 2
        return result.output, place, [(path / "result.json").stat().st_mtime_ns for path in kept]

    output, place, times = call(1)
    assert "1/2  weights on, seed 0" in output and "about" in output
    assert (place / "weights.png").stat().st_size > 10_000
    assert "| on | " in (place / "ablation.md").read_text() and "max iterations" in (place / "ablation.md").read_text()
    output, _, again = call(1)
    assert again == times and "left" not in output  # read, not solved again
    assert call(2)[2] != times
