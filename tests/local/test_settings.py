import msgspec
import pytest

from adapters.openai_chat.client.decode import decode
from gateway.exchange import Exchange
from gateway.local import MODEL, RAW, settings_for_model
from gateway.server.upstream.backends import Backends
from gateway.settings import read_settings


def test_the_settings_can_be_read() -> None:
    settings = read_settings(settings_for_model("http://127.0.0.1:9"))
    assert list(settings.models) == [MODEL, RAW]
    for model in settings.models.values():
        assert settings.backends[model.backend].base_url == "http://127.0.0.1:9"


@pytest.mark.parametrize("model", [MODEL, RAW])
@pytest.mark.parametrize(("asked", "sent"), [(None, 512), (7, 7), (4000, 4000)])
def test_an_answer_without_a_limit_of_its_own_has_one(model: str, asked: int | None, sent: int) -> None:
    route, backend = Backends(read_settings(settings_for_model("http://127.0.0.1:9"))).route(model)
    fields = {} if asked is None else {"max_tokens": asked}
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}], **fields}
    request = Exchange(backend.adapter, decode(msgspec.json.encode(body)), route.policy).request
    said = msgspec.json.decode(request.body)
    assert said["max_tokens" if model == MODEL else "n_predict"] == sent
