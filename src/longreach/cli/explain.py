"""`longreach explain CODE`: one finding at length."""

from dataclasses import asdict

import click
from click.shell_completion import CompletionItem

from longreach.cli.params import echo_json, json_option


def _complete_code(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from longreach.rules.registry import KINDS

    return [CompletionItem(kind.code, help=kind.title) for kind in KINDS if kind.code.startswith(incomplete.upper())]


@click.command()
@click.argument("code", required=False, shell_complete=_complete_code)
@json_option
def explain(code: str | None, *, as_json: bool) -> None:
    """Explain one finding (LR103); without CODE, list them all."""
    from longreach.rules.explain import explain as page_of
    from longreach.rules.registry import KINDS

    if code is None:
        if as_json:
            echo_json({"codes": [asdict(kind) for kind in KINDS]})
        else:
            click.echo("\n".join(f"{kind.code}  {kind.severity:8} {kind.title}" for kind in KINDS))
        return
    page = page_of(code)
    if as_json:
        echo_json({"code": code.upper(), "page": page})
    else:
        click.echo(page)
