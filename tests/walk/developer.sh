#!/usr/bin/env bash
# The application developer's first hour, with a key of a server that has the toolkits of the
# repository: an account by the link page, a call, a file, the log. The environment names
# TOOLHOST_URL, TOOLHOST_API_KEY, RESEND_API_KEY, BROWSER, a program that operates a page from its
# standard input, and BROWSER_PACKAGES, the folder with its packages.
. "$(dirname "$0")/steps.sh"

holds "$(api auth/session/info)" .project
done_with "key"

config=$(api auth_configs -d '{"toolkit": {"slug": "resend"}, "auth_config": {"type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {}}}' |
    jq -r .auth_config.id)
link=$(api connected_accounts/link -d '{"auth_config_id": "'"$config"'", "user_id": "ada"}')
done_with "link"

printf 'type %s\nsend Enter\n' "$RESEND_API_KEY" |
    node "$BROWSER" "$BROWSER_PACKAGES" /usr/bin/chromium "$(jq -r .redirect_url <<<"$link")" . >pages.json
holds "$(api "connected_accounts/$(jq -r .connected_account_id <<<"$link")")" '.status == "ACTIVE"'
done_with "account, in a browser"

holds "$(api tools/execute/RESEND_LIST_DOMAINS -d '{"user_id": "ada", "arguments": {}}')" .successful
done_with "call"

echo 'Hello' >hello.txt
upload=$(api files/upload/request -d '{"toolkit_slug": "documents", "tool_slug": "DOCUMENTS_HASH", "filename": "hello.txt",
    "mimetype": "text/plain", "md5": "'"$(md5sum hello.txt | cut -d' ' -f1)"'"}')
curl -sS --fail -T hello.txt -H 'content-type: text/plain' "$(jq -r .new_presigned_url <<<"$upload")" >/dev/null
called=$(api tools/execute/DOCUMENTS_HASH -d '{"arguments": {"file":
    {"name": "hello.txt", "mimetype": "text/plain", "s3key": "'"$(jq -r .key <<<"$upload")"'"}}}')
holds "$called" '.data.digest == "'"$(sha256sum hello.txt | cut -d' ' -f1)"'"'
done_with "file"

holds "$(api logs/tool_execution -d '{}')" '[.. | strings] | any(. == "RESEND_LIST_DOMAINS") and any(. == "DOCUMENTS_HASH")'
done_with "log"
