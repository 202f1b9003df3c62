"""Calls the calculator with a client generated from the document: client.py FOLDER URL KEY. FOLDER contains the package
generated."""
import json
import sys

folder, url, key = sys.argv[1:]
sys.path.insert(0, folder)

from generated import AuthenticatedClient
from generated.api.calculator import calculator_add_1_0_0
from generated.models import CalculatorAdd100Input, ToolError, ValidationError

client = AuthenticatedClient(base_url=url, token=key, prefix="", auth_header_name="OXP-API-Key")
add = lambda **numbers: calculator_add_1_0_0.sync_detailed(
    client=client, body=CalculatorAdd100Input.from_dict(numbers)
)
value = add(a=10, b=5)
invalid = add(a="ten", b=5)
failed = add(a=1e308, b=1e308)
assert isinstance(invalid.parsed, ValidationError), invalid
assert isinstance(failed.parsed, ToolError), failed
print(json.dumps({
    "value": value.parsed,
    "message": invalid.parsed.message,
    "errors": invalid.parsed.parameter_errors.to_dict(),
    "status": int(invalid.status_code),
    "failed": int(failed.status_code),
    "failure": failed.parsed.to_dict(),
}))
