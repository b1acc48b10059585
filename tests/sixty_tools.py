"""Sixty functions, as an agent with twelve servers of tools offers them, and tasks that need one of them each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from adapters.text.backend import TextAdapter
from adapters.text.backend.options import TextOptions
from gateway.core.conversation import Conversation, Json, JsonObject, Text, ToolCall, ToolResult, ToolSpec, Turn
from gateway.core.policy import Policy
from gateway.core.tokens import estimate_text
from gateway.exchange import Exchange

_TEXT: Final[Mapping[str, str]] = {
    "repository": "The repository as owner/name",
    "number": "The number in the address of the page",
    "title": "One line that says what it is about",
    "body": "The text in Markdown",
    "channel": "The channel, without the sign before its name",
    "message": "The text, at most 4000 characters",
    "recipient": "The address of the person, several with commas",
    "start": "The beginning, by RFC 3339",
    "end": "The end, by RFC 3339",
    "path": "The path below the root, without a leading slash",
    "query": "The words to look for",
    "limit": "How many entries at most, from 1 to 100",
    "account": "The customer, beginning with cus_",
    "amount": "The amount in the smallest unit",
    "currency": "Three letters by ISO 4217",
    "statement": "One statement of SQL",
    "table": "The table with its schema",
    "namespace": "The namespace of the cluster",
    "name": "Lower case letters, digits and hyphens",
    "city": "The city, with its country if needed",
    "days": "For how many days, from 1 to 14",
    "place": "An address or two coordinates",
    "language": "Two letters by ISO 639-1",
    "text": "The text as it is",
}
# Of each server: the names, what they do, and their parameters, of which the first is required.
_ROWS: Final[Sequence[tuple[str, str, str]]] = (
    ("github_list_issues", "Lists the open issues of a repository", "repository query limit"),
    ("github_create_issue", "Creates an issue in a repository", "repository title body"),
    ("github_merge_pull_request", "Merges a pull request into its branch", "repository number title"),
    ("github_get_workflow_run", "Shows the state of a run of continuous integration", "repository number limit"),
    ("github_search_code", "Searches source code for an expression", "repository query limit"),
    ("slack_post_message", "Posts a message to a channel of the chat", "channel message title"),
    ("slack_list_channels", "Lists the channels of the workspace", "query limit channel"),
    ("slack_read_thread", "Reads the replies of a thread in the chat", "channel number limit"),
    ("slack_add_reaction", "Adds an emoji as a reaction to a message", "channel number name"),
    ("slack_invite_member", "Invites a person to a channel", "channel recipient message"),
    ("mail_send", "Sends an email with a subject to recipients", "recipient title body"),
    ("mail_search", "Searches the mailbox for emails", "query limit recipient"),
    ("mail_archive", "Archives a conversation of the mailbox", "number query limit"),
    ("mail_create_filter", "Creates a rule that sorts incoming emails", "query name recipient"),
    ("mail_download_attachment", "Saves the attachment of an email as a file", "number path limit"),
    ("calendar_create_event", "Schedules a meeting in the calendar", "title start end"),
    ("calendar_list_events", "Lists the appointments of a period", "start end limit"),
    ("calendar_cancel_event", "Cancels an appointment and tells the guests", "number message recipient"),
    ("calendar_find_free_time", "Finds free slots of several people", "recipient start end"),
    ("calendar_respond_invitation", "Accepts or declines an invitation", "number message recipient"),
    ("drive_upload_file", "Uploads a document to the shared drive", "path name title"),
    ("drive_share_folder", "Shares a folder of the drive with people", "path recipient message"),
    ("drive_convert_to_pdf", "Converts a document to PDF", "path name limit"),
    ("drive_restore_version", "Restores an older version of a document", "path number message"),
    ("drive_empty_trash", "Deletes everything in the trash of the drive", "path limit query"),
    ("stripe_create_invoice", "Creates an invoice for a customer", "account amount currency"),
    ("stripe_refund_payment", "Refunds a payment to the customer", "account amount currency"),
    ("stripe_list_subscriptions", "Lists the subscriptions of a customer", "account limit query"),
    ("stripe_cancel_subscription", "Ends the subscription of a customer", "account number message"),
    ("stripe_get_balance", "Shows the balance of the payment account", "currency account limit"),
    ("postgres_run_query", "Runs a statement of SQL that only reads", "statement limit table"),
    ("postgres_describe_table", "Describes the columns and indexes of a table", "table limit query"),
    ("postgres_explain_plan", "Explains the plan of a slow statement", "statement table limit"),
    ("postgres_list_locks", "Lists the locks that block other transactions", "table limit query"),
    ("postgres_create_backup", "Makes a dump of the database", "name path table"),
    ("kubernetes_list_pods", "Lists the pods of a cluster with their state", "namespace query limit"),
    ("kubernetes_read_logs", "Reads the log of a container", "name namespace limit"),
    ("kubernetes_scale_deployment", "Changes the number of replicas of a deployment", "name number namespace"),
    ("kubernetes_restart_deployment", "Restarts a deployment without an outage", "name namespace message"),
    ("kubernetes_drain_node", "Moves all pods off a node for maintenance", "name namespace limit"),
    ("s3_list_buckets", "Lists the buckets of object storage", "query limit name"),
    ("s3_copy_object", "Copies an object to another bucket", "path name query"),
    ("s3_presign_url", "Makes a temporary link for a download", "path days name"),
    ("s3_set_lifecycle", "Sets after how many days objects expire", "name days path"),
    ("s3_delete_object", "Deletes an object of a bucket for good", "path name message"),
    ("notion_create_page", "Creates a page in the wiki", "title body path"),
    ("notion_query_database", "Queries a database of the wiki", "query limit name"),
    ("notion_append_block", "Appends a paragraph to a page of the wiki", "path text title"),
    ("notion_add_comment", "Comments on a page of the wiki", "path text recipient"),
    ("notion_export_page", "Exports a page of the wiki as Markdown", "path name limit"),
    ("weather_forecast", "Tells the weather forecast of a city", "city days language"),
    ("weather_air_quality", "Tells the air pollution of a city", "city days limit"),
    ("maps_plan_route", "Plans a route between two addresses", "place start query"),
    ("maps_find_restaurant", "Finds restaurants near an address", "place query limit"),
    ("translate_text", "Translates a text into another language", "text language name"),
    ("music_play_song", "Plays a song on the loudspeaker", "query name place"),
    ("music_create_playlist", "Creates a playlist of songs", "name query limit"),
    ("home_set_thermostat", "Sets the temperature of the heating at home", "place number name"),
    ("home_turn_off_lights", "Turns the lights of a room off", "place name message"),
    ("flights_search", "Searches flights between two cities", "city start limit"),
)
_DETAIL: Final = "The result has the entries and a cursor for the next page."
TASKS: Final[Mapping[str, str]] = {
    "List the open issues of the repository octo/cat.": "github_list_issues",
    "Merge pull request 17 of octo/cat.": "github_merge_pull_request",
    "Post the message 'deployed' to the channel releases.": "slack_post_message",
    "Invite anna@example.org to the channel design.": "slack_invite_member",
    "Send an email to bob@example.org that the report is done.": "mail_send",
    "Archive the mailbox conversation 42.": "mail_archive",
    "Schedule a meeting in the calendar, tomorrow at ten.": "calendar_create_event",
    "Find free slots of Anna and Bob next week.": "calendar_find_free_time",
    "Convert the document plans/house.docx to PDF.": "drive_convert_to_pdf",
    "Create an invoice of 50 euro for customer cus_9.": "stripe_create_invoice",
    "Refund the payment of customer cus_9.": "stripe_refund_payment",
    "Describe the columns of the table public.orders.": "postgres_describe_table",
    "Which locks block other transactions?": "postgres_list_locks",
    "List the pods in the namespace shop with their state.": "kubernetes_list_pods",
    "Restart the deployment web without an outage.": "kubernetes_restart_deployment",
    "Make a temporary link for the download of data/a.csv.": "s3_presign_url",
    "Create a page in the wiki about onboarding.": "notion_create_page",
    "What is the weather forecast for Oslo?": "weather_forecast",
    "Translate the text 'good morning' into French.": "translate_text",
    "Turn the lights in the kitchen off.": "home_turn_off_lights",
}


def _schema(parameters: Sequence[str]) -> JsonObject:
    properties: dict[str, Json] = {
        name: {"type": "integer" if name in ("limit", "days") else "string", "description": _TEXT[name]}
        for name in parameters
    }
    return {"type": "object", "properties": properties, "required": [*parameters[:1]]}


def _specs() -> Iterator[ToolSpec]:
    for name, purpose, parameters in _ROWS:
        yield ToolSpec(name, f"{purpose}. {_DETAIL}", _schema(parameters.split()))


SIXTY: Final = tuple(_specs())


ASKED: Final = Turn("user", (Text("What is the weather forecast for Oslo?"),), index=0)
ON_DEMAND: Final = Policy(tool_loading="on_demand", max_tool_results=None, max_history_messages=None)
AT_ONCE: Final = Policy(max_tool_results=None, max_history_messages=None)


def called(name: str, index: int) -> tuple[Turn, Turn]:
    """A call of a function and its result."""
    call = Turn("assistant", (ToolCall(f"c{index}", name, "{}"),), index=index)
    return call, Turn("tool", (ToolResult(f"c{index}", (Text("done"),)),), index=index + 1)


def prompt_tokens(policy: Policy) -> int:
    """The tokens of the prompt that a text backend gets when two of the functions have been used."""
    turns = (ASKED, *called("weather_forecast", 1), *called("mail_send", 3))
    adapter = TextAdapter(TextOptions(wire="llama_cpp"), 1 << 20)
    sent = Exchange(adapter, Conversation(turns, SIXTY, model="m"), policy).request.sent_text
    assert sent is not None and not sent.apart
    return estimate_text(sent.text)


def chat_tools() -> list[Json]:
    """The functions as a client of chat completions offers them."""
    entries: list[dict[str, Json]] = [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)} for tool in SIXTY
    ]
    return [{"type": "function", "function": entry} for entry in entries]
