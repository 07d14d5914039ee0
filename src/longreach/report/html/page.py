"""The page around everything: head, stylesheet, security policy, and how a plot sits in it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from xml.etree.ElementTree import Element, tostring

from longreach.measure.verify_report import Verdict
from longreach.report.html.colours import stylesheet_variables
from longreach.report.html.elements import append, element, table
from longreach.report.html.figures import UNKNOWN
from longreach.report.html.plots.values import NoPlot, Plot

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""A browser that reads it loads nothing from anywhere, and runs nothing."""


@dataclass(frozen=True, slots=True)
class Headline:
    """`level` is how the verdict looks, `verdict` says it in words, `details` come worst first."""

    title: str
    what: str
    level: Verdict
    verdict: str
    details: tuple[str, ...]


def render_page(kind: str, headline: Headline, body: Iterable[Element]) -> str:
    """The document as one string. `kind` says what sort of page it is."""
    style = Element("style")
    style.text = stylesheet_variables() + files(__package__).joinpath("page.css").read_text("utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", headline.title),
        style,
    )
    foot = element("footer", "Written by longreach. This page loads nothing from anywhere.")
    root = element("html", head, element("body", _opening(kind, headline), element("main", *body), foot), lang="en")
    return f"<!DOCTYPE html>\n{tostring(root, encoding='unicode', method='html')}\n"


def _opening(kind: str, headline: Headline) -> Element:
    verdict = element("div", element("p", headline.verdict), class_=f"verdict {headline.level}")
    if headline.details:
        append(verdict, element("ul", *(element("li", line) for line in headline.details)))
    return element(
        "header",
        element("p", kind, class_="eyebrow"),
        element("h1", headline.title),
        element("p", headline.what, class_="lead"),
        verdict,
    )


def tiles(figures: Iterable[tuple[str, str, str]]) -> Element:
    """What matters most, large: name, value, and what is to be known of it."""
    return element("dl", *(_tile(*figure) for figure in figures), class_="tiles")


def _tile(name: str, value: str, below: str) -> Element:
    lines = [element("dd", value), *([element("dd", below)] if below != UNKNOWN else [])]
    return element("div", element("dt", name), *lines, class_="tile")


def word(level: Verdict, text: str) -> Element:
    """A verdict in the colour of its kind."""
    return element("span", text, class_=f"word {level}")


def notes(texts: Sequence[str]) -> list[Element]:
    """What a reader must know besides; nothing when there is nothing."""
    return [element("ul", *(element("li", text) for text in texts), class_="notes")] if texts else []


def section(title: str, *parts: Element) -> Element:
    """A section under its heading."""
    name = title.lower().replace(" ", "-")
    return element("section", element("h2", title, id=name), *parts, aria_labelledby=name)


def plot_section(title: str, plots: Iterable[Plot | NoPlot]) -> Element:
    """All plots that could be drawn side by side, then what is left out and why."""
    plots = list(plots)
    figures = element("div", *(_figure(plot) for plot in plots if isinstance(plot, Plot)), class_="plots")
    made = section(title, figures)
    for plot in plots:
        if isinstance(plot, NoPlot):
            append(made, element("p", f"{plot.title} is not drawn: {plot.reason}.", class_="lead"))
    return made


def _figure(plot: Plot) -> Element:
    heading, sentence = f"plot-{plot.name}", f"plot-{plot.name}-text"
    plot.svg.attrib.update({"aria-labelledby": heading, "aria-describedby": sentence})
    made = element(
        "figure",
        element("h3", plot.title, id=heading),
        plot.svg,
        element("figcaption", plot.sentence, id=sentence),
        class_=f"plot {'tall' if plot.is_tall else ''}".strip(),
    )
    if plot.rows:
        figures = table(f"{plot.title}: the figures", plot.header, plot.rows)
        append(made, element("details", element("summary", "The figures as a table"), figures))
    return made
