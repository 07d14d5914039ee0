"""Write the registry's data: `python -m tools.registry 0.34.0`, or `--all` for every release that it holds already."""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tools.registry.download import NotPublishedError, fetch_sources
from tools.registry.release import Sections, differences, read_release, render

from longreach.engine.registry import apply_differences, version_key

DATA = Path(__file__).parents[2] / "src" / "longreach" / "engine" / "registry_data"
_FIX = "name a published release, and see that pip reaches its package index: pip index versions vllm"


def read_data(folder: Path = DATA) -> dict[str, Sections]:
    """Every release in the data, oldest first, to all its entries."""
    found: dict[str, Sections] = {}
    entries: Sections = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: version_key(path.stem)):
        entries = apply_differences(entries, json.loads(path.read_text(encoding="utf-8")))
        found[path.stem] = entries
    return found


def write_data(releases: Mapping[str, Sections], folder: Path = DATA) -> None:
    """One file a release, with what differs from the release before."""
    before: Sections = {}
    for version in sorted(releases, key=version_key):
        (folder / f"{version}.json").write_text(render(differences(before, releases[version])), encoding="utf-8")
        before = releases[version]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.registry", description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="releases to read, such as 0.33.0")
    parser.add_argument("--all", action="store_true", help="read every release of the data anew")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "vllm-src", help="keep sources here"
    )
    options = parser.parse_args(arguments)
    releases = read_data()
    wanted: Iterable[str] = dict.fromkeys([*options.versions, *(releases if options.all else ())])
    if not wanted:
        parser.error("name releases, or --all")
    for version in wanted:
        try:
            folder = fetch_sources(version, options.cache)
        except (NotPublishedError, OSError) as failure:  # URLError is an OSError
            print(f"error: vLLM {version} cannot be fetched\n  why: {failure}\n  fix: {_FIX}", file=sys.stderr)
            return 1
        releases[version] = read_release(folder)
        counts = ", ".join(f"{len(entries)} {section}" for section, entries in sorted(releases[version].items()))
        print(f"{version}: {counts}", flush=True)
    write_data(releases)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
