import json

from openai.types.model import Model

from gateway.core.errors import BackendUnavailable, InvalidRequest
from gateway.dialects.base import ListedModels, ModelInfo
from gateway.dialects.openai_errors import encode_error, encode_error_frame
from gateway.dialects.openai_models import encode_model, encode_models


def test_an_error_answer() -> None:
    error = InvalidRequest("Wrong.", param="messages[1]", extra={"dragoman": {"violations": [{"rule": "X"}]}})
    status, headers, body, media_type = encode_error(error)
    assert (status, headers, media_type) == (400, {}, "application/json")
    assert json.loads(body) == {
        "error": {
            "message": "Wrong.",
            "type": "invalid_request_error",
            "param": "messages[1]",
            "code": "invalid_value",
            "dragoman": {"violations": [{"rule": "X"}]},
        }
    }


def test_headers_of_the_error_are_kept() -> None:
    answer = encode_error(BackendUnavailable("Away.", headers={"retry-after": "7"}))
    assert (answer.status, answer.headers["retry-after"]) == (502, "7")


def test_an_error_frame_has_the_same_shape() -> None:
    error = BackendUnavailable("Away.")
    assert encode_error_frame(error) == b"data: " + encode_error(error).body + b"\n\n"


def test_the_list_of_models_is_what_the_official_client_reads() -> None:
    listing = json.loads(encode_models(ListedModels([ModelInfo("a", 7), ModelInfo("b/c", 7)])))
    assert listing["object"] == "list"
    models = [Model.model_validate(entry) for entry in listing["data"]]
    assert [(model.id, model.created, model.owned_by) for model in models] == [
        ("a", 7, "dragoman"),
        ("b/c", 7, "dragoman"),
    ]
    assert json.loads(encode_model(ModelInfo("a", 7))) == listing["data"][0]
