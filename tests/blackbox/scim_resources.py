# SPDX-License-Identifier: Apache-2.0
"""Cases of discovery (D), access and messages (A), resources (R), users and groups (U), attribute characteristics (T)."""

import base64
import concurrent.futures
import datetime
import json
import re
import urllib.parse

from cases import NotApplicable, check
from scim_bench import (CORE, DATE_TIME, ENTERPRISE, GROUP, LIST_RESPONSE, MESSAGES, SCIM_JSON, USER, equal, expect, ids,
                        listed, path_of, refused, scim_case, without)

TYPES = {"string", "boolean", "decimal", "integer", "dateTime", "binary", "reference", "complex"}
ATTRIBUTE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*|\$ref")


# ---- discovery ----

@scim_case("D1", "/ServiceProviderConfig has its schema and tells of every feature whether it is supported", "RFC7644-4-L4068")
def service_provider_config(run):
    config = expect(run.get("/ServiceProviderConfig"), 200).json
    equal(config.get("schemas"), [CORE + "ServiceProviderConfig"], "schemas")
    for feature in ("patch", "bulk", "filter", "changePassword", "sort", "etag"):
        check(isinstance(config[feature]["supported"], bool), f"{feature}.supported is not a boolean")
    check(isinstance(config["filter"].get("maxResults"), int) or not config["filter"]["supported"], "no filter.maxResults")


@scim_case("D2", "the ways to authenticate are in /ServiceProviderConfig", "RFC7643-5-L1581")
def authentication_schemes(run):
    schemes = run.bench.config["authenticationSchemes"]
    check(schemes, "there are none")
    for each in schemes:
        for name in ("type", "name", "description"):
            check(each.get(name), f"one has no {name}: {each}")


@scim_case("D3", "/ServiceProviderConfig can be read before a client has authenticated", "RFC7643-5-L1581")
def public_configuration(run):
    reply = run.get("/ServiceProviderConfig", token="")
    if reply.status in (401, 403):
        raise NotApplicable("this server wants a token first; the RFC only recommends to do without")
    check(expect(reply, 200).json["authenticationSchemes"], "there are no authenticationSchemes")


@scim_case("D4", "/ResourceTypes tells of each type its name, endpoint and schema, and each has an address of its own",
           "RFC7643-6-L1619", "RFC7643-6-L1641")
def resource_types(run):
    page = expect(run.get("/ResourceTypes"), 200).json
    equal(page.get("schemas"), [LIST_RESPONSE], "schemas")
    equal(page.get("totalResults"), len(page["Resources"]), "totalResults")
    for each in page["Resources"]:
        equal(each.get("schemas"), [CORE + "ResourceType"], "schemas")
        check(each.get("name") and each.get("schema") and each.get("endpoint"), f"something is missing in {each}")
        equal(expect(run.get("/ResourceTypes/" + each.get("id", each["name"])), 200).json, each, "the type by itself")
        expect(run.get(each["endpoint"], {"count": 0}), 200)
    refused(run.get("/ResourceTypes/" + run.tag), 404)


@scim_case("D5", "/Schemas has every schema that a resource type names, with id and name, and each has an address of its own",
           "RFC7644-4-L4098", "RFC7643-6-L1641", "RFC7643-6-L1650", "RFC7643-7-L1691", "RFC7643-7-L1700")
def schemas(run):
    page = expect(run.get("/Schemas"), 200).json
    equal(page.get("schemas"), [LIST_RESPONSE], "schemas")
    equal(page.get("totalResults"), len(page["Resources"]), "totalResults")
    known = {each.get("id") for each in page["Resources"]}
    for each in page["Resources"]:
        check(each.get("id") and each.get("name"), f"one has no id or no name: {each.get('id')}")
        equal(expect(run.get("/Schemas/" + each["id"]), 200).json, each, "the schema by itself")
    for each in run.bench.resource_types:
        for urn in [each["schema"]] + [extension["schema"] for extension in each.get("schemaExtensions") or []]:
            check(urn in known, f"{urn} of {each['name']} is not among /Schemas")
    refused(run.get("/Schemas/urn:example:" + run.tag), 404)


@scim_case("D6", "the schemas of messages are not among /Schemas", "RFC7644-3.1-L439")
def message_schemas(run):
    for urn in run.bench.schemas:
        check(not urn.lower().startswith(MESSAGES.lower()), f"{urn} is there")
    refused(run.get("/Schemas/" + LIST_RESPONSE), 404)


@scim_case("D7", "discovery ignores sorting and paging, and a filter is ignored or forbidden", "RFC7644-4-L4125")
def discovery_queries(run):
    for path in ("/ResourceTypes", "/Schemas"):
        plain = expect(run.get(path), 200).json
        for query in ({"sortBy": "name", "sortOrder": "descending"}, {"startIndex": 2, "count": 1}, {"count": 0}):
            equal(expect(run.get(path, query), 200).json, plain, f"{path} with {query}")
        reply = run.get(path, {"filter": 'name eq "User"'})
        if reply.status != 200:
            refused(reply, 403)
        else:
            equal(reply.json, plain, f"{path} with a filter")


@scim_case("D8", "schemas define attributes with names, types and characteristics that the RFC knows, and none is complex twice",
           "RFC7643-2.1-L369", "RFC7643-2.3-L443", "RFC7643-2.3.8-L595", "RFC7643-2.4-L608")
def attribute_definitions(run):
    words = {"mutability": {"readOnly", "readWrite", "immutable", "writeOnly"}, "returned": {"always", "never", "default", "request"},
             "uniqueness": {"none", "server", "global"}}
    for urn, schema in run.bench.schemas.items():
        for each in schema["attributes"]:
            for one in [each] + each.get("subAttributes", []):
                check(ATTRIBUTE_NAME.fullmatch(one["name"]), f"{urn}: {one['name']} is not a name")
                check(one["type"] in TYPES, f"{urn}:{one['name']} has the type {one['type']}")
                for name, allowed in words.items():
                    check(one.get(name, next(iter(allowed))) in allowed, f"{urn}:{one['name']} has {name} {one.get(name)}")
            for sub in each.get("subAttributes", []):
                check(sub["type"] != "complex" and not sub.get("subAttributes"), f"{urn}:{each['name']}.{sub['name']} is complex")
            check(bool(each.get("subAttributes")) == (each["type"] == "complex"), f"{urn}:{each['name']} is {each['type']} with or without parts")


@scim_case("D9", "sub-attributes with the names that the RFC gives have the types that it gives", "RFC7643-2.4-L612")
def standard_sub_attributes(run):
    types = {"type": "string", "primary": "boolean", "display": "string", "$ref": "reference"}
    for urn, schema in run.bench.schemas.items():
        for each in schema["attributes"]:
            for sub in each.get("subAttributes", []) if each.get("multiValued") else []:
                wanted = types.get(sub["name"])
                check(wanted in (None, sub["type"]), f"{urn}:{each['name']}.{sub['name']} is a {sub['type']}, not a {wanted}")


@scim_case("D10", "what is discovered has a meta with its type and an address that works")
def discovery_meta(run):
    for path, kind in (("/Schemas", "Schema"), ("/ResourceTypes", "ResourceType")):
        for each in expect(run.get(path), 200).json["Resources"]:
            equal(each["meta"]["resourceType"], kind, "meta.resourceType")
            equal(expect(run.get(each["meta"]["location"]), 200).json["id"], each["id"], "the id at meta.location")
    meta = run.bench.config.get("meta", {})
    if "location" in meta:
        equal(expect(run.get(meta["location"]), 200).json, run.bench.config, "what is at meta.location")


@scim_case("D11", "discovery cannot be written to")
def discovery_is_read_only(run):
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path in ("/ServiceProviderConfig", "/Schemas", "/ResourceTypes"):
            refused(run.ask(method, path, None if method == "DELETE" else {"schemas": [USER]}), (400, 403, 404, 405, 501))


# ---- access and messages ----

@scim_case("A1", "without a token, or with another one, the answer is 401 with a challenge and a SCIM error", "RFC7644-2-L307",
           "RFC7644-3.12-L3707")
def unauthenticated(run):
    for token in ("", run.tag):
        for method, path in (("GET", "/Users"), ("POST", "/Users"), ("GET", "/Users/1"), ("POST", "/Bulk"), ("GET", "/" + run.tag)):
            reply = refused(run.ask(method, path, None if method == "GET" else run.new_user(), token=token), 401)
            check(reply.get("WWW-Authenticate"), "no WWW-Authenticate")
    reply = run.get("/Users", fields={"Authorization": "Basic dXNlcjpwYXNz"})
    check(refused(reply, 401).get("WWW-Authenticate"), "no WWW-Authenticate for another scheme")


@scim_case("A2", "the name of the scheme is taken in any case", "RFC7644-2-L307")
def scheme_in_any_case(run):
    expect(run.get("/Users", {"count": 0}, fields={"Authorization": f"bEARER {run.bench.arguments.token}"}), 200)


@scim_case("A3", "a token that may only read reads, searches, and changes nothing", "RFC7644-2-L311")
def read_only_token(run):
    token = run.option("read-only-token", "a token of the same tenant that may only read")
    user = run.user()
    equal(expect(run.get(path_of(user), token=token), 200).json["id"], user["id"], "what it reads")
    expect(run.post("/Users/.search", {"schemas": [MESSAGES + "SearchRequest"], "count": 0}, token=token), 200)
    refused(run.post("/Users", run.new_user(), token=token), 403)
    refused(run.put(path_of(user), user, token=token), 403)
    refused(run.patch(path_of(user), {"op": "replace", "path": "title", "value": "x"}, token=token), 403)
    refused(run.delete(path_of(user), token=token), 403)
    refused(run.post("/Bulk", {"schemas": [MESSAGES + "BulkRequest"], "Operations": []}, token=token), 403)
    equal(run.read(user), user, "the user afterwards")


@scim_case("A4", "tenants see nothing of each other, and may use the same userName and externalId", "RFC7644-2-L311",
           "RFC7643-3.1-L891")
def tenants(run):
    other = run.option("other-token", "a token of another tenant")
    user = run.user(externalId=run.tag)
    if run.get(path_of(user), token=other).status == 200:
        raise NotApplicable("--other-token is of the same tenant")
    refused(run.get(path_of(user), token=other), 404)
    refused(run.delete(path_of(user), token=other), 404)
    refused(run.patch(path_of(user), {"op": "replace", "path": "title", "value": "x"}, token=other), 404)
    equal(listed(run.get("/Users", {"filter": f'externalId eq "{run.tag}"'}, token=other)), [], "what the other tenant finds")
    body = run.new_user(userName=user["userName"], externalId=run.tag)
    twin = expect(run.post("/Users", body, token=other), 201).json
    equal(ids(listed(run.get("/Users", {"filter": f'externalId eq "{run.tag}"'}, token=other))), [twin["id"]], "what it finds then")
    equal(ids(run.find(f'externalId eq "{run.tag}"')), [user["id"]], "what the first tenant finds")


@scim_case("A5", "errors are JSON with the schema of errors, the status as a string, and a detail", "RFC7644-3.12-L3707",
           "RFC7644-3.1-L436")
def errors(run):
    for reply, status, scim_type in (
            (run.get("/Users/" + run.tag), 404, None), (run.get("/" + run.tag), 404, None), (run.get(f"/Users/{run.tag}/more"), 404, None),
            (run.get("/Users", {"filter": "userName nonsense"}), 400, "invalidFilter"),
            (run.post("/Users", b'{"schemas":'), 400, "invalidSyntax"), (run.post("/Users", b""), 400, "invalidSyntax"),
            (run.post("/Users", []), 400, "invalidSyntax"), (run.post("/Users", b"\xff\xfe"), 400, "invalidSyntax")):
        refused(reply, status, scim_type)
        check(isinstance(reply.json["status"], str), "status is not a string")
        check(reply.json.get("detail"), f"no detail in {reply}")
        check(reply.json["schemas"][0].startswith("urn:ietf:params:scim:api:"), "the schema is not one of messages")


@scim_case("A6", "responses are application/scim+json, whichever of the two media types was asked for", "RFC7644-3.8-L3551")
def accepted_media_types(run):
    user = run.user()
    for accept in (SCIM_JSON, "application/json", "*/*", None, "application/scim+json;charset=utf-8, application/json;q=0.5"):
        reply = expect(run.get(path_of(user), fields={"Accept": accept}), 200)
        media = reply.get("Content-Type").split(";")[0].strip().lower()
        check(media == SCIM_JSON or (media == "application/json" and accept and SCIM_JSON not in accept), f"{accept} got {media}")
        equal(reply.json["id"], user["id"], "id")


@scim_case("A7", "requests may be application/scim+json or application/json, with parameters; text is not understood",
           "RFC7644-3.8-L3537")
def sent_media_types(run):
    for media in (SCIM_JSON, "application/json", "application/scim+json; charset=utf-8", 'Application/JSON;charset="UTF-8"'):
        expect(run.post("/Users", run.new_user(), fields={"Content-Type": media}), 201)
    refused(run.post("/Users", run.new_user(), fields={"Content-Type": "text/plain"}), (400, 415))


@scim_case("A8", "text is UTF-8, in whatever language, and comes back as it was", "RFC7644-3.8-L3537")
def utf_8(run):
    text = "Grüße, Ελλάδα, 日本, \U0001f30a, \"quoted\", back\\slash, tab\t, \u0001, \u2028"
    user = run.user(displayName=text)
    equal(user["displayName"], text, "displayName")
    reply = expect(run.get(path_of(user)), 200)
    equal(reply.json["displayName"], text, "displayName")
    check("\U0001f30a".encode() in reply.body or b"\\ud83c\\udf0a" in reply.body.lower(), "the text is in another encoding")
    body = json.dumps(run.new_user(displayName=text), ensure_ascii=False).encode()
    equal(expect(run.post("/Users", body), 201).json["displayName"], text, "displayName sent in UTF-8")
    refused(run.post("/Users", json.dumps(run.new_user()).encode().replace(b"@", b"\xff@")), 400, ("invalidSyntax", "invalidValue"))


@scim_case("A9", "hostile bodies are refused, and the server goes on")
def hostile_bodies(run):
    for body in (b"[" * 100_000, b'{"a":' * 50_000, b"{}" * 1000, b'{"schemas":["' + b"x" * 100_000, b"nul", b"\0", b'{"userName":"\\ud800"}',
                 b'{"schemas":["' + USER.encode() + b'"],"userName":1e999}'):
        refused(run.post("/Users", body), 400)
    name = run.new_user()["userName"].encode()
    twice = b'{"schemas":["' + USER.encode() + b'"],"userName":"' + name + b'","userName":"' + name + b'"}'
    expect(run.post("/Users", twice), (201, 400))
    run.user()


@scim_case("A10", "content over the limit is refused with 413, also when it is not announced")
def too_large(run):
    limit = run.bench.arguments.max_body
    refused(run.post("/Users", run.new_user(displayName="x" * limit)), 413)
    run.user()


@scim_case("A11", "a method that an endpoint does not have is refused with a SCIM error")
def wrong_methods(run):
    user = run.user()
    for method, path in (("POST", path_of(user)), ("PUT", "/Users"), ("PATCH", "/Users"), ("DELETE", "/Users"), ("GET", "/Bulk"),
                         ("GET", "/Users/.search")):
        refused(run.ask(method, path, None if method in ("GET", "DELETE") else run.new_user()), (400, 404, 405, 501))
    run.read(user)


@scim_case("A12", "an unknown id is 404, whatever it looks like")
def hostile_ids(run):
    for each in ("0", "-1", "%01", "a" * 4000, "%F0%9F%8C%8A", "'%20or%201=1--", "%25", "*", urllib.parse.quote("id eq \"x\"")):
        refused(run.get("/Users/" + each), (400, 404))
    check(run.get("/Users/%00").status in (400, 404), "a NUL in a path is let through")


# ---- resources ----

@scim_case("R1", "POST answers 201 with the new resource", "RFC7644-3.3-L602", "RFC7644-3.3-L603", "RFC7643-4.1.1-L1035",
           "RFC7643-2.1-L366")
def create(run):
    body = run.new_user(displayName="Ada", name={"givenName": "Ada", "familyName": "L"}, active=True)
    reply = expect(run.post("/Users", body), 201)
    for name in ("userName", "displayName", "name", "active"):
        equal(reply.json.get(name), body[name], name)
    check(USER in reply.json.get("schemas", []), f"schemas is {reply.json.get('schemas')}")
    equal(run.read(reply.json), reply.json, "what GET returns")


@scim_case("R2", "the address of a new resource is in Location and in meta.location, and works", "RFC7644-3.3-L605",
           "RFC7643-2.3.7-L577", "RFC7643-2.3.7-L578")
def location(run):
    for path, body in (("/Users", run.new_user()), ("/Groups", run.new_group())):
        reply = expect(run.post(path, body), 201)
        equal(reply.get("Location"), reply.json["meta"]["location"], "Location")
        check(reply.get("Location").startswith(("http://", "https://")), f"Location is {reply.get('Location')}")
        check(reply.get("Location").endswith(f"{path}/{reply.json['id']}"), f"Location is {reply.get('Location')}")
        equal(expect(run.get(reply.get("Location")), 200).json, reply.json, "what is there")


@scim_case("R3", "Content-Location is the same as meta.location", "RFC7643-3.1-L927")
def content_location(run):
    created = expect(run.post("/Users", run.new_user()), 201)
    where = created.json["meta"]["location"]
    for what, reply in (("POST", created), ("GET", run.get(where)), ("PUT", run.put(where, run.new_user())),
                        ("PATCH", run.patch(where, {"op": "replace", "path": "title", "value": "x"}))):
        equal(reply.get("Content-Location"), where, f"Content-Location of {what}")
        if reply.status == 200:
            equal(reply.json["meta"]["location"], where, f"meta.location of {what}")


@scim_case("R4", "the server gives every resource an id and a meta", "RFC7643-3.1-L852", "RFC7643-3.1-L855", "RFC7643-3.1-L866",
           "RFC7644-3.3.1-L712")
def id_and_meta(run):
    for resource, kind in ((run.user(), "User"), (run.group(), "Group")):
        check(isinstance(resource.get("id"), str) and resource["id"], f"id is {resource.get('id')}")
        equal(resource["meta"]["resourceType"], kind, "meta.resourceType")
        for name in ("created", "lastModified", "location"):
            check(resource["meta"].get(name), f"meta has no {name}")
        equal(run.read(resource)["meta"], resource["meta"], "meta")


@scim_case("R5", "meta.created is a dateTime with a zone, and lastModified is the same until something changes", "RFC7643-3.1-L920",
           "RFC7643-3.1-L925", "RFC7643-2.3.5-L527", "RFC7643-2.3.5-L531")
def created(run):
    before = datetime.datetime.now(datetime.timezone.utc)
    user = run.user()
    check(DATE_TIME.fullmatch(user["meta"]["created"]), f"meta.created is {user['meta']['created']}")
    equal(user["meta"]["lastModified"], user["meta"]["created"], "meta.lastModified")
    when = datetime.datetime.fromisoformat(re.sub(r"(\.\d{1,6})\d*", r"\1", user["meta"]["created"]).replace("Z", "+00:00"))
    check(abs((when - before).total_seconds()) < 600, f"meta.created is {user['meta']['created']}, which is not now")
    later = run.change(user, {"op": "replace", "path": "displayName", "value": "x"})
    equal(later["meta"]["created"], user["meta"]["created"], "meta.created afterwards")
    check(DATE_TIME.fullmatch(later["meta"]["lastModified"]), f"meta.lastModified is {later['meta']['lastModified']}")
    check(later["meta"]["lastModified"] >= user["meta"]["lastModified"], "meta.lastModified went back")


@scim_case("R6", "schemas has the base schema and the extensions in use, each once, and nothing else", "RFC7643-3-L709",
           "RFC7643-3-L711", "RFC7643-3-L713", "RFC7643-3.3-L976", "EXTRA-EXT-SCHEMAS")
def resource_schemas(run):
    run.needs_enterprise()
    plain = run.user()
    equal(plain["schemas"], [USER], "schemas of a plain user")
    full = run.user({ENTERPRISE: {"department": "Tides"}})
    equal(sorted(full["schemas"]), sorted([USER, ENTERPRISE]), "schemas with the extension")
    doubled = expect(run.post("/Users", run.new_user(schemas=[USER, USER])), (201, 400))
    if doubled.status == 201:
        equal(doubled.json["schemas"], [USER], "schemas that were sent twice")
    equal(run.group()["schemas"], [GROUP], "schemas of a group")
    for schemas in ([], [GROUP], None, "x", [1]):
        refused(run.post("/Users", run.new_user(schemas=schemas)), 400, ("invalidSyntax", "invalidValue"))
    refused(run.post("/Users", without(run.new_user(), "schemas")), 400, ("invalidSyntax", "invalidValue"))


@scim_case("R7", "the order of members and of schemas makes no difference", "RFC7643-3-L714", "RFC7643-2.3.8-L592")
def order(run):
    run.needs_enterprise()
    body = run.new_user(name={"familyName": "L", "givenName": "Ada"}, displayName="Ada")
    body |= {ENTERPRISE: {"department": "Tides"}, "schemas": [ENTERPRISE, USER]}
    body = dict(reversed(body.items()))
    user = expect(run.post("/Users", body), 201).json
    for name in ("userName", "name", "displayName", ENTERPRISE):
        equal(user[name], body[name], name)
    equal(expect(run.put(path_of(user), dict(sorted(body.items()))), 200).json["displayName"], "Ada", "displayName after PUT")


@scim_case("R8", "id, meta and other readOnly attributes that a client sends with POST are ignored", "RFC7643-3.1-L872",
           "RFC7643-3.1-L911", "RFC7644-3.3-L584", "RFC7643-7-L1759")
def read_only_in_post(run):
    sent = {"id": run.tag, "meta": {"created": "1999-01-01T00:00:00Z", "resourceType": "Group", "location": "http://example.com/x", "version": 'W/"x"'},
            "groups": [{"value": run.tag}]}
    user = expect(run.post("/Users", run.new_user(**sent)), 201).json
    check(user["id"] != run.tag, "the id of the client was taken")
    check(not user["meta"]["created"].startswith("1999"), "created of the client was taken")
    equal(user["meta"]["resourceType"], "User", "meta.resourceType")
    check("example.com/x" not in user["meta"]["location"], "the location of the client was taken")
    check(not user.get("groups"), f"groups is {user.get('groups')}")


@scim_case("R9", "ids are unique over all types, stay the same, and have no \"bulkId\" in them", "RFC7643-3.1-L867",
           "RFC7643-3.1-L868", "RFC7643-3.1-L873")
def unique_ids(run):
    made = [run.user() for _ in range(5)] + [run.group() for _ in range(5)]
    equal(len(set(ids(made))), 10, "the number of ids")
    for each in made:
        check("bulkid" not in each["id"].lower(), f"id is {each['id']}")
    changed = expect(run.put(path_of(made[0]), run.new_user()), 200).json
    equal(changed["id"], made[0]["id"], "id after PUT")
    expect(run.delete(path_of(made[1])), 204)
    check(run.user()["id"] != made[1]["id"], "an id was given again")


@scim_case("R10", "externalId is the client's: the server does not make one up, and two resources may have the same", "RFC7643-3.1-L890",
           "RFC7643-3.1-L891")
def external_id(run):
    check("externalId" not in run.user(), "a user has one that was not given")
    first, second = run.user(externalId=run.tag), run.group(externalId=run.tag)
    equal(first["externalId"], run.tag, "externalId")
    equal(second["externalId"], run.tag, "externalId")


@scim_case("R11", "a userName that is there already is 409 uniqueness, in any case, by POST, PUT and PATCH", "RFC7644-3.3-L625")
def uniqueness(run):
    user, other = run.user(), run.user()
    for name in (user["userName"], user["userName"].upper()):
        refused(run.post("/Users", run.new_user(userName=name)), 409, "uniqueness")
        refused(run.put(path_of(other), run.new_user(userName=name)), 409, "uniqueness")
        refused(run.patch(path_of(other), {"op": "replace", "path": "userName", "value": name}), 409, "uniqueness")
    equal(run.read(other), other, "the other user afterwards")
    expect(run.put(path_of(user), run.new_user(userName=user["userName"].upper())), 200)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        body = run.new_user()
        statuses = sorted(pool.map(lambda _: run.post("/Users", body).status, range(8)))
    equal(statuses, [201] + [409] * 7, "what eight at once get")


@scim_case("R12", "texts that only differ in how accents are composed are the same userName", "RFC7644-5-L4214")
def composed(run):
    name = run.tag + "-\u00e9t\u00e9@example.com"
    user = run.user(userName=name)
    refused(run.post("/Users", run.new_user(userName=run.tag + "-e\u0301te\u0301@example.com")), 409, "uniqueness")
    equal(ids(run.find(f'userName eq "{run.tag}-E\u0301te\u0301@example.com"')), [user["id"]], "what is found")
    equal(run.read(user)["userName"], name, "userName")


@scim_case("R13", "null, an empty array and nothing at all are the same", "RFC7643-2.5-L682")
def unassigned(run):
    nothing = {"title": None, "emails": [], "name": None, "nickName": None, "phoneNumbers": None}
    user = run.user(**nothing)
    for name in nothing:
        check(user.get(name) in (None, [], {}), f"{name} is {user.get(name)}")
    full = run.user(title="Dr", emails=[{"value": "a@example.com"}], name={"givenName": "Ada"})
    emptied = expect(run.put(path_of(full), run.new_user(**nothing)), 200).json
    for name in nothing:
        check(emptied.get(name) in (None, [], {}), f"{name} is {emptied.get(name)} after PUT")
    equal(run.find(f'userName eq "{emptied["userName"]}" and (emails pr or title pr or name pr)'), [], "what pr finds")
    full = run.user(title="Dr")
    after = run.change(full, {"op": "replace", "path": "title", "value": None})
    check(after.get("title") is None, f"title is {after.get('title')} after PATCH")


@scim_case("R14", "a user needs a userName that is not empty", "RFC7643-4.1.1-L1035")
def user_name_required(run):
    for body in (without(run.new_user(), "userName"), run.new_user(userName=""), run.new_user(userName=None)):
        refused(run.post("/Users", body), 400, "invalidValue")
    refused(run.post("/Groups", without(run.new_group(), "displayName")), 400, "invalidValue")


@scim_case("R15", "values of another type than the schema's are refused")
def wrong_types(run):
    for sent in ({"userName": 1}, {"userName": ["a", "b"]}, {"active": "perhaps"}, {"active": 1}, {"emails": "a@example.com"},
                 {"emails": [1]}, {"name": "Ada"}, {"name": {"givenName": 1}}, {"displayName": {"a": 1}},
                 {"emails": [{"value": "a@example.com", "primary": "perhaps"}]}, {ENTERPRISE: "x"}, {"name": {"givenName": {"a": "b"}}}):
        refused(run.post("/Users", run.new_user(**sent)), 400, ("invalidValue", "invalidSyntax"))


@scim_case("R16", "names of attributes are taken in any case and come back as the schema spells them", "RFC7643-2.1-L369")
def names_in_any_case(run):
    body = run.new_user()
    sent = {"SCHEMAS": body["schemas"], "USERNAME": body["userName"], "displayname": "Ada", "Emails": [{"VALUE": "a@example.com", "Type": "work"}]}
    user = expect(run.post("/Users", sent), 201).json
    equal(user["userName"], body["userName"], "userName")
    equal(user["displayName"], "Ada", "displayName")
    equal(user["emails"][0]["value"], "a@example.com", "emails.value")
    check(not set(sent) & set(user), f"the names are {list(user)}")


@scim_case("R17", "PUT replaces what it brings, and answers 200 with the resource", "RFC7644-3.5-L1607", "RFC7644-3.5.1-L1644")
def put(run):
    user = run.user(title="Dr", emails=[{"value": "a@example.com", "type": "work"}, {"value": "b@example.com", "type": "home"}])
    body = run.new_user(title="Prof", emails=[{"value": "c@example.com", "type": "other"}], displayName="new")
    after = expect(run.put(path_of(user), body), 200).json
    for name in ("userName", "title", "emails", "displayName"):
        equal(after.get(name), body[name], name)
    equal(run.read(user), after, "what GET returns")
    equal(run.find(f'userName eq "{user["userName"]}"'), [], "what the old userName finds")
    equal(ids(run.find(f'userName eq "{body["userName"]}"')), [user["id"]], "what the new userName finds")


@scim_case("R18", "PUT does not create", "RFC7644-3.2-L490", "RFC7644-3.5.1-L1637")
def put_does_not_create(run):
    body = run.new_user()
    refused(run.put("/Users/" + run.tag, body), 404)
    equal(run.find(f'userName eq "{body["userName"]}"'), [], "what was made")


@scim_case("R19", "PUT ignores what is readOnly", "RFC7644-3.5.1-L1665", "RFC7643-7-L1759")
def read_only_in_put(run):
    user = run.user()
    body = run.new_user(id=run.tag, meta={"created": "1999-01-01T00:00:00Z"}, groups=[{"value": "x"}])
    after = expect(run.put(path_of(user), body), 200).json
    equal(after["id"], user["id"], "id")
    equal(after["meta"]["created"], user["meta"]["created"], "meta.created")
    check(not after.get("groups"), f"groups is {after.get('groups')}")
    again = expect(run.put(path_of(user), after), 200).json
    equal(without(again, "meta"), without(after, "meta"), "what was read and sent back")


@scim_case("R20", "PUT without a required attribute is refused and changes nothing", "RFC7644-3.5.1-L1667")
def put_required(run):
    user = run.user(title="Dr")
    refused(run.put(path_of(user), without(run.new_user(title="x"), "userName")), 400, "invalidValue")
    refused(run.put(path_of(user), without(run.new_user(title="x"), "schemas")), 400)
    equal(run.read(user), user, "the user afterwards")


@scim_case("R21", "DELETE answers 204 without a body; then all is 404 and no query finds it", "RFC7644-3.6-L2657",
           "RFC7644-3.6-L2642", "RFC7644-3.6-L2644")
def delete(run):
    user = run.user(externalId=run.tag)
    reply = expect(run.delete(path_of(user)), 204)
    check(not reply.body, "there is a body")
    refused(run.get(path_of(user)), 404)
    refused(run.put(path_of(user), run.new_user()), 404)
    refused(run.patch(path_of(user), {"op": "replace", "path": "title", "value": "x"}), 404)
    refused(run.delete(path_of(user)), 404)
    for expression in (f'id eq "{user["id"]}"', f'userName eq "{user["userName"]}"', f'externalId eq "{run.tag}"'):
        equal(run.find(expression), [], f"what {expression} finds")
    check(run.user(userName=user["userName"])["id"] != user["id"], "the old resource came back")


@scim_case("R22", "attributes selects, and what is returned always is there too", "RFC7644-3.4.2.5-L1438", "RFC7644-3.9-L3596")
def attributes(run):
    run.needs_enterprise()
    user = run.user({ENTERPRISE: {"department": "Tides", "division": "Moon"}}, title="Dr", name={"givenName": "Ada", "familyName": "L"},
                    emails=[{"value": "a@example.com", "type": "work"}])
    for names, wanted in (("userName", {"userName"}), ("USERNAME", {"userName"}), ("title,userName", {"title", "userName"}),
                          ("name.givenName", {"name"}), ("emails", {"emails"}), ("emails.value", {"emails"}), (USER + ":title", {"title"}),
                          ("nickName", set()), ("meta", {"meta"}), (ENTERPRISE, {ENTERPRISE}), (ENTERPRISE + ":department", {ENTERPRISE})):
        seen = run.read(user, {"attributes": names})
        equal(set(seen) - {"schemas", "id"}, wanted, f"what attributes={names} has")
        equal(seen["id"], user["id"], "id")
        check(seen.get("schemas"), "there are no schemas")
        equal(listed(run.get("/Users", {"filter": f'id eq "{user["id"]}"', "attributes": names})), [seen], f"a list with attributes={names}")
    equal(run.read(user, {"attributes": "name.givenName"})["name"], {"givenName": "Ada"}, "name")
    equal(run.read(user, {"attributes": "emails.value"})["emails"], [{"value": "a@example.com"}], "emails")
    equal(run.read(user, {"attributes": ENTERPRISE + ":department"})[ENTERPRISE], {"department": "Tides"}, "the extension")


@scim_case("R23", "excludedAttributes leaves out, but not what is returned always", "RFC7644-3.4.2.5-L1449", "RFC7644-3.4.2.5-L1438")
def excluded_attributes(run):
    user = run.user(title="Dr", name={"givenName": "Ada", "familyName": "L"})
    for names, gone in (("title", {"title"}), ("TITLE,userName", {"title", "userName"}), ("id,schemas", set()), ("meta", {"meta"})):
        equal(run.read(user, {"excludedAttributes": names}), {k: v for k, v in user.items() if k not in gone}, f"excludedAttributes={names}")
    equal(run.read(user, {"excludedAttributes": "name.familyName"})["name"], {"givenName": "Ada"}, "name")
    refused(run.get(path_of(user), {"attributes": "title", "excludedAttributes": "userName"}), 400)


@scim_case("R24", "attributes goes for the answers to POST, PUT and PATCH as well", "RFC7644-3.9-L3596")
def attributes_of_changes(run):
    user = expect(run.post("/Users", run.new_user(title="Dr", nickName="A"), query={"attributes": "title"}), 201).json
    equal(set(user) - {"schemas", "id"}, {"title"}, "what POST returns")
    path = "/Users/" + user["id"]
    equal(set(expect(run.put(path, run.new_user(title="Dr", nickName="B"), query={"attributes": "nickName"}), 200).json) - {"schemas", "id"},
          {"nickName"}, "what PUT returns")
    reply = expect(run.patch(path, {"op": "add", "path": "title", "value": "Prof"}, query={"excludedAttributes": "nickName,meta"}), 200)
    check("nickName" not in reply.json and reply.json["title"] == "Prof", f"PATCH returns {reply}")


@scim_case("R25", "case is preserved in what is kept, whether or not it counts", "RFC7643-7-L1750")
def case_is_preserved(run):
    body = run.new_user(externalId=run.tag + "-AbC", title="dR", emails=[{"value": "Ada@Example.COM"}])
    body["userName"] = "MiXeD" + body["userName"]
    seen = run.read(expect(run.post("/Users", body), 201).json)
    for name in ("userName", "externalId", "title"):
        equal(seen[name], body[name], name)
    equal(seen["emails"][0]["value"], "Ada@Example.COM", "emails.value")


@scim_case("R26", "of the values of an attribute at most one is primary", "RFC7643-2.4-L634", "EXTRA-MV-COMPLEX-PRIMARY")
def one_primary(run):
    values = [{"value": "a@example.com", "primary": True}, {"value": "b@example.com", "primary": True}]
    reply = expect(run.post("/Users", run.new_user(emails=values)), (201, 400))
    if reply.status == 400:
        refused(reply, 400, "invalidValue")
    else:
        check(sum(each.get("primary", False) for each in reply.json["emails"]) <= 1, "two are primary")
    user = run.user(emails=[{"value": "a@example.com", "primary": True}, {"value": "b@example.com"}])
    equal([each.get("primary", False) for each in user["emails"]], [True, False], "primary")


@scim_case("R27", "multi-valued attributes come back with the types that were given", "RFC7643-2.4-L655")
def canonical_values(run):
    emails = [{"value": "a@example.com", "type": "work", "primary": True}, {"value": "b@example.com", "type": "home"}]
    equal(run.user(emails=emails)["emails"], emails, "emails")


@scim_case("R28", "the same type and value are not returned twice", "RFC7643-2.4-L663")
def no_repeated_values(run):
    reply = run.post("/Users", run.new_user(emails=[{"value": "a@example.com", "type": "work"}] * 2 + [{"value": "a@example.com", "type": "home"}]))
    if expect(reply, (201, 400)).status == 201:
        equal([each["type"] for each in reply.json["emails"]], ["work", "home"], "emails.type")
        after = run.change(reply.json, {"op": "add", "path": "emails", "value": [{"value": "a@example.com", "type": "home"}]})
        equal(len(after["emails"]), 2, "the number of emails after the same was added")


@scim_case("R29", "many at once: every create, and every change of one resource, is kept", "RFC7643-3.1-L867")
def many_at_once(run):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: run.user(), range(40)))
        equal(len(set(ids(made))), 40, "the number of ids")
        user = made[0]
        replies = list(pool.map(lambda n: run.patch(path_of(user), {"op": "add", "path": "emails", "value": [{"value": f"{n}@example.com"}]}), range(24)))
    for each in replies:
        expect(each, (200, 204))
    equal({each["value"] for each in run.read(user)["emails"]}, {f"{n}@example.com" for n in range(24)}, "emails")


@scim_case("R30", "the version in the base URL is served, and another one is not", "RFC7644-3.13-L3956")
def protocol_version(run):
    base = urllib.parse.urlsplit(run.base)
    if not base.path.rstrip("/").endswith("/v2"):
        raise NotApplicable("the base URL names no version")
    expect(run.get("/Users", {"count": 0}), 200)
    other = base._replace(path=base.path.rstrip("/")[:-1] + "9/Users")
    check(run.get(urllib.parse.urlunsplit(other)).status in (400, 404, 501), "version 9 is served")


# ---- users and groups ----

@scim_case("U1", "a password is taken and never returned, not even on request, and cannot be filtered for", "RFC7643-4.1.1-L1186",
           "RFC7643-4.1.1-L1222", "RFC7643-7-L1769", "EXTRA-MUT-WRITEONLY", "EXTRA-RET-NEVER")
def password(run):
    secret = "pw-" + run.tag
    reply = expect(run.post("/Users", run.new_user(password=secret, externalId=run.tag)), 201)
    where = path_of(reply.json)
    for each in (reply, run.get(where), run.get(where, {"attributes": "password"}), run.get("/Users", {"filter": f'externalId eq "{run.tag}"'}),
                 run.patch(where, {"op": "replace", "path": "password", "value": secret + "2"}), run.get(where),
                 run.put(where, run.new_user(password=secret + "3", externalId=run.tag)),
                 run.post("/Users/.search", {"schemas": [MESSAGES + "SearchRequest"], "filter": f'externalId eq "{run.tag}"', "attributes": ["password"]})):
        expect(each, (200, 201, 204))
        check(b"password" not in each.body.lower() and secret.encode() not in each.body, f"it is in {each}")
    for expression in (f'password eq "{secret}3"', 'password sw "pw"', "password pr", f'externalId eq "{run.tag}" and password pr'):
        reply = expect(run.get("/Users", {"filter": expression}), (200, 400, 403))
        check(reply.status != 200 or not reply.json.get("Resources"), f"{expression} finds something")
    check(run.get("/Users", {"sortBy": "password"}).status in (200, 400, 403), "to sort by it is an error of the server")


@scim_case("U2", "addresses of e-mail come back as they were", "RFC7643-4.1.2-L1244")
def emails(run):
    values = ["a@example.com", "first.last+tag@sub.example.com", '"quoted space"@example.com', "x@[192.0.2.1]", "p\u00e9@example.com"]
    equal([each["value"] for each in run.user(emails=[{"value": each} for each in values])["emails"]], values, "emails")


@scim_case("U3", "countries are codes of ISO 3166-1, and come back as they were", "RFC7643-4.1.2-L1322")
def country(run):
    address = {"type": "work", "streetAddress": "100 Quay", "locality": "Kiel", "country": "DE", "postalCode": "24103", "region": "SH",
               "formatted": "100 Quay\n24103 Kiel", "primary": True}
    equal(run.user(addresses=[address])["addresses"], [address], "addresses")


@scim_case("U4", "certificates are base64, and what is not is refused", "RFC7643-4.1.2-L1378", "RFC7643-2.3.6-L537")
def certificates(run):
    der = base64.b64encode(bytes.fromhex("3003020105") * 40).decode()
    equal(run.user(x509Certificates=[{"value": der}])["x509Certificates"][0]["value"], der, "the certificate")
    for wrong in ("not base64!", "a", "====", "YQ=", 7):
        refused(run.post("/Users", run.new_user(x509Certificates=[{"value": wrong}])), 400, "invalidValue")


@scim_case("U5", "groups of a user are where it is a member, with their ids", "RFC7643-4.1.2-L1351", "RFC7643-2.3.7-L552",
           "RFC7643-2.3.7-L555", "RFC7643-2.3.7-L577", "RFC7643-2.3.7-L578")
def memberships(run):
    user = run.user(displayName="Ada")
    group = run.group(members=[{"value": user["id"]}])
    member, = group["members"]
    equal(member["value"], user["id"], "members.value")
    check(member["$ref"].endswith("/Users/" + user["id"]), f"$ref is {member['$ref']}")
    equal(expect(run.get(urllib.parse.urljoin(run.base + "/", member["$ref"])), 200).json["id"], user["id"], "what is at $ref")
    seen, = run.read(user)["groups"]
    equal(seen["value"], group["id"], "groups.value")
    equal(seen["display"], group["displayName"], "groups.display")
    if "$ref" in seen:
        equal(expect(run.get(urllib.parse.urljoin(run.base + "/", seen["$ref"])), 200).json["id"], group["id"], "what is at groups.$ref")
    expect(run.delete(path_of(group)), 204)
    check(not run.read(user).get("groups"), "the group is still there")


@scim_case("U6", "membership is changed through the group only", "RFC7643-4.1.2-L1354", "RFC7643-7-L1759")
def membership_is_read_only(run):
    user, group = run.user(), run.group()
    groups = [{"value": group["id"]}]
    refused(run.patch(path_of(user), {"op": "add", "path": "groups", "value": groups}), 400, "mutability")
    after = expect(run.put(path_of(user), run.new_user(groups=groups)), 200).json
    check(not after.get("groups"), f"groups is {after.get('groups')}")
    check(not run.read(group).get("members"), "the group has a member")
    run.change(group, {"op": "add", "path": "members", "value": [{"value": user["id"]}]})
    equal([each["value"] for each in run.read(user)["groups"]], [group["id"]], "groups.value")
    run.change(group, {"op": "remove", "path": f'members[value eq "{user["id"]}"]'})
    check(not run.read(user).get("groups"), "the user is still in the group")


@scim_case("U7", "groups may be in groups, and a deleted member is gone from them")
def nested_groups(run):
    user, inner = run.user(), run.group()
    outer = run.group(members=[{"value": inner["id"]}, {"value": user["id"]}])
    equal({each["value"]: each.get("type") for each in outer["members"]}, {inner["id"]: "Group", user["id"]: "User"}, "members")
    expect(run.delete(path_of(user)), 204)
    equal([each["value"] for each in run.read(outer)["members"]], [inner["id"]], "members after one was deleted")
    expect(run.put(path_of(outer), run.new_group()), 200)
    check(not run.read(outer).get("members"), "PUT without members left them")


@scim_case("U8", "the extension for enterprises is an object under its URN", "RFC7643-3.3-L981", "EXTRA-EXT-CONTAINER",
           "EXTRA-EXT-ROUNDTRIP")
def enterprise(run):
    run.needs_enterprise()
    boss = run.user()
    values = {"employeeNumber": "7", "costCenter": "A", "organization": "O", "division": "D", "department": "Tides"}
    user = run.user({ENTERPRISE: values | {"manager": {"value": boss["id"]}}})
    equal({name: user[ENTERPRISE][name] for name in values}, values, "the extension")
    equal(user[ENTERPRISE]["manager"]["value"], boss["id"], "manager.value")
    check("department" not in user, "an attribute is outside of its container")
    equal(run.read(user)[ENTERPRISE], user[ENTERPRISE], "the extension as it is read")
    after = expect(run.put(path_of(user), run.new_user()), 200).json
    check(ENTERPRISE not in after and after["schemas"] == [USER], f"after PUT without it there is {after}")


# ---- characteristics of attributes, on any resource type that has such an attribute ----

SAMPLES = {"string": "text", "boolean": True, "decimal": 1.5, "integer": 42, "dateTime": "2008-01-23T04:56:22Z", "binary": "aGVsbG8=",
           "reference": "https://example.com/a?b=c#d"}


def sample(attribute, text=None):
    """A value for an attribute; `text` for those that are strings."""
    if attribute["type"] == "complex":
        value = {each["name"]: sample(each, text) for each in attribute["subAttributes"] if writable(each) and each["name"] != "primary"}
    else:
        value = text if text and attribute["type"] == "string" else SAMPLES[attribute["type"]]
    return [value] if attribute.get("multiValued") else value


def writable(attribute):
    return attribute.get("mutability", "readWrite") in ("readWrite", "immutable", "writeOnly")


class Specimen:
    """Resources of a type that has an attribute like `wanted`. Types that the server has besides users and groups come first,
    since they are more likely to be there for tests."""

    def __init__(self, run, what, wanted):
        self.run = run
        own = [each for each in run.bench.resource_types if each["schema"] not in (USER, GROUP)]
        for kind in own + [each for each in run.bench.resource_types if each["schema"] == USER]:
            for attribute in run.bench.schemas[kind["schema"]]["attributes"]:
                if attribute["name"] not in ("id", "schemas", "meta") and wanted(attribute):
                    self.kind, self.name, self.attribute = kind, attribute["name"], attribute
                    return
        raise NotApplicable(f"no resource type has an attribute that is {what}")

    def body(self, **attributes):
        """A resource with all that is required."""
        schemas = [self.kind["schema"]] + [each["schema"] for each in self.kind.get("schemaExtensions") or [] if each.get("required")]
        parts = [self.required(urn) for urn in schemas]
        return {"schemas": schemas} | parts[0] | dict(zip(schemas[1:], parts[1:])) | attributes

    def required(self, urn):
        return {each["name"]: sample(each, self.run.tag) for each in self.run.bench.schemas[urn]["attributes"]
                if each.get("required") and writable(each)}

    def post(self, value):
        return self.run.post(self.kind["endpoint"], self.body(**{self.name: value}))

    def make(self, value):
        return expect(self.post(value), 201).json

    def comes_back(self, value):
        made = self.make(value)
        equal(made.get(self.name), value, self.name)
        equal(self.run.read(made).get(self.name), value, self.name)
        return made


def simple(kind):
    return lambda each: (each["type"] == kind and not each.get("multiValued") and each.get("mutability", "readWrite") == "readWrite"
                         and each.get("returned", "default") == "default" and each.get("uniqueness", "none") == "none")


@scim_case("T1", "integers come back as they were; fractions are refused", "RFC7643-2.3.4-L521", "EXTRA-TYPE-INT")
def integers(run):
    specimen = Specimen(run, "an integer", simple("integer"))
    for value in (0, -1, 42, 2**31, -2**53):
        made = specimen.comes_back(value)
    body = expect(run.get(path_of(made)), 200).body
    check(re.search(rb'"%s"\s*:\s*-9007199254740992\s*[,}]' % specimen.name.encode(), body), "it is not written as an integer")
    for wrong in (1.5, "1", True, [1, 2], 1e3 + 0.5):
        refused(specimen.post(wrong), 400, "invalidValue")
    equal(run.find(f'{specimen.name} lt -9007199254740991 and id eq "{made["id"]}"', specimen.kind["endpoint"])[0]["id"], made["id"], "what lt finds")


@scim_case("T2", "booleans come back as they were", "EXTRA-TYPE-BOOL")
def booleans(run):
    specimen = Specimen(run, "a boolean", simple("boolean"))
    for value in (True, False):
        specimen.comes_back(value)
    refused(specimen.post("perhaps"), 400, "invalidValue")


@scim_case("T3", "a dateTime has a date and a time, and comes back", "EXTRA-TYPE-DT", "RFC7643-2.3.5-L527", "RFC7643-2.3.5-L531")
def date_times(run):
    specimen = Specimen(run, "a dateTime", simple("dateTime"))
    for value in ("2008-01-23T04:56:22Z", "2011-05-13T04:42:34.123Z", "2011-05-13T04:42:34+02:00"):
        made = specimen.make(value)
        check(DATE_TIME.fullmatch(made[specimen.name]), f"it is {made[specimen.name]}")
        equal(ids(run.find(f'{specimen.name} eq "{value}" and id eq "{made["id"]}"', specimen.kind["endpoint"])), [made["id"]], "what eq finds")
    for wrong in ("2008-01-23", "04:56:22Z", "yesterday", "2008-13-01T00:00:00Z", 1200000000, ""):
        reply = specimen.post(wrong)
        check(reply.status == 400 or (wrong == "" and reply.status == 201), f"{wrong} got {reply}")


@scim_case("T4", "binary values are base64 and come back", "EXTRA-TYPE-BIN", "RFC7643-2.3.6-L537")
def binaries(run):
    specimen = Specimen(run, "binary", simple("binary"))
    specimen.comes_back(base64.b64encode(bytes(range(256))).decode())
    refused(specimen.post("not base64!"), 400, "invalidValue")
    refused(run.get(specimen.kind["endpoint"], {"filter": f'{specimen.name} gt "aGVsbG8="'}), 400, "invalidFilter")


@scim_case("T5", "references are URIs and come back", "EXTRA-TYPE-REF", "RFC7643-2.3.7-L552")
def references(run):
    specimen = Specimen(run, "a reference", simple("reference"))
    for value in ("https://example.com/a?b=c#d", "../Users/1", "urn:example:a"):
        specimen.comes_back(value)
    refused(specimen.post(7), 400, "invalidValue")


@scim_case("T6", "complex attributes come back with all their parts", "EXTRA-TYPE-COMPLEX", "RFC7643-2.4-L608")
def complexes(run):
    specimen = Specimen(run, "complex", simple("complex"))
    specimen.comes_back(sample(specimen.attribute))
    for wrong in ("text", 7, [sample(specimen.attribute)] * 2):
        refused(specimen.post(wrong), 400, ("invalidValue", "invalidSyntax"))


@scim_case("T7", "what is immutable is taken once, and then only the same again", "EXTRA-MUT-IMMUTABLE", "RFC7643-7-L1766",
           "RFC7644-3.5.1-L1660", "RFC7644-3.5.2-L1886", "RFC7644-3.5.2-L1888")
def immutables(run):
    specimen = Specimen(run, "immutable", lambda each: each.get("mutability") == "immutable" and each["type"] == "string")
    made = specimen.comes_back("first")
    refused(run.put(path_of(made), specimen.body(**{specimen.name: "second"})), 400, "mutability")
    expect(run.put(path_of(made), specimen.body(**{specimen.name: "first"})), 200)
    for operation in ({"op": "replace", "path": specimen.name, "value": "second"}, {"op": "remove", "path": specimen.name},
                      {"op": "replace", "value": {specimen.name: "second"}}):
        refused(run.patch(path_of(made), operation), 400, "mutability")
    equal(run.read(made)[specimen.name], "first", specimen.name)
    later = expect(run.post(specimen.kind["endpoint"], specimen.body()), 201).json
    equal(run.change(later, {"op": "add", "path": specimen.name, "value": "late"})[specimen.name], "late", "one that is given later")


@scim_case("T8", "what is writeOnly and returned never is taken and not shown", "EXTRA-MUT-WRITEONLY", "EXTRA-RET-NEVER", "RFC7643-7-L1769")
def write_only(run):
    specimen = Specimen(run, "writeOnly", lambda each: each.get("mutability") == "writeOnly" and each.get("returned") == "never")
    made = specimen.make("hush-" + run.tag)
    for reply in (run.get(path_of(made)), run.get(path_of(made), {"attributes": specimen.name}), run.patch(
            path_of(made), {"op": "replace", "path": specimen.name, "value": "hush2-" + run.tag})):
        check(specimen.name not in made and b"hush" not in expect(reply, (200, 204)).body, f"it is in {reply}")


@scim_case("T9", "what is readOnly is ignored when a client sends it", "EXTRA-MUT-READONLY", "RFC7644-3.3-L584", "RFC7644-3.5.2-L1888")
def read_only(run):
    specimen = Specimen(run, "readOnly", lambda each: each.get("mutability") == "readOnly" and not each.get("required"))
    made = specimen.make(sample(specimen.attribute))
    check(specimen.name not in made, f"it is {made.get(specimen.name)}")
    after = expect(run.put(path_of(made), specimen.body(**{specimen.name: sample(specimen.attribute)})), 200).json
    check(specimen.name not in after, f"after PUT it is {after.get(specimen.name)}")
    refused(run.patch(path_of(made), {"op": "add", "path": specimen.name, "value": sample(specimen.attribute)}), 400, "mutability")


@scim_case("T10", "what is returned always is there even when it is excluded or not asked for", "EXTRA-RET-ALWAYS", "RFC7644-3.4.2.5-L1449")
def returned_always(run):
    specimen = Specimen(run, "returned always", lambda each: each.get("returned") == "always" and writable(each) and each["type"] == "string")
    made = specimen.comes_back("seen")
    equal(run.read(made, {"excludedAttributes": specimen.name})[specimen.name], "seen", "it when excluded")
    equal(run.read(made, {"attributes": "externalId"})[specimen.name], "seen", "it when others are asked for")
    equal(run.read(made, {"excludedAttributes": "id,schemas"})["id"], made["id"], "id when excluded")


@scim_case("T11", "what is returned on request is there when asked for, and else not")
def returned_on_request(run):
    specimen = Specimen(run, "returned on request", lambda each: each.get("returned") == "request" and writable(each) and each["type"] == "string")
    made = specimen.make("asked")
    check(specimen.name not in run.read(made), "it is there without a request")
    equal(run.read(made, {"attributes": specimen.name})[specimen.name], "asked", "it when asked for")


@scim_case("T12", "where case counts, filters mind it", "EXTRA-CASE-EXACT", "RFC7643-7-L1748")
def case_exact(run):
    specimen = Specimen(run, "caseExact", lambda each: simple("string")(each) and each.get("caseExact"))
    made = specimen.make("aB" + run.tag)
    where = specimen.kind["endpoint"]
    equal(ids(run.find(f'{specimen.name} eq "aB{run.tag}"', where)), [made["id"]], "what eq finds")
    for expression in (f'eq "ab{run.tag}"', f'sw "ab{run.tag}"', f'co "AB{run.tag}"'):
        equal(run.find(f"{specimen.name} {expression}", where), [], f"what {expression} finds")


@scim_case("T13", "where case does not count, filters do not mind it", "EXTRA-CASE-INSENSITIVE", "RFC7644-3.4.2.2-L1217")
def case_insensitive(run):
    specimen = Specimen(run, "a string", lambda each: simple("string")(each) and not each.get("caseExact"))
    made = specimen.make("aB" + run.tag)
    for expression in (f'eq "Ab{run.tag}"', f'sw "AB{run.tag}"', f'ew "b{run.tag.upper()}"', f'co "b{run.tag[:-1]}"'):
        equal(ids(run.find(f"{specimen.name} {expression}", specimen.kind["endpoint"])), [made["id"]], f"what {expression} finds")


@scim_case("T14", "attributes with several values come back with all of them", "EXTRA-MV-ROUNDTRIP")
def several_values(run):
    specimen = Specimen(run, "of several values", lambda each: each.get("multiValued") and each["type"] == "string" and writable(each))
    made = specimen.comes_back(["one", "two", "three"])
    equal(ids(run.find(f'{specimen.name} eq "TWO" and id eq "{made["id"]}"', specimen.kind["endpoint"])), [made["id"]], "what eq finds")
    equal(sorted(run.change(made, {"op": "add", "path": specimen.name, "value": ["four"]})[specimen.name]),
          ["four", "one", "three", "two"], "the values after one was added")
    equal(run.change(made, {"op": "replace", "path": specimen.name, "value": ["five"]})[specimen.name], ["five"], "the values after a replace")


@scim_case("T15", "of complex values at most one is primary, and a new primary takes the place of the old", "EXTRA-MV-COMPLEX-PRIMARY",
           "RFC7643-2.4-L634", "RFC7644-3.5.2-L1927")
def primary_values(run):
    def wanted(each):
        return each.get("multiValued") and {"value", "primary"} <= {sub["name"] for sub in each.get("subAttributes", [])} and writable(each)
    specimen = Specimen(run, "of several values, one of them primary", wanted)
    made = specimen.make([{"value": "a", "primary": True}, {"value": "b"}])
    twice = specimen.post([{"value": "a", "primary": True}, {"value": "b", "primary": True}])
    check(twice.status == 400 or sum(each.get("primary", False) for each in twice.json[specimen.name]) <= 1, "two are primary")
    after = run.change(made, {"op": "add", "path": specimen.name, "value": [{"value": "c", "primary": True}]})[specimen.name]
    equal({each["value"]: each.get("primary", False) for each in after}, {"a": False, "b": False, "c": True}, "primary")


@scim_case("T16", "an extension that is required must be there, with what it requires", "RFC7643-6-L1655", "EXTRA-EXT-CONTAINER",
           "EXTRA-EXT-ROUNDTRIP", "EXTRA-EXT-SCHEMAS")
def required_extension(run):
    for kind in run.bench.resource_types:
        urn = next((each["schema"] for each in kind.get("schemaExtensions") or [] if each.get("required")), None)
        if urn:
            break
    else:
        raise NotApplicable("no resource type has a required extension")
    specimen = Specimen(run, "of that type", lambda each: True)
    body = specimen.body()
    made = expect(run.post(kind["endpoint"], body), 201).json
    equal(made[urn], body[urn], "the extension")
    equal(run.read(made)[urn], body[urn], "the extension as it is read")
    check(urn in made["schemas"], f"schemas is {made['schemas']}")
    refused(run.post(kind["endpoint"], without(body, urn) | {"schemas": [kind["schema"]]}), 400, "invalidValue")
    required = [name for name in body[urn]]
    if required:
        rest = without(body[urn], required[0])
        refused(run.post(kind["endpoint"], body | {urn: rest}), 400, "invalidValue")
        refused(run.patch(path_of(made), {"op": "remove", "path": f"{urn}:{required[0]}"}), 400, ("mutability", "invalidValue"))
