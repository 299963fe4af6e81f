"""Verifies webhooks with the Python library of Standard Webhooks: `webhooks.py FOLDER FILE`.

FOLDER contains the library. FILE contains the secret and the messages as JSON. Each message is
verified as of the time of its attempt. Prints the number of valid messages.
"""

import json
import sys
from datetime import datetime

folder, file = sys.argv[1:]
sys.path.insert(0, folder)
from standardwebhooks import Webhook, WebhookVerificationError, webhooks


class Attempt(datetime):
    """Time whose present is that of an attempt."""

    present = 0.0

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(cls.present, tz)


webhooks.datetime = Attempt
with open(file) as opened:
    recorded = json.load(opened)
webhook = Webhook(recorded["secret"].encode())
for message in recorded["messages"]:
    headers, body = message["headers"], message["body"]
    Attempt.present = float(headers["webhook-timestamp"])
    webhook.verify(body, headers)
    try:
        webhook.verify(body + " ", headers)
    except WebhookVerificationError:
        continue
    sys.exit(f"a changed body is valid: {headers}")
print(len(recorded["messages"]))
