"""Docstrings as mkdocstrings wants them; ours are written to be read in a terminal.

- Text and examples after the last section, at the left margin, are no items of that section: they are moved out of it.
- What a function returns is a sentence, not a type.
- A comment ``#: ...`` beside an attribute, or above it, is its docstring.
"""

import re

import griffe

HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.M)
ITEMS = {"Parameters", "Attributes", "Returns"}


def rearranged(docstring: str) -> str:
    """The summary and all text, then sections of items, then examples."""
    text, sections, examples = [], [], []
    heading, body = None, text
    for paragraph in re.split(r"\n\s*\n", docstring.strip("\n")):
        found = HEADING.match(paragraph)
        if found:
            heading = found[1]
            rest = paragraph[found.end() :].strip("\n")
            if heading == "Examples":
                body = examples
            elif heading == "Returns" and "\n    " not in rest:
                text.append(f"Returns: {rest}")
                heading, body = None, text
                continue
            else:
                body = [f"{heading}\n{'-' * len(heading)}"]
                sections.append(body)
            if rest:
                body.append(_itemised(rest) if heading in ITEMS else rest)
        elif paragraph.startswith(">>>"):
            examples.append(paragraph)
        elif (
            heading in ITEMS and not paragraph.startswith(" ") and "\n    " not in paragraph and " : " not in paragraph
        ):
            text.append(paragraph)
        else:
            body.append(paragraph)
    parts = ["\n\n".join(text), *("\n".join([body[0], "\n\n".join(body[1:])]) for body in sections)]
    if examples:
        parts.append("Examples\n--------\n" + "\n\n".join(examples))
    return "\n\n".join(parts)


def _itemised(items: str) -> str:
    """One item for each name, as each has a default of its own, and types without backticks."""
    out: list[str] = []
    for item in re.split(r"\n(?=\S)", items):
        head, _, description = item.partition("\n")
        names, _, kind = head.partition(" : ")
        for name in names.split(", "):
            out += [f"{name} : {kind.replace('`', '')}" if kind else name, *([description] if description else [])]
    return "\n".join(out)


class Docstrings(griffe.Extension):
    """Rearranges every docstring when it is read."""

    def on_object(self, *, obj, **_):
        if obj.is_alias:
            return
        if obj.docstring is not None:
            obj.docstring.value = rearranged(obj.docstring.value)
        elif obj.is_attribute and obj.lineno:
            said = _comment(obj)
            if said:
                obj.docstring = griffe.Docstring(said, parent=obj)


def _comment(attribute) -> str:
    lines = attribute.lines_collection[attribute.filepath]
    beside = re.search(r"#: ?(.*)$", lines[attribute.lineno - 1])
    if beside:
        return _sentence(beside[1])
    above = []
    for line in reversed(lines[: attribute.lineno - 1]):
        found = re.match(r"\s*#: ?(.*)$", line)
        if not found:
            break
        above.insert(0, found[1])
    return _sentence(" ".join(above))


def _sentence(text: str) -> str:
    text = text.strip()
    return text and text[0].upper() + text[1:] + ("" if text.endswith((".", ":")) else ".")
