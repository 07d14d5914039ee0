"""Every command by its name, in the order of the story."""

import click

from longreach.cli.bench import bench
from longreach.cli.demo import demo
from longreach.cli.explain import explain
from longreach.cli.lint import lint
from longreach.cli.plan import plan
from longreach.cli.tiers import tiers
from longreach.cli.up import down, logs, status, up
from longreach.cli.verify import verify

COMMANDS: dict[str, click.Command] = {
    "plan": plan,
    "up": up,
    "verify": verify,
    "bench": bench,
    "tiers": tiers,
    "lint": lint,
    "status": status,
    "logs": logs,
    "down": down,
    "explain": explain,
    "demo": demo,
}
