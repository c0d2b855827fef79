"""The benchmark of certificates: what it measures of a problem, how it goes on, and its tables."""

import re
from pathlib import Path

from benchmarks import certify
from benchmarks.arena.families import problem_named


def test_a_problem_is_measured_once(tmp_path, monkeypatch):
    monkeypatch.setattr(certify, "FILE", tmp_path / "certificates.jsonl")
    problem = problem_named("one-source/0")
    certify.run_all([problem], [0])
    (row,) = certify.stored().values()
    assert (row["problem"], row["MLBLUE"], row["of"]) == ("one-source/0", None, certify.CERTIFICATES)
    assert row["held"] >= 0.8 * row["of"]
    assert 0 < row["width"] < 1
    monkeypatch.setattr(certify, "measured", None)  # it would raise an error if it were called again
    certify.run_all([problem], [0])
    lines = list(certify.tables([row]))
    assert lines[2].startswith("| one-source | 1 | ")
    assert lines[3].startswith("| all | 1 | ")


def test_problems_whose_mean_can_be_certified_are_wanted():
    first, every = certify.wanted([], 1), certify.wanted([], 1000)
    assert len({problem.family for problem in first}) == len(first)
    assert {problem.key for problem in first} < {problem.key for problem in every}
    assert not any(problem.design for problem in every)


def test_intervals_of_simulated_residuals():
    rows = [line.split("|") for line in certify.intervals(runs=60)][2:]
    assert len(rows) == 4 * len(certify.RESIDUALS)
    assert all(int(row[4].strip(" %")) >= int(row[3].strip(" %")) for row in rows)


def test_the_page_has_what_is_stored():
    """The row of all problems in the how-to is that of the table."""
    *_, total = [line for line in certify.tables(list(certify.stored().values())) if line.startswith("| all")]
    _, _, _, held, model, _, mlblue, variates, *_ = (cell.strip() for cell in total.split("|"))
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "certify.md").read_text(encoding="utf-8")
    share = re.sub(r"(\d+)% \((\d+)% to (\d+)%\)", r"\1 % (\2 to \3 %)", held)
    row = ["all", share, model.replace("%", " %"), mlblue.split()[0], variates.split()[0]]
    assert f"| {' | '.join(row)} |" in page
