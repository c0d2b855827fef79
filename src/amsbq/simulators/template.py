"""Text with names of inputs: arguments of commands, and templates of input files.

In an argument, braces that do not contain the name of an input are kept: awk statements and JSON objects are
full of them. A template is stricter, because nobody looks at the filled file: everything between its delimiters
must be an input, and a literal delimiter is doubled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TypeAlias

#: values of the inputs by name; for checks, any number will do. Job files also have text.
Inputs: TypeAlias = Mapping[str, float] | Mapping[str, float | str]
#: the two strings before and after the name of an input
Delimiters: TypeAlias = Sequence[str]

#: {{text}} in group 1, without the outer braces; {text} in group 2
BRACES = re.compile(r"\{(\{[^{}]*\})\}|\{([^{}]*)\}")

#: text in braces that looks like the name of an input, with or without a format: words with spaces and signs between
#: them. Statements and objects of other languages, such as { print $1 } and {"a": 1}, do not look like this.
NAME_LIKE = re.compile(r"[\w+%-]([\w .!+*/%^-]*[\w%])?(:[^\w\s]?[<>=^]?[-+ ]?#?0?\d*[,_]?(\.\d+)?[eEfFgGn%]?)?")

#: similarity at and above which any other text in braces counts as a misspelt name of an input
MISSPELT = 0.8


def filled_argument(argument: str, inputs: Inputs) -> str:
    """Return an argument of a command with the values of the inputs in place of their names.

    ``{name}`` is the input with all of its digits, ``{name:.3f}`` the input in a Python format, and ``{{name}}`` the
    text ``{name}``. Other braces are kept.

    >>> filled_argument("BEGIN { print {rate:.2f} }", {"rate": 1.5})
    'BEGIN { print 1.50 }'
    """
    for name in inputs:
        if set("{}") & set(name) and f"{{{name}}}" in argument:
            raise ValueError(f"the input {name!r} cannot be part of a command: use a name without braces")
    return BRACES.sub(lambda found: _replacement(argument, found, inputs), argument)


def _replacement(argument: str, found: re.Match[str], inputs: Inputs) -> str:
    """Return the replacement of a pair of braces in an argument."""
    literal, text = found[1], found[2]
    if literal is not None:
        return literal if _names_something(literal[1:-1], inputs) else found[0]
    value = _formatted(text, inputs, repr(argument), ("{", "}"))
    if value is not None:
        return value
    if _names_something(text, inputs):
        raise ValueError(
            f"{argument!r} contains {{{text}}}, which is not an input; valid names: {_listed(inputs, ('{', '}'))}. For "
            f"literal braces, write {{{{{text}}}}}"
        )
    return found[0]


def _names_something(text: str, inputs: Inputs) -> bool:
    """Return whether text in braces is, or looks like, the name of an input."""
    known = text.strip() in inputs or any(text.startswith(f"{name}:") for name in inputs)
    return known or bool(NAME_LIKE.fullmatch(text) or get_close_matches(text, list(inputs), 1, MISSPELT))


def filled_template(text: str, inputs: Inputs, where: str, delimiters: Delimiters = ("{", "}")) -> str:
    """Return the text of a template with the values of the inputs in place of their names.

    Parameters
    ----------
    text : str
        The template. ``{name}`` is the input with all of its digits, ``{name:.6e}`` the input in a Python format.
        A doubled delimiter stands for a literal one.
    inputs : dict of float
        The values by name.
    where : str
        The name of the template, for messages.
    delimiters : (str, str)
        The strings before and after a name.

    Raises
    ------
    ValueError
        If there is anything else between delimiters, or if one is not closed on its line.

    >>> print(filled_template("&run rate = {rate:.3e} {{m/s}} /", {"rate": 1.5}, "deck.in"))
    &run rate = 1.500e+00 {m/s} /
    >>> filled_template("rate <<rate>> {a}", {"rate": 1.5}, "deck.in", ("<<", ">>"))
    'rate 1.5 {a}'
    """
    before, after = (re.escape(delimiter) for delimiter in delimiters)
    pattern = re.compile(
        f"(?P<open>{before * 2})|(?P<close>{after * 2})|{before}(?P<name>.*?){after}|(?P<rest>{before})"
    )

    def replacement(found: re.Match[str]) -> str:
        if found["open"] or found["close"]:
            return delimiters[0] if found["open"] else delimiters[1]
        line = text.count("\n", 0, found.start()) + 1
        value = None if found["rest"] else _formatted(found["name"], inputs, f"line {line} of {where}", delimiters)
        if value is None:
            wrong = f"an unclosed {delimiters[0]}" if found["rest"] else f"{found[0]}, which is not an input"
            raise ValueError(
                f"line {line} of {where} contains {wrong}; valid names: {_listed(inputs, delimiters)}. For a literal "
                f"delimiter, double it, as in {delimiters[0] * 2}, or choose others, as in delimiters = ['<<', '>>']"
            )
        return value

    return pattern.sub(replacement, text)


def _formatted(text: str, inputs: Inputs, where: str, delimiters: Delimiters) -> str | None:
    """Return the formatted value of ``name`` or ``name:format``, or None if it is not an input."""
    if text in inputs:
        return str(inputs[text])
    name = next((name for name in inputs if text.startswith(f"{name}:")), None)
    if name is None:
        return None
    form = text.removeprefix(f"{name}:")
    try:
        return format(inputs[name], form)
    except ValueError:
        shown = text.join(delimiters)
        raise ValueError(f"{where} contains {shown}, but {form!r} is not a number format such as .6e or .3f") from None


def _listed(inputs: Inputs, delimiters: Delimiters) -> str:
    return ", ".join(name.join(delimiters) for name in inputs)
