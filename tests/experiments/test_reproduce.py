"""The command `amsbq reproduce`: run once for all experiments and once for one of them, and checked by its output."""

import contextlib
import io
from pathlib import Path
from typing import NamedTuple

import pytest

from amsbq.cli.main import main

pytest.importorskip("matplotlib")
pytest.importorskip("pandas")


class Reproduction(NamedTuple):
    exit_code: int
    shown: dict[str, str]  # what was printed about each experiment
    folder: Path


def reproduce(folder, *arguments):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exit_code = main(["reproduce", *arguments, "--quick", "--output", str(folder)])
    paragraphs = printed.getvalue().strip().split("\n\n")[:-1]  # the last one says where everything is
    return Reproduction(exit_code, {text.split(":")[0]: text for text in paragraphs}, folder)


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    return reproduce(tmp_path_factory.mktemp("everything"), "--workers", "2")


@pytest.fixture(scope="module")
def one_by_name(tmp_path_factory):
    return reproduce(tmp_path_factory.mktemp("one"), "cube", "--workers", "1")


def files(folder):
    return {path.name for path in folder.iterdir()}


def test_an_experiment_by_name(one_by_name):
    assert one_by_name.exit_code == 0
    assert list(one_by_name.shown) == ["cube"]
    assert files(one_by_name.folder) == {"cube"}


def test_tables_and_figures_are_written(one_by_name):
    assert files(one_by_name.folder / "cube") == {"vertices.csv", "claims.csv", "cube.png", "cube.pdf"}


def test_claims_are_shown(one_by_name):
    assert "✓ one source, constant cost: all three are one policy" in one_by_name.shown["cube"]
    assert all("✗" not in text for text in one_by_name.shown.values())


@pytest.mark.slow
def test_all_experiments_are_run_unless_some_are_named(everything):
    assert everything.exit_code == 0
    assert list(everything.shown) == ["intuition", "forrester", "wiggly", "epidemic", "gaussians", "cube"]
    for name in everything.shown:
        assert list((everything.folder / name).glob("*.pdf"))
    assert "the secondary source is not evaluated where costs are almost identical" in everything.shown["forrester"]


@pytest.mark.slow
def test_workers_and_other_experiments_change_nothing(everything, one_by_name):
    assert everything.shown["cube"] == one_by_name.shown["cube"]
    tables = sorted((one_by_name.folder / "cube").glob("*.csv"))
    assert tables
    for table in tables:
        assert table.read_bytes() == (everything.folder / "cube" / table.name).read_bytes()


def test_reproduce_knows_its_experiments(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "forester", "--output", str(tmp_path)])
    assert stopped.value.code == 2
    assert "there is no experiment 'forester'; valid names: intuition, forrester" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
