"""A griffe extension that adapts docstrings, which are written for the terminal, to what mkdocstrings expects.

- Text and examples at the left margin after a section are moved out of that section.
- A "Returns" section of one sentence becomes text; mkdocstrings would take it for a type.
- A comment ``#: ...`` next to an attribute or above it becomes the docstring of the attribute.
"""

import re

import griffe

#: arguments that are described with those of an `Integrator`
ELSEWHERE = re.compile(r"\b([Ss]ee) `Integrator`")
HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.M)
ITEM_SECTIONS = {"Parameters", "Attributes", "Returns"}


def rearranged(docstring: str) -> str:
    """Return a docstring with all text first, then the sections, then the examples."""
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
                body.append(_itemised(rest) if heading in ITEM_SECTIONS else rest)
        elif paragraph.startswith(">>>"):
            examples.append(paragraph)
        elif (
            heading in ITEM_SECTIONS
            and not paragraph.startswith(" ")
            and "\n    " not in paragraph
            and " : " not in paragraph
        ):
            text.append(paragraph)
        else:
            body.append(paragraph)
    parts = ["\n\n".join(text), *("\n".join([body[0], "\n\n".join(body[1:])]) for body in sections)]
    if examples:
        parts.append("Examples\n--------\n" + "\n\n".join(examples))
    return "\n\n".join(parts)


def _itemised(items: str) -> str:
    """Return items with one name each, because each name has its own default, and types without backticks."""
    out: list[str] = []
    for item in re.split(r"\n(?=\S)", items):
        head, _, description = item.partition("\n")
        names, _, kind = head.partition(" : ")
        for name in names.split(", "):
            out.append(f"{name} : {kind.replace('`', '')}" if kind else name)
            if description:
                out.append(ELSEWHERE.sub(rf"\1 [`Integrator`][amsbq.Integrator({name})]", description))
    return "\n".join(out)


class Docstrings(griffe.Extension):
    """The extension that mkdocs.yml names."""

    def on_object(self, *, obj, **_):
        """Rearrange the docstring of an object, or make one from a comment."""
        if obj.is_alias:
            return
        if obj.docstring is not None:
            obj.docstring.value = rearranged(obj.docstring.value)
        elif obj.is_attribute and obj.lineno:
            comment = _comment(obj)
            if comment:
                obj.docstring = griffe.Docstring(comment, parent=obj)


def _comment(attribute) -> str:
    """Return the comment ``#: ...`` next to or above an attribute as a sentence; empty if there is none."""
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
