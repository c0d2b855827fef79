"""No text has a phrase that readers from Gaussian processes and uncertainty quantification would have to learn."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

#: what is scanned: docstrings, comments and messages of the library, the documentation, and the README
TEXTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(path for path in (ROOT / "src").rglob("*") if path.suffix in {".py", ".js", ".css", ".html"}),
]

#: rejected phrases, as regular expressions, with what to write instead
REJECTED = {
    r"mend(s|ed|ing)?": "fix, fixed",
    r"renew(s|ed|ing)?": "update, updated",
    r"with those that there are": "listing the valid names",
    r"nobody declared": "undeclared",
    r"pays? for nothing more": "the budget is used up; nothing left is worth its cost",
    r"on its way": "pending",
    r"when it was time": "scheduled",
    r"what was there before": "what existed before",
    r"who doubts the model|the doubtful": "model discrepancy, heavy-tailed interval, tempered posterior",
    r"(is|are) believed|(model|it) believes|without believing": "posterior, condition on, rely on",
    r"make no sense are made sense of": "degenerate data are regularised",
    r"change their places": "permutation, relabelling",
    r"of which others tell nothing": "does not improve the prediction of, is not informative about",
    r"tells? (nothing|most|little) (of|about|for)": "is (not) informative about",
    r"left to what is left": "left to the residual",
    r"is no (regular expression|distribution|format|text|bool|integer)": "is not a ...",
    r"probabilit(y|ies) to exceed": "probability of exceeding",
    r"1 told, 0 known before": "1 value recorded, 0 already known",
    r"whatever the model is worth": "however poor the model",
    r"goe?s? on with:": "continue with:",
    r"in come|out come": "the input is, the output is",
    r"inside of": "inside",
    r"outside of": "outside",
    r"the present (one|model|code|format|evaluation)": "the current one, the most recent one",
    r"tak(e|es|en) for granted": "assume, rest on prior assumptions",
    r"ha(s|ve) no eyes": "cannot value",
    r"what came of": "the outcome, the answer",
    r"observations to come": "future observations",
    r"tells? too little": "is worth too little for its cost",
    r"says? so": "report this, a warning is issued, an error is raised; declare it by",
    r"from which on": "at and above which, after which, fewest",
    r"from ([0-9,]+|one|two|three|four|five|ten) [a-z ]{3,45} on(?=[,:;.)])": "once there are N, above N, N or more",
    r"beside (the|this|that|these|those|it|them|each|other)": "next to, alongside, compared with, besides",
    r"but for (rounding|a few|those|the one)": "up to rounding, except for",
    r"processor time": "CPU time",
    r"(derivatives?|gradients?) by (its|their|the|each|all|x|an input|inputs?)": "with respect to",
    r"(as|its) JSON types": "JSON-serialisable form, JSON",
    r"(units?|line|rule) of the user": "the user's units, line, rule",
    r"must be (a text|(different )?texts)": "must be a string, strings",
    r"whether with": "whether it is included",
    r"pays for no": "does not cover another",
}
PATTERN = re.compile("|".join(rf"\b(?:{phrase})(?!\w)".replace(" ", r"\s+") for phrase in REJECTED), re.I)


def rejected_in(text):
    """Return the rejected phrases of ``text`` as (line, phrase), also those that are broken over two lines."""
    flat = re.sub(r"\n[ \t]*(?:#:? ?)?", lambda gap: " " * len(gap[0]), text)
    return [(text.count("\n", 0, found.start()) + 1, " ".join(found[0].split())) for found in PATTERN.finditer(flat)]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_text_has_no_rejected_phrase(path):
    assert rejected_in(path.read_text(encoding="utf-8")) == []


def test_the_pattern():
    assert rejected_in("Once that is mended,\n    # nobody\n    # declared it.") == [
        (1, "mended"),
        (2, "nobody declared"),
    ]
    assert rejected_in("there is no number; recommended; inside it; Values whose model is worth it") == []
