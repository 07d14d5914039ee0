"""Configs by Hub id, through huggingface_hub (HF_ENDPOINT, HF_HUB_OFFLINE, HF_TOKEN and the local cache are its own)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from longreach.errors import InputFileError, LongreachError, ServerError, UsageError
from longreach.model.catalogue import catalogue_names
from longreach.units import did_you_mean

_TIMEOUT_S = 10.0
_DTYPE_BYTES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "BF16": 2, "F16": 2, "I16": 2}


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model's folder in the local Hub cache, and its weights' bytes as the Hub counts them."""

    folder: Path  # holds config.json; weights only when they were downloaded
    total_bytes: int | None


def fetch_hub_model(repo_id: str) -> HubModel:
    """The cached or downloaded config of a Hub model; LongreachError says what to do without a network."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    cached = try_to_load_from_cache(repo_id, "config.json") if repo_id.count("/") == 1 else None
    if isinstance(cached, str):
        return HubModel(Path(cached).parent, None)
    try:
        total_bytes = _hub_bytes(repo_id)  # asked first: it fails at once without a network, the download retries
        return HubModel(Path(hf_hub_download(repo_id, "config.json")).parent, total_bytes)
    except Exception as error:  # its HTTP library's errors share no base class with its own
        raise _explained(repo_id, error) from error


def _hub_bytes(repo_id: str) -> int | None:
    """Elements by dtype as the Hub counts them, in bytes; None where the endpoint does not tell (some mirrors)."""
    from huggingface_hub import model_info
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    try:
        found = model_info(repo_id, expand=["safetensors"], timeout=_TIMEOUT_S).safetensors
    except RepositoryNotFoundError:
        raise
    except HfHubHTTPError:
        return None
    counts: Mapping[str, int] = found.parameters if found is not None else {}
    return sum(count * _DTYPE_BYTES.get(dtype, 1) for dtype, count in counts.items()) or None


def _explained(repo_id: str, error: Exception) -> LongreachError:
    """By class name: the classes moved between releases of huggingface_hub."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "GatedRepoError" in kinds:
        return ServerError(f"'{repo_id}' is gated on the Hub", why, "accept its terms on the Hub and set HF_TOKEN")
    if "RepositoryNotFoundError" in kinds:
        near = did_you_mean(repo_id.rpartition("/")[2], catalogue_names())
        return UsageError(
            f"no model '{repo_id}' on the Hub", why, near or "check the spelling; a private model needs HF_TOKEN"
        )
    if "EntryNotFoundError" in kinds and "LocalEntryNotFoundError" not in kinds:
        return InputFileError(
            f"'{repo_id}' has no config.json",
            why,
            "give the repository of the full model, not of an adapter or a GGUF file",
        )
    if "HFValidationError" in kinds:
        return UsageError(f"'{repo_id}' is not a Hub id", why, "write it as Organisation/Model")
    near = did_you_mean(repo_id.rpartition("/")[2], catalogue_names())
    return ServerError(
        f"cannot reach the Hub for '{repo_id}'",
        why,
        f"give a catalogue name{f' ({near})' if near else ''}, a local folder or a config.json; or unset HF_HUB_OFFLINE, or "
        "set HF_ENDPOINT to a mirror",
    )
