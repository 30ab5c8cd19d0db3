# SPDX-License-Identifier: Apache-2.0
"""A client of any SCIM 2.0 server, and the frame of a case: what it makes has names of its own and is removed at the end."""

import collections
import functools
import http.client
import json
import re
import secrets
import urllib.parse

import cases
from cases import NotApplicable, check
from http_ends import PATIENCE

CORE = "urn:ietf:params:scim:schemas:core:2.0:"
USER = CORE + "User"
GROUP = CORE + "Group"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
MESSAGES = "urn:ietf:params:scim:api:messages:2.0:"
LIST_RESPONSE = MESSAGES + "ListResponse"
SEARCH_REQUEST = MESSAGES + "SearchRequest"
PATCH_OP = MESSAGES + "PatchOp"
BULK_REQUEST = MESSAGES + "BulkRequest"
BULK_RESPONSE = MESSAGES + "BulkResponse"
ERROR = MESSAGES + "Error"
SCIM_JSON = "application/scim+json"
# xsd:dateTime with a zone, which is what servers write.
DATE_TIME = re.compile(r"-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")

# Of RFC 7643 and RFC 7644: the names of the cases that check each.
REQUIREMENTS = collections.defaultdict(list)


def scim_case(name, what, *requirements, needs=(), variant=None):
    """Registers a case, which gets a `Case` to work with. `needs` are features of ServiceProviderConfig."""
    def register(function):
        @functools.wraps(function)
        def ask(bench):
            with Case(bench, variant) as run:
                for feature in needs:
                    run.needs(feature)
                function(run)
        for each in requirements:
            REQUIREMENTS[each].append(name)
        return cases.case(name, what)(ask)
    return register


class Reply:
    """A response."""

    def __init__(self, response):
        self.status = response.status
        self.fields = response.getheaders()
        self.body = response.read()

    def get(self, name):
        values = [value for each, value in self.fields if each.lower() == name.lower()]
        return ", ".join(values) if values else None

    @functools.cached_property
    def json(self):
        try:
            return json.loads(self.body.decode("utf-8"))
        except ValueError:
            raise AssertionError(f"{self.status} with a body that is not JSON in UTF-8: {self.body[:80]!r}") from None

    def __str__(self):
        return f"{self.status} {self.body[:200].decode('utf-8', 'replace')}"


class Bench:
    """The server, and what it says of itself."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.variants = dict(each.split("=", 1) for each in arguments.variant)

    def ask(self, method, path, body=None, query=None, fields=None, token=None, base=None):
        """One request. `path` follows the base URL, or is a whole URI. `body` is a JSON value, or bytes as they are.
        `token` may be "" for none."""
        url = urllib.parse.urlsplit(path if "://" in path else (base or self.arguments.base_url).rstrip("/") + path)
        if query is not None:
            query = query if isinstance(query, str) else urllib.parse.urlencode(query, quote_via=urllib.parse.quote)
            url = url._replace(query=query)
        token = self.arguments.token if token is None else token
        lines = {"Accept": SCIM_JSON} | ({"Authorization": f"Bearer {token}"} if token else {})
        if body is not None:
            lines["Content-Type"] = SCIM_JSON
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines |= fields or {}
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.hostname, url.port, timeout=PATIENCE)
        try:
            connection.request(method, urllib.parse.urlunsplit(("", "", url.path, url.query, "")), body,
                               {name: value for name, value in lines.items() if value is not None})
            return Reply(connection.getresponse())
        finally:
            connection.close()

    @functools.cached_property
    def config(self):
        return expect(self.ask("GET", "/ServiceProviderConfig"), 200).json

    @functools.cached_property
    def resource_types(self):
        return expect(self.ask("GET", "/ResourceTypes"), 200).json["Resources"]

    @functools.cached_property
    def schemas(self):
        return {each["id"]: each for each in expect(self.ask("GET", "/Schemas"), 200).json["Resources"]}


class Case:
    """One run of a case."""

    def __init__(self, bench, variant=None):
        self.bench = bench
        self.base = bench.variants.get(variant, bench.arguments.base_url)
        self.tag = "bb" + secrets.token_hex(8)  # is in the names of what it makes
        self.made = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for location, token in reversed(self.made):
            self.bench.ask("DELETE", location, token=token)

    # ---- what the server offers ----

    def needs(self, feature):
        """`feature` of ServiceProviderConfig, or `cursor` or `index` of its `pagination`."""
        config = self.bench.config
        if feature in ("cursor", "index"):
            pagination = config.get("pagination", {"cursor": False, "index": True})
            has = pagination.get(feature)
        else:
            has = (config.get(feature) or {}).get("supported")
        if not has:
            raise NotApplicable(f"the server has no {feature}")

    def option(self, name, why):
        value = getattr(self.bench.arguments, name.replace("-", "_"))
        if value is None:
            raise NotApplicable(f"needs --{name}, {why}")
        return value

    def type_of(self, base_schema):
        for each in self.bench.resource_types:
            if each["schema"].lower() == base_schema.lower():
                return each
        raise NotApplicable(f"the server has no resource type with {base_schema}")

    def needs_enterprise(self):
        extensions = self.type_of(USER).get("schemaExtensions") or []
        if ENTERPRISE.lower() not in [each["schema"].lower() for each in extensions]:
            raise NotApplicable("users have no extension for enterprises")

    # ---- requests ----

    def ask(self, method, path, body=None, **named):
        reply = self.bench.ask(method, path, body, base=self.base, **named)
        if method == "POST" and reply.status in (200, 201):
            self.remember(reply, named.get("token"))
        return reply

    def remember(self, reply, token):
        """What was created is removed when the case ends."""
        try:
            message = json.loads(reply.body)
        except ValueError:
            message = {}
        created = [reply.get("Location")] if reply.status == 201 else []
        created += [each.get("location") for each in message.get("Operations", []) if str(each.get("status")) == "201"]
        self.made += [(location, token) for location in created if location]

    def get(self, path, query=None, **named):
        return self.ask("GET", path, query=query, **named)

    def post(self, path, body, **named):
        return self.ask("POST", path, body, **named)

    def put(self, path, body, **named):
        return self.ask("PUT", path, body, **named)

    def patch(self, path, *operations, **named):
        return self.ask("PATCH", path, {"schemas": [PATCH_OP], "Operations": list(operations)}, **named)

    def delete(self, path, **named):
        return self.ask("DELETE", path, **named)

    # ---- resources ----

    def new_user(self, **attributes):
        """The body of a user that is not there yet."""
        name = f"{self.tag}-{secrets.token_hex(4)}@example.com"
        return {"schemas": [USER] + ([ENTERPRISE] if ENTERPRISE in attributes else []), "userName": name} | attributes

    def new_group(self, **attributes):
        return {"schemas": [GROUP], "displayName": f"{self.tag}-{secrets.token_hex(4)}"} | attributes

    def user(self, *more, **attributes):
        """A user that was created; `more` are attributes whose names are not identifiers."""
        for each in more:
            attributes |= each
        return expect(self.post("/Users", self.new_user(**attributes)), 201).json

    def group(self, **attributes):
        self.type_of(GROUP)
        return expect(self.post("/Groups", self.new_group(**attributes)), 201).json

    def read(self, resource, query=None):
        """The resource as it is now."""
        return expect(self.get(path_of(resource), query), 200).json

    def change(self, resource, *operations):
        """A PATCH that must work; returns what the resource has become."""
        expect(self.patch(path_of(resource), *operations), (200, 204))
        return self.read(resource)

    def find(self, expression, path="/Users", **query):
        """What a filter finds."""
        reply = expect(self.get(path, {"filter": expression} | query), 200)
        return reply.json.get("Resources", [])


def path_of(resource):
    return resource["meta"]["location"]


def expect(reply, status):
    wanted = status if isinstance(status, tuple) else (status,)
    check(reply.status in wanted, f"got {reply}, not {' or '.join(map(str, wanted))}")
    return reply


def refused(reply, status, scim_type=None):
    """That a request is refused with a SCIM error; `scim_type` is one, or several that would do."""
    expect(reply, status)
    media = (reply.get("Content-Type") or "").split(";")[0].strip().lower()
    check(media in (SCIM_JSON, "application/json"), f"the {reply.status} has the media type {media}")
    check(reply.json.get("schemas") == [ERROR], f"the {reply.status} is not a SCIM error: {reply}")
    check(str(reply.json.get("status")) == str(reply.status), f"status in the body is {reply.json.get('status')}")
    wanted = (scim_type,) if isinstance(scim_type, str) else scim_type
    check(not wanted or reply.json.get("scimType") in wanted, f"scimType is {reply.json.get('scimType')}, not {wanted}: {reply}")
    return reply


def listed(reply):
    """The resources of a page."""
    expect(reply, 200)
    check(reply.json.get("schemas") == [LIST_RESPONSE], f"schemas of the page are {reply.json.get('schemas')}")
    return reply.json.get("Resources", [])


def ids(resources):
    return [each["id"] for each in resources]


def equal(seen, wanted, what="it"):
    if seen != wanted:
        raise AssertionError(f"{what} is {shorten(seen)}, not {shorten(wanted)}")


def shorten(value):
    text = repr(value)
    return text if len(text) < 300 else text[:300] + "…"


def without(resource, *names):
    return {name: value for name, value in resource.items() if name not in names}
