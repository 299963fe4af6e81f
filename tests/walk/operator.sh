#!/usr/bin/env bash
# The operator's first hour: install, first call, backup, restore, metrics. The environment names
# COMPONENT, the file of the toolkit `documents`.
. "$(dirname "$0")/steps.sh"

install_commands
done_with "install"

export TOOLHOST_METRICS__LISTEN=127.0.0.1:0 TOOLHOST_PASSPHRASE='a passphrase of this walk'
mkdir toolkits
cp "$COMPONENT" toolkits/
start_server --toolkits toolkits
done_with "first start"

called=$(api tools/execute/DOCUMENTS_HTML_TO_MARKDOWN -d '{"arguments": {"html": "<h1>Hello</h1>"}}')
holds "$called" '.successful and (.data.markdown | contains("# Hello"))'
log=$(jq -r .log_id <<<"$called")
done_with "first call"

quietly toolhost doctor
done_with "doctor"

quietly toolhost export backup.age
done_with "backup"

metrics=$(curl -sS --fail "$METRICS_URL")
grep -q '^toolhost_executions_total{.*toolkit="documents".*} 1$' <<<"$metrics"
done_with "metrics"

stop_server
done_with "stop"

quietly toolhost import backup.age --data ./restored
key=$TOOLHOST_API_KEY
start_server --data ./restored
TOOLHOST_API_KEY=$key
holds "$(api "logs/tool_execution/$log")" '.id == "'"$log"'"'
called=$(api tools/execute/DOCUMENTS_HTML_TO_MARKDOWN -d '{"arguments": {"html": "<b>again</b>"}}')
holds "$called" .successful
done_with "restore, the same key and log"
stop_server
