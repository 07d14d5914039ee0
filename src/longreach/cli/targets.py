"""What `PLAN|URL` names: a server by its address, or an instance of a plan."""

import re
from pathlib import Path
from typing import Any

from longreach.errors import UsageError


def is_address(target: str) -> bool:
    """A URL, or HOST:PORT where no file has that name."""
    if target.startswith(("http://", "https://")):
        return True
    return re.fullmatch(r"[\w.-]+:\d{1,5}(/.*)?", target) is not None and not Path(target).exists()


def choose_instance(plan: Any, name: str | None) -> Any:
    """The named instance, or the one with the longest window."""
    if name is None:
        return max(plan.instances, key=lambda item: item.max_model_len)
    found = next((item for item in plan.instances if item.name == name), None)
    if found is None:
        known = ", ".join(item.name for item in plan.instances)
        raise UsageError(
            f"the plan has no instance '{name}'", f"it has {known}", f"--instance {plan.instances[0].name}"
        )
    return found
