"""Calls the toolbox with the published client, with strict validation of responses.

Arguments: the URL of a server without authentication, and that of a server with the API key
`right-0123456789`.
"""

import sys

import oxp

OPEN, CLOSED = sys.argv[1:]
checks = 0


def check(condition, expectation):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"check failed: {expectation}")


def client(url, key="any"):
    # Without retries, so that the checks see the first response.
    return oxp.Oxp(base_url=url, bearer_token=key, max_retries=0, _strict_response_validation=True)


def rejection(error, call):
    try:
        call()
    except error as expected:
        return expected
    except Exception as other:
        sys.exit(f"{other!r} is not {error}")
    sys.exit(f"was not rejected with {error}")


tools = client(OPEN).tools

check(client(OPEN).health.check() is None, "healthy")

listed = tools.list()
check(len(listed.items) == 7, "seven tool versions are listed")
check(listed.items[0].input_schema["properties"]["a"]["type"] == "number", "schemas have no wrapper")

added = tools.call(request={"tool_id": "Calculator.Add@1.0.0", "call_id": "c", "input": {"a": 10, "b": 5}})
check((added.result.value, added.result.call_id, added.schema_) == (15, "c", "urn:oxp:1.0"), f"15: {added}")

rung = tools.call(request={"tool_id": "Doorbell.Ring", "input": {"doorbell_id": "doorbell42"}})
check(rung.result.success is True and rung.result.value is None, f"no output: {rung}")

failed = tools.call(request={"tool_id": "Doorbell.Ring", "input": {"doorbell_id": "doorbell1"}})
check(failed.result.error.retry_after_ms == 500, f"a failure: {failed}")

now = tools.call(request={"tool_id": "System.GetTimestamp"}, schema="otc://1.0")
check("T" in now.result.value["timestamp"] and now.schema_ == "otc://1.0", f"a time, in OTC: {now}")

error = rejection(oxp.BadRequestError, lambda: tools.call(request={"tool_id": "No.Such"}))
check(error.body["message"] == "Tool 'No_Such' was not found", f"400: {error}")

wrong = {"tool_id": "Calculator.Add", "input": {"a": "x"}}
error = rejection(oxp.UnprocessableEntityError, lambda: tools.call(request=wrong))
check(set(error.body["parameter_errors"]) == {"a", "b"}, f"422: {error}")

error = rejection(oxp.AuthenticationError, lambda: client(CLOSED, "wrong").tools.list())
check(error.response.headers["www-authenticate"] == 'Bearer error="invalid_token"', f"401: {error}")
check(len(client(CLOSED, "right-0123456789").tools.list().items) == 7, "the right key is accepted")

print(f"{checks} checks passed")
