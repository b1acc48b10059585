import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AgentType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AGENT_UNKNOWN: _ClassVar[AgentType]
    AGENT_PRIMARY: _ClassVar[AgentType]
    AGENT_CLI: _ClassVar[AgentType]

class AutonomyLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUTONOMY_SUPERVISED: _ClassVar[AutonomyLevel]
    AUTONOMY_UNSUPERVISED: _ClassVar[AutonomyLevel]

class IsolationLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ISOLATION_NONE: _ClassVar[IsolationLevel]
    ISOLATION_SANDBOX: _ClassVar[IsolationLevel]

class ToolType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOOL_RUN_SHELL_COMMAND: _ClassVar[ToolType]
    TOOL_SEARCH_CODEBASE: _ClassVar[ToolType]
    TOOL_READ_FILES: _ClassVar[ToolType]
    TOOL_APPLY_FILE_DIFFS: _ClassVar[ToolType]
    TOOL_SUGGEST_PLAN: _ClassVar[ToolType]
    TOOL_SUGGEST_CREATE_PLAN: _ClassVar[ToolType]
    TOOL_GREP: _ClassVar[ToolType]
    TOOL_FILE_GLOB: _ClassVar[ToolType]
    TOOL_READ_MCP_RESOURCE: _ClassVar[ToolType]
    TOOL_CALL_MCP_TOOL: _ClassVar[ToolType]
    TOOL_WRITE_TO_LONG_RUNNING_SHELL_COMMAND: _ClassVar[ToolType]
    TOOL_SUGGEST_NEW_CONVERSATION: _ClassVar[ToolType]
    TOOL_FILE_GLOB_V2: _ClassVar[ToolType]
    TOOL_SUGGEST_PROMPT: _ClassVar[ToolType]
    TOOL_OPEN_CODE_REVIEW: _ClassVar[ToolType]
    TOOL_INIT_PROJECT: _ClassVar[ToolType]
    TOOL_SUBAGENT: _ClassVar[ToolType]
    TOOL_READ_DOCUMENTS: _ClassVar[ToolType]
    TOOL_EDIT_DOCUMENTS: _ClassVar[ToolType]
    TOOL_CREATE_DOCUMENTS: _ClassVar[ToolType]
    TOOL_READ_SHELL_COMMAND_OUTPUT: _ClassVar[ToolType]
    TOOL_USE_COMPUTER: _ClassVar[ToolType]
    TOOL_INSERT_REVIEW_COMMENTS: _ClassVar[ToolType]
    TOOL_READ_SKILL: _ClassVar[ToolType]
    TOOL_REQUEST_COMPUTER_USE: _ClassVar[ToolType]
    TOOL_FETCH_CONVERSATION: _ClassVar[ToolType]
    TOOL_SEND_MESSAGE_TO_AGENT: _ClassVar[ToolType]
    TOOL_TRANSFER_SHELL_COMMAND_CONTROL_TO_USER: _ClassVar[ToolType]
    TOOL_ASK_USER_QUESTION: _ClassVar[ToolType]
    TOOL_UPLOAD_FILE_ARTIFACT: _ClassVar[ToolType]
    TOOL_RUN_AGENTS: _ClassVar[ToolType]
    TOOL_WAIT_FOR_EVENTS: _ClassVar[ToolType]
    TOOL_START_RECORDING: _ClassVar[ToolType]
    TOOL_STOP_RECORDING: _ClassVar[ToolType]

class DocumentType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DOCUMENT_WORKFLOW: _ClassVar[DocumentType]
    DOCUMENT_NOTEBOOK: _ClassVar[DocumentType]
    DOCUMENT_ENVIRONMENT_VARIABLES: _ClassVar[DocumentType]
    DOCUMENT_RULE: _ClassVar[DocumentType]
    DOCUMENT_WARP_DOCUMENTATION: _ClassVar[DocumentType]
    DOCUMENT_WEB_PAGE: _ClassVar[DocumentType]
    DOCUMENT_UNKNOWN: _ClassVar[DocumentType]

class RiskCategory(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RISK_CATEGORY_UNSPECIFIED: _ClassVar[RiskCategory]
    RISK_CATEGORY_READ_ONLY: _ClassVar[RiskCategory]
    RISK_CATEGORY_TRIVIAL_LOCAL_CHANGE: _ClassVar[RiskCategory]
    RISK_CATEGORY_NONTRIVIAL_LOCAL_CHANGE: _ClassVar[RiskCategory]
    RISK_CATEGORY_EXTERNAL_CHANGE: _ClassVar[RiskCategory]
    RISK_CATEGORY_RISKY: _ClassVar[RiskCategory]

class LLMProvider(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROVIDER_UNKNOWN: _ClassVar[LLMProvider]
    PROVIDER_ANTHROPIC: _ClassVar[LLMProvider]
    PROVIDER_OPENAI: _ClassVar[LLMProvider]
    PROVIDER_GOOGLE: _ClassVar[LLMProvider]
    PROVIDER_XAI: _ClassVar[LLMProvider]
    PROVIDER_OPEN_ROUTER: _ClassVar[LLMProvider]
    PROVIDER_AWS_BEDROCK: _ClassVar[LLMProvider]
    PROVIDER_GEMINI_ENTERPRISE: _ClassVar[LLMProvider]
AGENT_UNKNOWN: AgentType
AGENT_PRIMARY: AgentType
AGENT_CLI: AgentType
AUTONOMY_SUPERVISED: AutonomyLevel
AUTONOMY_UNSUPERVISED: AutonomyLevel
ISOLATION_NONE: IsolationLevel
ISOLATION_SANDBOX: IsolationLevel
TOOL_RUN_SHELL_COMMAND: ToolType
TOOL_SEARCH_CODEBASE: ToolType
TOOL_READ_FILES: ToolType
TOOL_APPLY_FILE_DIFFS: ToolType
TOOL_SUGGEST_PLAN: ToolType
TOOL_SUGGEST_CREATE_PLAN: ToolType
TOOL_GREP: ToolType
TOOL_FILE_GLOB: ToolType
TOOL_READ_MCP_RESOURCE: ToolType
TOOL_CALL_MCP_TOOL: ToolType
TOOL_WRITE_TO_LONG_RUNNING_SHELL_COMMAND: ToolType
TOOL_SUGGEST_NEW_CONVERSATION: ToolType
TOOL_FILE_GLOB_V2: ToolType
TOOL_SUGGEST_PROMPT: ToolType
TOOL_OPEN_CODE_REVIEW: ToolType
TOOL_INIT_PROJECT: ToolType
TOOL_SUBAGENT: ToolType
TOOL_READ_DOCUMENTS: ToolType
TOOL_EDIT_DOCUMENTS: ToolType
TOOL_CREATE_DOCUMENTS: ToolType
TOOL_READ_SHELL_COMMAND_OUTPUT: ToolType
TOOL_USE_COMPUTER: ToolType
TOOL_INSERT_REVIEW_COMMENTS: ToolType
TOOL_READ_SKILL: ToolType
TOOL_REQUEST_COMPUTER_USE: ToolType
TOOL_FETCH_CONVERSATION: ToolType
TOOL_SEND_MESSAGE_TO_AGENT: ToolType
TOOL_TRANSFER_SHELL_COMMAND_CONTROL_TO_USER: ToolType
TOOL_ASK_USER_QUESTION: ToolType
TOOL_UPLOAD_FILE_ARTIFACT: ToolType
TOOL_RUN_AGENTS: ToolType
TOOL_WAIT_FOR_EVENTS: ToolType
TOOL_START_RECORDING: ToolType
TOOL_STOP_RECORDING: ToolType
DOCUMENT_WORKFLOW: DocumentType
DOCUMENT_NOTEBOOK: DocumentType
DOCUMENT_ENVIRONMENT_VARIABLES: DocumentType
DOCUMENT_RULE: DocumentType
DOCUMENT_WARP_DOCUMENTATION: DocumentType
DOCUMENT_WEB_PAGE: DocumentType
DOCUMENT_UNKNOWN: DocumentType
RISK_CATEGORY_UNSPECIFIED: RiskCategory
RISK_CATEGORY_READ_ONLY: RiskCategory
RISK_CATEGORY_TRIVIAL_LOCAL_CHANGE: RiskCategory
RISK_CATEGORY_NONTRIVIAL_LOCAL_CHANGE: RiskCategory
RISK_CATEGORY_EXTERNAL_CHANGE: RiskCategory
RISK_CATEGORY_RISKY: RiskCategory
PROVIDER_UNKNOWN: LLMProvider
PROVIDER_ANTHROPIC: LLMProvider
PROVIDER_OPENAI: LLMProvider
PROVIDER_GOOGLE: LLMProvider
PROVIDER_XAI: LLMProvider
PROVIDER_OPEN_ROUTER: LLMProvider
PROVIDER_AWS_BEDROCK: LLMProvider
PROVIDER_GEMINI_ENTERPRISE: LLMProvider

class NotRead(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Request(_message.Message):
    __slots__ = ("task_context", "input", "settings", "metadata", "existing_suggestions", "mcp_context")
    TASK_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    EXISTING_SUGGESTIONS_FIELD_NUMBER: _ClassVar[int]
    MCP_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    task_context: TaskContext
    input: Input
    settings: Settings
    metadata: Metadata
    existing_suggestions: NotRead
    mcp_context: MCPContext
    def __init__(self, task_context: _Optional[_Union[TaskContext, _Mapping]] = ..., input: _Optional[_Union[Input, _Mapping]] = ..., settings: _Optional[_Union[Settings, _Mapping]] = ..., metadata: _Optional[_Union[Metadata, _Mapping]] = ..., existing_suggestions: _Optional[_Union[NotRead, _Mapping]] = ..., mcp_context: _Optional[_Union[MCPContext, _Mapping]] = ...) -> None: ...

class TaskContext(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    def __init__(self, tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ...) -> None: ...

class Metadata(_message.Message):
    __slots__ = ("conversation_id", "logging", "ambient_agent_task_id", "forked_from_conversation_id", "parent_agent_id", "agent_name")
    class LoggingEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _struct_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...
    CONVERSATION_ID_FIELD_NUMBER: _ClassVar[int]
    LOGGING_FIELD_NUMBER: _ClassVar[int]
    AMBIENT_AGENT_TASK_ID_FIELD_NUMBER: _ClassVar[int]
    FORKED_FROM_CONVERSATION_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_NAME_FIELD_NUMBER: _ClassVar[int]
    conversation_id: str
    logging: _containers.MessageMap[str, _struct_pb2.Value]
    ambient_agent_task_id: str
    forked_from_conversation_id: str
    parent_agent_id: str
    agent_name: str
    def __init__(self, conversation_id: _Optional[str] = ..., logging: _Optional[_Mapping[str, _struct_pb2.Value]] = ..., ambient_agent_task_id: _Optional[str] = ..., forked_from_conversation_id: _Optional[str] = ..., parent_agent_id: _Optional[str] = ..., agent_name: _Optional[str] = ...) -> None: ...

class Input(_message.Message):
    __slots__ = ("context", "user_query", "tool_call_result", "query_with_canned_response", "auto_code_diff_query", "user_inputs", "resume_conversation", "init_project_rules", "generate_passive_suggestions", "create_new_project", "clone_repository", "code_review", "summarize_conversation", "create_environment", "fetch_review_comments", "start_from_ambient_run_prompt", "invoke_skill")
    class UserInputs(_message.Message):
        __slots__ = ("inputs",)
        INPUTS_FIELD_NUMBER: _ClassVar[int]
        inputs: _containers.RepeatedCompositeFieldContainer[Input.UserInput]
        def __init__(self, inputs: _Optional[_Iterable[_Union[Input.UserInput, _Mapping]]] = ...) -> None: ...
    class UserInput(_message.Message):
        __slots__ = ("user_query", "tool_call_result", "cli_agent_user_query", "messages_received_from_agents", "events_from_agents", "passive_suggestion_result", "orchestration_config_update", "conversation_handoff")
        USER_QUERY_FIELD_NUMBER: _ClassVar[int]
        TOOL_CALL_RESULT_FIELD_NUMBER: _ClassVar[int]
        CLI_AGENT_USER_QUERY_FIELD_NUMBER: _ClassVar[int]
        MESSAGES_RECEIVED_FROM_AGENTS_FIELD_NUMBER: _ClassVar[int]
        EVENTS_FROM_AGENTS_FIELD_NUMBER: _ClassVar[int]
        PASSIVE_SUGGESTION_RESULT_FIELD_NUMBER: _ClassVar[int]
        ORCHESTRATION_CONFIG_UPDATE_FIELD_NUMBER: _ClassVar[int]
        CONVERSATION_HANDOFF_FIELD_NUMBER: _ClassVar[int]
        user_query: Input.UserQuery
        tool_call_result: Input.ToolCallResult
        cli_agent_user_query: NotRead
        messages_received_from_agents: NotRead
        events_from_agents: NotRead
        passive_suggestion_result: NotRead
        orchestration_config_update: NotRead
        conversation_handoff: NotRead
        def __init__(self, user_query: _Optional[_Union[Input.UserQuery, _Mapping]] = ..., tool_call_result: _Optional[_Union[Input.ToolCallResult, _Mapping]] = ..., cli_agent_user_query: _Optional[_Union[NotRead, _Mapping]] = ..., messages_received_from_agents: _Optional[_Union[NotRead, _Mapping]] = ..., events_from_agents: _Optional[_Union[NotRead, _Mapping]] = ..., passive_suggestion_result: _Optional[_Union[NotRead, _Mapping]] = ..., orchestration_config_update: _Optional[_Union[NotRead, _Mapping]] = ..., conversation_handoff: _Optional[_Union[NotRead, _Mapping]] = ...) -> None: ...
    class UserQuery(_message.Message):
        __slots__ = ("query", "referenced_attachments", "mode", "intended_agent")
        class ReferencedAttachmentsEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: Attachment
            def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Attachment, _Mapping]] = ...) -> None: ...
        QUERY_FIELD_NUMBER: _ClassVar[int]
        REFERENCED_ATTACHMENTS_FIELD_NUMBER: _ClassVar[int]
        MODE_FIELD_NUMBER: _ClassVar[int]
        INTENDED_AGENT_FIELD_NUMBER: _ClassVar[int]
        query: str
        referenced_attachments: _containers.MessageMap[str, Attachment]
        mode: UserQueryMode
        intended_agent: AgentType
        def __init__(self, query: _Optional[str] = ..., referenced_attachments: _Optional[_Mapping[str, Attachment]] = ..., mode: _Optional[_Union[UserQueryMode, _Mapping]] = ..., intended_agent: _Optional[_Union[AgentType, str]] = ...) -> None: ...
    class ToolCallResult(_message.Message):
        __slots__ = ("tool_call_id", "run_shell_command", "read_files", "search_codebase", "apply_file_diffs", "suggest_plan", "suggest_create_plan", "grep", "file_glob", "read_mcp_resource", "call_mcp_tool", "write_to_long_running_shell_command", "suggest_new_conversation", "file_glob_v2", "suggest_prompt", "open_code_review", "init_project", "read_documents", "edit_documents", "create_documents", "read_shell_command_output", "use_computer", "insert_review_comments", "request_computer_use", "read_skill", "fetch_conversation", "send_message_to_agent", "transfer_shell_command_control_to_user", "ask_user_question", "upload_file_artifact", "run_agents_result", "wait_for_events", "start_recording", "stop_recording")
        TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
        RUN_SHELL_COMMAND_FIELD_NUMBER: _ClassVar[int]
        READ_FILES_FIELD_NUMBER: _ClassVar[int]
        SEARCH_CODEBASE_FIELD_NUMBER: _ClassVar[int]
        APPLY_FILE_DIFFS_FIELD_NUMBER: _ClassVar[int]
        SUGGEST_PLAN_FIELD_NUMBER: _ClassVar[int]
        SUGGEST_CREATE_PLAN_FIELD_NUMBER: _ClassVar[int]
        GREP_FIELD_NUMBER: _ClassVar[int]
        FILE_GLOB_FIELD_NUMBER: _ClassVar[int]
        READ_MCP_RESOURCE_FIELD_NUMBER: _ClassVar[int]
        CALL_MCP_TOOL_FIELD_NUMBER: _ClassVar[int]
        WRITE_TO_LONG_RUNNING_SHELL_COMMAND_FIELD_NUMBER: _ClassVar[int]
        SUGGEST_NEW_CONVERSATION_FIELD_NUMBER: _ClassVar[int]
        FILE_GLOB_V2_FIELD_NUMBER: _ClassVar[int]
        SUGGEST_PROMPT_FIELD_NUMBER: _ClassVar[int]
        OPEN_CODE_REVIEW_FIELD_NUMBER: _ClassVar[int]
        INIT_PROJECT_FIELD_NUMBER: _ClassVar[int]
        READ_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
        EDIT_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
        CREATE_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
        READ_SHELL_COMMAND_OUTPUT_FIELD_NUMBER: _ClassVar[int]
        USE_COMPUTER_FIELD_NUMBER: _ClassVar[int]
        INSERT_REVIEW_COMMENTS_FIELD_NUMBER: _ClassVar[int]
        REQUEST_COMPUTER_USE_FIELD_NUMBER: _ClassVar[int]
        READ_SKILL_FIELD_NUMBER: _ClassVar[int]
        FETCH_CONVERSATION_FIELD_NUMBER: _ClassVar[int]
        SEND_MESSAGE_TO_AGENT_FIELD_NUMBER: _ClassVar[int]
        TRANSFER_SHELL_COMMAND_CONTROL_TO_USER_FIELD_NUMBER: _ClassVar[int]
        ASK_USER_QUESTION_FIELD_NUMBER: _ClassVar[int]
        UPLOAD_FILE_ARTIFACT_FIELD_NUMBER: _ClassVar[int]
        RUN_AGENTS_RESULT_FIELD_NUMBER: _ClassVar[int]
        WAIT_FOR_EVENTS_FIELD_NUMBER: _ClassVar[int]
        START_RECORDING_FIELD_NUMBER: _ClassVar[int]
        STOP_RECORDING_FIELD_NUMBER: _ClassVar[int]
        tool_call_id: str
        run_shell_command: NotRead
        read_files: NotRead
        search_codebase: NotRead
        apply_file_diffs: NotRead
        suggest_plan: NotRead
        suggest_create_plan: NotRead
        grep: NotRead
        file_glob: NotRead
        read_mcp_resource: NotRead
        call_mcp_tool: CallMCPToolResult
        write_to_long_running_shell_command: NotRead
        suggest_new_conversation: NotRead
        file_glob_v2: NotRead
        suggest_prompt: NotRead
        open_code_review: NotRead
        init_project: NotRead
        read_documents: NotRead
        edit_documents: NotRead
        create_documents: NotRead
        read_shell_command_output: NotRead
        use_computer: NotRead
        insert_review_comments: NotRead
        request_computer_use: NotRead
        read_skill: NotRead
        fetch_conversation: NotRead
        send_message_to_agent: NotRead
        transfer_shell_command_control_to_user: NotRead
        ask_user_question: NotRead
        upload_file_artifact: NotRead
        run_agents_result: NotRead
        wait_for_events: NotRead
        start_recording: NotRead
        stop_recording: NotRead
        def __init__(self, tool_call_id: _Optional[str] = ..., run_shell_command: _Optional[_Union[NotRead, _Mapping]] = ..., read_files: _Optional[_Union[NotRead, _Mapping]] = ..., search_codebase: _Optional[_Union[NotRead, _Mapping]] = ..., apply_file_diffs: _Optional[_Union[NotRead, _Mapping]] = ..., suggest_plan: _Optional[_Union[NotRead, _Mapping]] = ..., suggest_create_plan: _Optional[_Union[NotRead, _Mapping]] = ..., grep: _Optional[_Union[NotRead, _Mapping]] = ..., file_glob: _Optional[_Union[NotRead, _Mapping]] = ..., read_mcp_resource: _Optional[_Union[NotRead, _Mapping]] = ..., call_mcp_tool: _Optional[_Union[CallMCPToolResult, _Mapping]] = ..., write_to_long_running_shell_command: _Optional[_Union[NotRead, _Mapping]] = ..., suggest_new_conversation: _Optional[_Union[NotRead, _Mapping]] = ..., file_glob_v2: _Optional[_Union[NotRead, _Mapping]] = ..., suggest_prompt: _Optional[_Union[NotRead, _Mapping]] = ..., open_code_review: _Optional[_Union[NotRead, _Mapping]] = ..., init_project: _Optional[_Union[NotRead, _Mapping]] = ..., read_documents: _Optional[_Union[NotRead, _Mapping]] = ..., edit_documents: _Optional[_Union[NotRead, _Mapping]] = ..., create_documents: _Optional[_Union[NotRead, _Mapping]] = ..., read_shell_command_output: _Optional[_Union[NotRead, _Mapping]] = ..., use_computer: _Optional[_Union[NotRead, _Mapping]] = ..., insert_review_comments: _Optional[_Union[NotRead, _Mapping]] = ..., request_computer_use: _Optional[_Union[NotRead, _Mapping]] = ..., read_skill: _Optional[_Union[NotRead, _Mapping]] = ..., fetch_conversation: _Optional[_Union[NotRead, _Mapping]] = ..., send_message_to_agent: _Optional[_Union[NotRead, _Mapping]] = ..., transfer_shell_command_control_to_user: _Optional[_Union[NotRead, _Mapping]] = ..., ask_user_question: _Optional[_Union[NotRead, _Mapping]] = ..., upload_file_artifact: _Optional[_Union[NotRead, _Mapping]] = ..., run_agents_result: _Optional[_Union[NotRead, _Mapping]] = ..., wait_for_events: _Optional[_Union[NotRead, _Mapping]] = ..., start_recording: _Optional[_Union[NotRead, _Mapping]] = ..., stop_recording: _Optional[_Union[NotRead, _Mapping]] = ...) -> None: ...
    class ResumeConversation(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    USER_QUERY_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_RESULT_FIELD_NUMBER: _ClassVar[int]
    QUERY_WITH_CANNED_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    AUTO_CODE_DIFF_QUERY_FIELD_NUMBER: _ClassVar[int]
    USER_INPUTS_FIELD_NUMBER: _ClassVar[int]
    RESUME_CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    INIT_PROJECT_RULES_FIELD_NUMBER: _ClassVar[int]
    GENERATE_PASSIVE_SUGGESTIONS_FIELD_NUMBER: _ClassVar[int]
    CREATE_NEW_PROJECT_FIELD_NUMBER: _ClassVar[int]
    CLONE_REPOSITORY_FIELD_NUMBER: _ClassVar[int]
    CODE_REVIEW_FIELD_NUMBER: _ClassVar[int]
    SUMMARIZE_CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    CREATE_ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    FETCH_REVIEW_COMMENTS_FIELD_NUMBER: _ClassVar[int]
    START_FROM_AMBIENT_RUN_PROMPT_FIELD_NUMBER: _ClassVar[int]
    INVOKE_SKILL_FIELD_NUMBER: _ClassVar[int]
    context: InputContext
    user_query: NotRead
    tool_call_result: NotRead
    query_with_canned_response: NotRead
    auto_code_diff_query: NotRead
    user_inputs: Input.UserInputs
    resume_conversation: Input.ResumeConversation
    init_project_rules: NotRead
    generate_passive_suggestions: NotRead
    create_new_project: NotRead
    clone_repository: NotRead
    code_review: NotRead
    summarize_conversation: NotRead
    create_environment: NotRead
    fetch_review_comments: NotRead
    start_from_ambient_run_prompt: NotRead
    invoke_skill: NotRead
    def __init__(self, context: _Optional[_Union[InputContext, _Mapping]] = ..., user_query: _Optional[_Union[NotRead, _Mapping]] = ..., tool_call_result: _Optional[_Union[NotRead, _Mapping]] = ..., query_with_canned_response: _Optional[_Union[NotRead, _Mapping]] = ..., auto_code_diff_query: _Optional[_Union[NotRead, _Mapping]] = ..., user_inputs: _Optional[_Union[Input.UserInputs, _Mapping]] = ..., resume_conversation: _Optional[_Union[Input.ResumeConversation, _Mapping]] = ..., init_project_rules: _Optional[_Union[NotRead, _Mapping]] = ..., generate_passive_suggestions: _Optional[_Union[NotRead, _Mapping]] = ..., create_new_project: _Optional[_Union[NotRead, _Mapping]] = ..., clone_repository: _Optional[_Union[NotRead, _Mapping]] = ..., code_review: _Optional[_Union[NotRead, _Mapping]] = ..., summarize_conversation: _Optional[_Union[NotRead, _Mapping]] = ..., create_environment: _Optional[_Union[NotRead, _Mapping]] = ..., fetch_review_comments: _Optional[_Union[NotRead, _Mapping]] = ..., start_from_ambient_run_prompt: _Optional[_Union[NotRead, _Mapping]] = ..., invoke_skill: _Optional[_Union[NotRead, _Mapping]] = ...) -> None: ...

class UserQueryMode(_message.Message):
    __slots__ = ("plan", "orchestrate")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    ORCHESTRATE_FIELD_NUMBER: _ClassVar[int]
    plan: _empty_pb2.Empty
    orchestrate: _empty_pb2.Empty
    def __init__(self, plan: _Optional[_Union[_empty_pb2.Empty, _Mapping]] = ..., orchestrate: _Optional[_Union[_empty_pb2.Empty, _Mapping]] = ...) -> None: ...

class CallMCPToolResult(_message.Message):
    __slots__ = ("success", "error")
    class Success(_message.Message):
        __slots__ = ("results",)
        RESULTS_FIELD_NUMBER: _ClassVar[int]
        results: _containers.RepeatedCompositeFieldContainer[CallMCPToolResult.Result]
        def __init__(self, results: _Optional[_Iterable[_Union[CallMCPToolResult.Result, _Mapping]]] = ...) -> None: ...
    class Error(_message.Message):
        __slots__ = ("message",)
        MESSAGE_FIELD_NUMBER: _ClassVar[int]
        message: str
        def __init__(self, message: _Optional[str] = ...) -> None: ...
    class Result(_message.Message):
        __slots__ = ("text", "image", "resource")
        TEXT_FIELD_NUMBER: _ClassVar[int]
        IMAGE_FIELD_NUMBER: _ClassVar[int]
        RESOURCE_FIELD_NUMBER: _ClassVar[int]
        text: CallMCPToolResult.TextResult
        image: CallMCPToolResult.ImageResult
        resource: MCPResourceContent
        def __init__(self, text: _Optional[_Union[CallMCPToolResult.TextResult, _Mapping]] = ..., image: _Optional[_Union[CallMCPToolResult.ImageResult, _Mapping]] = ..., resource: _Optional[_Union[MCPResourceContent, _Mapping]] = ...) -> None: ...
    class TextResult(_message.Message):
        __slots__ = ("text",)
        TEXT_FIELD_NUMBER: _ClassVar[int]
        text: str
        def __init__(self, text: _Optional[str] = ...) -> None: ...
    class ImageResult(_message.Message):
        __slots__ = ("data", "mime_type")
        DATA_FIELD_NUMBER: _ClassVar[int]
        MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
        data: bytes
        mime_type: str
        def __init__(self, data: _Optional[bytes] = ..., mime_type: _Optional[str] = ...) -> None: ...
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    success: CallMCPToolResult.Success
    error: CallMCPToolResult.Error
    def __init__(self, success: _Optional[_Union[CallMCPToolResult.Success, _Mapping]] = ..., error: _Optional[_Union[CallMCPToolResult.Error, _Mapping]] = ...) -> None: ...

class MCPResourceContent(_message.Message):
    __slots__ = ("uri", "text", "binary")
    class TextContent(_message.Message):
        __slots__ = ("content", "mime_type")
        CONTENT_FIELD_NUMBER: _ClassVar[int]
        MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
        content: str
        mime_type: str
        def __init__(self, content: _Optional[str] = ..., mime_type: _Optional[str] = ...) -> None: ...
    class BinaryContent(_message.Message):
        __slots__ = ("data", "mime_type")
        DATA_FIELD_NUMBER: _ClassVar[int]
        MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
        data: bytes
        mime_type: str
        def __init__(self, data: _Optional[bytes] = ..., mime_type: _Optional[str] = ...) -> None: ...
    URI_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BINARY_FIELD_NUMBER: _ClassVar[int]
    uri: str
    text: MCPResourceContent.TextContent
    binary: MCPResourceContent.BinaryContent
    def __init__(self, uri: _Optional[str] = ..., text: _Optional[_Union[MCPResourceContent.TextContent, _Mapping]] = ..., binary: _Optional[_Union[MCPResourceContent.BinaryContent, _Mapping]] = ...) -> None: ...

class InputContext(_message.Message):
    __slots__ = ("directory", "operating_system", "shell", "current_time", "executed_shell_commands", "selected_text", "images", "codebases", "files", "project_rules", "git", "updated_skills_context", "updated_lsp_servers_context")
    class Directory(_message.Message):
        __slots__ = ("pwd", "home", "pwd_file_symbols_indexed")
        PWD_FIELD_NUMBER: _ClassVar[int]
        HOME_FIELD_NUMBER: _ClassVar[int]
        PWD_FILE_SYMBOLS_INDEXED_FIELD_NUMBER: _ClassVar[int]
        pwd: str
        home: str
        pwd_file_symbols_indexed: bool
        def __init__(self, pwd: _Optional[str] = ..., home: _Optional[str] = ..., pwd_file_symbols_indexed: bool = ...) -> None: ...
    class OperatingSystem(_message.Message):
        __slots__ = ("platform", "distribution")
        PLATFORM_FIELD_NUMBER: _ClassVar[int]
        DISTRIBUTION_FIELD_NUMBER: _ClassVar[int]
        platform: str
        distribution: str
        def __init__(self, platform: _Optional[str] = ..., distribution: _Optional[str] = ...) -> None: ...
    class Shell(_message.Message):
        __slots__ = ("name", "version")
        NAME_FIELD_NUMBER: _ClassVar[int]
        VERSION_FIELD_NUMBER: _ClassVar[int]
        name: str
        version: str
        def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...
    class Image(_message.Message):
        __slots__ = ("data", "mime_type")
        DATA_FIELD_NUMBER: _ClassVar[int]
        MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
        data: bytes
        mime_type: str
        def __init__(self, data: _Optional[bytes] = ..., mime_type: _Optional[str] = ...) -> None: ...
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    OPERATING_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    SHELL_FIELD_NUMBER: _ClassVar[int]
    CURRENT_TIME_FIELD_NUMBER: _ClassVar[int]
    EXECUTED_SHELL_COMMANDS_FIELD_NUMBER: _ClassVar[int]
    SELECTED_TEXT_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    CODEBASES_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    PROJECT_RULES_FIELD_NUMBER: _ClassVar[int]
    GIT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_SKILLS_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_LSP_SERVERS_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    directory: InputContext.Directory
    operating_system: InputContext.OperatingSystem
    shell: InputContext.Shell
    current_time: _timestamp_pb2.Timestamp
    executed_shell_commands: _containers.RepeatedCompositeFieldContainer[NotRead]
    selected_text: _containers.RepeatedCompositeFieldContainer[NotRead]
    images: _containers.RepeatedCompositeFieldContainer[InputContext.Image]
    codebases: _containers.RepeatedCompositeFieldContainer[NotRead]
    files: _containers.RepeatedCompositeFieldContainer[NotRead]
    project_rules: _containers.RepeatedCompositeFieldContainer[NotRead]
    git: NotRead
    updated_skills_context: NotRead
    updated_lsp_servers_context: NotRead
    def __init__(self, directory: _Optional[_Union[InputContext.Directory, _Mapping]] = ..., operating_system: _Optional[_Union[InputContext.OperatingSystem, _Mapping]] = ..., shell: _Optional[_Union[InputContext.Shell, _Mapping]] = ..., current_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., executed_shell_commands: _Optional[_Iterable[_Union[NotRead, _Mapping]]] = ..., selected_text: _Optional[_Iterable[_Union[NotRead, _Mapping]]] = ..., images: _Optional[_Iterable[_Union[InputContext.Image, _Mapping]]] = ..., codebases: _Optional[_Iterable[_Union[NotRead, _Mapping]]] = ..., files: _Optional[_Iterable[_Union[NotRead, _Mapping]]] = ..., project_rules: _Optional[_Iterable[_Union[NotRead, _Mapping]]] = ..., git: _Optional[_Union[NotRead, _Mapping]] = ..., updated_skills_context: _Optional[_Union[NotRead, _Mapping]] = ..., updated_lsp_servers_context: _Optional[_Union[NotRead, _Mapping]] = ...) -> None: ...

class Attachment(_message.Message):
    __slots__ = ("plain_text", "executed_shell_command", "running_shell_command", "drive_object", "diff_hunk", "diff_set", "document_content", "file_path_reference")
    PLAIN_TEXT_FIELD_NUMBER: _ClassVar[int]
    EXECUTED_SHELL_COMMAND_FIELD_NUMBER: _ClassVar[int]
    RUNNING_SHELL_COMMAND_FIELD_NUMBER: _ClassVar[int]
    DRIVE_OBJECT_FIELD_NUMBER: _ClassVar[int]
    DIFF_HUNK_FIELD_NUMBER: _ClassVar[int]
    DIFF_SET_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_CONTENT_FIELD_NUMBER: _ClassVar[int]
    FILE_PATH_REFERENCE_FIELD_NUMBER: _ClassVar[int]
    plain_text: str
    executed_shell_command: NotRead
    running_shell_command: NotRead
    drive_object: NotRead
    diff_hunk: NotRead
    diff_set: NotRead
    document_content: NotRead
    file_path_reference: NotRead
    def __init__(self, plain_text: _Optional[str] = ..., executed_shell_command: _Optional[_Union[NotRead, _Mapping]] = ..., running_shell_command: _Optional[_Union[NotRead, _Mapping]] = ..., drive_object: _Optional[_Union[NotRead, _Mapping]] = ..., diff_hunk: _Optional[_Union[NotRead, _Mapping]] = ..., diff_set: _Optional[_Union[NotRead, _Mapping]] = ..., document_content: _Optional[_Union[NotRead, _Mapping]] = ..., file_path_reference: _Optional[_Union[NotRead, _Mapping]] = ...) -> None: ...

class Settings(_message.Message):
    __slots__ = ("model_config", "rules_enabled", "web_context_retrieval_enabled", "supports_parallel_tool_calls", "use_anthropic_text_editor_tools", "planning_enabled", "warp_drive_context_enabled", "supports_create_files", "supported_tools", "supports_long_running_commands", "should_preserve_file_content_in_history", "supports_todos_ui", "supports_linked_code_blocks", "supports_started_child_task_message", "supports_suggest_prompt", "supports_read_image_files", "supports_reasoning_message", "api_keys", "autonomy_level", "isolation_level", "web_search_enabled", "supported_cli_agent_tools", "supports_v4a_file_diffs", "supports_summarization_via_message_replacement", "supports_bundled_skills", "supports_research_agent", "supports_orchestration_v2", "custom_model_providers", "supports_background_computer_use", "custom_model_routers", "supports_orchestration_runners")
    class ModelConfig(_message.Message):
        __slots__ = ("base", "planning", "coding", "cli_agent", "computer_use_agent", "base_model_context_window_limit")
        BASE_FIELD_NUMBER: _ClassVar[int]
        PLANNING_FIELD_NUMBER: _ClassVar[int]
        CODING_FIELD_NUMBER: _ClassVar[int]
        CLI_AGENT_FIELD_NUMBER: _ClassVar[int]
        COMPUTER_USE_AGENT_FIELD_NUMBER: _ClassVar[int]
        BASE_MODEL_CONTEXT_WINDOW_LIMIT_FIELD_NUMBER: _ClassVar[int]
        base: str
        planning: str
        coding: str
        cli_agent: str
        computer_use_agent: str
        base_model_context_window_limit: int
        def __init__(self, base: _Optional[str] = ..., planning: _Optional[str] = ..., coding: _Optional[str] = ..., cli_agent: _Optional[str] = ..., computer_use_agent: _Optional[str] = ..., base_model_context_window_limit: _Optional[int] = ...) -> None: ...
    MODEL_CONFIG_FIELD_NUMBER: _ClassVar[int]
    RULES_ENABLED_FIELD_NUMBER: _ClassVar[int]
    WEB_CONTEXT_RETRIEVAL_ENABLED_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_PARALLEL_TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    USE_ANTHROPIC_TEXT_EDITOR_TOOLS_FIELD_NUMBER: _ClassVar[int]
    PLANNING_ENABLED_FIELD_NUMBER: _ClassVar[int]
    WARP_DRIVE_CONTEXT_ENABLED_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_CREATE_FILES_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_TOOLS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_LONG_RUNNING_COMMANDS_FIELD_NUMBER: _ClassVar[int]
    SHOULD_PRESERVE_FILE_CONTENT_IN_HISTORY_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_TODOS_UI_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_LINKED_CODE_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_STARTED_CHILD_TASK_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_SUGGEST_PROMPT_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_READ_IMAGE_FILES_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_REASONING_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    API_KEYS_FIELD_NUMBER: _ClassVar[int]
    AUTONOMY_LEVEL_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_LEVEL_FIELD_NUMBER: _ClassVar[int]
    WEB_SEARCH_ENABLED_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_CLI_AGENT_TOOLS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_V4A_FILE_DIFFS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_SUMMARIZATION_VIA_MESSAGE_REPLACEMENT_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_BUNDLED_SKILLS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_RESEARCH_AGENT_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_ORCHESTRATION_V2_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_MODEL_PROVIDERS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_BACKGROUND_COMPUTER_USE_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_MODEL_ROUTERS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_ORCHESTRATION_RUNNERS_FIELD_NUMBER: _ClassVar[int]
    model_config: Settings.ModelConfig
    rules_enabled: bool
    web_context_retrieval_enabled: bool
    supports_parallel_tool_calls: bool
    use_anthropic_text_editor_tools: bool
    planning_enabled: bool
    warp_drive_context_enabled: bool
    supports_create_files: bool
    supported_tools: _containers.RepeatedScalarFieldContainer[ToolType]
    supports_long_running_commands: bool
    should_preserve_file_content_in_history: bool
    supports_todos_ui: bool
    supports_linked_code_blocks: bool
    supports_started_child_task_message: bool
    supports_suggest_prompt: bool
    supports_read_image_files: bool
    supports_reasoning_message: bool
    api_keys: NotRead
    autonomy_level: AutonomyLevel
    isolation_level: IsolationLevel
    web_search_enabled: bool
    supported_cli_agent_tools: _containers.RepeatedScalarFieldContainer[ToolType]
    supports_v4a_file_diffs: bool
    supports_summarization_via_message_replacement: bool
    supports_bundled_skills: bool
    supports_research_agent: bool
    supports_orchestration_v2: bool
    custom_model_providers: NotRead
    supports_background_computer_use: bool
    custom_model_routers: NotRead
    supports_orchestration_runners: bool
    def __init__(self, model_config: _Optional[_Union[Settings.ModelConfig, _Mapping]] = ..., rules_enabled: bool = ..., web_context_retrieval_enabled: bool = ..., supports_parallel_tool_calls: bool = ..., use_anthropic_text_editor_tools: bool = ..., planning_enabled: bool = ..., warp_drive_context_enabled: bool = ..., supports_create_files: bool = ..., supported_tools: _Optional[_Iterable[_Union[ToolType, str]]] = ..., supports_long_running_commands: bool = ..., should_preserve_file_content_in_history: bool = ..., supports_todos_ui: bool = ..., supports_linked_code_blocks: bool = ..., supports_started_child_task_message: bool = ..., supports_suggest_prompt: bool = ..., supports_read_image_files: bool = ..., supports_reasoning_message: bool = ..., api_keys: _Optional[_Union[NotRead, _Mapping]] = ..., autonomy_level: _Optional[_Union[AutonomyLevel, str]] = ..., isolation_level: _Optional[_Union[IsolationLevel, str]] = ..., web_search_enabled: bool = ..., supported_cli_agent_tools: _Optional[_Iterable[_Union[ToolType, str]]] = ..., supports_v4a_file_diffs: bool = ..., supports_summarization_via_message_replacement: bool = ..., supports_bundled_skills: bool = ..., supports_research_agent: bool = ..., supports_orchestration_v2: bool = ..., custom_model_providers: _Optional[_Union[NotRead, _Mapping]] = ..., supports_background_computer_use: bool = ..., custom_model_routers: _Optional[_Union[NotRead, _Mapping]] = ..., supports_orchestration_runners: bool = ...) -> None: ...

class MCPContext(_message.Message):
    __slots__ = ("resources", "tools", "servers")
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.RepeatedCompositeFieldContainer[NotRead]
    tools: _containers.RepeatedCompositeFieldContainer[MCPTool]
    servers: _containers.RepeatedCompositeFieldContainer[MCPServer]
    def __init__(self, resources: _Optional[_Iterable[_Union[NotRead, _Mapping]]] = ..., tools: _Optional[_Iterable[_Union[MCPTool, _Mapping]]] = ..., servers: _Optional[_Iterable[_Union[MCPServer, _Mapping]]] = ...) -> None: ...

class MCPServer(_message.Message):
    __slots__ = ("name", "description", "resources", "tools", "id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    resources: _containers.RepeatedCompositeFieldContainer[NotRead]
    tools: _containers.RepeatedCompositeFieldContainer[MCPTool]
    id: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., resources: _Optional[_Iterable[_Union[NotRead, _Mapping]]] = ..., tools: _Optional[_Iterable[_Union[MCPTool, _Mapping]]] = ..., id: _Optional[str] = ...) -> None: ...

class MCPTool(_message.Message):
    __slots__ = ("name", "description", "input_schema")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    INPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    input_schema: _struct_pb2.Struct
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., input_schema: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("id", "description", "dependencies", "messages", "summary", "server_data")
    class Dependencies(_message.Message):
        __slots__ = ("parent_task_id",)
        PARENT_TASK_ID_FIELD_NUMBER: _ClassVar[int]
        parent_task_id: str
        def __init__(self, parent_task_id: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCIES_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    SERVER_DATA_FIELD_NUMBER: _ClassVar[int]
    id: str
    description: str
    dependencies: Task.Dependencies
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    summary: str
    server_data: str
    def __init__(self, id: _Optional[str] = ..., description: _Optional[str] = ..., dependencies: _Optional[_Union[Task.Dependencies, _Mapping]] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., summary: _Optional[str] = ..., server_data: _Optional[str] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("id", "server_message_data", "citations", "task_id", "request_id", "timestamp", "fetched_memories", "user_query", "agent_output", "tool_call", "tool_call_result", "server_event", "system_query", "update_todos", "agent_reasoning", "summarization", "code_review", "update_review_comments", "web_search", "web_fetch", "debug_output", "artifact_event", "invoke_skill", "messages_received_from_agents", "model_used", "events_from_agents", "passive_suggestion_result", "orchestration_config_snapshot")
    class UserQuery(_message.Message):
        __slots__ = ("query", "context", "referenced_attachments", "mode", "intended_agent")
        class ReferencedAttachmentsEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: Attachment
            def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Attachment, _Mapping]] = ...) -> None: ...
        QUERY_FIELD_NUMBER: _ClassVar[int]
        CONTEXT_FIELD_NUMBER: _ClassVar[int]
        REFERENCED_ATTACHMENTS_FIELD_NUMBER: _ClassVar[int]
        MODE_FIELD_NUMBER: _ClassVar[int]
        INTENDED_AGENT_FIELD_NUMBER: _ClassVar[int]
        query: str
        context: InputContext
        referenced_attachments: _containers.MessageMap[str, Attachment]
        mode: UserQueryMode
        intended_agent: AgentType
        def __init__(self, query: _Optional[str] = ..., context: _Optional[_Union[InputContext, _Mapping]] = ..., referenced_attachments: _Optional[_Mapping[str, Attachment]] = ..., mode: _Optional[_Union[UserQueryMode, _Mapping]] = ..., intended_agent: _Optional[_Union[AgentType, str]] = ...) -> None: ...
    class AgentOutput(_message.Message):
        __slots__ = ("text",)
        TEXT_FIELD_NUMBER: _ClassVar[int]
        text: str
        def __init__(self, text: _Optional[str] = ...) -> None: ...
    class AgentReasoning(_message.Message):
        __slots__ = ("reasoning", "finished_duration")
        REASONING_FIELD_NUMBER: _ClassVar[int]
        FINISHED_DURATION_FIELD_NUMBER: _ClassVar[int]
        reasoning: str
        finished_duration: _duration_pb2.Duration
        def __init__(self, reasoning: _Optional[str] = ..., finished_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
    class ServerEvent(_message.Message):
        __slots__ = ("payload",)
        PAYLOAD_FIELD_NUMBER: _ClassVar[int]
        payload: str
        def __init__(self, payload: _Optional[str] = ...) -> None: ...
    class ModelUsed(_message.Message):
        __slots__ = ("model_id", "model_display_name", "is_fallback", "prompt_cache_expires_at")
        MODEL_ID_FIELD_NUMBER: _ClassVar[int]
        MODEL_DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
        IS_FALLBACK_FIELD_NUMBER: _ClassVar[int]
        PROMPT_CACHE_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
        model_id: str
        model_display_name: str
        is_fallback: bool
        prompt_cache_expires_at: _timestamp_pb2.Timestamp
        def __init__(self, model_id: _Optional[str] = ..., model_display_name: _Optional[str] = ..., is_fallback: bool = ..., prompt_cache_expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
    class ToolCall(_message.Message):
        __slots__ = ("tool_call_id", "run_shell_command", "search_codebase", "server", "read_files", "apply_file_diffs", "suggest_plan", "suggest_create_plan", "grep", "file_glob", "read_mcp_resource", "call_mcp_tool", "write_to_long_running_shell_command", "suggest_new_conversation", "file_glob_v2", "suggest_prompt", "open_code_review", "init_project", "subagent", "read_documents", "edit_documents", "create_documents", "read_shell_command_output", "use_computer", "insert_review_comments", "read_skill", "request_computer_use", "fetch_conversation", "send_message_to_agent", "transfer_shell_command_control_to_user", "ask_user_question", "upload_file_artifact", "run_agents", "wait_for_events", "start_recording", "stop_recording")
        class RunShellCommand(_message.Message):
            __slots__ = ("command", "is_read_only", "uses_pager", "citations", "is_risky", "wait_until_complete", "risk_category")
            COMMAND_FIELD_NUMBER: _ClassVar[int]
            IS_READ_ONLY_FIELD_NUMBER: _ClassVar[int]
            USES_PAGER_FIELD_NUMBER: _ClassVar[int]
            CITATIONS_FIELD_NUMBER: _ClassVar[int]
            IS_RISKY_FIELD_NUMBER: _ClassVar[int]
            WAIT_UNTIL_COMPLETE_FIELD_NUMBER: _ClassVar[int]
            RISK_CATEGORY_FIELD_NUMBER: _ClassVar[int]
            command: str
            is_read_only: bool
            uses_pager: bool
            citations: _containers.RepeatedCompositeFieldContainer[Citation]
            is_risky: bool
            wait_until_complete: bool
            risk_category: RiskCategory
            def __init__(self, command: _Optional[str] = ..., is_read_only: bool = ..., uses_pager: bool = ..., citations: _Optional[_Iterable[_Union[Citation, _Mapping]]] = ..., is_risky: bool = ..., wait_until_complete: bool = ..., risk_category: _Optional[_Union[RiskCategory, str]] = ...) -> None: ...
        class Server(_message.Message):
            __slots__ = ("payload",)
            PAYLOAD_FIELD_NUMBER: _ClassVar[int]
            payload: str
            def __init__(self, payload: _Optional[str] = ...) -> None: ...
        class CallMCPTool(_message.Message):
            __slots__ = ("name", "args", "server_id")
            NAME_FIELD_NUMBER: _ClassVar[int]
            ARGS_FIELD_NUMBER: _ClassVar[int]
            SERVER_ID_FIELD_NUMBER: _ClassVar[int]
            name: str
            args: _struct_pb2.Struct
            server_id: str
            def __init__(self, name: _Optional[str] = ..., args: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., server_id: _Optional[str] = ...) -> None: ...
        TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
        RUN_SHELL_COMMAND_FIELD_NUMBER: _ClassVar[int]
        SEARCH_CODEBASE_FIELD_NUMBER: _ClassVar[int]
        SERVER_FIELD_NUMBER: _ClassVar[int]
        READ_FILES_FIELD_NUMBER: _ClassVar[int]
        APPLY_FILE_DIFFS_FIELD_NUMBER: _ClassVar[int]
        SUGGEST_PLAN_FIELD_NUMBER: _ClassVar[int]
        SUGGEST_CREATE_PLAN_FIELD_NUMBER: _ClassVar[int]
        GREP_FIELD_NUMBER: _ClassVar[int]
        FILE_GLOB_FIELD_NUMBER: _ClassVar[int]
        READ_MCP_RESOURCE_FIELD_NUMBER: _ClassVar[int]
        CALL_MCP_TOOL_FIELD_NUMBER: _ClassVar[int]
        WRITE_TO_LONG_RUNNING_SHELL_COMMAND_FIELD_NUMBER: _ClassVar[int]
        SUGGEST_NEW_CONVERSATION_FIELD_NUMBER: _ClassVar[int]
        FILE_GLOB_V2_FIELD_NUMBER: _ClassVar[int]
        SUGGEST_PROMPT_FIELD_NUMBER: _ClassVar[int]
        OPEN_CODE_REVIEW_FIELD_NUMBER: _ClassVar[int]
        INIT_PROJECT_FIELD_NUMBER: _ClassVar[int]
        SUBAGENT_FIELD_NUMBER: _ClassVar[int]
        READ_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
        EDIT_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
        CREATE_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
        READ_SHELL_COMMAND_OUTPUT_FIELD_NUMBER: _ClassVar[int]
        USE_COMPUTER_FIELD_NUMBER: _ClassVar[int]
        INSERT_REVIEW_COMMENTS_FIELD_NUMBER: _ClassVar[int]
        READ_SKILL_FIELD_NUMBER: _ClassVar[int]
        REQUEST_COMPUTER_USE_FIELD_NUMBER: _ClassVar[int]
        FETCH_CONVERSATION_FIELD_NUMBER: _ClassVar[int]
        SEND_MESSAGE_TO_AGENT_FIELD_NUMBER: _ClassVar[int]
        TRANSFER_SHELL_COMMAND_CONTROL_TO_USER_FIELD_NUMBER: _ClassVar[int]
        ASK_USER_QUESTION_FIELD_NUMBER: _ClassVar[int]
        UPLOAD_FILE_ARTIFACT_FIELD_NUMBER: _ClassVar[int]
        RUN_AGENTS_FIELD_NUMBER: _ClassVar[int]
        WAIT_FOR_EVENTS_FIELD_NUMBER: _ClassVar[int]
        START_RECORDING_FIELD_NUMBER: _ClassVar[int]
        STOP_RECORDING_FIELD_NUMBER: _ClassVar[int]
        tool_call_id: str
        run_shell_command: Message.ToolCall.RunShellCommand
        search_codebase: NotRead
        server: Message.ToolCall.Server
        read_files: NotRead
        apply_file_diffs: NotRead
        suggest_plan: NotRead
        suggest_create_plan: NotRead
        grep: NotRead
        file_glob: NotRead
        read_mcp_resource: NotRead
        call_mcp_tool: Message.ToolCall.CallMCPTool
        write_to_long_running_shell_command: NotRead
        suggest_new_conversation: NotRead
        file_glob_v2: NotRead
        suggest_prompt: NotRead
        open_code_review: NotRead
        init_project: NotRead
        subagent: NotRead
        read_documents: NotRead
        edit_documents: NotRead
        create_documents: NotRead
        read_shell_command_output: NotRead
        use_computer: NotRead
        insert_review_comments: NotRead
        read_skill: NotRead
        request_computer_use: NotRead
        fetch_conversation: NotRead
        send_message_to_agent: NotRead
        transfer_shell_command_control_to_user: NotRead
        ask_user_question: NotRead
        upload_file_artifact: NotRead
        run_agents: NotRead
        wait_for_events: NotRead
        start_recording: NotRead
        stop_recording: NotRead
        def __init__(self, tool_call_id: _Optional[str] = ..., run_shell_command: _Optional[_Union[Message.ToolCall.RunShellCommand, _Mapping]] = ..., search_codebase: _Optional[_Union[NotRead, _Mapping]] = ..., server: _Optional[_Union[Message.ToolCall.Server, _Mapping]] = ..., read_files: _Optional[_Union[NotRead, _Mapping]] = ..., apply_file_diffs: _Optional[_Union[NotRead, _Mapping]] = ..., suggest_plan: _Optional[_Union[NotRead, _Mapping]] = ..., suggest_create_plan: _Optional[_Union[NotRead, _Mapping]] = ..., grep: _Optional[_Union[NotRead, _Mapping]] = ..., file_glob: _Optional[_Union[NotRead, _Mapping]] = ..., read_mcp_resource: _Optional[_Union[NotRead, _Mapping]] = ..., call_mcp_tool: _Optional[_Union[Message.ToolCall.CallMCPTool, _Mapping]] = ..., write_to_long_running_shell_command: _Optional[_Union[NotRead, _Mapping]] = ..., suggest_new_conversation: _Optional[_Union[NotRead, _Mapping]] = ..., file_glob_v2: _Optional[_Union[NotRead, _Mapping]] = ..., suggest_prompt: _Optional[_Union[NotRead, _Mapping]] = ..., open_code_review: _Optional[_Union[NotRead, _Mapping]] = ..., init_project: _Optional[_Union[NotRead, _Mapping]] = ..., subagent: _Optional[_Union[NotRead, _Mapping]] = ..., read_documents: _Optional[_Union[NotRead, _Mapping]] = ..., edit_documents: _Optional[_Union[NotRead, _Mapping]] = ..., create_documents: _Optional[_Union[NotRead, _Mapping]] = ..., read_shell_command_output: _Optional[_Union[NotRead, _Mapping]] = ..., use_computer: _Optional[_Union[NotRead, _Mapping]] = ..., insert_review_comments: _Optional[_Union[NotRead, _Mapping]] = ..., read_skill: _Optional[_Union[NotRead, _Mapping]] = ..., request_computer_use: _Optional[_Union[NotRead, _Mapping]] = ..., fetch_conversation: _Optional[_Union[NotRead, _Mapping]] = ..., send_message_to_agent: _Optional[_Union[NotRead, _Mapping]] = ..., transfer_shell_command_control_to_user: _Optional[_Union[NotRead, _Mapping]] = ..., ask_user_question: _Optional[_Union[NotRead, _Mapping]] = ..., upload_file_artifact: _Optional[_Union[NotRead, _Mapping]] = ..., run_agents: _Optional[_Union[NotRead, _Mapping]] = ..., wait_for_events: _Optional[_Union[NotRead, _Mapping]] = ..., start_recording: _Optional[_Union[NotRead, _Mapping]] = ..., stop_recording: _Optional[_Union[NotRead, _Mapping]] = ...) -> None: ...
    class ToolCallResult(_message.Message):
        __slots__ = ("tool_call_id", "context", "run_shell_command", "search_codebase", "server", "read_files", "apply_file_diffs", "suggest_plan", "suggest_create_plan", "grep", "file_glob", "cancel", "read_mcp_resource", "call_mcp_tool", "write_to_long_running_shell_command", "suggest_new_conversation", "file_glob_v2", "suggest_prompt", "open_code_review", "init_project", "subagent", "read_documents", "edit_documents", "create_documents", "read_shell_command_output", "use_computer", "insert_review_comments", "read_skill", "request_computer_use_result", "fetch_conversation", "send_message_to_agent", "transfer_shell_command_control_to_user", "ask_user_question", "upload_file_artifact", "run_agents_result", "wait_for_events", "start_recording", "stop_recording")
        class Server(_message.Message):
            __slots__ = ("serialized_result",)
            SERIALIZED_RESULT_FIELD_NUMBER: _ClassVar[int]
            serialized_result: str
            def __init__(self, serialized_result: _Optional[str] = ...) -> None: ...
        TOOL_CALL_ID_FIELD_NUMBER: _ClassVar[int]
        CONTEXT_FIELD_NUMBER: _ClassVar[int]
        RUN_SHELL_COMMAND_FIELD_NUMBER: _ClassVar[int]
        SEARCH_CODEBASE_FIELD_NUMBER: _ClassVar[int]
        SERVER_FIELD_NUMBER: _ClassVar[int]
        READ_FILES_FIELD_NUMBER: _ClassVar[int]
        APPLY_FILE_DIFFS_FIELD_NUMBER: _ClassVar[int]
        SUGGEST_PLAN_FIELD_NUMBER: _ClassVar[int]
        SUGGEST_CREATE_PLAN_FIELD_NUMBER: _ClassVar[int]
        GREP_FIELD_NUMBER: _ClassVar[int]
        FILE_GLOB_FIELD_NUMBER: _ClassVar[int]
        CANCEL_FIELD_NUMBER: _ClassVar[int]
        READ_MCP_RESOURCE_FIELD_NUMBER: _ClassVar[int]
        CALL_MCP_TOOL_FIELD_NUMBER: _ClassVar[int]
        WRITE_TO_LONG_RUNNING_SHELL_COMMAND_FIELD_NUMBER: _ClassVar[int]
        SUGGEST_NEW_CONVERSATION_FIELD_NUMBER: _ClassVar[int]
        FILE_GLOB_V2_FIELD_NUMBER: _ClassVar[int]
        SUGGEST_PROMPT_FIELD_NUMBER: _ClassVar[int]
        OPEN_CODE_REVIEW_FIELD_NUMBER: _ClassVar[int]
        INIT_PROJECT_FIELD_NUMBER: _ClassVar[int]
        SUBAGENT_FIELD_NUMBER: _ClassVar[int]
        READ_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
        EDIT_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
        CREATE_DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
        READ_SHELL_COMMAND_OUTPUT_FIELD_NUMBER: _ClassVar[int]
        USE_COMPUTER_FIELD_NUMBER: _ClassVar[int]
        INSERT_REVIEW_COMMENTS_FIELD_NUMBER: _ClassVar[int]
        READ_SKILL_FIELD_NUMBER: _ClassVar[int]
        REQUEST_COMPUTER_USE_RESULT_FIELD_NUMBER: _ClassVar[int]
        FETCH_CONVERSATION_FIELD_NUMBER: _ClassVar[int]
        SEND_MESSAGE_TO_AGENT_FIELD_NUMBER: _ClassVar[int]
        TRANSFER_SHELL_COMMAND_CONTROL_TO_USER_FIELD_NUMBER: _ClassVar[int]
        ASK_USER_QUESTION_FIELD_NUMBER: _ClassVar[int]
        UPLOAD_FILE_ARTIFACT_FIELD_NUMBER: _ClassVar[int]
        RUN_AGENTS_RESULT_FIELD_NUMBER: _ClassVar[int]
        WAIT_FOR_EVENTS_FIELD_NUMBER: _ClassVar[int]
        START_RECORDING_FIELD_NUMBER: _ClassVar[int]
        STOP_RECORDING_FIELD_NUMBER: _ClassVar[int]
        tool_call_id: str
        context: InputContext
        run_shell_command: NotRead
        search_codebase: NotRead
        server: Message.ToolCallResult.Server
        read_files: NotRead
        apply_file_diffs: NotRead
        suggest_plan: NotRead
        suggest_create_plan: NotRead
        grep: NotRead
        file_glob: NotRead
        cancel: _empty_pb2.Empty
        read_mcp_resource: NotRead
        call_mcp_tool: CallMCPToolResult
        write_to_long_running_shell_command: NotRead
        suggest_new_conversation: NotRead
        file_glob_v2: NotRead
        suggest_prompt: NotRead
        open_code_review: NotRead
        init_project: NotRead
        subagent: NotRead
        read_documents: NotRead
        edit_documents: NotRead
        create_documents: NotRead
        read_shell_command_output: NotRead
        use_computer: NotRead
        insert_review_comments: NotRead
        read_skill: NotRead
        request_computer_use_result: NotRead
        fetch_conversation: NotRead
        send_message_to_agent: NotRead
        transfer_shell_command_control_to_user: NotRead
        ask_user_question: NotRead
        upload_file_artifact: NotRead
        run_agents_result: NotRead
        wait_for_events: NotRead
        start_recording: NotRead
        stop_recording: NotRead
        def __init__(self, tool_call_id: _Optional[str] = ..., context: _Optional[_Union[InputContext, _Mapping]] = ..., run_shell_command: _Optional[_Union[NotRead, _Mapping]] = ..., search_codebase: _Optional[_Union[NotRead, _Mapping]] = ..., server: _Optional[_Union[Message.ToolCallResult.Server, _Mapping]] = ..., read_files: _Optional[_Union[NotRead, _Mapping]] = ..., apply_file_diffs: _Optional[_Union[NotRead, _Mapping]] = ..., suggest_plan: _Optional[_Union[NotRead, _Mapping]] = ..., suggest_create_plan: _Optional[_Union[NotRead, _Mapping]] = ..., grep: _Optional[_Union[NotRead, _Mapping]] = ..., file_glob: _Optional[_Union[NotRead, _Mapping]] = ..., cancel: _Optional[_Union[_empty_pb2.Empty, _Mapping]] = ..., read_mcp_resource: _Optional[_Union[NotRead, _Mapping]] = ..., call_mcp_tool: _Optional[_Union[CallMCPToolResult, _Mapping]] = ..., write_to_long_running_shell_command: _Optional[_Union[NotRead, _Mapping]] = ..., suggest_new_conversation: _Optional[_Union[NotRead, _Mapping]] = ..., file_glob_v2: _Optional[_Union[NotRead, _Mapping]] = ..., suggest_prompt: _Optional[_Union[NotRead, _Mapping]] = ..., open_code_review: _Optional[_Union[NotRead, _Mapping]] = ..., init_project: _Optional[_Union[NotRead, _Mapping]] = ..., subagent: _Optional[_Union[NotRead, _Mapping]] = ..., read_documents: _Optional[_Union[NotRead, _Mapping]] = ..., edit_documents: _Optional[_Union[NotRead, _Mapping]] = ..., create_documents: _Optional[_Union[NotRead, _Mapping]] = ..., read_shell_command_output: _Optional[_Union[NotRead, _Mapping]] = ..., use_computer: _Optional[_Union[NotRead, _Mapping]] = ..., insert_review_comments: _Optional[_Union[NotRead, _Mapping]] = ..., read_skill: _Optional[_Union[NotRead, _Mapping]] = ..., request_computer_use_result: _Optional[_Union[NotRead, _Mapping]] = ..., fetch_conversation: _Optional[_Union[NotRead, _Mapping]] = ..., send_message_to_agent: _Optional[_Union[NotRead, _Mapping]] = ..., transfer_shell_command_control_to_user: _Optional[_Union[NotRead, _Mapping]] = ..., ask_user_question: _Optional[_Union[NotRead, _Mapping]] = ..., upload_file_artifact: _Optional[_Union[NotRead, _Mapping]] = ..., run_agents_result: _Optional[_Union[NotRead, _Mapping]] = ..., wait_for_events: _Optional[_Union[NotRead, _Mapping]] = ..., start_recording: _Optional[_Union[NotRead, _Mapping]] = ..., stop_recording: _Optional[_Union[NotRead, _Mapping]] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    SERVER_MESSAGE_DATA_FIELD_NUMBER: _ClassVar[int]
    CITATIONS_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    FETCHED_MEMORIES_FIELD_NUMBER: _ClassVar[int]
    USER_QUERY_FIELD_NUMBER: _ClassVar[int]
    AGENT_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_RESULT_FIELD_NUMBER: _ClassVar[int]
    SERVER_EVENT_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_QUERY_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TODOS_FIELD_NUMBER: _ClassVar[int]
    AGENT_REASONING_FIELD_NUMBER: _ClassVar[int]
    SUMMARIZATION_FIELD_NUMBER: _ClassVar[int]
    CODE_REVIEW_FIELD_NUMBER: _ClassVar[int]
    UPDATE_REVIEW_COMMENTS_FIELD_NUMBER: _ClassVar[int]
    WEB_SEARCH_FIELD_NUMBER: _ClassVar[int]
    WEB_FETCH_FIELD_NUMBER: _ClassVar[int]
    DEBUG_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_EVENT_FIELD_NUMBER: _ClassVar[int]
    INVOKE_SKILL_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_RECEIVED_FROM_AGENTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_USED_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FROM_AGENTS_FIELD_NUMBER: _ClassVar[int]
    PASSIVE_SUGGESTION_RESULT_FIELD_NUMBER: _ClassVar[int]
    ORCHESTRATION_CONFIG_SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    id: str
    server_message_data: str
    citations: _containers.RepeatedCompositeFieldContainer[Citation]
    task_id: str
    request_id: str
    timestamp: _timestamp_pb2.Timestamp
    fetched_memories: _containers.RepeatedCompositeFieldContainer[NotRead]
    user_query: Message.UserQuery
    agent_output: Message.AgentOutput
    tool_call: Message.ToolCall
    tool_call_result: Message.ToolCallResult
    server_event: Message.ServerEvent
    system_query: NotRead
    update_todos: NotRead
    agent_reasoning: Message.AgentReasoning
    summarization: NotRead
    code_review: NotRead
    update_review_comments: NotRead
    web_search: NotRead
    web_fetch: NotRead
    debug_output: NotRead
    artifact_event: NotRead
    invoke_skill: NotRead
    messages_received_from_agents: NotRead
    model_used: Message.ModelUsed
    events_from_agents: NotRead
    passive_suggestion_result: NotRead
    orchestration_config_snapshot: NotRead
    def __init__(self, id: _Optional[str] = ..., server_message_data: _Optional[str] = ..., citations: _Optional[_Iterable[_Union[Citation, _Mapping]]] = ..., task_id: _Optional[str] = ..., request_id: _Optional[str] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., fetched_memories: _Optional[_Iterable[_Union[NotRead, _Mapping]]] = ..., user_query: _Optional[_Union[Message.UserQuery, _Mapping]] = ..., agent_output: _Optional[_Union[Message.AgentOutput, _Mapping]] = ..., tool_call: _Optional[_Union[Message.ToolCall, _Mapping]] = ..., tool_call_result: _Optional[_Union[Message.ToolCallResult, _Mapping]] = ..., server_event: _Optional[_Union[Message.ServerEvent, _Mapping]] = ..., system_query: _Optional[_Union[NotRead, _Mapping]] = ..., update_todos: _Optional[_Union[NotRead, _Mapping]] = ..., agent_reasoning: _Optional[_Union[Message.AgentReasoning, _Mapping]] = ..., summarization: _Optional[_Union[NotRead, _Mapping]] = ..., code_review: _Optional[_Union[NotRead, _Mapping]] = ..., update_review_comments: _Optional[_Union[NotRead, _Mapping]] = ..., web_search: _Optional[_Union[NotRead, _Mapping]] = ..., web_fetch: _Optional[_Union[NotRead, _Mapping]] = ..., debug_output: _Optional[_Union[NotRead, _Mapping]] = ..., artifact_event: _Optional[_Union[NotRead, _Mapping]] = ..., invoke_skill: _Optional[_Union[NotRead, _Mapping]] = ..., messages_received_from_agents: _Optional[_Union[NotRead, _Mapping]] = ..., model_used: _Optional[_Union[Message.ModelUsed, _Mapping]] = ..., events_from_agents: _Optional[_Union[NotRead, _Mapping]] = ..., passive_suggestion_result: _Optional[_Union[NotRead, _Mapping]] = ..., orchestration_config_snapshot: _Optional[_Union[NotRead, _Mapping]] = ...) -> None: ...

class Citation(_message.Message):
    __slots__ = ("document_id", "document_type")
    DOCUMENT_ID_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    document_id: str
    document_type: DocumentType
    def __init__(self, document_id: _Optional[str] = ..., document_type: _Optional[_Union[DocumentType, str]] = ...) -> None: ...

class ResponseEvent(_message.Message):
    __slots__ = ("init", "client_actions", "finished")
    INIT_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ACTIONS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    init: StreamInit
    client_actions: ClientActions
    finished: StreamFinished
    def __init__(self, init: _Optional[_Union[StreamInit, _Mapping]] = ..., client_actions: _Optional[_Union[ClientActions, _Mapping]] = ..., finished: _Optional[_Union[StreamFinished, _Mapping]] = ...) -> None: ...

class StreamInit(_message.Message):
    __slots__ = ("conversation_id", "request_id", "run_id")
    CONVERSATION_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    conversation_id: str
    request_id: str
    run_id: str
    def __init__(self, conversation_id: _Optional[str] = ..., request_id: _Optional[str] = ..., run_id: _Optional[str] = ...) -> None: ...

class ClientActions(_message.Message):
    __slots__ = ("actions",)
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    actions: _containers.RepeatedCompositeFieldContainer[ClientAction]
    def __init__(self, actions: _Optional[_Iterable[_Union[ClientAction, _Mapping]]] = ...) -> None: ...

class ClientAction(_message.Message):
    __slots__ = ("create_task", "add_messages_to_task", "update_task_message", "append_to_message_content", "show_suggestions", "update_task_summary", "update_task_description", "begin_transaction", "commit_transaction", "rollback_transaction", "start_new_conversation", "update_task_server_data", "move_messages_to_new_task")
    class CreateTask(_message.Message):
        __slots__ = ("task",)
        TASK_FIELD_NUMBER: _ClassVar[int]
        task: Task
        def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ...) -> None: ...
    class AddMessagesToTask(_message.Message):
        __slots__ = ("task_id", "messages")
        TASK_ID_FIELD_NUMBER: _ClassVar[int]
        MESSAGES_FIELD_NUMBER: _ClassVar[int]
        task_id: str
        messages: _containers.RepeatedCompositeFieldContainer[Message]
        def __init__(self, task_id: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ...) -> None: ...
    class UpdateTaskMessage(_message.Message):
        __slots__ = ("message", "mask", "task_id")
        MESSAGE_FIELD_NUMBER: _ClassVar[int]
        MASK_FIELD_NUMBER: _ClassVar[int]
        TASK_ID_FIELD_NUMBER: _ClassVar[int]
        message: Message
        mask: _field_mask_pb2.FieldMask
        task_id: str
        def __init__(self, message: _Optional[_Union[Message, _Mapping]] = ..., mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., task_id: _Optional[str] = ...) -> None: ...
    class AppendToMessageContent(_message.Message):
        __slots__ = ("message", "mask", "task_id")
        MESSAGE_FIELD_NUMBER: _ClassVar[int]
        MASK_FIELD_NUMBER: _ClassVar[int]
        TASK_ID_FIELD_NUMBER: _ClassVar[int]
        message: Message
        mask: _field_mask_pb2.FieldMask
        task_id: str
        def __init__(self, message: _Optional[_Union[Message, _Mapping]] = ..., mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., task_id: _Optional[str] = ...) -> None: ...
    class UpdateTaskSummary(_message.Message):
        __slots__ = ("task_id", "summary")
        TASK_ID_FIELD_NUMBER: _ClassVar[int]
        SUMMARY_FIELD_NUMBER: _ClassVar[int]
        task_id: str
        summary: str
        def __init__(self, task_id: _Optional[str] = ..., summary: _Optional[str] = ...) -> None: ...
    class UpdateTaskDescription(_message.Message):
        __slots__ = ("task_id", "description")
        TASK_ID_FIELD_NUMBER: _ClassVar[int]
        DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
        task_id: str
        description: str
        def __init__(self, task_id: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...
    class BeginTransaction(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class CommitTransaction(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class RollbackTransaction(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class StartNewConversation(_message.Message):
        __slots__ = ("start_from_message_id",)
        START_FROM_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
        start_from_message_id: str
        def __init__(self, start_from_message_id: _Optional[str] = ...) -> None: ...
    class UpdateTaskServerData(_message.Message):
        __slots__ = ("task_id", "server_data")
        TASK_ID_FIELD_NUMBER: _ClassVar[int]
        SERVER_DATA_FIELD_NUMBER: _ClassVar[int]
        task_id: str
        server_data: str
        def __init__(self, task_id: _Optional[str] = ..., server_data: _Optional[str] = ...) -> None: ...
    class MoveMessagesToNewTask(_message.Message):
        __slots__ = ("source_task_id", "new_task", "first_message_id", "last_message_id", "expected_message_count", "replacement_messages")
        SOURCE_TASK_ID_FIELD_NUMBER: _ClassVar[int]
        NEW_TASK_FIELD_NUMBER: _ClassVar[int]
        FIRST_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
        LAST_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
        EXPECTED_MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
        REPLACEMENT_MESSAGES_FIELD_NUMBER: _ClassVar[int]
        source_task_id: str
        new_task: Task
        first_message_id: str
        last_message_id: str
        expected_message_count: int
        replacement_messages: _containers.RepeatedCompositeFieldContainer[Message]
        def __init__(self, source_task_id: _Optional[str] = ..., new_task: _Optional[_Union[Task, _Mapping]] = ..., first_message_id: _Optional[str] = ..., last_message_id: _Optional[str] = ..., expected_message_count: _Optional[int] = ..., replacement_messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ...) -> None: ...
    CREATE_TASK_FIELD_NUMBER: _ClassVar[int]
    ADD_MESSAGES_TO_TASK_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TASK_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    APPEND_TO_MESSAGE_CONTENT_FIELD_NUMBER: _ClassVar[int]
    SHOW_SUGGESTIONS_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TASK_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TASK_DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    BEGIN_TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    ROLLBACK_TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    START_NEW_CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TASK_SERVER_DATA_FIELD_NUMBER: _ClassVar[int]
    MOVE_MESSAGES_TO_NEW_TASK_FIELD_NUMBER: _ClassVar[int]
    create_task: ClientAction.CreateTask
    add_messages_to_task: ClientAction.AddMessagesToTask
    update_task_message: ClientAction.UpdateTaskMessage
    append_to_message_content: ClientAction.AppendToMessageContent
    show_suggestions: NotRead
    update_task_summary: ClientAction.UpdateTaskSummary
    update_task_description: ClientAction.UpdateTaskDescription
    begin_transaction: ClientAction.BeginTransaction
    commit_transaction: ClientAction.CommitTransaction
    rollback_transaction: ClientAction.RollbackTransaction
    start_new_conversation: ClientAction.StartNewConversation
    update_task_server_data: ClientAction.UpdateTaskServerData
    move_messages_to_new_task: ClientAction.MoveMessagesToNewTask
    def __init__(self, create_task: _Optional[_Union[ClientAction.CreateTask, _Mapping]] = ..., add_messages_to_task: _Optional[_Union[ClientAction.AddMessagesToTask, _Mapping]] = ..., update_task_message: _Optional[_Union[ClientAction.UpdateTaskMessage, _Mapping]] = ..., append_to_message_content: _Optional[_Union[ClientAction.AppendToMessageContent, _Mapping]] = ..., show_suggestions: _Optional[_Union[NotRead, _Mapping]] = ..., update_task_summary: _Optional[_Union[ClientAction.UpdateTaskSummary, _Mapping]] = ..., update_task_description: _Optional[_Union[ClientAction.UpdateTaskDescription, _Mapping]] = ..., begin_transaction: _Optional[_Union[ClientAction.BeginTransaction, _Mapping]] = ..., commit_transaction: _Optional[_Union[ClientAction.CommitTransaction, _Mapping]] = ..., rollback_transaction: _Optional[_Union[ClientAction.RollbackTransaction, _Mapping]] = ..., start_new_conversation: _Optional[_Union[ClientAction.StartNewConversation, _Mapping]] = ..., update_task_server_data: _Optional[_Union[ClientAction.UpdateTaskServerData, _Mapping]] = ..., move_messages_to_new_task: _Optional[_Union[ClientAction.MoveMessagesToNewTask, _Mapping]] = ...) -> None: ...

class StreamFinished(_message.Message):
    __slots__ = ("other", "done", "max_token_limit", "quota_limit", "context_window_exceeded", "llm_unavailable", "internal_error", "invalid_api_key", "token_usage", "should_refresh_model_config", "request_cost", "conversation_usage_metadata", "request_charges")
    class ContextWindowSegmentType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SEGMENT_UNKNOWN: _ClassVar[StreamFinished.ContextWindowSegmentType]
        SEGMENT_SYSTEM_PROMPT: _ClassVar[StreamFinished.ContextWindowSegmentType]
        SEGMENT_TOOL_DEFINITIONS: _ClassVar[StreamFinished.ContextWindowSegmentType]
        SEGMENT_CONVERSATION_HISTORY: _ClassVar[StreamFinished.ContextWindowSegmentType]
        SEGMENT_LATEST_INPUT: _ClassVar[StreamFinished.ContextWindowSegmentType]
        SEGMENT_IMAGES: _ClassVar[StreamFinished.ContextWindowSegmentType]
        SEGMENT_OTHER: _ClassVar[StreamFinished.ContextWindowSegmentType]
    SEGMENT_UNKNOWN: StreamFinished.ContextWindowSegmentType
    SEGMENT_SYSTEM_PROMPT: StreamFinished.ContextWindowSegmentType
    SEGMENT_TOOL_DEFINITIONS: StreamFinished.ContextWindowSegmentType
    SEGMENT_CONVERSATION_HISTORY: StreamFinished.ContextWindowSegmentType
    SEGMENT_LATEST_INPUT: StreamFinished.ContextWindowSegmentType
    SEGMENT_IMAGES: StreamFinished.ContextWindowSegmentType
    SEGMENT_OTHER: StreamFinished.ContextWindowSegmentType
    class Other(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class Done(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class MaxTokenLimit(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class QuotaLimit(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class ContextWindowExceeded(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class LLMUnavailable(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class InternalError(_message.Message):
        __slots__ = ("message",)
        MESSAGE_FIELD_NUMBER: _ClassVar[int]
        message: str
        def __init__(self, message: _Optional[str] = ...) -> None: ...
    class InvalidApiKey(_message.Message):
        __slots__ = ("provider", "model_name")
        PROVIDER_FIELD_NUMBER: _ClassVar[int]
        MODEL_NAME_FIELD_NUMBER: _ClassVar[int]
        provider: LLMProvider
        model_name: str
        def __init__(self, provider: _Optional[_Union[LLMProvider, str]] = ..., model_name: _Optional[str] = ...) -> None: ...
    class TokenUsage(_message.Message):
        __slots__ = ("model_id", "total_input", "output", "input_cache_read", "input_cache_write", "cost_in_cents")
        MODEL_ID_FIELD_NUMBER: _ClassVar[int]
        TOTAL_INPUT_FIELD_NUMBER: _ClassVar[int]
        OUTPUT_FIELD_NUMBER: _ClassVar[int]
        INPUT_CACHE_READ_FIELD_NUMBER: _ClassVar[int]
        INPUT_CACHE_WRITE_FIELD_NUMBER: _ClassVar[int]
        COST_IN_CENTS_FIELD_NUMBER: _ClassVar[int]
        model_id: str
        total_input: int
        output: int
        input_cache_read: int
        input_cache_write: int
        cost_in_cents: float
        def __init__(self, model_id: _Optional[str] = ..., total_input: _Optional[int] = ..., output: _Optional[int] = ..., input_cache_read: _Optional[int] = ..., input_cache_write: _Optional[int] = ..., cost_in_cents: _Optional[float] = ...) -> None: ...
    class RequestCost(_message.Message):
        __slots__ = ("exact", "platform_credits")
        EXACT_FIELD_NUMBER: _ClassVar[int]
        PLATFORM_CREDITS_FIELD_NUMBER: _ClassVar[int]
        exact: float
        platform_credits: float
        def __init__(self, exact: _Optional[float] = ..., platform_credits: _Optional[float] = ...) -> None: ...
    class ConversationUsageMetadata(_message.Message):
        __slots__ = ("context_window_usage", "summarized", "credits_spent", "token_usage", "tool_usage_metadata", "warp_token_usage", "byok_token_usage", "platform_credits_spent", "custom_endpoint_token_usage", "total_input_tokens", "context_window_segments", "total_charges")
        class WarpTokenUsageEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: StreamFinished.ModelTokenUsage
            def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StreamFinished.ModelTokenUsage, _Mapping]] = ...) -> None: ...
        class ByokTokenUsageEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: StreamFinished.ModelTokenUsage
            def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StreamFinished.ModelTokenUsage, _Mapping]] = ...) -> None: ...
        class CustomEndpointTokenUsageEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: StreamFinished.ModelTokenUsage
            def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StreamFinished.ModelTokenUsage, _Mapping]] = ...) -> None: ...
        CONTEXT_WINDOW_USAGE_FIELD_NUMBER: _ClassVar[int]
        SUMMARIZED_FIELD_NUMBER: _ClassVar[int]
        CREDITS_SPENT_FIELD_NUMBER: _ClassVar[int]
        TOKEN_USAGE_FIELD_NUMBER: _ClassVar[int]
        TOOL_USAGE_METADATA_FIELD_NUMBER: _ClassVar[int]
        WARP_TOKEN_USAGE_FIELD_NUMBER: _ClassVar[int]
        BYOK_TOKEN_USAGE_FIELD_NUMBER: _ClassVar[int]
        PLATFORM_CREDITS_SPENT_FIELD_NUMBER: _ClassVar[int]
        CUSTOM_ENDPOINT_TOKEN_USAGE_FIELD_NUMBER: _ClassVar[int]
        TOTAL_INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
        CONTEXT_WINDOW_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
        TOTAL_CHARGES_FIELD_NUMBER: _ClassVar[int]
        context_window_usage: float
        summarized: bool
        credits_spent: float
        token_usage: _containers.RepeatedCompositeFieldContainer[StreamFinished.ModelTokenUsage]
        tool_usage_metadata: NotRead
        warp_token_usage: _containers.MessageMap[str, StreamFinished.ModelTokenUsage]
        byok_token_usage: _containers.MessageMap[str, StreamFinished.ModelTokenUsage]
        platform_credits_spent: float
        custom_endpoint_token_usage: _containers.MessageMap[str, StreamFinished.ModelTokenUsage]
        total_input_tokens: int
        context_window_segments: _containers.RepeatedCompositeFieldContainer[StreamFinished.ContextWindowSegment]
        total_charges: NotRead
        def __init__(self, context_window_usage: _Optional[float] = ..., summarized: bool = ..., credits_spent: _Optional[float] = ..., token_usage: _Optional[_Iterable[_Union[StreamFinished.ModelTokenUsage, _Mapping]]] = ..., tool_usage_metadata: _Optional[_Union[NotRead, _Mapping]] = ..., warp_token_usage: _Optional[_Mapping[str, StreamFinished.ModelTokenUsage]] = ..., byok_token_usage: _Optional[_Mapping[str, StreamFinished.ModelTokenUsage]] = ..., platform_credits_spent: _Optional[float] = ..., custom_endpoint_token_usage: _Optional[_Mapping[str, StreamFinished.ModelTokenUsage]] = ..., total_input_tokens: _Optional[int] = ..., context_window_segments: _Optional[_Iterable[_Union[StreamFinished.ContextWindowSegment, _Mapping]]] = ..., total_charges: _Optional[_Union[NotRead, _Mapping]] = ...) -> None: ...
    class ContextWindowSegment(_message.Message):
        __slots__ = ("segment_type", "token_count")
        SEGMENT_TYPE_FIELD_NUMBER: _ClassVar[int]
        TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
        segment_type: StreamFinished.ContextWindowSegmentType
        token_count: int
        def __init__(self, segment_type: _Optional[_Union[StreamFinished.ContextWindowSegmentType, str]] = ..., token_count: _Optional[int] = ...) -> None: ...
    class ModelTokenUsage(_message.Message):
        __slots__ = ("model_id", "total_tokens", "token_usage_by_category")
        class TokenUsageByCategoryEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: int
            def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
        MODEL_ID_FIELD_NUMBER: _ClassVar[int]
        TOTAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
        TOKEN_USAGE_BY_CATEGORY_FIELD_NUMBER: _ClassVar[int]
        model_id: str
        total_tokens: int
        token_usage_by_category: _containers.ScalarMap[str, int]
        def __init__(self, model_id: _Optional[str] = ..., total_tokens: _Optional[int] = ..., token_usage_by_category: _Optional[_Mapping[str, int]] = ...) -> None: ...
    class RequestCharges(_message.Message):
        __slots__ = ("usage_by_category",)
        class UsageByCategoryEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: StreamFinished.ChargedUsage
            def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StreamFinished.ChargedUsage, _Mapping]] = ...) -> None: ...
        USAGE_BY_CATEGORY_FIELD_NUMBER: _ClassVar[int]
        usage_by_category: _containers.MessageMap[str, StreamFinished.ChargedUsage]
        def __init__(self, usage_by_category: _Optional[_Mapping[str, StreamFinished.ChargedUsage]] = ...) -> None: ...
    class ChargedUsage(_message.Message):
        __slots__ = ("direct_api_inference_usage", "byok_inference_usage", "custom_endpoint_inference_usage", "platform_usage_in_cents")
        class DirectApiInferenceUsageEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: StreamFinished.InferenceUsage
            def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StreamFinished.InferenceUsage, _Mapping]] = ...) -> None: ...
        class ByokInferenceUsageEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: StreamFinished.InferenceUsage
            def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StreamFinished.InferenceUsage, _Mapping]] = ...) -> None: ...
        class CustomEndpointInferenceUsageEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: StreamFinished.InferenceUsage
            def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StreamFinished.InferenceUsage, _Mapping]] = ...) -> None: ...
        DIRECT_API_INFERENCE_USAGE_FIELD_NUMBER: _ClassVar[int]
        BYOK_INFERENCE_USAGE_FIELD_NUMBER: _ClassVar[int]
        CUSTOM_ENDPOINT_INFERENCE_USAGE_FIELD_NUMBER: _ClassVar[int]
        PLATFORM_USAGE_IN_CENTS_FIELD_NUMBER: _ClassVar[int]
        direct_api_inference_usage: _containers.MessageMap[str, StreamFinished.InferenceUsage]
        byok_inference_usage: _containers.MessageMap[str, StreamFinished.InferenceUsage]
        custom_endpoint_inference_usage: _containers.MessageMap[str, StreamFinished.InferenceUsage]
        platform_usage_in_cents: float
        def __init__(self, direct_api_inference_usage: _Optional[_Mapping[str, StreamFinished.InferenceUsage]] = ..., byok_inference_usage: _Optional[_Mapping[str, StreamFinished.InferenceUsage]] = ..., custom_endpoint_inference_usage: _Optional[_Mapping[str, StreamFinished.InferenceUsage]] = ..., platform_usage_in_cents: _Optional[float] = ...) -> None: ...
    class InferenceUsage(_message.Message):
        __slots__ = ("token_count", "token_cost", "web_search_count", "web_search_cost_in_cents")
        TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
        TOKEN_COST_FIELD_NUMBER: _ClassVar[int]
        WEB_SEARCH_COUNT_FIELD_NUMBER: _ClassVar[int]
        WEB_SEARCH_COST_IN_CENTS_FIELD_NUMBER: _ClassVar[int]
        token_count: StreamFinished.TokenCount
        token_cost: NotRead
        web_search_count: int
        web_search_cost_in_cents: float
        def __init__(self, token_count: _Optional[_Union[StreamFinished.TokenCount, _Mapping]] = ..., token_cost: _Optional[_Union[NotRead, _Mapping]] = ..., web_search_count: _Optional[int] = ..., web_search_cost_in_cents: _Optional[float] = ...) -> None: ...
    class TokenCount(_message.Message):
        __slots__ = ("input", "output", "input_cache_read", "input_cache_write")
        INPUT_FIELD_NUMBER: _ClassVar[int]
        OUTPUT_FIELD_NUMBER: _ClassVar[int]
        INPUT_CACHE_READ_FIELD_NUMBER: _ClassVar[int]
        INPUT_CACHE_WRITE_FIELD_NUMBER: _ClassVar[int]
        input: int
        output: int
        input_cache_read: int
        input_cache_write: int
        def __init__(self, input: _Optional[int] = ..., output: _Optional[int] = ..., input_cache_read: _Optional[int] = ..., input_cache_write: _Optional[int] = ...) -> None: ...
    OTHER_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKEN_LIMIT_FIELD_NUMBER: _ClassVar[int]
    QUOTA_LIMIT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_WINDOW_EXCEEDED_FIELD_NUMBER: _ClassVar[int]
    LLM_UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    INTERNAL_ERROR_FIELD_NUMBER: _ClassVar[int]
    INVALID_API_KEY_FIELD_NUMBER: _ClassVar[int]
    TOKEN_USAGE_FIELD_NUMBER: _ClassVar[int]
    SHOULD_REFRESH_MODEL_CONFIG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_COST_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_USAGE_METADATA_FIELD_NUMBER: _ClassVar[int]
    REQUEST_CHARGES_FIELD_NUMBER: _ClassVar[int]
    other: StreamFinished.Other
    done: StreamFinished.Done
    max_token_limit: StreamFinished.MaxTokenLimit
    quota_limit: StreamFinished.QuotaLimit
    context_window_exceeded: StreamFinished.ContextWindowExceeded
    llm_unavailable: StreamFinished.LLMUnavailable
    internal_error: StreamFinished.InternalError
    invalid_api_key: StreamFinished.InvalidApiKey
    token_usage: _containers.RepeatedCompositeFieldContainer[StreamFinished.TokenUsage]
    should_refresh_model_config: bool
    request_cost: StreamFinished.RequestCost
    conversation_usage_metadata: StreamFinished.ConversationUsageMetadata
    request_charges: StreamFinished.RequestCharges
    def __init__(self, other: _Optional[_Union[StreamFinished.Other, _Mapping]] = ..., done: _Optional[_Union[StreamFinished.Done, _Mapping]] = ..., max_token_limit: _Optional[_Union[StreamFinished.MaxTokenLimit, _Mapping]] = ..., quota_limit: _Optional[_Union[StreamFinished.QuotaLimit, _Mapping]] = ..., context_window_exceeded: _Optional[_Union[StreamFinished.ContextWindowExceeded, _Mapping]] = ..., llm_unavailable: _Optional[_Union[StreamFinished.LLMUnavailable, _Mapping]] = ..., internal_error: _Optional[_Union[StreamFinished.InternalError, _Mapping]] = ..., invalid_api_key: _Optional[_Union[StreamFinished.InvalidApiKey, _Mapping]] = ..., token_usage: _Optional[_Iterable[_Union[StreamFinished.TokenUsage, _Mapping]]] = ..., should_refresh_model_config: bool = ..., request_cost: _Optional[_Union[StreamFinished.RequestCost, _Mapping]] = ..., conversation_usage_metadata: _Optional[_Union[StreamFinished.ConversationUsageMetadata, _Mapping]] = ..., request_charges: _Optional[_Union[StreamFinished.RequestCharges, _Mapping]] = ...) -> None: ...
