"""matplotlib figures as SVG elements of the page: themed, without links, the same bytes for the same values.

matplotlib knows its settings only as process-wide ones; `drawn` sets them for the length of one drawing. Its fonts are
used to measure text alone: the page shows text as text, in a font of the reader's system.
"""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, fromstring

from longreach.report.html.colours import CARD, INK, LINE, MUTED, themed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tips = Mapping[str, Sequence[str]]
"""What each mark of a group says when it is pointed at, by the group's gid."""

WIDTH_IN = 5.4
HEIGHT_IN = 3.4
MAX_MARKS = 400
"""More marks than this are drawn as one picture: each of them is there, none can be pointed at."""

_FONT = "DejaVu Sans"  # comes with matplotlib, so that the layout is the same everywhere
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "longreach",
    "text.parse_math": False,
    "font.family": _FONT,
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "axes.edgecolor": MUTED.light,
    "axes.labelcolor": MUTED.light,
    "axes.titlecolor": MUTED.light,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": LINE.light,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED.light,
    "ytick.color": MUTED.light,
    "text.color": INK.light,
    "figure.facecolor": "none",
    "figure.edgecolor": CARD.light,
    "figure.figsize": (WIDTH_IN, HEIGHT_IN),
    "figure.constrained_layout.use": True,
    "savefig.facecolor": "none",
    "savefig.dpi": 200,  # of marks that are drawn as one picture
    "hatch.linewidth": 1.5,
    "path.simplify": True,
}
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_XLINK_HREF = "{http://www.w3.org/1999/xlink}href"


def drawn(name: str, draw: Callable[["Figure"], Tips]) -> Element:
    """The figure that `draw` fills, as an `svg` element whose ids begin with `name`."""
    from matplotlib import style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    sheet = io.StringIO()
    with style.context(["default", _SETTINGS]):  # "default": not what the reader's own matplotlibrc says
        figure = Figure()
        FigureCanvasSVG(figure)
        tips = draw(figure)
        figure.savefig(sheet, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _page_element(sheet.getvalue(), name, tips)


def _page_element(text: str, name: str, tips: Tips) -> Element:
    root = fromstring(_LONG_NUMBER.sub(_short_number, text))  # noqa: S314 - written by matplotlib, a moment ago
    for part in root.iter():
        part.tag = part.tag.rpartition("}")[2]
        part.text = part.text if part.tag == "text" else None
        part.tail = None
        if _XLINK_HREF in part.attrib:
            part.set("href", part.attrib.pop(_XLINK_HREF))
    _drop(root, ("metadata", "style"))
    for group in [part for part in root.iter("g") if part.get("id") in tips]:
        _label_marks(group, tips[group.attrib["id"]])
    _settle_attributes(root, name)
    view = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update({"viewBox": view, "role": "img"})
    return root


def _short_number(match: re.Match[str]) -> str:
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")


def _drop(root: Element, tags: tuple[str, ...]) -> None:
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in tags]:
            parent.remove(child)


def _label_marks(group: Element, texts: Sequence[str]) -> None:
    marks = list(group.iter("use"))
    for mark, text in zip(marks, texts, strict=True):
        SubElement(mark, "title").text = text


def _settle_attributes(root: Element, name: str) -> None:
    """Ids that nothing refers to go; the others become unique on the page. `direct-` and `on-` groups become classes."""
    used = {reference for part in root.iter() for reference in _references(part)}
    for part in root.iter():
        identity = part.attrib.pop("id", None)
        if identity in used:
            part.set("id", f"{name}-{identity}")
        elif identity is not None and identity.startswith(("direct", "on-tier")):
            part.set("class", identity.partition("@")[0])
        for attribute, value in part.attrib.items():
            part.set(attribute, _settled(attribute, value, name))


def _references(part: Element) -> list[str]:
    href = part.get("href", "")
    inside = [found for value in part.attrib.values() for found in _REFERENCE.findall(value)]
    return [*inside, href[1:]] if href.startswith("#") else inside


def _settled(attribute: str, value: str, name: str) -> str:
    if attribute == "href" and value.startswith("#"):
        return f"#{name}-{value[1:]}"
    value = _REFERENCE.sub(lambda match: f"url(#{name}-{match[1]})", value)
    return themed(value.replace(f"'{_FONT}'", "system-ui, sans-serif")) if attribute == "style" else value
