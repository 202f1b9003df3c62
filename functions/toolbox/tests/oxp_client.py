"""Calls the toolbox with the published client, its validation of responses strict.

Arguments: the URL of a server that everybody may call, and of one whose key is `right`.
"""

import sys

import oxp

OPEN, CLOSED = sys.argv[1:]
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"not so: {what}")


def client(url, key="any"):
    # Without retries: what is checked is the first answer.
    return oxp.Oxp(base_url=url, bearer_token=key, max_retries=0, _strict_response_validation=True)


def refused(error, call):
    try:
        call()
    except error as refusal:
        return refusal
    except Exception as other:
        sys.exit(f"{other!r} is not {error}")
    sys.exit(f"was not refused with {error}")


tools = client(OPEN).tools

check(client(OPEN).health.check() is None, "healthy")

listed = tools.list()
check(len(listed.items) == 7, "seven tool versions are listed")
check(listed.items[0].input_schema["properties"]["a"]["type"] == "number", "schemas are bare")

added = tools.call(request={"tool_id": "Calculator.Add@1.0.0", "call_id": "c", "input": {"a": 10, "b": 5}})
check((added.result.value, added.result.call_id, added.schema_) == (15, "c", "urn:oxp:1.0"), f"15: {added}")

rung = tools.call(request={"tool_id": "Doorbell.Ring", "input": {"doorbell_id": "doorbell42"}})
check(rung.result.success is True and rung.result.value is None, f"no output: {rung}")

failed = tools.call(request={"tool_id": "Doorbell.Ring", "input": {"doorbell_id": "doorbell1"}})
check(failed.result.error.retry_after_ms == 500, f"a failure: {failed}")

now = tools.call(request={"tool_id": "System.GetTimestamp"}, schema="otc://1.0")
check("T" in now.result.value["timestamp"] and now.schema_ == "otc://1.0", f"a time, in OTC: {now}")

error = refused(oxp.BadRequestError, lambda: tools.call(request={"tool_id": "No.Such"}))
check(error.body["message"] == "Tool 'No_Such' was not found", f"400: {error}")

wrong = {"tool_id": "Calculator.Add", "input": {"a": "x"}}
error = refused(oxp.UnprocessableEntityError, lambda: tools.call(request=wrong))
check(set(error.body["parameter_errors"]) == {"a", "b"}, f"422: {error}")

error = refused(oxp.AuthenticationError, lambda: client(CLOSED, "wrong").tools.list())
check(error.response.headers["www-authenticate"] == "Bearer", f"401: {error}")
check(len(client(CLOSED, "right").tools.list().items) == 7, "the right key is taken")

print(f"{checks} checks passed")
