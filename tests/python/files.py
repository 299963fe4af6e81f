"""Sends a file to a tool and takes the file of its result, with an older client library for Python: `files.py OPTIONS`.

OPTIONS is JSON: the `url` of the server, the `key` of the project, a `tool` that copies a file and needs no account, the path of the
`file`, and a `folder` for what the library writes. Prints what the copy has as JSON.
"""

import json
import os
import sys
from pathlib import Path

options = json.loads(sys.argv[1])
# The library makes folders in that of the user.
os.environ["COMPOSIO_CACHE_DIR"] = options["folder"]

from composio import Composio  # noqa: E402

client = Composio(api_key=options["key"], base_url=options["url"], file_download_dir=options["folder"])
ran = client.tools.execute(
    options["tool"], {"file": options["file"]}, user_id="amy", dangerously_skip_version_check=True
)
print(json.dumps({"error": ran["error"], "content": Path(ran["data"]["file"]).read_text()}))
