"""Parses metrics with the official Python library of Prometheus: `metrics.py FOLDER FILE`.

FOLDER contains the library, FILE the metrics. Prints each family with its samples as JSON.
"""

import json
import sys

folder, file = sys.argv[1:]
sys.path.insert(0, folder)
from prometheus_client.parser import text_string_to_metric_families

families = []
with open(file) as opened:
    for family in text_string_to_metric_families(opened.read()):
        samples = [[sample.name, sample.labels, sample.value] for sample in family.samples]
        # The library keeps the names of counters without their suffix.
        suffix = "_total" if family.type == "counter" else ""
        families.append({
            "name": family.name + suffix,
            "type": family.type,
            "help": family.documentation,
            "samples": samples,
        })
print(json.dumps(families))
