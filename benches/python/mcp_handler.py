"""AWS's own library for tools on Lambda: awslabs.mcp-lambda-handler."""

from awslabs.mcp_lambda_handler import MCPLambdaHandler

mcp = MCPLambdaHandler(name="calculator", version="1.0.0")


@mcp.tool()
def Calculator_Add(a: float, b: float) -> float:
    """Adds two numbers together.

    Args:
        a: The first number to add.
        b: The second number to add.
    """
    return a + b


def lambda_handler(event, context):
    return mcp.handle_request(event, context)
