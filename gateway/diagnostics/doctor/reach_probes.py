"""D20 and D21: whether the backend can be reached, checks the key, and lists the model."""

from typing import Final

from gateway.core.errors import GatewayError
from gateway.diagnostics.doctor.finding import Finding, broken, ok, skipped, todo
from gateway.diagnostics.doctor.probe import Probe, ProbedBackend
from gateway.diagnostics.doctor.question import Question, words_of
from gateway.diagnostics.doctor.requests import SHORT
from gateway.settings import nearest

# A certificate that ends sooner is reported.
SOON_DAYS: Final = 14
_KEY_CODE: Final = "upstream_auth_error"


async def _address(backend: ProbedBackend) -> Finding:
    reached = await backend.reach()
    if not reached.addresses:
        return broken(f"the name {reached.host} has no address", "correct base_url, or the name server", reached.fault)
    return ok(", ".join(one.address for one in reached.addresses))


async def _connection(backend: ProbedBackend) -> Finding:
    reached = await backend.reach()
    faulty = [one for one in reached.addresses if one.fault]
    if len(faulty) == len(reached.addresses):
        reasons = "; ".join(f"{one.address}: {one.fault}" for one in faulty)
        return broken("no connection can be opened", "start the backend, or correct base_url", reasons)
    if reached.fault:
        return broken(
            "no TLS connection can be opened",
            "name the issuer's certificate in tls.ca_file and a client's in tls.cert_file, or correct them",
            reached.fault,
        )
    if faulty:
        return todo(
            f"{faulty[0].address} ({faulty[0].family}) cannot be reached, another address can",
            "each new connection may lose time on it: mend the address or the route",
            faulty[0].fault,
        )
    if reached.expires_days is not None and reached.expires_days < SOON_DAYS:
        return todo(f"the certificate ends in {reached.expires_days} days", "renew the certificate")
    return ok(reached.tls or "without TLS")


async def _key(backend: ProbedBackend) -> Finding:
    settings = backend.settings
    if not settings.credential_variable:
        return await _without_key(backend)
    right = await backend.list_models()
    error = right.error if right.listed else (await backend.ask(SHORT)).error
    if _refuses_key(error):
        return broken(
            f"the key in {settings.credential_variable} is refused",
            "set the variable to a valid key; check api_key_header and api_key_scheme",
            words_of(error),
        )
    wrong = await backend.list_models("wrong")
    if wrong.listed and _refuses_key(wrong.error):
        return ok("the key is accepted, and a wrong one refused")
    # The list may be public where answers are not.
    if (await backend.ask(Question(SHORT.fields, key="wrong"))).error is None:
        return todo(
            "a wrong key gets an answer, too", "the key protects nothing: whoever reaches the backend can use it"
        )
    return ok("the key is accepted, and a wrong one refused")


async def _without_key(backend: ProbedBackend) -> Finding:
    listed = await backend.list_models()
    error = listed.error if listed.listed else (await backend.ask(SHORT)).error
    if _refuses_key(error):
        return broken("it wants a key, and none is configured", "set api_key_env", words_of(error))
    return ok("it wants no key")


def _refuses_key(error: GatewayError | None) -> bool:
    return error is not None and error.code == _KEY_CODE


async def _models(backend: ProbedBackend) -> Finding:
    found = await backend.list_models()
    if not found.listed:
        return skipped("its wire has no list of models")
    if found.error is not None:
        advice = "correct base_url, or name the models in settings.json"
        return todo("the list of models cannot be read", advice, words_of(found.error))
    if not found.names:
        return todo("the list of models is empty", "load a model, or check what the key may use")
    if backend.model and backend.model not in found.names:
        advice = f"correct models.*.name{nearest(backend.model, found.names)}"
        return todo(f"the model {backend.model!r} is not in the list of {len(found.names)}", advice)
    length = next((one.context_length for one in found.models if one.name == backend.model), None)
    if length is None:
        return ok(f"in the list of {len(found.names)}")
    return ok(f"in the list of {len(found.names)}, with a context of {length:,} tokens", {"context_length": length})


PROBES: Final = (
    Probe("D201", "address", "Does the host's name have an address?", _address, 0),
    Probe("D202", "connection", "Can a connection be opened to every address?", _connection, 0, needs=("D201",)),
    Probe("D211", "key", "Is the key accepted, and a wrong one refused?", _key, 2, needs=("D202",)),
    Probe("D212", "models", "Does the list of models have the model?", _models, 0, needs=("D202", "D211")),
)
