"""Parameters counted from a config."""

from longreach.model.decoder import Decoder
from longreach.model.spec import ParameterCount


def count_parameters(decoder: Decoder) -> ParameterCount:
    """Embeddings now; the rest by formula of the family."""
    return ParameterCount(total=None, embedding=embedding_parameters(decoder), active=None, certainty="estimate")


def embedding_parameters(decoder: Decoder) -> int:
    """Input embedding plus an untied output head."""
    tied = decoder.root.flag("tie_word_embeddings", "tie_embedding") or decoder.text.flag("tie_word_embeddings")
    return decoder.vocab_size * decoder.hidden_size * (1 if tied else 2)
