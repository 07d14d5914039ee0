"""What the shell completes: names out of the catalogues, read only when it asks."""

import contextlib
from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

from longreach.engine.release import RELEASES


def complete_model(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Catalogue names, else files."""
    from longreach.model.catalogue import catalogue_names

    names = [CompletionItem(name) for name in catalogue_names() if name.startswith(incomplete.lower())]
    return names or [CompletionItem(incomplete, type="file")]


def complete_gpus(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """`4x` and a card of the catalogue."""
    from longreach.hardware.catalogue import gpu_names

    count, separator, _ = incomplete.partition("x")
    prefix = f"{count}x" if separator and count.isdigit() else ""
    names = (f"{prefix}{typed}" for name in gpu_names() if (typed := _typed(name)) is not None)
    return [CompletionItem(name) for name in names if name.lower().startswith(incomplete.lower())]


def _typed(name: str) -> str | None:
    """The shortest way to type a card that `--gpus` understands and a shell takes as it is."""
    from longreach.errors import UsageError
    from longreach.hardware.catalogue import parse_gpus

    for typed in (name.replace("GeForce ", "").replace(" ", ""), name.replace(" ", "-")):
        with contextlib.suppress(UsageError):
            if "(" not in typed and parse_gpus(f"1x{typed}").gpu.name == name:
                return typed
    return None


def link_names() -> Iterable[str]:
    """Link classes."""
    from longreach.hardware.links import LINK_NAMES

    return LINK_NAMES


def release_names() -> Iterable[str]:
    """Known vLLM releases, oldest first."""
    return (release.version for release in RELEASES)
