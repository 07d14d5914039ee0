"""Every command by its name, in the order of the story."""

import click

from longreach.cli.explain import explain
from longreach.cli.plan import plan

COMMANDS: dict[str, click.Command] = {"plan": plan, "explain": explain}
