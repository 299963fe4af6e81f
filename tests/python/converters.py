"""Converts tools for the models of frameworks, as applications with the newest client library do: `converters.py OPTIONS`.

OPTIONS is JSON: a list of servers, each with its `url`, the `key` of a project, and the `toolkits` whose tools are converted. Prints
a report as JSON: by framework how many tools were `given`, and why tools are `refused`.
"""

import json
import sys
from importlib import import_module

from composio import Composio
from composio.core.provider import NonAgenticProvider

FRAMEWORKS = {
    "anthropic": "AnthropicProvider",
    "gemini": "GeminiProvider",
    "google": "GoogleProvider",
    "langchain": "LangchainProvider",
    "langgraph": "LanggraphProvider",
    "llamaindex": "LlamaIndexProvider",
}


class Kept:
    """Takes the place of a framework's converter, and keeps the tools that it is given."""

    def __init__(self, provider):
        self.convert, self.tools = provider.wrap_tools, []
        self.agentic = not isinstance(provider, NonAgenticProvider)
        provider.wrap_tools = self

    def __call__(self, tools, execute_tool=None):
        self.tools += tools
        return []

    def refusal(self, tool):
        more = {"execute_tool": lambda *_, **__: None} if self.agentic else {}
        try:
            self.convert(tools=[tool], **more)
        except Exception as cause:
            return repr(cause)
        return None


def main(servers):
    report = {}
    for framework, name in FRAMEWORKS.items():
        provider = getattr(import_module(f"composio_{framework}"), name)()
        kept = Kept(provider)
        for server in servers:
            client = Composio(provider=provider, api_key=server["key"], base_url=server["url"])
            for toolkit in server["toolkits"]:
                client.tools.get(user_id="amy", toolkits=[toolkit], limit=1000)
        refused = {tool.slug: kept.refusal(tool) for tool in kept.tools}
        refused = {slug: cause for slug, cause in refused.items() if cause}
        report[framework] = {"given": len(kept.tools), "refused": refused}
    print(json.dumps(report))


main(json.loads(sys.argv[1]))
