import base64
import collections
import csv
import datetime
import decimal
import difflib
import hashlib
import html
import io
import itertools
import json
import math
import random
import re
import sqlite3
import statistics
import textwrap
import urllib.parse
import uuid
import zipfile

checks = [
    json.loads(json.dumps({"a": [1, None]})) == {"a": [1, None]},
    re.findall(r"\d+", "a1b22") == ["1", "22"],
    list(csv.reader(io.StringIO("a,b\n1,2"))) == [["a", "b"], ["1", "2"]],
    datetime.date(2024, 2, 29) + datetime.timedelta(days=1) == datetime.date(2024, 3, 1),
    datetime.datetime.now().year >= 2024,
    statistics.median([3, 1, 2]) == 2,
    math.isclose(math.sin(math.pi / 2), 1),
    list(itertools.accumulate([1, 2, 3])) == [1, 3, 6],
    collections.Counter("aab").most_common(1) == [("a", 2)],
    sqlite3.connect(":memory:").execute("select json_extract('{\"a\": 7}', '$.a')").fetchone() == (7,),
    decimal.Decimal("0.1") + decimal.Decimal("0.2") == decimal.Decimal("0.3"),
    textwrap.wrap("a b c", 3) == ["a b", "c"],
    html.unescape("&lt;&eacute;") == "<é",
    urllib.parse.urlencode({"q": "a b"}) == "q=a+b",
    base64.b64decode(base64.b64encode(b"x")) == b"x",
    hashlib.sha256(b"").hexdigest().startswith("e3b0c442") and hashlib.md5(b"").hexdigest().startswith("d41d8"),
    list(difflib.unified_diff(["a"], ["b"]))[-1] == "+b",
    0 <= random.random() < 1 and random.choice([5]) == 5,
    uuid.uuid4() != uuid.uuid4(),
]
with zipfile.ZipFile("checked.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("a.txt", "hello" * 100)
checks.append(zipfile.ZipFile("checked.zip").read("a.txt") == b"hello" * 100)
assert all(checks), checks
f"{len(checks)} modules"
