"""Uses the API as an application does, with the newest client library for Python: `client.py OPTIONS`.

OPTIONS is JSON: the `url` of the server, the `key` of the project, the slugs of a `tool` that needs no account, of its
`asked_toolkit`, of a `toolkit` with OAuth and of a `trigger`, its `config`, the id of an `auth_config` with which accounts connect at once, and its `state`. Prints a
report as JSON.
"""

import json
import sys

from composio import Composio
from composio.exceptions import ToolInputRequiredError


def asked(session, tool, arguments):
    try:
        session.execute(tool, arguments=arguments)
    except ToolInputRequiredError as question:
        return question
    raise SystemExit("the session asks for no approval")


def answered(session, tool, arguments, decision):
    question = asked(session, tool, arguments)
    (name,) = question.input_requests
    answer = {name: {"action": "accept", "content": {"decision": decision}}}
    result = session.execute(tool, arguments=arguments, input_responses=answer, request_state=question.request_state)
    return result.result_type


def main():
    options = json.loads(sys.argv[1])
    tool, arguments = options["tool"], options["arguments"]
    client = Composio(api_key=options["key"], base_url=options["url"])
    account = client.connected_accounts.initiate(
        user_id="amy", auth_config_id=options["auth_config"], config=options["state"], allow_multiple=True
    )
    trigger = client.triggers.create(
        slug=options["trigger"], connected_account_id=account.id, trigger_config=options["config"]
    )
    listed = client.triggers.list_active(trigger_ids=[trigger.trigger_id])
    client.triggers.disable(trigger.trigger_id)
    client.triggers.enable(trigger.trigger_id)
    client.triggers.delete(trigger.trigger_id)
    session = client.create(user_id="amy")
    found = session.search(query=options["use_case"])
    ran = session.execute(tool, arguments=arguments)
    asking = client.create(user_id="amy", toolkits={"require_approval": [options["asked_toolkit"]]})
    report = {
        "account": client.connected_accounts.get(account.id).status,
        "triggers": len(listed.items),
        "link": session.authorize(options["toolkit"]).redirect_url,
        "found": found.results[0].primary_tool_slugs,
        "ran": ran.data,
        "approved": answered(asking, tool, arguments, "approve"),
        "denied": answered(asking, tool, arguments, "deny"),
    }
    print(json.dumps(report))


main()
