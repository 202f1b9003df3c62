"""A browser without a person: it fills in the form of every page and presses the first button."""

from html.parser import HTMLParser
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2

MOST_PAGES = 16


class Form(HTMLParser):
    """The first form of a page, with the fields that its first button sends."""

    def __init__(self, page, user):
        super().__init__()
        self.user = user
        self.action = None
        self.fields = {}
        self.is_inside = self.has_button = False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = {name: value or "" for name, value in attributes}
        name, value = attributes.get("name"), attributes.get("value", "")
        if tag == "form" and self.action is None:
            self.action = attributes.get("action", "")
            self.is_inside = True
        elif self.is_inside and tag == "input" and name:
            typed = {"hidden": value, "password": "password"}
            self.fields[name] = typed.get(attributes.get("type"), self.user)
        elif self.is_inside and tag == "button" and not self.has_button:
            self.has_button = True
            if name:
                self.fields[name] = value

    def handle_endtag(self, tag):
        if tag == "form":
            self.is_inside = False


async def browse(url, user, redirect_uri):
    """Signs a user in and agrees to everything; returns the URL of the redirect back to the client."""
    async with httpx2.AsyncClient(timeout=20) as http:
        response = await http.get(url)
        for _ in range(MOST_PAGES):
            if response.is_redirect:
                url = urljoin(url, response.headers["location"])
                if url.startswith(redirect_uri):
                    return url
                response = await http.get(url)
                continue
            form = Form(response.text, user)
            if response.status_code != 200 or form.action is None:
                raise RuntimeError(f"{response.status_code} {url} {response.text}")
            url = urljoin(url, form.action)
            response = await http.post(url, data=form.fields)
    raise RuntimeError(f"{url} does not lead back to the client")


def query_of(url):
    """Returns the parameters of a URL, of which none occurs twice."""
    return {name: value for name, [value] in parse_qs(urlsplit(url).query, strict_parsing=True).items()}
