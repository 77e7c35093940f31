"""What can be wrong with the endpoint of a model, in words: what happened, and what the one who set it up can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, slots=True)
class Failure:
    """`word`: two or three words; `why`: what happened, without a full stop; `next`: what an admin does about it."""

    word: Any
    why: Any
    next: Any


FAILURES: dict[str, Failure] = {
    "embedding_timeout": Failure(
        _("No answer"),
        _("The embedding model did not answer in time"),
        _("See whether the server is busy or down. If it is only slow, give it more seconds or a smaller batch."),
    ),
    "embedding_unreachable": Failure(
        _("Not reachable"),
        _("The server of the embedding model cannot be reached"),
        _("Check the address and the port, and whether the server is running."),
    ),
    "embedding_rate_limited": Failure(
        _("Too many requests"),
        _("The embedding model asked for a pause: too many requests"),
        _("It goes on by itself after the pause. If it happens often, lower the number of calls at a time or raise your quota."),
    ),
    "embedding_overloaded": Failure(
        _("Server error"),
        _("The server of the embedding model answered with an error of its own"),
        _("Look at the server's log. It is tried again by itself."),
    ),
    "embedding_bad_answer": Failure(
        _("Strange answer"),
        _("The server answered with something that is not a list of embeddings"),
        _("Check that the address is that of an OpenAI-compatible API; it usually ends in /v1."),
    ),
    "embedding_count": Failure(
        _("Vectors missing"),
        _("The embedding model gave fewer or more vectors than it was sent texts"),
        _("A smaller batch often helps; some servers cut a batch without saying so."),
    ),
    "embedding_dimension": Failure(
        _("Wrong size"),
        _("The embedding model gives vectors of another size than before"),
        _("Another model answers under this name. Test it on the page Models, save it, and re-index the knowledge bases that use it."),
    ),
    "embedding_unauthorised": Failure(
        _("Key refused"),
        _("The server refused the API key of the embedding model"),
        _("Enter a valid key on the page Models."),
    ),
    "embedding_model_unknown": Failure(
        _("Unknown model"),
        _("The server does not know this embedding model, or there is no such API at the address"),
        _("Check the name of the model as the server spells it, and the address."),
    ),
    "embedding_refused": Failure(
        _("Text refused"),
        _("The embedding model did not take a text, mostly because it is longer than the model can read"),
        _("Make the passages smaller in the settings of the knowledge base, or choose a model that reads more."),
    ),
    "embedding_address": Failure(
        _("Address refused"),
        _("The address of the embedding model is in a private network, which model endpoints may not reach"),
        _("Ask the operator of the portal to allow it (KB_MODEL_ALLOW), or use a public address."),
    ),
    "embedding_unavailable": Failure(
        _("No vectors"),
        _("The embedding model cannot be used"),
        _("Test it on the page Models; the test says what is wrong."),
    ),
    "secret_unreadable": Failure(
        _("Key unreadable"),
        _("The stored API key cannot be read, because the portal's own keys have changed"),
        _("Enter the API key again on the page Models."),
    ),
}

#: What can be wrong with chat, vision and rerank models; no document waits for these.
CALL_FAILURES: dict[str, Failure] = {
    "model_timeout": Failure(
        _("No answer"),
        _("The model did not answer in time"),
        _("See whether the server is busy or down. If it is only slow, give it more seconds."),
    ),
    "model_unreachable": Failure(
        _("Not reachable"),
        _("The server of the model cannot be reached"),
        _("Check the address and the port, and whether the server is running."),
    ),
    "model_rate_limited": Failure(
        _("Too many requests"),
        _("The server of the model asked for a pause: too many requests"),
        _("Wait a little. If it happens often, lower the number of calls at a time or raise your quota."),
    ),
    "model_overloaded": Failure(
        _("Server error"),
        _("The server of the model answered with an error of its own"),
        _("Look at the server's log, and try again."),
    ),
    "model_bad_answer": Failure(
        _("Strange answer"),
        _("The server answered with something a model of this type does not say"),
        _("Check the type of the model, and that the address is that of an OpenAI-compatible API; it usually ends in /v1."),
    ),
    "model_unauthorised": Failure(
        _("Key refused"),
        _("The server refused the API key of the model"),
        _("Enter a valid key on the page Models."),
    ),
    "model_unknown": Failure(
        _("Unknown model"),
        _("The server does not know this model, or there is no such API at the address"),
        _("Check the name of the model as the server spells it, and the address."),
    ),
    "model_refused": Failure(
        _("Request refused"),
        _("The server did not take the request"),
        _("Check the type of the model: a vision model takes pictures, a rerank model takes texts to compare."),
    ),
    "model_address": Failure(
        _("Address refused"),
        _("The address of the model is in a private network, which model endpoints may not reach"),
        _("Ask the operator of the portal to allow it (KB_MODEL_ALLOW), or use a public address."),
    ),
    "model_unavailable": Failure(
        _("Not usable"),
        _("The model cannot be used"),
        _("Test it on the page Models; the test says what is wrong."),
    ),
}


def failure_of(code: str) -> Failure:
    """The words of a code; those of an unusable model when it is not on the list."""
    if code.startswith("model_"):
        return CALL_FAILURES.get(code, CALL_FAILURES["model_unavailable"])
    return FAILURES.get(code, FAILURES["embedding_unavailable"])
