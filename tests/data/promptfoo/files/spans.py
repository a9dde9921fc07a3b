import json
import os
import urllib.request


def call_api(prompt, options, context):
    trace = context["traceparent"].split("-")[1]
    rows = [("search one", 0, 5, 1), ("search two", 5, 20, 2), ("reasoning", 20, 30, 1)]
    spans = [
        {
            "traceId": trace,
            "name": name,
            "startTimeUnixNano": str(start * 10**6),
            "endTimeUnixNano": str(end * 10**6),
            "status": {"code": code},
            "attributes": [],
        }
        for name, start, end, code in rows
    ]
    tool = {"key": "tool.name", "value": {"stringValue": "lookup"}}
    spans[0]["attributes"] = [tool, {"key": "tool.arguments", "value": {"stringValue": '{"who": "Ann"}'}}]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    headers = {"Content-Type": "application/json"}
    address = f"http://127.0.0.1:{os.environ.get('SPANS_PORT', '43181')}/v1/traces"
    urllib.request.urlopen(urllib.request.Request(address, body, headers))
    return {"output": prompt}
