"""A page as a tree, read by the strict rules that longreach writes it by."""

from html.parser import HTMLParser
from xml.etree.ElementTree import Element, SubElement

_VOID = {"meta", "br", "img", "link", "input", "hr"}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("document")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = SubElement(self.open[-1], tag, {name: value or "" for name, value in attrs})
        if tag not in _VOID:
            self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        SubElement(self.open[-1], tag, {name: value or "" for name, value in attrs})

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        parent = self.open[-1]
        if len(parent):
            parent[-1].tail = (parent[-1].tail or "") + data
        else:
            parent.text = (parent.text or "") + data


def parsed(page: str) -> Element:
    """The document; fails on an element that is not closed where it should be."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == [reader.root]
    return reader.root


def text_of(element: Element) -> str:
    """All text inside, blanks folded."""
    return " ".join("".join(element.itertext()).split())


def by_id(root: Element, identity: str) -> Element:
    """The one element of that id."""
    (found,) = [element for element in root.iter() if element.get("id") == identity]
    return found
