"""What is published: wheel and sdist are complete, install into an empty environment, and work there.

Nothing is downloaded here. What amsbq needs is linked into the environment from that of the tests: that and nothing
else. With AMSBQ_WHEELHOUSE, a folder of wheels, and AMSBQ_PYTHONS, paths of interpreters, it is installed in earnest.
"""

import doctest
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from docs import badges

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NEEDED = ("numpy", "scipy", "threadpoolctl", "loky", "cloudpickle")
WHEELHOUSE, PYTHONS = os.environ.get("AMSBQ_WHEELHOUSE"), os.environ.get("AMSBQ_PYTHONS", sys.executable).split()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of a wheel and an sdist, built without the network."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder, "wheel", "sdist")
    return folder


def build(source, folder, *targets):
    options = [option for target in targets for option in ("-t", target)]
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), *options]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


def names_in(wheel):
    return sorted(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_has_all_of_the_package_and_nothing_else(built):
    [wheel] = built.glob("*.whl")
    packed = {name for name in names_in(wheel) if ".dist-info/" not in name}
    source = ROOT / "src"
    there = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    assert packed == {name for name in there if "__pycache__" not in name and ".egg-info" not in name}
    assert {"amsbq/py.typed", "amsbq/visualization/page/page.html", "amsbq/visualization/page/page.js"} <= packed


def test_the_sdist_makes_the_same_wheel(built, tmp_path):
    [sdist], [wheel] = built.glob("*.tar.gz"), built.glob("*.whl")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.iterdir()
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "tests/test_release.py", "docs/index.md"):
        assert (unpacked / name).exists()
    assert not list(unpacked.rglob("*.jsonl.lock")) + list(unpacked.rglob("__pycache__"))
    build(unpacked, tmp_path / "again", "wheel")
    [again] = (tmp_path / "again").glob("*.whl")
    assert names_in(again) == names_in(wheel)
    assert again.read_bytes() == wheel.read_bytes()


def test_the_sdist_installs(built, tmp_path):
    """As in `pip install .` where it was unpacked, by the interpreters of AMSBQ_PYTHONS."""
    [sdist], folder = built.glob("*.tar.gz"), tmp_path / "wheel"
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    [unpacked] = [path for path in tmp_path.iterdir() if path.is_dir()]
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "-w", folder, "."], cwd=unpacked, check=True)
    [wheel] = folder.iterdir()
    for number, python in enumerate(PYTHONS if WHEELHOUSE else [sys.executable]):
        inside = environment_with(wheel, tmp_path / f"environment {number}", python)
        done = run(inside, "-m", "amsbq", "--version", cwd=tmp_path)
        assert done.stdout.split() == ["amsbq", importlib.metadata.version("amsbq")], done.stderr


def environment_with(wheel, folder, python):
    """An environment of an interpreter with the wheel and what it needs; the interpreter is returned."""
    if python == sys.executable:
        venv.create(folder, symlinks=True)
    else:
        subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    inside = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(inside), "install", "--quiet", "--no-index"]
    if WHEELHOUSE:
        subprocess.run([*pip, "--find-links", WHEELHOUSE, wheel], check=True)
        return inside
    subprocess.run([*pip, "--no-deps", wheel], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for name in NEEDED:
        for path in {Path(str(file)).parts[0] for file in importlib.metadata.files(name)} - {"..", "__pycache__"}:
            (packages / path).symlink_to(importlib.metadata.distribution(name).locate_file(path))
        libraries = Path(str(importlib.metadata.distribution(name).locate_file(f"{name}.libs")))
        if libraries.exists() and not (packages / libraries.name).exists():
            (packages / libraries.name).symlink_to(libraries)
    return inside


@pytest.fixture(scope="module", params=PYTHONS, ids=lambda python: Path(python).name)
def installed(request, built, tmp_path_factory):
    if request.param != sys.executable and not WHEELHOUSE:
        pytest.skip(
            "another Python needs AMSBQ_WHEELHOUSE, a folder with wheels of numpy, scipy, threadpoolctl and loky"
        )
    [wheel] = built.glob("*.whl")
    return environment_with(wheel, tmp_path_factory.mktemp("empty") / "environment", request.param)


def run(*command, **options):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(command, capture_output=True, text=True, env=environment, **options)


def test_badges_say_what_is_so():
    assert badges.PICTURE.read_text("utf-8") == badges.badges(PROJECT), "python docs/badges.py"
    assert badges.facts(PROJECT)[0] == ("Python", f"{PROJECT['requires-python'][2:]} to 3.14")


def test_the_wheel_works_with_nothing_but_what_it_needs(installed, tmp_path):
    """The README's ten lines."""
    example = doctest.DocTestParser().get_examples((ROOT / "README.md").read_text("utf-8"))
    code = (
        "".join(part.source for part in example)
        + "print(result)\nprint(amsbq.__file__, result.mean, *result.interval())\n"
    )
    (tmp_path / "lines.py").write_text(code)
    done = run(installed, "lines.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer, (where, mean, low, high) = done.stdout.splitlines()[0], done.stdout.splitlines()[-1].split()
    assert str(installed.parent.parent) in where
    assert float(low) < 107.55 < float(high)
    assert abs(float(mean) - 107.55) < 1
    said = re.compile(r"expected distance: (\S+) ± (\S+) m \(std\)")
    shown, now = (said.search(text).groups() for text in ((ROOT / "README.md").read_text("utf-8"), answer))
    assert float(shown[0]) == pytest.approx(float(now[0]), abs=0.5 * float(now[1]))  # no two machines round alike
    assert float(shown[1]) == pytest.approx(float(now[1]), rel=0.5)


def test_the_commands_of_the_wheel(installed, tmp_path):
    amsbq = installed.with_name("amsbq")
    assert run(amsbq, "--version", cwd=tmp_path).stdout.split() == ["amsbq", importlib.metadata.version("amsbq")]
    doctor = run(amsbq, "doctor", cwd=tmp_path)
    assert doctor.returncode == 0, doctor.stderr
    assert "matplotlib is missing" in doctor.stdout
    assert "pip install 'amsbq[plot]'" in doctor.stdout
    (tmp_path / "problem.toml").write_text(
        'budget = 3\n[inputs]\nx = {low = 0, high = 1}\n[[sources]]\ncommand = ["awk", "BEGIN { print {x} * {x} }"]\n'
    )
    assert run(amsbq, "run", "problem.toml", cwd=tmp_path).returncode == 0
    report = run(amsbq, "report", "problem.jsonl", cwd=tmp_path)
    assert report.returncode == 1
    assert "pip install 'amsbq[report]'" in report.stderr


def test_the_recipe_and_the_workflow_say_the_same_as_the_project():
    recipe = (ROOT / "conda" / "meta.yaml").read_text("utf-8")
    floors = dict(requirement.split(">=") for requirement in PROJECT["dependencies"])
    run_section = re.search(r"  run:\n((?:    - .*\n)+)", recipe)[1]
    assert dict(re.findall(r"- (\w+) >=([\d.]+)", run_section)) == {"python": "3.11", **floors}
    extras = [
        text
        for name in ("plot", "report", "progress", "pandas", "dask", "completion")
        for text in PROJECT["optional-dependencies"][name]
    ]
    constrained = re.search(r"  run_constrained:\n((?:    - .*\n)+)", recipe)[1]
    found = dict(re.findall(r"- ([\w-]+) >=([\d.]+)", constrained))
    found["matplotlib"] = found.pop("matplotlib-base")
    assert found == dict(extra.split(">=") for extra in extras)
    assert re.search(r'version = "(.*)"', recipe)[1] == importlib.metadata.version("amsbq")
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert all(f"\n  - {keyword}\n" in citation for keyword in PROJECT["keywords"])
    assert f"\nlicense: {PROJECT['license']}\n" in citation
    assert all(f"- name: {author['name']}\n" in citation for author in PROJECT["authors"])
    number, date = re.search(r"\nversion: (\S+)\ndate-released: (\S+)\n", citation).groups()
    assert number == importlib.metadata.version("amsbq")
    assert f"\n## {number} - {date}\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    tested = json.loads(re.search(r"python: (\[.*\])\n        dependencies", workflow)[1])
    promised = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert tested == promised
    assert PROJECT["requires-python"] == f">={promised[0]}"


def test_extras_that_are_missing_or_old_are_named(monkeypatch, capsys):
    from amsbq.cli import doctor

    def version(name):
        if name == "rich":
            raise importlib.metadata.PackageNotFoundError(name)
        return "2.1.9" if name == "numpy" else "9999"

    monkeypatch.setattr(doctor, "version", version)
    from amsbq.cli.main import main

    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "numpy 2.1.9, but 2.2 is required" in shown
    assert "rich is missing\n  install with: pip install 'amsbq[progress]'" in shown
    assert "threads" in shown
