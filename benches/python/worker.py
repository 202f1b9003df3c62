"""A tool worker in the style of Arcade's: FastAPI and pydantic, on Lambda through Mangum."""

import time
from typing import Any

from fastapi import FastAPI, HTTPException
from mangum import Mangum
from pydantic import BaseModel, Field, ValidationError, create_model


class Call(BaseModel):
    tool_id: str
    call_id: str
    inputs: dict[str, Any] = Field(default_factory=dict, alias="input")


class Answer(BaseModel):
    call_id: str
    duration: float
    success: bool
    value: Any = None


def add(a: float, b: float) -> float:
    return a + b


Input = create_model("Input", a=(float, ...), b=(float, ...))
TOOLS = {"Calculator.Add@1.0.0": (add, Input)}

app = FastAPI()


@app.post("/tools/call")
async def call(call: Call) -> Answer:
    begun = time.perf_counter()
    if call.tool_id not in TOOLS:
        raise HTTPException(400, "the tool was not found")
    function, model = TOOLS[call.tool_id]
    try:
        arguments = model.model_validate(call.inputs)
    except ValidationError as error:
        raise HTTPException(422, error.errors()) from error
    value = function(**arguments.model_dump())
    duration = (time.perf_counter() - begun) * 1000
    return Answer(call_id=call.call_id, duration=duration, success=True, value=value)


lambda_handler = Mangum(app, lifespan="off")
