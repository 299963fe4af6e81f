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
    "name" text collate "C"
);
create or replace function "organisations_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."name") in ('string', 'boolean') then f."name" #>> '{}' end
    into new."name"
    from json_to_record(new.body) as f ("name" json);
    return new;
end
$$;
create or replace trigger "organisations_fields" before insert or update of body on "organisations" for each row execute function "organisations_fields"();
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
    "name" text collate "C"
);
create or replace function "projects_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."name") in ('string', 'boolean') then f."name" #>> '{}' end
    into new."name"
    from json_to_record(new.body) as f ("name" json);
    return new;
end
$$;
create or replace trigger "projects_fields" before insert or update of body on "projects" for each row execute function "projects_fields"();
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

create table "project_removals" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "due" bigint
);
create or replace function "project_removals_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."due") = 'number' and f."due" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."due" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."due" #>> '{}')::bigint end end
    into new."due"
    from json_to_record(new.body) as f ("due" json);
    return new;
end
$$;
create or replace trigger "project_removals_fields" before insert or update of body on "project_removals" for each row execute function "project_removals_fields"();
create index "project_removals_by_created_at" on "project_removals" (project, created_at, id) where deleted_at is null;
create index "project_removals_all_by_due" on "project_removals" ("due" nulls first, created_at, id) where deleted_at is null and "due" is not null;

create table "members" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "email" text collate "C"
);
create or replace function "members_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."email") in ('string', 'boolean') then f."email" #>> '{}' end
    into new."email"
    from json_to_record(new.body) as f ("email" json);
    return new;
end
$$;
create or replace trigger "members_fields" before insert or update of body on "members" for each row execute function "members_fields"();
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
    "slug" text collate "C",
    "digest" text collate "C"
);
create or replace function "toolkit_versions_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."slug") in ('string', 'boolean') then f."slug" #>> '{}' end,
        case when json_typeof(f."digest") in ('string', 'boolean') then f."digest" #>> '{}' end
    into new."slug", new."digest"
    from json_to_record(new.body) as f ("slug" json, "digest" json);
    return new;
end
$$;
create or replace trigger "toolkit_versions_fields" before insert or update of body on "toolkit_versions" for each row execute function "toolkit_versions_fields"();
create index "toolkit_versions_by_created_at" on "toolkit_versions" (project, created_at, id) where deleted_at is null;
create index "toolkit_versions_by_slug" on "toolkit_versions" (project, "slug" nulls first, created_at, id) where deleted_at is null;
create index "toolkit_versions_by_digest" on "toolkit_versions" (project, "digest" nulls first, created_at, id) where deleted_at is null;

create table "toolkit_publications" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "toolkit_publications_by_created_at" on "toolkit_publications" (project, created_at, id) where deleted_at is null;

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
    "toolkit" text collate "C",
    "status" text collate "C",
    "managed" text collate "C",
    "folded" text collate "C",
    "uuid" text collate "C"
);
create or replace function "auth_configs_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."toolkit") in ('string', 'boolean') then f."toolkit" #>> '{}' end,
        case when json_typeof(f."status") in ('string', 'boolean') then f."status" #>> '{}' end,
        case when json_typeof(f."managed") in ('string', 'boolean') then f."managed" #>> '{}' end,
        case when json_typeof(f."folded") in ('string', 'boolean') then f."folded" #>> '{}' end,
        case when json_typeof(f."uuid") in ('string', 'boolean') then f."uuid" #>> '{}' end
    into new."toolkit", new."status", new."managed", new."folded", new."uuid"
    from json_to_record(new.body) as f ("toolkit" json, "status" json, "managed" json, "folded" json, "uuid" json);
    return new;
end
$$;
create or replace trigger "auth_configs_fields" before insert or update of body on "auth_configs" for each row execute function "auth_configs_fields"();
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
    "user_id" text collate "C",
    "toolkit" text collate "C",
    "auth_config" text collate "C",
    "status" text collate "C",
    "changed_at" bigint,
    "waits_until" bigint,
    "uuid" text collate "C",
    "alias_of" text collate "C",
    "account_type" text collate "C"
);
create or replace function "connected_accounts_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."user_id") in ('string', 'boolean') then f."user_id" #>> '{}' end,
        case when json_typeof(f."toolkit") in ('string', 'boolean') then f."toolkit" #>> '{}' end,
        case when json_typeof(f."auth_config") in ('string', 'boolean') then f."auth_config" #>> '{}' end,
        case when json_typeof(f."status") in ('string', 'boolean') then f."status" #>> '{}' end,
        case when json_typeof(f."changed_at") = 'number' and f."changed_at" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."changed_at" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."changed_at" #>> '{}')::bigint end end,
        case when json_typeof(f."waits_until") = 'number' and f."waits_until" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."waits_until" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."waits_until" #>> '{}')::bigint end end,
        case when json_typeof(f."uuid") in ('string', 'boolean') then f."uuid" #>> '{}' end,
        case when json_typeof(f."alias_of") in ('string', 'boolean') then f."alias_of" #>> '{}' end,
        case when json_typeof(f."account_type") in ('string', 'boolean') then f."account_type" #>> '{}' end
    into new."user_id", new."toolkit", new."auth_config", new."status", new."changed_at", new."waits_until", new."uuid", new."alias_of", new."account_type"
    from json_to_record(new.body) as f ("user_id" json, "toolkit" json, "auth_config" json, "status" json, "changed_at" json, "waits_until" json, "uuid" json, "alias_of" json, "account_type" json);
    return new;
end
$$;
create or replace trigger "connected_accounts_fields" before insert or update of body on "connected_accounts" for each row execute function "connected_accounts_fields"();
create index "connected_accounts_by_created_at" on "connected_accounts" (project, created_at, id) where deleted_at is null;
create index "connected_accounts_by_user_id" on "connected_accounts" (project, "user_id" nulls first, created_at, id) where deleted_at is null;
create index "connected_accounts_by_toolkit" on "connected_accounts" (project, "toolkit" nulls first, created_at, id) where deleted_at is null;
create index "connected_accounts_by_auth_config" on "connected_accounts" (project, "auth_config" nulls first, created_at, id) where deleted_at is null;
create index "connected_accounts_by_status" on "connected_accounts" (project, "status" nulls first, created_at, id) where deleted_at is null;
create index "connected_accounts_by_changed_at" on "connected_accounts" (project, "changed_at" nulls first, created_at, id) where deleted_at is null;
create index "connected_accounts_by_waits_until" on "connected_accounts" (project, "waits_until" nulls first, created_at, id) where deleted_at is null;
create unique index "connected_accounts_one_uuid" on "connected_accounts" (project, "uuid" nulls first) where deleted_at is null;
create unique index "connected_accounts_one_alias_of" on "connected_accounts" (project, "alias_of" nulls first) where deleted_at is null;
create index "connected_accounts_by_account_type" on "connected_accounts" (project, "account_type" nulls first, created_at, id) where deleted_at is null;

create table "credentials" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "due" bigint
);
create or replace function "credentials_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."due") = 'number' and f."due" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."due" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."due" #>> '{}')::bigint end end
    into new."due"
    from json_to_record(new.body) as f ("due" json);
    return new;
end
$$;
create or replace trigger "credentials_fields" before insert or update of body on "credentials" for each row execute function "credentials_fields"();
create index "credentials_by_created_at" on "credentials" (project, created_at, id) where deleted_at is null;
create index "credentials_all_by_due" on "credentials" ("due" nulls first, created_at, id) where deleted_at is null and "due" is not null;

create table "flows" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "until" bigint
);
create or replace function "flows_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."until") = 'number' and f."until" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."until" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."until" #>> '{}')::bigint end end
    into new."until"
    from json_to_record(new.body) as f ("until" json);
    return new;
end
$$;
create or replace trigger "flows_fields" before insert or update of body on "flows" for each row execute function "flows_fields"();
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

create table "clients" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "auth_config" text collate "C"
);
create or replace function "clients_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."auth_config") in ('string', 'boolean') then f."auth_config" #>> '{}' end
    into new."auth_config"
    from json_to_record(new.body) as f ("auth_config" json);
    return new;
end
$$;
create or replace trigger "clients_fields" before insert or update of body on "clients" for each row execute function "clients_fields"();
create index "clients_by_created_at" on "clients" (project, created_at, id) where deleted_at is null;
create index "clients_by_auth_config" on "clients" (project, "auth_config" nulls first, created_at, id) where deleted_at is null;

create table "trigger_instances" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "trigger" text collate "C",
    "account" text collate "C",
    "account_uuid" text collate "C",
    "auth_config" text collate "C",
    "auth_config_uuid" text collate "C",
    "user_id" text collate "C",
    "disabled_at" bigint,
    "uuid" text collate "C",
    "identity" text collate "C"
);
create or replace function "trigger_instances_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."trigger") in ('string', 'boolean') then f."trigger" #>> '{}' end,
        case when json_typeof(f."account") in ('string', 'boolean') then f."account" #>> '{}' end,
        case when json_typeof(f."account_uuid") in ('string', 'boolean') then f."account_uuid" #>> '{}' end,
        case when json_typeof(f."auth_config") in ('string', 'boolean') then f."auth_config" #>> '{}' end,
        case when json_typeof(f."auth_config_uuid") in ('string', 'boolean') then f."auth_config_uuid" #>> '{}' end,
        case when json_typeof(f."user_id") in ('string', 'boolean') then f."user_id" #>> '{}' end,
        case when json_typeof(f."disabled_at") = 'number' and f."disabled_at" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."disabled_at" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."disabled_at" #>> '{}')::bigint end end,
        case when json_typeof(f."uuid") in ('string', 'boolean') then f."uuid" #>> '{}' end,
        case when json_typeof(f."identity") in ('string', 'boolean') then f."identity" #>> '{}' end
    into new."trigger", new."account", new."account_uuid", new."auth_config", new."auth_config_uuid", new."user_id", new."disabled_at", new."uuid", new."identity"
    from json_to_record(new.body) as f ("trigger" json, "account" json, "account_uuid" json, "auth_config" json, "auth_config_uuid" json, "user_id" json, "disabled_at" json, "uuid" json, "identity" json);
    return new;
end
$$;
create or replace trigger "trigger_instances_fields" before insert or update of body on "trigger_instances" for each row execute function "trigger_instances_fields"();
create index "trigger_instances_by_created_at" on "trigger_instances" (project, created_at, id) where deleted_at is null;
create index "trigger_instances_by_trigger" on "trigger_instances" (project, "trigger" nulls first, created_at, id) where deleted_at is null;
create index "trigger_instances_by_account" on "trigger_instances" (project, "account" nulls first, created_at, id) where deleted_at is null;
create index "trigger_instances_by_account_uuid" on "trigger_instances" (project, "account_uuid" nulls first, created_at, id) where deleted_at is null;
create index "trigger_instances_by_auth_config" on "trigger_instances" (project, "auth_config" nulls first, created_at, id) where deleted_at is null;
create index "trigger_instances_by_auth_config_uuid" on "trigger_instances" (project, "auth_config_uuid" nulls first, created_at, id) where deleted_at is null;
create index "trigger_instances_by_user_id" on "trigger_instances" (project, "user_id" nulls first, created_at, id) where deleted_at is null;
create index "trigger_instances_by_disabled_at" on "trigger_instances" (project, "disabled_at" nulls first, created_at, id) where deleted_at is null;
create unique index "trigger_instances_one_uuid" on "trigger_instances" (project, "uuid" nulls first) where deleted_at is null;
create unique index "trigger_instances_one_identity" on "trigger_instances" (project, "identity" nulls first) where deleted_at is null;

create table "trigger_progress" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "due" bigint
);
create or replace function "trigger_progress_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."due") = 'number' and f."due" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."due" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."due" #>> '{}')::bigint end end
    into new."due"
    from json_to_record(new.body) as f ("due" json);
    return new;
end
$$;
create or replace trigger "trigger_progress_fields" before insert or update of body on "trigger_progress" for each row execute function "trigger_progress_fields"();
create index "trigger_progress_by_created_at" on "trigger_progress" (project, created_at, id) where deleted_at is null;
create index "trigger_progress_all_by_due" on "trigger_progress" ("due" nulls first, created_at, id) where deleted_at is null and "due" is not null;

create table "trigger_subscriptions" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "due" bigint
);
create or replace function "trigger_subscriptions_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."due") = 'number' and f."due" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."due" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."due" #>> '{}')::bigint end end
    into new."due"
    from json_to_record(new.body) as f ("due" json);
    return new;
end
$$;
create or replace trigger "trigger_subscriptions_fields" before insert or update of body on "trigger_subscriptions" for each row execute function "trigger_subscriptions_fields"();
create index "trigger_subscriptions_by_created_at" on "trigger_subscriptions" (project, created_at, id) where deleted_at is null;
create index "trigger_subscriptions_all_by_due" on "trigger_subscriptions" ("due" nulls first, created_at, id) where deleted_at is null and "due" is not null;

create table "trigger_actions" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "instance" text collate "C",
    "status" text collate "C",
    "due" bigint
);
create or replace function "trigger_actions_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."instance") in ('string', 'boolean') then f."instance" #>> '{}' end,
        case when json_typeof(f."status") in ('string', 'boolean') then f."status" #>> '{}' end,
        case when json_typeof(f."due") = 'number' and f."due" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."due" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."due" #>> '{}')::bigint end end
    into new."instance", new."status", new."due"
    from json_to_record(new.body) as f ("instance" json, "status" json, "due" json);
    return new;
end
$$;
create or replace trigger "trigger_actions_fields" before insert or update of body on "trigger_actions" for each row execute function "trigger_actions_fields"();
create index "trigger_actions_by_created_at" on "trigger_actions" (project, created_at, id) where deleted_at is null;
create index "trigger_actions_by_instance" on "trigger_actions" (project, "instance" nulls first, created_at, id) where deleted_at is null;
create index "trigger_actions_by_status" on "trigger_actions" (project, "status" nulls first, created_at, id) where deleted_at is null;
create index "trigger_actions_all_by_due" on "trigger_actions" ("due" nulls first, created_at, id) where deleted_at is null and "due" is not null;

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
    "toolkit" text collate "C",
    "tool" text collate "C",
    "state" text collate "C",
    "content" text collate "C"
);
create or replace function "files_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."toolkit") in ('string', 'boolean') then f."toolkit" #>> '{}' end,
        case when json_typeof(f."tool") in ('string', 'boolean') then f."tool" #>> '{}' end,
        case when json_typeof(f."state") in ('string', 'boolean') then f."state" #>> '{}' end,
        case when json_typeof(f."content") in ('string', 'boolean') then f."content" #>> '{}' end
    into new."toolkit", new."tool", new."state", new."content"
    from json_to_record(new.body) as f ("toolkit" json, "tool" json, "state" json, "content" json);
    return new;
end
$$;
create or replace trigger "files_fields" before insert or update of body on "files" for each row execute function "files_fields"();
create index "files_by_created_at" on "files" (project, created_at, id) where deleted_at is null;
create index "files_by_toolkit" on "files" (project, "toolkit" nulls first, created_at, id) where deleted_at is null;
create index "files_by_tool" on "files" (project, "tool" nulls first, created_at, id) where deleted_at is null;
create index "files_by_state" on "files" (project, "state" nulls first, created_at, id) where deleted_at is null;
create unique index "files_one_content" on "files" (project, "content" nulls first) where deleted_at is null;

create table "file_totals" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "file_totals_by_created_at" on "file_totals" (project, created_at, id) where deleted_at is null;

create table "execution_pages" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "tools" jsonb,
    "toolkits" jsonb,
    "statuses" jsonb,
    "users" jsonb,
    "accounts" jsonb,
    "auth_configs" jsonb,
    "sessions" jsonb,
    "slow" jsonb
);
create or replace function "execution_pages_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."tools") = 'array' then f."tools"::jsonb end,
        case when json_typeof(f."toolkits") = 'array' then f."toolkits"::jsonb end,
        case when json_typeof(f."statuses") = 'array' then f."statuses"::jsonb end,
        case when json_typeof(f."users") = 'array' then f."users"::jsonb end,
        case when json_typeof(f."accounts") = 'array' then f."accounts"::jsonb end,
        case when json_typeof(f."auth_configs") = 'array' then f."auth_configs"::jsonb end,
        case when json_typeof(f."sessions") = 'array' then f."sessions"::jsonb end,
        case when json_typeof(f."slow") = 'array' then f."slow"::jsonb end
    into new."tools", new."toolkits", new."statuses", new."users", new."accounts", new."auth_configs", new."sessions", new."slow"
    from json_to_record(new.body) as f ("tools" json, "toolkits" json, "statuses" json, "users" json, "accounts" json, "auth_configs" json, "sessions" json, "slow" json);
    return new;
end
$$;
create or replace trigger "execution_pages_fields" before insert or update of body on "execution_pages" for each row execute function "execution_pages_fields"();
create index "execution_pages_by_created_at" on "execution_pages" (project, created_at, id) where deleted_at is null;
create index "execution_pages_by_tools" on "execution_pages" using gin ("tools" jsonb_path_ops) where deleted_at is null;
create index "execution_pages_by_toolkits" on "execution_pages" using gin ("toolkits" jsonb_path_ops) where deleted_at is null;
create index "execution_pages_by_statuses" on "execution_pages" using gin ("statuses" jsonb_path_ops) where deleted_at is null;
create index "execution_pages_by_users" on "execution_pages" using gin ("users" jsonb_path_ops) where deleted_at is null;
create index "execution_pages_by_accounts" on "execution_pages" using gin ("accounts" jsonb_path_ops) where deleted_at is null;
create index "execution_pages_by_auth_configs" on "execution_pages" using gin ("auth_configs" jsonb_path_ops) where deleted_at is null;
create index "execution_pages_by_sessions" on "execution_pages" using gin ("sessions" jsonb_path_ops) where deleted_at is null;
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

create table "webhook_subscriptions" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "place" text collate "C"
);
create or replace function "webhook_subscriptions_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."place") in ('string', 'boolean') then f."place" #>> '{}' end
    into new."place"
    from json_to_record(new.body) as f ("place" json);
    return new;
end
$$;
create or replace trigger "webhook_subscriptions_fields" before insert or update of body on "webhook_subscriptions" for each row execute function "webhook_subscriptions_fields"();
create index "webhook_subscriptions_by_created_at" on "webhook_subscriptions" (project, created_at, id) where deleted_at is null;
create unique index "webhook_subscriptions_one_place" on "webhook_subscriptions" (project, "place" nulls first) where deleted_at is null;

create table "webhook_endpoints" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "toolkit" text collate "C",
    "identity" text collate "C"
);
create or replace function "webhook_endpoints_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."toolkit") in ('string', 'boolean') then f."toolkit" #>> '{}' end,
        case when json_typeof(f."identity") in ('string', 'boolean') then f."identity" #>> '{}' end
    into new."toolkit", new."identity"
    from json_to_record(new.body) as f ("toolkit" json, "identity" json);
    return new;
end
$$;
create or replace trigger "webhook_endpoints_fields" before insert or update of body on "webhook_endpoints" for each row execute function "webhook_endpoints_fields"();
create index "webhook_endpoints_by_created_at" on "webhook_endpoints" (project, created_at, id) where deleted_at is null;
create index "webhook_endpoints_by_toolkit" on "webhook_endpoints" (project, "toolkit" nulls first, created_at, id) where deleted_at is null;
create unique index "webhook_endpoints_one_identity" on "webhook_endpoints" (project, "identity" nulls first) where deleted_at is null;

create table "events" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "trigger" text collate "C",
    "log" text collate "C"
);
create or replace function "events_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."trigger") in ('string', 'boolean') then f."trigger" #>> '{}' end,
        case when json_typeof(f."log") in ('string', 'boolean') then f."log" #>> '{}' end
    into new."trigger", new."log"
    from json_to_record(new.body) as f ("trigger" json, "log" json);
    return new;
end
$$;
create or replace trigger "events_fields" before insert or update of body on "events" for each row execute function "events_fields"();
create index "events_by_created_at" on "events" (project, created_at, id) where deleted_at is null;
create index "events_by_trigger" on "events" (project, "trigger" nulls first, created_at, id) where deleted_at is null;
create index "events_by_log" on "events" (project, "log" nulls first, created_at, id) where deleted_at is null;

create table "sink_messages" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "due" bigint
);
create or replace function "sink_messages_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."due") = 'number' and f."due" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."due" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."due" #>> '{}')::bigint end end
    into new."due"
    from json_to_record(new.body) as f ("due" json);
    return new;
end
$$;
create or replace trigger "sink_messages_fields" before insert or update of body on "sink_messages" for each row execute function "sink_messages_fields"();
create index "sink_messages_by_created_at" on "sink_messages" (project, created_at, id) where deleted_at is null;
create index "sink_messages_all_by_due" on "sink_messages" ("due" nulls first, created_at, id) where deleted_at is null and "due" is not null;

create table "webhook_deliveries" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "subscription" text collate "C",
    "status" text collate "C",
    "after" text collate "C",
    "due" bigint
);
create or replace function "webhook_deliveries_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."subscription") in ('string', 'boolean') then f."subscription" #>> '{}' end,
        case when json_typeof(f."status") in ('string', 'boolean') then f."status" #>> '{}' end,
        case when json_typeof(f."after") in ('string', 'boolean') then f."after" #>> '{}' end,
        case when json_typeof(f."due") = 'number' and f."due" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."due" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."due" #>> '{}')::bigint end end
    into new."subscription", new."status", new."after", new."due"
    from json_to_record(new.body) as f ("subscription" json, "status" json, "after" json, "due" json);
    return new;
end
$$;
create or replace trigger "webhook_deliveries_fields" before insert or update of body on "webhook_deliveries" for each row execute function "webhook_deliveries_fields"();
create index "webhook_deliveries_by_created_at" on "webhook_deliveries" (project, created_at, id) where deleted_at is null;
create index "webhook_deliveries_by_subscription" on "webhook_deliveries" (project, "subscription" nulls first, created_at, id) where deleted_at is null;
create index "webhook_deliveries_by_status" on "webhook_deliveries" (project, "status" nulls first, created_at, id) where deleted_at is null;
create index "webhook_deliveries_by_after" on "webhook_deliveries" (project, "after" nulls first, created_at, id) where deleted_at is null;
create index "webhook_deliveries_all_by_due" on "webhook_deliveries" ("due" nulls first, created_at, id) where deleted_at is null and "due" is not null;

create table "webhook_lanes" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "last_at" bigint
);
create or replace function "webhook_lanes_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."last_at") = 'number' and f."last_at" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."last_at" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."last_at" #>> '{}')::bigint end end
    into new."last_at"
    from json_to_record(new.body) as f ("last_at" json);
    return new;
end
$$;
create or replace trigger "webhook_lanes_fields" before insert or update of body on "webhook_lanes" for each row execute function "webhook_lanes_fields"();
create index "webhook_lanes_by_created_at" on "webhook_lanes" (project, created_at, id) where deleted_at is null;
create index "webhook_lanes_by_last_at" on "webhook_lanes" (project, "last_at" nulls first, created_at, id) where deleted_at is null;

create table "mcp_servers" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "folded_name" text collate "C",
    "toolkits" jsonb,
    "auth_configs" jsonb,
    "changed_at" bigint
);
create or replace function "mcp_servers_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."folded_name") in ('string', 'boolean') then f."folded_name" #>> '{}' end,
        case when json_typeof(f."toolkits") = 'array' then f."toolkits"::jsonb end,
        case when json_typeof(f."auth_configs") = 'array' then f."auth_configs"::jsonb end,
        case when json_typeof(f."changed_at") = 'number' and f."changed_at" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."changed_at" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."changed_at" #>> '{}')::bigint end end
    into new."folded_name", new."toolkits", new."auth_configs", new."changed_at"
    from json_to_record(new.body) as f ("folded_name" json, "toolkits" json, "auth_configs" json, "changed_at" json);
    return new;
end
$$;
create or replace trigger "mcp_servers_fields" before insert or update of body on "mcp_servers" for each row execute function "mcp_servers_fields"();
create index "mcp_servers_by_created_at" on "mcp_servers" (project, created_at, id) where deleted_at is null;
create index "mcp_servers_by_folded_name" on "mcp_servers" (project, "folded_name" nulls first, created_at, id) where deleted_at is null;
create index "mcp_servers_by_toolkits" on "mcp_servers" using gin ("toolkits" jsonb_path_ops) where deleted_at is null;
create index "mcp_servers_by_auth_configs" on "mcp_servers" using gin ("auth_configs" jsonb_path_ops) where deleted_at is null;
create index "mcp_servers_by_changed_at" on "mcp_servers" (project, "changed_at" nulls first, created_at, id) where deleted_at is null;

create table "mcp_instances" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "server" text collate "C",
    "folded_user" text collate "C",
    "changed_at" bigint,
    "identity" text collate "C"
);
create or replace function "mcp_instances_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."server") in ('string', 'boolean') then f."server" #>> '{}' end,
        case when json_typeof(f."folded_user") in ('string', 'boolean') then f."folded_user" #>> '{}' end,
        case when json_typeof(f."changed_at") = 'number' and f."changed_at" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."changed_at" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."changed_at" #>> '{}')::bigint end end,
        case when json_typeof(f."identity") in ('string', 'boolean') then f."identity" #>> '{}' end
    into new."server", new."folded_user", new."changed_at", new."identity"
    from json_to_record(new.body) as f ("server" json, "folded_user" json, "changed_at" json, "identity" json);
    return new;
end
$$;
create or replace trigger "mcp_instances_fields" before insert or update of body on "mcp_instances" for each row execute function "mcp_instances_fields"();
create index "mcp_instances_by_created_at" on "mcp_instances" (project, created_at, id) where deleted_at is null;
create index "mcp_instances_by_server" on "mcp_instances" (project, "server" nulls first, created_at, id) where deleted_at is null;
create index "mcp_instances_by_folded_user" on "mcp_instances" (project, "folded_user" nulls first, created_at, id) where deleted_at is null;
create index "mcp_instances_by_changed_at" on "mcp_instances" (project, "changed_at" nulls first, created_at, id) where deleted_at is null;
create unique index "mcp_instances_one_identity" on "mcp_instances" (project, "identity" nulls first) where deleted_at is null;

create table "mcp_consents" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "until" bigint
);
create or replace function "mcp_consents_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."until") = 'number' and f."until" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."until" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."until" #>> '{}')::bigint end end
    into new."until"
    from json_to_record(new.body) as f ("until" json);
    return new;
end
$$;
create or replace trigger "mcp_consents_fields" before insert or update of body on "mcp_consents" for each row execute function "mcp_consents_fields"();
create index "mcp_consents_by_created_at" on "mcp_consents" (project, created_at, id) where deleted_at is null;
create index "mcp_consents_by_until" on "mcp_consents" (project, "until" nulls first, created_at, id) where deleted_at is null;

create table "tool_router_sessions" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "tool_router_sessions_by_created_at" on "tool_router_sessions" (project, created_at, id) where deleted_at is null;

create table "tool_router_configs" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "session" text collate "C"
);
create or replace function "tool_router_configs_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."session") in ('string', 'boolean') then f."session" #>> '{}' end
    into new."session"
    from json_to_record(new.body) as f ("session" json);
    return new;
end
$$;
create or replace trigger "tool_router_configs_fields" before insert or update of body on "tool_router_configs" for each row execute function "tool_router_configs_fields"();
create index "tool_router_configs_by_created_at" on "tool_router_configs" (project, created_at, id) where deleted_at is null;
create index "tool_router_configs_by_session" on "tool_router_configs" (project, "session" nulls first, created_at, id) where deleted_at is null;

create table "approval_answers" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "session" text collate "C"
);
create or replace function "approval_answers_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."session") in ('string', 'boolean') then f."session" #>> '{}' end
    into new."session"
    from json_to_record(new.body) as f ("session" json);
    return new;
end
$$;
create or replace trigger "approval_answers_fields" before insert or update of body on "approval_answers" for each row execute function "approval_answers_fields"();
create index "approval_answers_by_created_at" on "approval_answers" (project, created_at, id) where deleted_at is null;
create index "approval_answers_by_session" on "approval_answers" (project, "session" nulls first, created_at, id) where deleted_at is null;

create table "recipes" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "user_id" text collate "C"
);
create or replace function "recipes_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."user_id") in ('string', 'boolean') then f."user_id" #>> '{}' end
    into new."user_id"
    from json_to_record(new.body) as f ("user_id" json);
    return new;
end
$$;
create or replace trigger "recipes_fields" before insert or update of body on "recipes" for each row execute function "recipes_fields"();
create index "recipes_by_created_at" on "recipes" (project, created_at, id) where deleted_at is null;
create index "recipes_by_user_id" on "recipes" (project, "user_id" nulls first, created_at, id) where deleted_at is null;

create table "recipe_versions" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "recipe" text collate "C"
);
create or replace function "recipe_versions_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."recipe") in ('string', 'boolean') then f."recipe" #>> '{}' end
    into new."recipe"
    from json_to_record(new.body) as f ("recipe" json);
    return new;
end
$$;
create or replace trigger "recipe_versions_fields" before insert or update of body on "recipe_versions" for each row execute function "recipe_versions_fields"();
create index "recipe_versions_by_created_at" on "recipe_versions" (project, created_at, id) where deleted_at is null;
create index "recipe_versions_by_recipe" on "recipe_versions" (project, "recipe" nulls first, created_at, id) where deleted_at is null;

create table "recipe_runs" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "recipe_id" text collate "C",
    "status" text collate "C",
    "due" bigint
);
create or replace function "recipe_runs_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."recipe_id") in ('string', 'boolean') then f."recipe_id" #>> '{}' end,
        case when json_typeof(f."status") in ('string', 'boolean') then f."status" #>> '{}' end,
        case when json_typeof(f."due") = 'number' and f."due" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."due" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."due" #>> '{}')::bigint end end
    into new."recipe_id", new."status", new."due"
    from json_to_record(new.body) as f ("recipe_id" json, "status" json, "due" json);
    return new;
end
$$;
create or replace trigger "recipe_runs_fields" before insert or update of body on "recipe_runs" for each row execute function "recipe_runs_fields"();
create index "recipe_runs_by_created_at" on "recipe_runs" (project, created_at, id) where deleted_at is null;
create index "recipe_runs_by_recipe_id" on "recipe_runs" (project, "recipe_id" nulls first, created_at, id) where deleted_at is null;
create index "recipe_runs_by_status" on "recipe_runs" (project, "status" nulls first, created_at, id) where deleted_at is null;
create index "recipe_runs_all_by_due" on "recipe_runs" ("due" nulls first, created_at, id) where deleted_at is null and "due" is not null;

create table "recipe_plans" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "recipe_plans_by_created_at" on "recipe_plans" (project, created_at, id) where deleted_at is null;

create table "recipe_calls" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "run" text collate "C"
);
create or replace function "recipe_calls_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."run") in ('string', 'boolean') then f."run" #>> '{}' end
    into new."run"
    from json_to_record(new.body) as f ("run" json);
    return new;
end
$$;
create or replace trigger "recipe_calls_fields" before insert or update of body on "recipe_calls" for each row execute function "recipe_calls_fields"();
create index "recipe_calls_by_created_at" on "recipe_calls" (project, created_at, id) where deleted_at is null;
create index "recipe_calls_by_run" on "recipe_calls" (project, "run" nulls first, created_at, id) where deleted_at is null;

create table "session_files" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "session" text collate "C",
    "place" text collate "C"
);
create or replace function "session_files_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."session") in ('string', 'boolean') then f."session" #>> '{}' end,
        case when json_typeof(f."place") in ('string', 'boolean') then f."place" #>> '{}' end
    into new."session", new."place"
    from json_to_record(new.body) as f ("session" json, "place" json);
    return new;
end
$$;
create or replace trigger "session_files_fields" before insert or update of body on "session_files" for each row execute function "session_files_fields"();
create index "session_files_by_created_at" on "session_files" (project, created_at, id) where deleted_at is null;
create index "session_files_by_session" on "session_files" (project, "session" nulls first, created_at, id) where deleted_at is null;
create unique index "session_files_one_place" on "session_files" (project, "place" nulls first) where deleted_at is null;

create table "session_turns" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "session_turns_by_created_at" on "session_turns" (project, created_at, id) where deleted_at is null;

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

create table "daily_amounts" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null
);
create index "daily_amounts_by_created_at" on "daily_amounts" (project, created_at, id) where deleted_at is null;

create table "leases" (
    id text collate "C" primary key,
    project text collate "C" not null,
    revision bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint,
    body json not null,
    "due" bigint
);
create or replace function "leases_fields"() returns trigger language plpgsql as $$
begin
    select
        case when json_typeof(f."due") = 'number' and f."due" #>> '{}' ~ '^(0|-?[1-9][0-9]{0,18})$' then case when (f."due" #>> '{}')::numeric between -9223372036854775808 and 9223372036854775807 then (f."due" #>> '{}')::bigint end end
    into new."due"
    from json_to_record(new.body) as f ("due" json);
    return new;
end
$$;
create or replace trigger "leases_fields" before insert or update of body on "leases" for each row execute function "leases_fields"();
create index "leases_by_created_at" on "leases" (project, created_at, id) where deleted_at is null;
create index "leases_all_by_due" on "leases" ("due" nulls first, created_at, id) where deleted_at is null and "due" is not null;

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
