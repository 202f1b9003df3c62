"""An application of FastAPI with what real ones have: fastapi_app.py PORT serves it on 127.0.0.1, on a free port if
PORT is 0, and prints its URL. Its document is at /openapi.json. Nothing is stored: each operation says what it got."""

import socket
import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal
from uuid import UUID

import uvicorn
from fastapi import APIRouter, Body, Cookie, Depends, FastAPI, File, Form, Header, HTTPException, Path, Query
from fastapi import UploadFile
from fastapi.responses import PlainTextResponse
from fastapi.security import APIKeyHeader, OAuth2PasswordBearer, OAuth2PasswordRequestForm
from pydantic import AnyUrl, BaseModel, ConfigDict, Field


class Colour(str, Enum):
    red = "red"
    dark_blue = "dark blue"


class Priority(IntEnum):
    low = 1
    high = 2


class Image(BaseModel):
    url: AnyUrl
    size: tuple[int, int] | None = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(9, ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    breed: str


class Item(BaseModel):
    # What a client adds is kept: the schema has "additionalProperties": true.
    model_config = ConfigDict(extra="allow")
    name: str = Field(min_length=1, max_length=40, examples=["Lamp"])
    price: Decimal = Field(gt=0, max_digits=8, decimal_places=2, description="A decimal number, such as 12.50.")
    id: UUID | None = None
    colour: Colour = Colour.red
    ready_in: timedelta | None = None
    made_at: datetime | None = None
    opens: time | None = None
    images: list[Image] = []
    sizes: dict[str, float] = {}
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None
    parent: "Item | None" = None


class Filters(BaseModel):
    # A name that the document does not have is an error.
    model_config = ConfigDict(extra="forbid")
    limit: int = Field(100, gt=0, le=100)
    order_by: Literal["created_at", "price"] = "created_at"
    tags: list[str] = []
    since: date | None = None


class Contact(BaseModel):
    model_config = ConfigDict(extra="forbid")
    email: Annotated[str, Field(pattern=r"^[a-z]+@[a-z]+\.com$")]
    topics: list[Colour] = []
    age: int | None = None


class Cookies(BaseModel):
    session: str
    # A value with a slash, as the names of time zones have.
    zone: Literal["UTC", "Europe/Berlin"] | None = None


class Page:
    def __init__(self, skip: Annotated[int, Query(ge=0)] = 0, ids: Annotated[list[UUID] | None, Query()] = None):
        self.skip, self.ids = skip, ids


app = FastAPI(title="Shop API", version="1.2.0")
items = APIRouter(prefix="/items", tags=["items"])


@items.get("/")
async def list_items(filters: Annotated[Filters, Query()]):
    """Lists items."""
    return filters


@items.post("/", status_code=201)
async def create_item(item: Item):
    return item


@items.get("/{item_id}")
async def read_item(
    item_id: Annotated[int, Path(ge=1)],
    x_request_id: Annotated[UUID | None, Header()] = None,
    x_seen: Annotated[list[UUID] | None, Header()] = None,
    seen: Annotated[date | None, Cookie()] = None,
):
    if item_id == 404:
        raise HTTPException(404, "No such item")
    return [item_id, x_request_id, x_seen, seen]


@items.put("/{item_id}")
async def update_item(item_id: UUID | int, item: Item, cat: Cat, priority: Annotated[Priority, Body()], q: str = ""):
    """Two models and a value: the body is an object of them."""
    return [item_id, item, cat, priority, q]


@items.patch("/{item_id}")
async def change_item(item_id: int, changes: Annotated[Contact, Body(embed=True)]):
    return [item_id, changes]


@items.delete("/{item_id}", status_code=204)
async def delete_item(item_id: int) -> None:
    return None


@app.get("/search", tags=["search"])
async def search(
    q: Annotated[str, Query(alias="item-query", min_length=3)],
    tag: Annotated[list[str], Query()] = [],
    ids: Annotated[set[int] | None, Query()] = None,
    day: date | None = None,
    at: datetime | None = None,
    within: timedelta | None = None,
    price: Annotated[Decimal | None, Query(description="A decimal number, such as 12.50.")] = None,
    address: IPv4Address | None = None,
    colour: Colour | None = None,
    either: int | bool | None = None,
    exact: bool = False,
):
    return {key: value for key, value in locals().items() if value is not None}


@app.get("/pages/{day}/{colour}/{name:path}", tags=["search"])
async def page(
    day: date, colour: Colour, name: str, part: Annotated[Page, Depends()], cookies: Annotated[Cookies, Cookie()]
):
    return [day, colour, name, part.skip, part.ids, cookies]


# One function with several methods has one operationId for all of them.
@app.api_route("/echo/{word}", methods=["GET", "POST", "PUT"])
async def echo(word: str, times: float = 1):
    return [word, times]


@app.post("/scores")
async def scores(body: dict[int, float]):
    return body


@app.post("/batch")
async def batch(body: list[Cat | Dog]):
    return body


@app.post("/anything")
async def anything(body: Annotated[Any, Body()], depth: Annotated[int | None, Query(lt=5)] = None):
    return [body, depth]


@app.post("/pets")
async def add_pet(pet: Annotated[Cat | Dog, Body(discriminator="kind")]):
    return pet


@app.post("/notes", response_class=PlainTextResponse)
async def add_note(text: Annotated[str, Body(media_type="text/plain")]):
    return text


@app.post("/contact")
async def contact(form: Annotated[Contact, Form()]):
    return form


@app.post("/files")
async def upload(file: UploadFile, note: Annotated[str, Form()] = "", day: Annotated[date | None, Form()] = None):
    return [file.filename, file.content_type, len(await file.read()), note, day]


@app.post("/files/several")
async def upload_several(
    files: list[UploadFile], raw: Annotated[bytes | None, File()] = None, tags: Annotated[list[str], Form()] = []
):
    return [[it.filename for it in files], raw, tags]


@app.post("/files/optional")
async def upload_perhaps(file: UploadFile | None = None):
    return file and file.filename


@app.post("/token")
async def log_in(form: Annotated[OAuth2PasswordRequestForm, Depends()]):
    return {"access_token": form.username, "token_type": "bearer"}


@app.get("/me", tags=["users"])
async def me(token: Annotated[str, Depends(OAuth2PasswordBearer("token"))]):
    return token


@app.get("/keys", tags=["users"])
async def keys(key: Annotated[str, Depends(APIKeyHeader(name="X-API-Key"))]):
    return len(key)


app.include_router(items)

if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    # Requests wait from here on until the server accepts them.
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
