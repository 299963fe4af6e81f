"""Uses an MCP endpoint as an assistant does, with the official Python library: `assistant.py OPTIONS`.

OPTIONS is JSON: the `url`, the `key` of the project if one is sent, the `mode` in which the client agrees
on the version of the protocol (`legacy` or `auto`), the `calls` to make, true as `opens_urls` if the user opens
every address that the server asks for, the `answer` of the user to every form, and the call to `cancel` when a line arrives on standard input. With
`oauth`, the assistant has no key: it prints the address at which its user gives it access, and waits for the
user's browser. Prints a report as JSON.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client, MCPError
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from mcp.types import ElicitResult


async def listed(client):
    tools, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return tools


async def called(client, call):
    progress = []

    async def on_progress(done, total, message):
        progress.append(done)

    try:
        result = await client.call_tool(
            call["name"], call["arguments"], progress_callback=on_progress if call.get("progress") else None
        )
    except MCPError as cause:
        return {"code": cause.error.code, "asked": (cause.error.data or {}).get("elicitations")}
    return {
        "structured": result.structured_content,
        "text": result.content[0].text,
        "is_error": bool(result.is_error),
        "progress": progress,
    }


async def cancelled(client, call):
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(called(client, call))
    line = loop.run_in_executor(None, sys.stdin.readline)
    await asyncio.wait([task, line], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        return f"it ended: {task}"
    task.cancel()
    await asyncio.wait([task])
    # The input ends when the server has aborted the call. The library fails if it gets the late answer
    # to a call after it was closed, so the connection is used once more.
    await loop.run_in_executor(None, sys.stdin.read)
    await listed(client)
    return "cancelled"


class Memory:
    """Keeps what the library stores about an authorization."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def authorization(url):
    """Makes the library's provider of tokens, with a server for the redirect of the user's browser."""
    answered = asyncio.get_running_loop().create_future()

    async def on_redirect(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        target = urlsplit(head.split()[1])
        body = b"<!doctype html><title>Done</title><h1>Done</h1>"
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n")
        writer.write(b"content-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()
        if target.path == "/callback" and not answered.done():
            answered.set_result({name: values[0] for name, values in parse_qs(target.query).items()})

    async def show(address):
        print(address, flush=True)

    async def wait():
        answer = await answered
        return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer["iss"])

    listener = await asyncio.start_server(on_redirect, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    metadata = OAuthClientMetadata(client_name="Test Assistant", redirect_uris=[f"http://127.0.0.1:{port}/callback"])
    return OAuthClientProvider(url, metadata, Memory(), show, wait)


async def main(options):
    asked = []

    async def answer(_, params):
        asked.append(params.model_dump(mode="json", by_alias=True, exclude_none=True))
        action = options.get("answer", "accept")
        fields = asked[-1].get("requestedSchema", {}).get("properties", {})
        content = {"decision": "approve"} if action == "accept" and "decision" in fields else None
        return ElicitResult(action=action, content=content)

    headers = {"x-api-key": options["key"]} if options.get("key") else {}
    auth = await authorization(options["url"]) if options.get("oauth") else None
    async with httpx2.AsyncClient(headers=headers, auth=auth, timeout=60) as http:
        transport = streamable_http_client(options["url"], http_client=http)
        callback = answer if options.get("opens_urls") or options.get("answer") else None
        async with Client(transport, mode=options["mode"], elicitation_callback=callback) as client:
            report = {"version": client.protocol_version, "tools": await listed(client), "asked": asked}
            report["calls"] = [await called(client, call) for call in options["calls"]]
            if options.get("cancel"):
                report["cancelled"] = await cancelled(client, options["cancel"])
    print(json.dumps(report))


asyncio.run(main(json.loads(sys.argv[1])))
