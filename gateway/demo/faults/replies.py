"""Lists the faults of the model itself: what it says, which tools it calls, and how."""

import itertools
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from gateway.demo.faults.fault import ALL_WIRES, API_WIRES, CHAT, CONTEXT, Fault, is_long
from gateway.demo.scripted_model.dialogue import Dialogue, Model, PlannedCall, Reply
from gateway.demo.scripted_model.reply import reply

# The wires that can demand a call.
_CHOICE: Final = (*API_WIRES, "grpc")
# The wires whose calls have an id that the backend gives them.
_IDS: Final = (*API_WIRES, "grpc", "agent")
_SEED: Final = ("chat", "gemini", "text")
_LONG: Final = "x" * 60


def _calling(edit: Callable[[int, PlannedCall], PlannedCall]) -> Model:
    """Returns the model with each of its calls edited; the number is the position in the reply."""

    def model(dialogue: Dialogue) -> Reply:
        said = reply(dialogue)
        return msgspec.structs.replace(said, calls=tuple(edit(at, call) for at, call in enumerate(said.calls)))

    return model


def _identified(name: Callable[[int, PlannedCall], str]) -> Model:
    return _calling(lambda at, call: msgspec.structs.replace(call, id=name(at, call)))


def _renamed(_: int, call: PlannedCall) -> PlannedCall:
    return msgspec.structs.replace(call, name=f"functions_{call.name}")


def _one_call(dialogue: Dialogue) -> Reply:
    said = reply(dialogue)
    return msgspec.structs.replace(said, calls=said.calls[:1])


def _ignores_none(dialogue: Dialogue) -> Reply:
    return reply(msgspec.structs.replace(dialogue, choice="auto") if dialogue.choice == "none" else dialogue)


def _ignores_required(dialogue: Dialogue) -> Reply:
    """Replies without a call where one is required, and no tool is named."""
    heedless = dialogue.choice == "required" and dialogue.forced is None
    return reply(msgspec.structs.replace(dialogue, choice="none") if heedless else dialogue)


def _ignores_named(dialogue: Dialogue) -> Reply:
    heedless = dialogue.forced is not None
    return reply(msgspec.structs.replace(dialogue, choice="auto", forced=None) if heedless else dialogue)


def _ignores_results(dialogue: Dialogue) -> Reply:
    return reply(msgspec.structs.replace(dialogue, rounds=()))


def _calls_as_text(dialogue: Dialogue) -> Reply:
    """Writes the calls into the text, as a model without a parser of its calls does."""
    said = reply(dialogue)
    written = [
        f"<tool_call>\n{msgspec.json.encode({'name': call.name, 'arguments': call.arguments}).decode()}\n</tool_call>"
        for call in said.calls
    ]
    return msgspec.structs.replace(said, text="\n".join(filter(None, [said.text, *written])), calls=())


def _thoughts_as_text(dialogue: Dialogue) -> Reply:
    said = reply(msgspec.structs.replace(dialogue, reasoning=True))
    return msgspec.structs.replace(said, text=f"<think>\n{said.reasoning}\n</think>\n\n{said.text}", reasoning="")


def _forgets_beginning(dialogue: Dialogue) -> Reply:
    """Replies to the end of a long question, as a server does that cuts a prompt to its context."""
    kept = " ".join(dialogue.question.split()[-CONTEXT:])
    return reply(msgspec.structs.replace(dialogue, question=kept) if is_long(dialogue.question) else dialogue)


def _silent(_: Dialogue) -> Reply:
    return Reply()


def _forgets_seed() -> Model:
    """Returns a model that ends each text without calls with another number."""
    number = itertools.count(1)

    def model(dialogue: Dialogue) -> Reply:
        said = reply(dialogue)
        return said if said.calls else msgspec.structs.replace(said, text=f"{said.text} (draft {next(number)})")

    return model


def _model(about: str, wires: tuple[str, ...], model: Model) -> Fault[object]:
    return Fault(about, wires=wires, model=model)


REPLIES: Final[Mapping[str, Fault[object]]] = {
    "name_changed": _model("it calls `functions_NAME` instead of the tool NAME", ALL_WIRES, _calling(_renamed)),
    "one_of_two_calls": _model("it makes only the first of several calls", ALL_WIRES, _one_call),
    "ids_too_long": _model(
        "the ids of its calls have more than 64 characters", _IDS, _identified(lambda _, call: call.id + _LONG)
    ),
    "ids_repeated": _model("all its calls have the same id", _IDS, _identified(lambda *_: "call_0")),
    "ids_with_colons": _model(
        "the ids of its calls are `functions.NAME:0`",
        _IDS,
        _identified(lambda at, call: f"functions.{call.name}:{at}"),
    ),
    "ignores_choice_none": _model("it calls tools although `tool_choice` is none", API_WIRES, _ignores_none),
    "ignores_choice_required": _model(
        "it answers with text although `tool_choice` is required", _CHOICE, _ignores_required
    ),
    "ignores_choice_named": _model("it ignores the tool that `tool_choice` names", _CHOICE, _ignores_named),
    "ignores_results": _model("it ignores the results of its calls, and repeats them", ALL_WIRES, _ignores_results),
    "calls_as_text": _model("it writes its calls into its text, as `<tool_call>`", CHAT, _calls_as_text),
    "thoughts_as_text": _model("it writes its thoughts into its text, as `<think>`", CHAT, _thoughts_as_text),
    "empty_answer": _model("its answers are empty", ALL_WIRES, _silent),
    "context_cut": _model(
        f"it reads only the last {CONTEXT} words of a question, without an error", ALL_WIRES, _forgets_beginning
    ),
    "ignores_seed": _model("its answers differ although the seed is the same", _SEED, _forgets_seed()),
}
