from gateway.local import MODEL, RAW, settings_for_model
from gateway.settings import read_settings


def test_the_settings_can_be_read() -> None:
    settings = read_settings(settings_for_model("http://127.0.0.1:9"))
    assert list(settings.models) == [MODEL, RAW]
    for model in settings.models.values():
        assert settings.backends[model.backend].base_url == "http://127.0.0.1:9"
