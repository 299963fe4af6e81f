//! Description of the whole API, and the groups of its operations.

/// Description of the whole API.
pub(super) const API_DESCRIPTION: &str = "Connects the accounts of a project's users at providers and runs tools with them.\n\n\
    Every operation has two addresses, below `/api/v3.1` and below `/api/v3`; new clients use `/api/v3.1`. \
    The prefixes differ in two points:\n\n\
    - A request that names no version of a tool uses the latest version below `/api/v3.1`, and the base version, \
    which is the oldest one, below `/api/v3`. An execution there names the version that ran and the latest one \
    in `x-toolhost-tool-version` and `x-toolhost-latest-tool-version`.\n\
    - `connected_accounts` of a session has a list of accounts by toolkit below `/api/v3.1`, and one account \
    below `/api/v3`.\n\n\
    Unknown members of bodies and unknown parameters are ignored, and the response header \
    `x-toolhost-warning` names each with the nearest known name. The response is 400 for a member whose \
    nearest known name restricts the request or chooses what it uses, for a member with \
    `x-unimplemented: refuse`, and for a parameter that could be meant as one of any operation. An argument \
    that the schema of a tool does not describe is named in the same header; if it is probably misspelled, \
    the response is 400, and so it is for every unknown field of the configuration of a trigger.\n\n\
    Any POST request may have an `Idempotency-Key` header: a request that is repeated with the same key \
    within a day is performed once.";

/// Groups of operations, in the order of the page: the first segment of their paths, and a
/// description.
#[rustfmt::skip]
pub(super) const OPERATION_GROUPS: [(&str, &str); 20] = [
    ("toolkits", "Toolkits, their versions and scopes"),
    ("tools", "Tools: search, schemas, execution, proxy requests"),
    ("auth_configs", "Ways in which a project connects accounts of a toolkit"),
    ("connected_accounts", "Accounts of users at providers, and links to connect them"),
    ("tool_router", "Sessions, in which an assistant finds and runs tools of a user"),
    ("mcp", "Servers of the Model Context Protocol"),
    ("triggers_types", "Events that toolkits can report"),
    ("trigger_instances", "Triggers of users, and the stream of their events"),
    ("webhook_subscriptions", "Delivery of events to the application"),
    ("webhook_endpoints", "Addresses for the webhooks of providers"),
    ("webhook_ingress", "Webhooks of providers"),
    ("files", "Files for arguments of tools, and files that tools made"),
    ("logs", "Log of executions"),
    ("auth", "The project and the member of a key"),
    ("project", "Usage of the project"),
    ("org", "Organization: projects, keys, members, OAuth apps, usage"),
    ("api_key_revocation", "Revocation of keys that were found in public"),
    ("migration", "Translation of ids of older clients"),
    ("labs", "Sessions of older clients"),
    ("internal", "Logs in the format of older clients"),
];
