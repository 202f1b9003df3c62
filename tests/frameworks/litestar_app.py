"""An application of Litestar with what real ones have: litestar_app.py PORT serves it on 127.0.0.1, on a free port if
PORT is 0, and prints its URL. Its document is at /schema/openapi.json. Nothing is stored: each operation says what it
got."""

import socket
import sys
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import uvicorn
from litestar import Controller, Litestar, MediaType, Router, delete, get, patch, post, put, route
from litestar.datastructures import UploadFile
from litestar.di import Provide
from litestar.enums import RequestEncodingType
from litestar.exceptions import NotAuthorizedException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme
from litestar.params import Body, Parameter
from pydantic import BaseModel, ConfigDict, Field

FORM = RequestEncodingType.URL_ENCODED
PARTS = RequestEncodingType.MULTI_PART


class Colour(str, Enum):
    RED = "red"
    DARK_BLUE = "dark blue"


class Circle(msgspec.Struct, tag="circle"):
    radius: Annotated[float, msgspec.Meta(gt=0)]


class Square(msgspec.Struct, tag="square", forbid_unknown_fields=True):
    side: int


@dataclass
class Address:
    street: str
    city: str | None = None


@dataclass
class Person:
    name: Annotated[str, Parameter(min_length=1, max_length=30)]
    born: date
    id: UUID | None = None
    seen_at: datetime | None = None
    works: timedelta | None = None
    colour: Colour = Colour.RED
    addresses: list[Address] = field(default_factory=list)
    scores: dict[str, int] = field(default_factory=dict)
    kind: Literal["guest", "member"] | None = None


class Settings(BaseModel):
    model_config = ConfigDict(extra="allow")
    language: str = "en"
    limit: Annotated[Decimal | None, Field(description="A decimal number, such as 12.50.")] = None
    shape: dict[str, float] | None = None


@dataclass
class Login:
    user: str
    password: str
    days: int = 1
    colour: Colour | None = None


@dataclass
class Parcel:
    label: str
    file: UploadFile
    weight: float | None = None


@dataclass
class Album:
    title: str
    pictures: list[UploadFile]


class People(Controller):
    path = "/people"
    tags = ["people"]

    @get()
    async def list_people(
        self,
        limit: Annotated[int, Parameter(gt=0, le=100, description="At most so many.")] = 10,
        sort: Literal["name", "born"] | None = None,
        colours: list[Colour] | None = None,
        since: date | None = None,
        at: datetime | None = None,
        within: timedelta | None = None,
        ids: list[UUID] | None = None,
        least: Annotated[Decimal | None, Parameter(description="A decimal number, such as 12.50.")] = None,
        is_member: bool | None = None,
    ) -> list[Any]:
        return [limit, sort, colours, since, at, within, ids, least, is_member]

    @post()
    async def add_person(self, data: Person) -> Person:
        return data

    @get("/{person_id:uuid}")
    async def read_person(
        self,
        person_id: UUID,
        trace: Annotated[UUID | None, Parameter(header="X-Trace-Id")] = None,
        since: Annotated[datetime | None, Parameter(header="X-Since")] = None,
        theme: Annotated[Literal["light", "dark"] | None, Parameter(cookie="theme")] = None,
    ) -> list[Any]:
        return [person_id, trace, since, theme]

    @patch("/{person_id:uuid}/address")
    async def move_person(self, person_id: UUID, data: Address) -> Address:
        return data

    @delete("/{person_id:uuid}")
    async def remove_person(self, person_id: UUID) -> None:
        return None


@post("/shapes", tags=["shapes"])
async def add_shape(data: Circle | Square) -> Circle | Square:
    return data


@put("/shapes", tags=["shapes"])
async def replace_shapes(data: list[Circle | Square]) -> int:
    return len(data)


@put("/settings/{name:str}")
async def save_settings(name: str, data: Settings, dry_run: bool = False) -> Settings:
    return data


@post("/counts")
async def count(data: dict[str, int]) -> dict[str, int]:
    return data


@post("/anything")
async def anything(data: Any) -> dict[str, Any]:
    # Litestar sends a bare text as it is, although it calls it JSON.
    return {"data": data}


@get("/days/{day:date}/{hours:timedelta}/{ratio:float}")
async def read_day(day: date, hours: timedelta, ratio: float) -> list[Any]:
    return [day, hours, ratio]


@get("/files/{file_path:path}", media_type=MediaType.TEXT)
async def read_file(file_path: str) -> str:
    return file_path


@route("/echo/{word:str}", http_method=["GET", "POST"], media_type=MediaType.TEXT)
async def echo(word: str, times: int = 1) -> str:
    return word * min(times, 9)


@post("/login")
async def log_in(data: Annotated[Login, Body(media_type=FORM)]) -> Login:
    return data


@post("/parcels")
async def send_parcel(data: Annotated[Parcel, Body(media_type=PARTS)]) -> str:
    return f"{data.label} {data.file.filename} {data.weight}"


@post("/albums")
async def add_album(data: Annotated[Album, Body(media_type=PARTS)]) -> int:
    return len(data.pictures)


def paging(
    page: Annotated[int, Parameter(ge=1)] = 1, size: Annotated[int, Parameter(query="pageSize", le=50)] = 20
) -> list[int]:
    return [page, size]


@get("/reports", dependencies={"paged": Provide(paging, sync_to_thread=False)}, security=[{"key": []}])
async def reports(paged: list[int], key: Annotated[str, Parameter(header="X-Key")]) -> list[int]:
    if not key:
        raise NotAuthorizedException
    return paged


key = SecurityScheme(type="apiKey", name="X-Key", security_scheme_in="header")
handlers = [add_shape, replace_shapes, save_settings, count, anything, read_day, read_file, echo, log_in, send_parcel]
app = Litestar(
    [Router("/v1", route_handlers=[People, *handlers, add_album, reports])],
    openapi_config=OpenAPIConfig("Club API", "1.0.0", components=Components(security_schemes={"key": key})),
)

if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    # Requests wait from here on until the server accepts them.
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
