# Steps of a walk, printed with their seconds. Sourced by each walk, in an empty folder. The
# environment names PROGRAMS, the folder with both commands.
set -euo pipefail
walk=$(basename "$0" .sh)
began=${EPOCHREALTIME//[.,]/}
SERVER=
trap '[ -z "$SERVER" ] || kill "$SERVER"' EXIT
trap 'echo "$walk: line $LINENO failed: $BASH_COMMAND" >&2' ERR
set -E

# Ends a step: prints its name and the seconds since the previous one.
done_with() {
    local now=${EPOCHREALTIME//[.,]/}
    printf '%-9s  %-32s %6d.%d s\n' "$walk" "$1" $(((now - began) / 1000000)) $(((now - began) / 100000 % 10))
    began=${EPOCHREALTIME//[.,]/}
}

# Copies the commands, so that they find nothing of the clone beside them.
install_commands() {
    mkdir bin
    cp "$PROGRAMS/toolhost" "$PROGRAMS/toolkit" bin/
    PATH=$PWD/bin:$PATH
    toolhost --version >/dev/null
    toolkit --version >/dev/null
}

# Starts a server with these arguments. Sets TOOLHOST_URL, TOOLHOST_API_KEY, TOOLHOST_ORG_API_KEY
# and SERVER, its process id.
start_server() {
    local ready lines
    exec {lines}< <(exec toolhost serve --json-ready "$@")
    SERVER=$!
    read -r ready <&"$lines"
    TOOLHOST_URL=$(jq -r .url <<<"$ready")
    TOOLHOST_API_KEY=$(jq -r .api_key <<<"$ready")
    TOOLHOST_ORG_API_KEY=$(jq -r .org_api_key <<<"$ready")
    export TOOLHOST_URL TOOLHOST_API_KEY TOOLHOST_ORG_API_KEY
    METRICS_URL=$(jq -r .metrics_url <<<"$ready")
}

# Stops the server, which must end without an error.
stop_server() {
    kill -TERM "$SERVER"
    wait "$SERVER"
    SERVER=
}

# Runs a command and shows its output only if it fails.
quietly() { "$@" >output.txt 2>&1 || { cat output.txt >&2; return 1; }; }

# Calls an operation of the API; further arguments are those of curl.
api() {
    curl -sS --fail-with-body -H "x-api-key: $TOOLHOST_API_KEY" -H 'content-type: application/json' "$TOOLHOST_URL/api/v3.1/$1" "${@:2}"
}

# Checks a JSON text with an expression of jq.
holds() { jq -e "$2" <<<"$1" >/dev/null || { echo "$walk: expected $2 of $1" >&2; return 1; }; }
