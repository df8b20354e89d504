#!/usr/bin/env python3
"""A child for windrow's --stream: it answers each row with the length of its data."""

import json
import sys

for line in sys.stdin:
    row = json.loads(line)
    try:
        answer = {"id": row["id"], "result": {"length": len(json.dumps(row["data"]))}}
    except Exception as error:
        answer = {"id": row["id"], "error": repr(error)}
    print(json.dumps(answer), flush=True)
