"""What is compiled: the author's `tools.py` behind the platform's contract."""

from toolkit_sdk.loading import loading
from toolkit_sdk.runtime import Entry, start

with loading():
    import tools

start(tools)

__all__ = ["Entry"]
