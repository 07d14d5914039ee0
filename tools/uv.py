"""Run uv with the package sources that pip is configured with: `python -m tools.uv pip install ...`.

uv installs ten times as fast as pip, but does not read pip's configuration: addresses, folders of wheels, certificates.
"""

import os
import subprocess
import sys
from ast import literal_eval
from collections.abc import Mapping, Sequence

_SECTIONS = ("global.", "install.", ":env:.")  # pip's own order: the later one wins
_AS_UV_READS_IT = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}


def parse_pip_settings(listing: str) -> dict[str, str]:
    """Key to value from the output of `pip config list`, one `section.key='value'` a line."""
    settings: dict[str, str] = {}
    for section in _SECTIONS:
        for line in listing.splitlines():
            name, _, value = line.partition("=")
            if name.startswith(section):
                settings[name.removeprefix(section)] = str(literal_eval(value))
    return settings


def translate_pip_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment that makes uv look where pip looks: any source may hold a pinned version, as with pip."""
    environment = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    for key, value in settings.items():
        if key in _AS_UV_READS_IT:
            words = value.split()
            environment[_AS_UV_READS_IT[key]] = ",".join(words) if key == "find-links" else " ".join(words)
    return environment


def run_uv(arguments: Sequence[str], *, capture: bool = False) -> None:
    """Run uv quietly; what the environment says already is left alone. CalledProcessError when it fails."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True
    )
    environment = translate_pip_settings(parse_pip_settings(listing.stdout)) | os.environ
    command = [sys.executable, "-m", "uv", "--quiet", *arguments]
    subprocess.run(command, check=True, capture_output=capture, text=True, env=environment)


if __name__ == "__main__":
    try:
        run_uv(sys.argv[1:])
    except subprocess.CalledProcessError as failure:
        sys.exit(failure.returncode)
