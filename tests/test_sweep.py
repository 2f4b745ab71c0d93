"""Sweeps: which runs there are, and that they all end, whatever happens to some of them, to the sweep or to its process."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from dsgnar.cli import app
from dsgnar.tools import processes
from dsgnar.tools.sweep import GridError, Local, PoolError, Slurm, Sweep, grid, line, seeds, table, values
from dsgnar.tools.sweep.status import Status, going_on

PATIENCE = 120  # seconds that anything here may take
PROBLEM = """
import dsgnar as ds

problem = ds.Problem(
    domain=ds.Box(x=(0, 1), t=(0, 1)),
    unknowns=("u",),
    conditions={"pde": ds.interior(lambda u: u.t + u.x), "start": ds.initial(lambda u, x: u - x)},
)
network = ds.MLP(widths=(6,))
settings = dict(points=64, max_points=64, held_out=64, max_iterations=12, intervals=1)
"""

# Takes the place of `dsgnar` in a process: a run that takes a moment, is interrupted by Ctrl-C, and fails with seed 3.
STUB = """
import json, sys, time
from pathlib import Path
from dsgnar_processes import end_with
end_with({parent})
words = sys.argv[1:]
home = Path(words[1] if words[0] == "resume" else words[words.index("--out") + 1])
(home / "config.json").write_text('{{"problem": "x"}}')
def end(why):
    result = dict(verdict="solved", stop_reason=why, iterations=9, seconds=dict(solve=0.1), relative_l2=dict(u=1e-6))
    (home / "result.json").write_text(json.dumps(result))
with open(home / "started", "a") as file:
    file.write(words[0] + "\\n")
print("iteration 5  stage 1  loss 1.0e-03  held-out loss 2.0e-03  error 4.0e-04", flush=True)
if "seed3" in home.name:
    sys.exit("dsgnar: it was not to be")
try:
    time.sleep(0.3)
except KeyboardInterrupt:
    end("interrupted")
    sys.exit(3)
end("rounding_floor")
"""


@pytest.fixture
def stub(tmp_path, monkeypatch):
    """Runs without JAX, which take a moment each."""
    text = Path(processes.__file__).read_text()
    (tmp_path / "dsgnar_processes.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(processes, "_CODE", STUB)


def test_seeds():
    assert seeds("0:3") == [0, 1, 2] and seeds("4") == [4] and seeds("0:2,7") == [0, 1, 7]
    for wrong in ("", "a", "3:3", "5:2", "1,1", "0:3,2", "-1", "0:99999999999"):
        with pytest.raises(GridError, match="--seeds"):
            seeds(wrong)


def test_values():
    assert values(["sketch=500,700"]) == {"sketch": ["500", "700"]}
    assert values(["targets=(0.1,0.5),(0.2,0.8)", "method='a,b'"])["targets"] == ["(0.1,0.5)", "(0.2,0.8)"]
    for wrong in ("sketch", "sketch=", "sketch=1,,2", "sketch=1,1", "seed=1,2"):
        with pytest.raises(GridError, match="--set"):
            values([wrong])
    with pytest.raises(GridError, match="given twice"):
        values(["wait=1", "wait=2"])


def test_the_grid_has_a_name_for_every_run():
    runs = grid(["burgers", "dir/mine.py"], [0, 1], {"sketch": ["50", "70"], "method": ["paper"]})
    assert len({run.name for run in runs}) == len(runs) == 8
    assert runs[0].name == "burgers-sketch50-method_paper-seed0"
    assert runs[0].solve(Path("d"))[:2] == ["solve", "burgers"] and "--set=sketch=50" in runs[0].solve(Path("d"))
    with pytest.raises(GridError, match="two runs would be called"):
        grid(["a/mine.py", "b/mine.py"], [0], {})
    with pytest.raises(GridError, match="10,000"):
        grid(["burgers"], range(200), {"a": ["1"] * 100})


def test_cores_are_shared_out_without_overlap(monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: [0, 1, 2, 3, 4])
    assert processes.shared_out(2) == [[0, 1], [2, 3, 4]]
    assert processes.shared_out(7) == [[0], [1], [2], [3], [4], [0], [1]]


def test_failures_do_not_stop_the_rest_and_what_is_done_is_kept(stub, tmp_path):
    runs, told = grid(["mine"], range(5), {}), {}
    sweep = Sweep(runs, tmp_path / "sweep", Local(2))
    found = sweep.work(told.__setitem__)
    assert [status.state for status in found.values()] == ["solved"] * 3 + ["error", "solved"] and told == dict(found)
    assert found["mine-seed3"].why == "it was not to be" and not found["mine-seed3"].good
    assert found["mine-seed0"].error == 1e-6 and not sweep.complete
    again = Sweep(runs, tmp_path / "sweep", Local(2))
    assert len(again.kept) == 4
    again.work()
    begun = [(tmp_path / "sweep" / run.name / "started").read_text().split() for run in runs]
    assert begun == [["solve"]] * 3 + [["solve", "resume"], ["solve"]]


def test_ctrl_c_leaves_a_state_that_can_be_resumed(stub, tmp_path):
    runs = grid(["mine"], range(4, 10), {})
    sweep = Sweep(runs, tmp_path / "sweep", Local(2))

    def press(name, status):  # once the first run has ended
        if not sweep.stopping and sum(s.state == "running" for s in sweep.statuses.values()):
            raise KeyboardInterrupt

    states = [status.state for status in sweep.work(press).values()]
    assert sweep.stopping and "waiting" in states and "running" not in states
    again = Sweep(runs, tmp_path / "sweep", Local(2))
    again.work()
    assert again.complete


DRIVER = """
import sys
from pathlib import Path
from dsgnar.tools import processes
from dsgnar.tools.sweep import Local, Sweep, grid
processes._CODE = Path("stub").read_text()
Sweep(grid(["mine"], range(4, 12), {}), Path("sweep").resolve(), Local(2)).work()
"""


def test_a_killed_sweep_leaves_nothing_behind_and_ends_with_all_results(stub, tmp_path):
    (tmp_path / "stub").write_text(STUB)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    process = subprocess.Popen([sys.executable, "-c", DRIVER], cwd=tmp_path, env=os.environ | {"PYTHONPATH": path})
    began = time.monotonic()
    while len(list(tmp_path.glob("sweep/*/result.json"))) < 3:
        assert time.monotonic() - began < PATIENCE and process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    time.sleep(2 * processes.POLL)
    left = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True).stdout
    assert not left, "a run goes on after its sweep was killed"
    runs = grid(["mine"], range(4, 12), {})
    sweep = Sweep(runs, tmp_path / "sweep", Local(2))
    assert 3 <= len(sweep.kept) < 8
    sweep.work()
    assert sweep.complete and len(list(tmp_path.glob("sweep/*/result.json"))) == 8


def shown(renderable, width=80) -> str:
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(renderable)
    return console.export_text()


def test_the_table(tmp_path):
    (tmp_path / "log.txt").write_text(
        "burgers: MLP\niteration 10  stage 1  loss 1.2e-03  held-out loss 2.0e-03  error 5.0e-02  lambda 1\n"
    )
    running = going_on(tmp_path, 4.0)
    assert (running.iteration, running.loss, running.error) == (10, "1.2e-03", 0.05)
    many = {"a": running, "b": Status("error", why="it broke"), **{f"c{k}": Status() for k in range(30)}}
    text = shown(table(many, height=8))
    assert "5.00e-02" in text and "1 error" in text and "30 waiting" in text and "(27 not shown)" in text
    short = {"burgers-wait9-seed0": running, "burgers-wait9-seed1": Status()}
    text = shown(table(short))
    assert "seed0" in text and "wait9" not in text
    assert line("b", Status("solved", 9, error=1e-6, seconds=2.0)) == "b: solved, error 1.00e-06, 9 iterations, 2.0 s"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["burgers", "--seeds", "x"], "--seeds x: write 0:8"),
        (["burgers", "--set", "sketsch=5"], "did you mean sketch"),
        (["burgers", "--set", "sketch=-5"], "sketch must be a positive integer"),
        (["burgerz"], "there is no problem 'burgerz'"),
        (["burgers", "--slurm", "partition"], "such as --slurm partition=gpu"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["sweep", *arguments])
    assert result.exit_code == 2 and message in result.output.replace("\n", " ")
    assert not list(tmp_path.iterdir())


def test_a_run_of_another_version_of_a_file_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(PROBLEM)
    kept = Path("runs/sweep-mine/mine-seed0")
    kept.mkdir(parents=True)
    (kept / "config.json").write_text(json.dumps({"problem": "mine", "files_sha256": {"problem.py": "another"}}))
    result = CliRunner().invoke(app, ["sweep", "mine.py"])
    assert result.exit_code == 2 and "as it was earlier" in result.output


def test_slurm_without_its_package_or_its_commands(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PoolError, match="no sbatch here"):
        Slurm(tmp_path, {"partition": "cpu"})
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(PoolError, match=r"pip install 'dsgnar\[slurm\]'"):
        Slurm(tmp_path, {"partition": "cpu"})


# A cluster of one machine: jobs are processes. What submitit asks of SLURM, and no more.
CLUSTER = {
    "sbatch": """n=$(ls $CLUSTER | wc -l)
echo "$@" > $CLUSTER/$n.options; grep '#SBATCH' "$1" >> $CLUSTER/$n.options
SLURM_JOB_ID=$n SLURM_NTASKS=1 SLURM_JOB_NUM_NODES=1 SLURM_JOB_NODELIST=here SLURM_NODEID=0 SLURM_PROCID=0 \\
SLURM_LOCALID=0 nohup sh "$1" > /dev/null 2>&1 &
echo "Submitted batch job $n"
""",
    "srun": """while [ "${1#-}" != "$1" ]; do case $1 in --output|--error) shift 2;; *) shift;; esac; done
exec "$@" """,
    "sacct": """echo "JobID|State|NodeList"
for f in $CLUSTER/*.options; do echo "$(basename $f .options)|RUNNING|here"; done""",
    "scancel": "exit 0",
}


@pytest.mark.slow
def test_jobs_of_a_cluster(tmp_path, monkeypatch):
    home = tmp_path / "cluster"
    home.mkdir()
    for name, text in CLUSTER.items():
        (home / name).write_text("#!/bin/sh\n" + text)
        (home / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    monkeypatch.setenv("CLUSTER", str(tmp_path / "queue"))
    (tmp_path / "queue").mkdir()
    (tmp_path / "mine.py").write_text(PROBLEM)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    pool = Slurm(tmp_path / "sweep", {"partition": "small", "time": "7", "account": "me"})
    sweep = Sweep(grid([str(tmp_path / "mine.py")], [0, 1], {}), tmp_path / "sweep", pool)
    found = sweep.work()
    assert sweep.complete and all(status.iteration == 12 for status in found.values())
    asked = next((tmp_path / "queue").glob("*.options")).read_text()
    assert "--partition=small" in asked and "--time=7" in asked and "--account=me" in asked


# --- with real runs ---------------------------------------------------------------------------------------------------

COMMAND = [sys.executable, "-c", "from dsgnar.cli import main; main()", "sweep", "mine.py", "--seeds", "0:4"]


@pytest.mark.slow
def test_a_sweep_of_eight_runs_killed_and_resumed(tmp_path):
    (tmp_path / "mine.py").write_text(PROBLEM)
    command = [*COMMAND, "--set", "sketch=8,10", "--jobs", "2"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "DSGNAR_CACHE": str(tmp_path / "cache")}
    with open(tmp_path / "messages", "w") as file:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=file, stderr=file)
        began = time.monotonic()
        while len(list(tmp_path.glob("runs/*/*/result.json"))) < 3:
            assert time.monotonic() - began < PATIENCE and process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(1)
        done = subprocess.run(command, cwd=tmp_path, env=environment, stdout=file, stderr=file, timeout=3 * PATIENCE)
    home = tmp_path / "runs" / "sweep-mine"
    assert len(list(home.glob("*/result.json"))) == 8 and (home / "comparison.html").exists()
    assert done.returncode == 3  # all ended, and not all are solved in 12 iterations
    assert "have ended already and are kept" in (tmp_path / "messages").read_text()
