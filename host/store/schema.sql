create table "data_keys" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "data_keys_by_created_at" on "data_keys" (project, created_at, id) where deleted_at is null;

create table "organisations" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "name" text collate "C" generated always as (case when json_typeof(body->'name') in ('string', 'boolean') then body->>'name' end) stored
);
create index "organisations_by_created_at" on "organisations" (project, created_at, id) where deleted_at is null;
create unique index "organisations_one_name" on "organisations" (project, "name" nulls first) where deleted_at is null;

create table "projects" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "name" text collate "C" generated always as (case when json_typeof(body->'name') in ('string', 'boolean') then body->>'name' end) stored
);
create index "projects_by_created_at" on "projects" (project, created_at, id) where deleted_at is null;
create unique index "projects_one_name" on "projects" (project, "name" nulls first) where deleted_at is null;

create table "api_keys" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "api_keys_by_created_at" on "api_keys" (project, created_at, id) where deleted_at is null;

create table "members" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "email" text collate "C" generated always as (case when json_typeof(body->'email') in ('string', 'boolean') then body->>'email' end) stored
);
create index "members_by_created_at" on "members" (project, created_at, id) where deleted_at is null;
create unique index "members_one_email" on "members" (project, "email" nulls first) where deleted_at is null;

create table "toolkit_versions" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "slug" text collate "C" generated always as (case when json_typeof(body->'slug') in ('string', 'boolean') then body->>'slug' end) stored,
    "digest" text collate "C" generated always as (case when json_typeof(body->'digest') in ('string', 'boolean') then body->>'digest' end) stored
);
create index "toolkit_versions_by_created_at" on "toolkit_versions" (project, created_at, id) where deleted_at is null;
create index "toolkit_versions_by_slug" on "toolkit_versions" (project, "slug" nulls first, created_at, id) where deleted_at is null;
create index "toolkit_versions_by_digest" on "toolkit_versions" (project, "digest" nulls first, created_at, id) where deleted_at is null;

create table "toolkit_usage" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "toolkit_usage_by_created_at" on "toolkit_usage" (project, created_at, id) where deleted_at is null;

create table "auth_configs" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "toolkit" text collate "C" generated always as (case when json_typeof(body->'toolkit') in ('string', 'boolean') then body->>'toolkit' end) stored,
    "status" text collate "C" generated always as (case when json_typeof(body->'status') in ('string', 'boolean') then body->>'status' end) stored,
    "managed" text collate "C" generated always as (case when json_typeof(body->'managed') in ('string', 'boolean') then body->>'managed' end) stored,
    "folded" text collate "C" generated always as (case when json_typeof(body->'folded') in ('string', 'boolean') then body->>'folded' end) stored,
    "uuid" text collate "C" generated always as (case when json_typeof(body->'uuid') in ('string', 'boolean') then body->>'uuid' end) stored
);
create index "auth_configs_by_created_at" on "auth_configs" (project, created_at, id) where deleted_at is null;
create index "auth_configs_by_toolkit" on "auth_configs" (project, "toolkit" nulls first, created_at, id) where deleted_at is null;
create index "auth_configs_by_status" on "auth_configs" (project, "status" nulls first, created_at, id) where deleted_at is null;
create index "auth_configs_by_managed" on "auth_configs" (project, "managed" nulls first, created_at, id) where deleted_at is null;
create index "auth_configs_by_folded" on "auth_configs" (project, "folded" nulls first, created_at, id) where deleted_at is null;
create unique index "auth_configs_one_uuid" on "auth_configs" (project, "uuid" nulls first) where deleted_at is null;

create table "connected_accounts" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "user_id" text collate "C" generated always as (case when json_typeof(body->'user_id') in ('string', 'boolean') then body->>'user_id' end) stored,
    "toolkit" text collate "C" generated always as (case when json_typeof(body->'toolkit') in ('string', 'boolean') then body->>'toolkit' end) stored,
    "auth_config" text collate "C" generated always as (case when json_typeof(body->'auth_config') in ('string', 'boolean') then body->>'auth_config' end) stored,
    "status" text collate "C" generated always as (case when json_typeof(body->'status') in ('string', 'boolean') then body->>'status' end) stored,
    "changed_at" bigint generated always as (case when json_typeof(body->'changed_at') = 'number' and body->>'changed_at' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (body->>'changed_at')::numeric between -9223372036854775808 and 9223372036854775807 then (body->>'changed_at')::bigint end end) stored,
    "waits_until" bigint generated always as (case when json_typeof(body->'waits_until') = 'number' and body->>'waits_until' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (body->>'waits_until')::numeric between -9223372036854775808 and 9223372036854775807 then (body->>'waits_until')::bigint end end) stored,
    "uuid" text collate "C" generated always as (case when json_typeof(body->'uuid') in ('string', 'boolean') then body->>'uuid' end) stored,
    "alias_of" text collate "C" generated always as (case when json_typeof(body->'alias_of') in ('string', 'boolean') then body->>'alias_of' end) stored
);
create index "connected_accounts_by_created_at" on "connected_accounts" (project, created_at, id) where deleted_at is null;
create index "connected_accounts_by_user_id" on "connected_accounts" (project, "user_id" nulls first, created_at, id) where deleted_at is null;
create index "connected_accounts_by_toolkit" on "connected_accounts" (project, "toolkit" nulls first, created_at, id) where deleted_at is null;
create index "connected_accounts_by_auth_config" on "connected_accounts" (project, "auth_config" nulls first, created_at, id) where deleted_at is null;
create index "connected_accounts_by_status" on "connected_accounts" (project, "status" nulls first, created_at, id) where deleted_at is null;
create index "connected_accounts_by_changed_at" on "connected_accounts" (project, "changed_at" nulls first, created_at, id) where deleted_at is null;
create index "connected_accounts_by_waits_until" on "connected_accounts" (project, "waits_until" nulls first, created_at, id) where deleted_at is null;
create unique index "connected_accounts_one_uuid" on "connected_accounts" (project, "uuid" nulls first) where deleted_at is null;
create unique index "connected_accounts_one_alias_of" on "connected_accounts" (project, "alias_of" nulls first) where deleted_at is null;

create table "credentials" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "due" bigint generated always as (case when json_typeof(body->'due') = 'number' and body->>'due' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (body->>'due')::numeric between -9223372036854775808 and 9223372036854775807 then (body->>'due')::bigint end end) stored
);
create index "credentials_by_created_at" on "credentials" (project, created_at, id) where deleted_at is null;
create index "credentials_by_due" on "credentials" (project, "due" nulls first, created_at, id) where deleted_at is null;

create table "flows" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "until" bigint generated always as (case when json_typeof(body->'until') = 'number' and body->>'until' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (body->>'until')::numeric between -9223372036854775808 and 9223372036854775807 then (body->>'until')::bigint end end) stored
);
create index "flows_by_created_at" on "flows" (project, created_at, id) where deleted_at is null;
create index "flows_by_until" on "flows" (project, "until" nulls first, created_at, id) where deleted_at is null;

create table "oauth_apps" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "oauth_apps_by_created_at" on "oauth_apps" (project, created_at, id) where deleted_at is null;

create table "legacy_ids" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "legacy_ids_by_created_at" on "legacy_ids" (project, created_at, id) where deleted_at is null;

create table "files" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "toolkit" text collate "C" generated always as (case when json_typeof(body->'toolkit') in ('string', 'boolean') then body->>'toolkit' end) stored,
    "tool" text collate "C" generated always as (case when json_typeof(body->'tool') in ('string', 'boolean') then body->>'tool' end) stored,
    "state" text collate "C" generated always as (case when json_typeof(body->'state') in ('string', 'boolean') then body->>'state' end) stored,
    "content" text collate "C" generated always as (case when json_typeof(body->'content') in ('string', 'boolean') then body->>'content' end) stored
);
create index "files_by_created_at" on "files" (project, created_at, id) where deleted_at is null;
create index "files_by_toolkit" on "files" (project, "toolkit" nulls first, created_at, id) where deleted_at is null;
create index "files_by_tool" on "files" (project, "tool" nulls first, created_at, id) where deleted_at is null;
create index "files_by_state" on "files" (project, "state" nulls first, created_at, id) where deleted_at is null;
create unique index "files_one_content" on "files" (project, "content" nulls first) where deleted_at is null;

create table "execution_pages" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "tools" jsonb generated always as (case when json_typeof(body->'tools') = 'array' then (body->'tools')::jsonb end) stored,
    "toolkits" jsonb generated always as (case when json_typeof(body->'toolkits') = 'array' then (body->'toolkits')::jsonb end) stored,
    "statuses" jsonb generated always as (case when json_typeof(body->'statuses') = 'array' then (body->'statuses')::jsonb end) stored,
    "users" jsonb generated always as (case when json_typeof(body->'users') = 'array' then (body->'users')::jsonb end) stored,
    "accounts" jsonb generated always as (case when json_typeof(body->'accounts') = 'array' then (body->'accounts')::jsonb end) stored,
    "auth_configs" jsonb generated always as (case when json_typeof(body->'auth_configs') = 'array' then (body->'auth_configs')::jsonb end) stored,
    "slow" jsonb generated always as (case when json_typeof(body->'slow') = 'array' then (body->'slow')::jsonb end) stored
);
create index "execution_pages_by_created_at" on "execution_pages" (project, created_at, id) where deleted_at is null;
create index "execution_pages_by_tools" on "execution_pages" using gin ("tools" jsonb_path_ops) where deleted_at is null;
create index "execution_pages_by_toolkits" on "execution_pages" using gin ("toolkits" jsonb_path_ops) where deleted_at is null;
create index "execution_pages_by_statuses" on "execution_pages" using gin ("statuses" jsonb_path_ops) where deleted_at is null;
create index "execution_pages_by_users" on "execution_pages" using gin ("users" jsonb_path_ops) where deleted_at is null;
create index "execution_pages_by_accounts" on "execution_pages" using gin ("accounts" jsonb_path_ops) where deleted_at is null;
create index "execution_pages_by_auth_configs" on "execution_pages" using gin ("auth_configs" jsonb_path_ops) where deleted_at is null;
create index "execution_pages_by_slow" on "execution_pages" using gin ("slow" jsonb_path_ops) where deleted_at is null;

create table "execution_details" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "execution_details_by_created_at" on "execution_details" (project, created_at, id) where deleted_at is null;

create table "execution_cassettes" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "execution_cassettes_by_created_at" on "execution_cassettes" (project, created_at, id) where deleted_at is null;

create table "idempotency_keys" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "idempotency_keys_by_created_at" on "idempotency_keys" (project, created_at, id) where deleted_at is null;

create table "leases" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "leases_by_created_at" on "leases" (project, created_at, id) where deleted_at is null;

create table "fences" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "fences_by_created_at" on "fences" (project, created_at, id) where deleted_at is null;
