"""HTML as a tree that is written at the end, so that no text from a server or a file can ever become markup."""

from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element

from longreach.report.style import printable

Content = str | Element


def element(tag: str, *content: Content, **attributes: str) -> Element:
    """One element. `class_` is the attribute class, `aria_label` is aria-label. Control letters of a text become blanks."""
    made = Element(tag, {name.rstrip("_").replace("_", "-"): printable(value) for name, value in attributes.items()})
    for part in content:
        append(made, part)
    return made


def append(parent: Element, content: Content) -> None:
    """Add a text or an element behind all that is there."""
    if isinstance(content, Element):
        parent.append(content)
    elif len(parent):
        parent[-1].tail = (parent[-1].tail or "") + printable(content)
    else:
        parent.text = (parent.text or "") + printable(content)


def table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[Content]], *, num_text_columns: int = 1
) -> Element:
    """A table in a frame that scrolls by itself. The first cell of a row names it; cells past the text columns are numbers."""
    kinds = ["text" if column < num_text_columns else "number" for column in range(len(header))]
    head = element(
        "tr", *(element("th", name, scope="col", class_=kind) for name, kind in zip(header, kinds, strict=True))
    )
    made = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", head),
        element("tbody", *(_row(row, kinds) for row in rows)),
    )
    return element("div", made, class_="table", role="region", aria_label=caption, tabindex="0")


def _row(row: Sequence[Content], kinds: Sequence[str]) -> Element:
    first, *others = row
    cells = (element("td", cell, class_=kind) for cell, kind in zip(others, kinds[1:], strict=True))
    return element("tr", element("th", first, scope="row", class_=kinds[0]), *cells)
