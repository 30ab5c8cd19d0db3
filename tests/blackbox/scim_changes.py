# SPDX-License-Identifier: Apache-2.0
"""Cases of PATCH (P), versions (E), bulk requests (B) and /Me (M)."""

import concurrent.futures

from cases import NotApplicable, check
from scim_bench import (BULK_REQUEST, BULK_RESPONSE, ENTERPRISE, ERROR, PATCH_OP, USER, equal, expect, ids, path_of, refused,
                        scim_case, without)


def add(path, value):
    return {"op": "add", "path": path, "value": value}


def replace(path, value):
    return {"op": "replace", "path": path, "value": value}


def remove(path):
    return {"op": "remove", "path": path}


# ---- PATCH ----

@scim_case("P1", "PATCH answers 200 with the resource or 204, and does what it says", "RFC7644-3.5-L1609", "RFC7644-3.5.2-L1805",
           "RFC7644-3.5.2-L1810", "RFC7644-3.5.2-L1939", "RFC7644-3.5.2.1-L1972", needs=["patch"])
def patch(run):
    user = run.user()
    reply = expect(run.patch(path_of(user), add("displayName", "Ada")), (200, 204))
    check(bool(reply.body) == (reply.status == 200), "204 has a body, or 200 has none")
    if reply.status == 200:
        equal(reply.json["displayName"], "Ada", "displayName in the answer")
    equal(run.read(user)["displayName"], "Ada", "displayName")
    equal(run.change(user, replace("displayName", "Countess"))["displayName"], "Countess", "displayName after replace")
    check("displayName" not in run.change(user, remove("displayName")), "displayName is there after remove")


@scim_case("P2", "a PATCH needs its schema, operations, and each of them an op", "RFC7644-3.5.2-L1805", "RFC7644-3.5.2-L1808",
           "RFC7644-3.5.2-L1810", needs=["patch"])
def patch_body(run):
    user = run.user()
    operation = add("title", "x")
    for body in ({"Operations": [operation]}, {"schemas": [USER], "Operations": [operation]}, {"schemas": [PATCH_OP]},
                 {"schemas": [PATCH_OP], "Operations": []}, {"schemas": [PATCH_OP], "Operations": operation}, {"schemas": [PATCH_OP], "Operations": [7]},
                 {"schemas": [PATCH_OP], "Operations": [without(operation, "op")]}, {"schemas": [PATCH_OP], "Operations": [operation | {"op": "move"}]},
                 {"schemas": [PATCH_OP], "Operations": [operation | {"op": 1}]}, [operation], b"{", b""):
        refused(run.ask("PATCH", path_of(user), body), 400, ("invalidSyntax", "invalidValue"))
    equal(run.read(user), user, "the user afterwards")


@scim_case("P3", "add needs a value", "RFC7644-3.5.2.1-L1972", needs=["patch"])
def patch_add_needs_value(run):
    user = run.user()
    refused(run.patch(path_of(user), {"op": "add", "path": "title"}), 400, ("invalidSyntax", "invalidValue"))
    refused(run.patch(path_of(user), {"op": "add"}), 400, ("invalidSyntax", "invalidValue", "noTarget"))


@scim_case("P4", "add appends to several values, and what is there already changes nothing, not even lastModified", "RFC7644-3.5.2.1-L2004",
           needs=["patch"])
def patch_add_values(run):
    first, second = {"value": "a@example.com", "type": "work"}, {"value": "b@example.com", "type": "home"}
    user = run.user(emails=[first])
    after = run.change(user, add("emails", [second]))
    equal(after["emails"], [first, second], "emails")
    again = run.change(user, add("emails", [second]))
    equal(again, after, "the user after the same was added")
    equal(run.change(user, add("emails", second)), after, "the user after the same was added as an object")
    equal(run.change(user, replace("userName", user["userName"])), after, "the user after a replace by the same")


@scim_case("P5", "add to a complex attribute sets the sub-attributes that it brings", "RFC7644-3.5.2.1-L1988", needs=["patch"])
def patch_add_complex(run):
    user = run.user(name={"givenName": "Ada", "familyName": "King"})
    equal(run.change(user, add("name", {"givenName": "Augusta", "middleName": "B"}))["name"],
          {"givenName": "Augusta", "familyName": "King", "middleName": "B"}, "name")
    equal(run.change(user, add("name.honorificPrefix", "Lady"))["name"]["honorificPrefix"], "Lady", "name.honorificPrefix")
    equal(run.change(user, replace("name", {"familyName": "L"}))["name"],
          {"givenName": "Augusta", "familyName": "L", "middleName": "B", "honorificPrefix": "Lady"}, "name after a replace of one part")


@scim_case("P6", "remove leaves an attribute unassigned", "RFC7644-3.5.2.2-L2146", "RFC7644-3.5.2.2-L2151", needs=["patch"])
def patch_remove(run):
    emails = [{"value": f"{each}@example.com", "type": each} for each in ("work", "home", "other")]
    user = run.user(title="Dr", emails=emails, name={"givenName": "Ada", "familyName": "K"}, nickName="A")
    after = run.change(user, remove("title"), remove("name.familyName"), remove('emails[type eq "work"]'))
    check("title" not in after, "title is there")
    equal(after["name"], {"givenName": "Ada"}, "name")
    equal(after["emails"], emails[1:], "emails")
    after = run.change(user, remove('emails[type eq "home"].type'))
    equal([each.get("type") for each in after["emails"]], [None, "other"], "emails.type")
    after = run.change(user, remove("emails"), remove("name"))
    check("emails" not in after and "name" not in after, f"there is still {sorted(after)}")
    equal(run.find(f'id eq "{user["id"]}" and (emails pr or title pr)'), [], "what pr finds")
    run.change(user, add("emails", emails))
    check("emails" not in run.change(user, remove("emails[value pr]")), "emails are there after all matched")
    equal(run.change(user, remove("title"))["id"], user["id"], "what removing nothing returns")


@scim_case("P7", "what is required or readOnly cannot be removed", "RFC7644-3.5.2.2-L2167", needs=["patch"])
def patch_remove_required(run):
    user = run.user()
    for path in ("userName", "id", "meta", "meta.created"):
        refused(run.patch(path_of(user), remove(path)), 400, "mutability")
    refused(run.patch(path_of(user), {"op": "remove"}), 400, "noTarget")
    equal(run.read(user), user, "the user afterwards")


@scim_case("P8", "replace of what is not there adds it", "RFC7644-3.5.2.3-L2376", needs=["patch"])
def patch_replace_as_add(run):
    user = run.user()
    after = run.change(user, replace("title", "Dr"), replace("name.givenName", "Ada"), replace("emails", [{"value": "a@example.com"}]))
    equal((after["title"], after["name"], after["emails"]), ("Dr", {"givenName": "Ada"}, [{"value": "a@example.com"}]), "the user")


@scim_case("P9", "replace with a filter changes every value that matches, and none is noTarget", "RFC7644-3.5.2.3-L2387",
           "RFC7644-3.5.2.3-L2396", needs=["patch"])
def patch_replace_values(run):
    user = run.user(addresses=[{"type": "work", "locality": "Kiel", "country": "DE"}, {"type": "work", "locality": "Bonn"},
                               {"type": "home", "locality": "Ulm"}])
    after = run.change(user, replace('addresses[type eq "work"].locality', "Hamburg"))
    equal([each["locality"] for each in after["addresses"]], ["Hamburg", "Hamburg", "Ulm"], "addresses.locality")
    after = run.change(user, replace('addresses[type eq "home"]', {"type": "other", "locality": "Jena"}))
    equal(after["addresses"][2], {"type": "other", "locality": "Jena"}, "the replaced value")
    for path in ('addresses[type eq "none"]', 'addresses[type eq "none"].locality'):
        refused(run.patch(path_of(user), replace(path, {"locality": "x"} if path.endswith("]") else "x")), 400, "noTarget")
    refused(run.patch(path_of(user), replace('emails[type eq "work"].value', "x@example.com")), 400, "noTarget")
    equal(run.read(user)["addresses"], after["addresses"], "addresses afterwards")


@scim_case("P10", "a new primary value takes the place of the old one", "RFC7644-3.5.2-L1927", needs=["patch"])
def patch_primary(run):
    user = run.user(emails=[{"value": "a@example.com", "primary": True, "type": "work"}, {"value": "b@example.com", "type": "home"}])

    def primaries(after):
        return [each["value"][0] for each in after["emails"] if each.get("primary")]
    equal(primaries(run.change(user, add("emails", [{"value": "c@example.com", "primary": True}]))), ["c"], "primary after add")
    equal(primaries(run.change(user, replace('emails[type eq "home"].primary', True))), ["b"], "primary after replace")
    equal(primaries(run.change(user, replace('emails[type eq "work"]', {"value": "a@example.com", "type": "work", "primary": True}))), ["a"],
          "primary after a replaced value")


@scim_case("P11", "of a PATCH all is done or nothing", "RFC7644-3.5.2-L1931", "RFC7644-3.5.2-L1933", needs=["patch"])
def patch_is_atomic(run):
    user, other = run.user(title="Dr"), run.user()
    for last in (replace("id", "x"), replace('emails[type eq "none"].value', "x"), replace("active", "perhaps"), add("noSuchThing", "x"),
                 remove("userName"), {"op": "nonsense"}):
        refused(run.patch(path_of(user), replace("title", "x"), add("emails", [{"value": "a@example.com"}]), last), 400)
        equal(run.read(user), user, "the user after a failed PATCH")
    refused(run.patch(path_of(user), replace("title", "x"), replace("userName", other["userName"])), 409, "uniqueness")
    equal(run.read(user), user, "the user after a conflict")


@scim_case("P12", "what is readOnly cannot be changed", "RFC7644-3.5.2-L1886", "RFC7644-3.5.2-L1888", "RFC7643-7-L1759", needs=["patch"])
def patch_read_only(run):
    user = run.user()
    for operation in (replace("id", "x"), add("id", "x"), replace("meta.created", "1999-01-01T00:00:00Z"), add("groups", [{"value": "x"}]),
                      replace("meta", {"resourceType": "Group"})):
        refused(run.patch(path_of(user), operation), 400, "mutability")
    equal(run.read(user), user, "the user afterwards")


@scim_case("P13", "values that do not fit their attribute are refused", "RFC7644-3.5.2-L1886", needs=["patch"])
def patch_wrong_values(run):
    user = run.user(emails=[{"value": "a@example.com"}])
    for operation in (replace("active", "perhaps"), replace("title", 7), replace("name", "x"), replace("title", {"a": "b"}), replace("userName", ""),
                      replace("userName", None), add("emails", [7]), add("x509Certificates", [{"value": "no base64!"}])):
        refused(run.patch(path_of(user), operation), 400, ("invalidValue", "invalidSyntax", "mutability"))
    equal(run.read(user), user, "the user afterwards")


@scim_case("P14", "a path that is none is invalidPath, a filter in it that is none invalidFilter or invalidPath", needs=["patch"])
def patch_paths(run):
    user = run.user(emails=[{"value": "a@example.com"}])
    for path in ("noSuchThing", "name.noSuchThing", "name.", ".name", "emails[", "emails[]", 'emails[type eq "x"', "a b", 'emails[type eq "x"]value',
                 'emails[type eq "x"].', "urn:example:none:attr", "userName.sub", 'title[value eq "x"]', "name..givenName", "9"):
        refused(run.patch(path_of(user), replace(path, "x")), 400, ("invalidPath", "invalidFilter", "noTarget"))
    for path in ('emails[type is "x"].value', 'emails[noSuchThing eq "x"].value'):
        refused(run.patch(path_of(user), replace(path, "x")), 400, ("invalidFilter", "invalidPath"))
    refused(run.patch(path_of(user), {"op": "replace", "path": 7, "value": "x"}), 400, ("invalidPath", "invalidSyntax", "invalidValue"))
    equal(run.read(user), user, "the user afterwards")


@scim_case("P15", "without a path, the members of the value are the attributes", needs=["patch"])
def patch_without_path(run):
    user = run.user(title="Dr", emails=[{"value": "a@example.com"}])
    after = run.change(user, {"op": "add", "value": {"nickName": "A", "emails": [{"value": "b@example.com"}], "name": {"givenName": "Ada"}}})
    equal((after["nickName"], after["name"], len(after["emails"]), after["title"]), ("A", {"givenName": "Ada"}, 2, "Dr"), "the user")
    after = run.change(user, {"op": "replace", "value": {"title": "Prof", "emails": [{"value": "c@example.com"}]}})
    equal((after["title"], after["emails"]), ("Prof", [{"value": "c@example.com"}]), "the user after replace")
    refused(run.patch(path_of(user), {"op": "replace", "value": "x"}), 400, ("invalidValue", "invalidSyntax"))
    reply = run.patch(path_of(user), {"op": "replace", "value": {"noSuchThing": "x"}})
    if reply.status in (200, 204):
        equal(run.read(user), after, "the user after an attribute that no schema has")
    else:
        refused(reply, 400)


@scim_case("P16", "paths and ops are taken in any case, and names behind the URN of their schema", needs=["patch"])
def patch_names(run):
    run.needs_enterprise()
    user = run.user()
    after = run.change(user, {"op": "ADD", "path": "TITLE", "value": "Dr"}, add(USER + ":nickName", "A"), add(f"{ENTERPRISE}:department", "Tides"),
                       add(f"{USER}:name.givenName", "Ada"))
    equal((after["title"], after["nickName"], after["name"]["givenName"], after[ENTERPRISE]), ("Dr", "A", "Ada", {"department": "Tides"}), "the user")
    check(ENTERPRISE in after["schemas"], f"schemas is {after['schemas']}")
    after = run.change(user, {"op": "Remove", "path": f"{ENTERPRISE.lower()}:Department"})
    check(ENTERPRISE not in after and after["schemas"] == [USER], f"the extension is left behind in {after}")


@scim_case("P17", "operations are done in their order", needs=["patch"])
def patch_order(run):
    user = run.user(title="a")
    after = run.change(user, replace("title", "b"), remove("title"), add("title", "c"), add("emails", [{"value": "x", "type": "work"}]),
                       replace('emails[type eq "work"].value', "y"), add("nickName", "n"), remove("nickName"))
    equal((after["title"], after["emails"], after.get("nickName")), ("c", [{"value": "y", "type": "work"}], None), "the user")


@scim_case("P18", "members of a group: added once, removed by filter, replaced, removed all", needs=["patch"])
def patch_members(run):
    users = [run.user() for _ in range(4)]
    one, two, three, four = ids(users)
    group = run.group(members=[{"value": one}])

    def members(after):
        return sorted(each["value"] for each in after.get("members", []))
    equal(members(run.change(group, add("members", [{"value": two}, {"value": three}]))), sorted([one, two, three]), "members")
    equal(members(run.change(group, add("members", [{"value": two}]))), sorted([one, two, three]), "members after one was added again")
    equal(members(run.change(group, remove(f'members[value eq "{two}"]'))), sorted([one, three]), "members after remove")
    equal(members(run.change(group, remove(f'members[value eq "{two}"]'))), sorted([one, three]), "members after the same remove")
    equal(members(run.change(group, add("members", [{"value": four}]), remove(f'members[value eq "{one}"]'))), sorted([three, four]), "members")
    equal(members(run.change(group, replace("members", [{"value": one}, {"value": two}]))), sorted([one, two]), "members after replace")
    equal(members(run.change(group, {"op": "add", "value": {"members": [{"value": three}]}})), sorted([one, two, three]), "members without a path")
    equal(members(run.change(group, remove("members"))), [], "members after all were removed")
    check("members" not in run.read(group) or run.read(group)["members"] == [], "members is still there")


@scim_case("P19", "members that come at the same moment are all kept", needs=["patch"])
def patch_members_at_once(run):
    users, group = [run.user() for _ in range(16)], run.group()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for reply in pool.map(lambda user: run.patch(path_of(group), add("members", [{"value": user["id"]}])), users):
            expect(reply, (200, 204))
    equal(sorted(each["value"] for each in run.read(group)["members"]), sorted(ids(users)), "members")


@scim_case("P20", "add with a filter that nothing matches makes the value that it describes", needs=["patch"])
def patch_add_described(run):
    user = run.user()
    after = run.change(user, add('emails[type eq "work"].value', "a@example.com"), add('phoneNumbers[type eq "mobile" and primary eq true].value', "1"))
    equal(after["emails"], [{"type": "work", "value": "a@example.com"}], "emails")
    equal(after["phoneNumbers"], [{"type": "mobile", "primary": True, "value": "1"}], "phoneNumbers")


# ---- versions ----

@scim_case("E1", "the version is in ETag and in meta.version, weak ones with W/, and differs after a change", "RFC7644-3.14-L3967",
           "RFC7643-3.1-L940", needs=["etag"])
def versions(run):
    reply = expect(run.post("/Users", run.new_user()), 201)
    where, seen = path_of(reply.json), []
    for each in (reply, run.get(where), run.put(where, run.new_user()), run.patch(where, replace("title", "x")), run.get(where)):
        tag = each.get("ETag")
        check(tag and tag.removeprefix("W/").startswith('"') and tag.endswith('"'), f"ETag is {tag}")
        if each.body:
            equal(each.json["meta"]["version"], tag, "meta.version")
        seen.append(tag)
    check(seen[0] == seen[1] and seen[3] == seen[4] and len(set(seen)) == 3, f"the versions are {seen}")
    equal(run.find(f'id eq "{reply.json["id"]}"')[0]["meta"]["version"], seen[4], "the version in a list")


@scim_case("E2", "GET with If-None-Match of the current version is 304", "RFC7644-3.14-L3967", needs=["etag"])
def if_none_match(run):
    user = run.user()
    tag = expect(run.get(path_of(user)), 200).get("ETag")
    for value in (tag, f'"other", {tag}', "*", tag.removeprefix("W/")):
        reply = expect(run.get(path_of(user), fields={"If-None-Match": value}), 304)
        check(not reply.body and reply.get("ETag") == tag, "304 has a body or no ETag")
    expect(run.get(path_of(user), fields={"If-None-Match": 'W/"other"'}), 200)
    run.change(user, replace("title", "x"))
    expect(run.get(path_of(user), fields={"If-None-Match": tag}), 200)


@scim_case("E3", "PUT, PATCH and DELETE with If-Match of another version are 412 and change nothing", "RFC7644-3.14-L3967", needs=["etag"])
def if_match(run):
    user = run.user()
    where, old = path_of(user), user["meta"]["version"]
    now = run.change(user, replace("title", "x"))
    stale = {"If-Match": old}
    refused(run.put(where, run.new_user(), fields=stale), 412)
    refused(run.patch(where, replace("title", "y"), fields=stale), 412)
    refused(run.delete(where, fields=stale), 412)
    equal(run.read(user), now, "the user afterwards")
    expect(run.patch(where, replace("title", "y"), fields={"If-Match": now["meta"]["version"]}), (200, 204))
    expect(run.put(where, run.new_user(), fields={"If-Match": f'{old}, {run.read(user)["meta"]["version"]}'}), 200)
    expect(run.patch(where, replace("title", "z"), fields={"If-Match": "*"}), (200, 204))
    expect(run.delete(where, fields={"If-Match": run.read(user)["meta"]["version"]}), 204)
    check(run.put(where, run.new_user(), fields={"If-Match": "*"}).status in (404, 412), "PUT of what is gone works")


@scim_case("E4", "of two that change the same version one is refused", "RFC7644-3.14-L3967", needs=["etag"])
def lost_updates(run):
    user = run.user()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        fields = {"If-Match": user["meta"]["version"]}
        statuses = sorted(reply.status for reply in pool.map(lambda n: run.patch(path_of(user), replace("title", f"t{n}"), fields=fields), range(8)))
    check(statuses[0] in (200, 204) and statuses[1:] == [412] * 7, f"the statuses are {statuses}")


@scim_case("E5", "a change of its members changes the version of a group", needs=["etag"])
def group_version(run):
    user, group = run.user(), run.group()
    after = run.change(group, add("members", [{"value": user["id"]}]))
    check(after["meta"]["version"] != group["meta"]["version"], "the version is the same")
    again = run.change(group, add("members", [{"value": user["id"]}]))
    equal(again["meta"], after["meta"], "meta after the same member was added")


# ---- bulk ----

def bulk(run, *operations, **more):
    return run.post("/Bulk", {"schemas": [BULK_REQUEST], "Operations": list(operations)} | more)


def results(reply, count):
    expect(reply, 200)
    equal(reply.json.get("schemas"), [BULK_RESPONSE], "schemas")
    found = reply.json["Operations"]
    equal(len(found), count, "the number of results")
    for each in found:
        check(isinstance(each.get("status"), str), f"status is {each.get('status')}")
    return found


def creation(bulk_id, path, data):
    return {"method": "POST", "path": path, "bulkId": bulk_id, "data": data}


@scim_case("B1", "a bulk request answers 200 with the result of each operation", "RFC7644-3.7-L2775", "RFC7644-3.7.3-L3201",
           "RFC7644-3.7.3-L3206", needs=["bulk"])
def bulk_results(run):
    user, gone = run.user(title="a"), run.user()
    replaced = run.user()
    found = results(bulk(
        run, creation("n1", "/Users", run.new_user()),
        {"method": "PATCH", "path": f"/Users/{user['id']}", "data": {"schemas": [PATCH_OP], "Operations": [replace("title", "b")]}},
        {"method": "PUT", "path": f"/Users/{replaced['id']}", "data": run.new_user(title="c")},
        {"method": "DELETE", "path": f"/Users/{gone['id']}"}), 4)
    equal([each["status"] for each in found][:1] + [each["status"] for each in found][2:], ["201", "200", "204"], "the statuses")
    check(found[1]["status"] in ("200", "204"), f"PATCH has the status {found[1]['status']}")
    equal([each.get("method") for each in found], ["POST", "PATCH", "PUT", "DELETE"], "the methods")
    equal(run.read(user)["title"], "b", "title after PATCH")
    equal(run.read(replaced)["title"], "c", "title after PUT")
    refused(run.get(path_of(gone)), 404)
    for each, wanted in zip(found[1:], (user, replaced, gone)):
        equal(each["location"], path_of(wanted), "location")
    expect(run.get(found[0]["location"]), 200)


@scim_case("B2", "the bulkId of a new resource is returned with it", "RFC7644-3.7-L2789", needs=["bulk"])
def bulk_ids(run):
    found = results(bulk(run, creation("first", "/Users", run.new_user()), creation("second", "/Groups", run.new_group())), 2)
    equal([each.get("bulkId") for each in found], ["first", "second"], "the bulkIds")
    for each in found:
        resource = expect(run.get(each["location"]), 200).json
        check("bulkid" not in resource["id"].lower(), "the id has a bulkId in it")
        if "version" in each:
            equal(each["version"], resource["meta"]["version"], "version")


@scim_case("B3", "a bulkId stands for the id of what is made with it, before and after", "RFC7644-3.7-L2796", needs=["bulk"])
def bulk_references(run):
    run.needs_enterprise()
    ada = run.new_user() | {"schemas": [USER, ENTERPRISE], ENTERPRISE: {"manager": {"value": "bulkId:boss"}}}
    found = results(bulk(
        run, creation("boss", "/Users", run.new_user()), creation("ada", "/Users", ada),
        creation("team", "/Groups", run.new_group(members=[{"value": "bulkId:ada"}, {"value": "bulkId:late"}])),
        creation("late", "/Users", run.new_user()),
        {"method": "PATCH", "path": "/Groups/bulkId:team", "data": {"schemas": [PATCH_OP], "Operations": [add("members", [{"value": "bulkId:boss"}])]}}), 5)
    equal([each["status"] for each in found[:4]], ["201"] * 4, "the statuses")
    made = {each["bulkId"]: expect(run.get(each["location"]), 200).json for each in found[:4]}
    equal(made["ada"][ENTERPRISE]["manager"]["value"], made["boss"]["id"], "manager.value")
    equal(sorted(each["value"] for each in made["team"]["members"]), sorted(made[name]["id"] for name in ("ada", "late", "boss")), "members")


@scim_case("B4", "references in a circle are resolved, or 409", "RFC7644-3.7.1-L2814", needs=["bulk"])
def bulk_circle(run):
    found = results(bulk(run, creation("a", "/Groups", run.new_group(members=[{"value": "bulkId:b"}])),
                         creation("b", "/Groups", run.new_group(members=[{"value": "bulkId:a"}]))), 2)
    statuses = [each["status"] for each in found]
    if "409" in statuses:
        raise NotApplicable("this server gives up with 409, as it may")
    equal(statuses, ["201", "201"], "the statuses")
    a, b = (expect(run.get(each["location"]), 200).json for each in found)
    equal(([each["value"] for each in a["members"]], [each["value"] for each in b["members"]]), ([b["id"]], [a["id"]]), "members")


@scim_case("B5", "operations that fail do not stop the others, and tell why", "RFC7644-3.7-L2779", "RFC7644-3.7.3-L3201", "RFC7644-3.7.3-L3206",
           needs=["bulk"])
def bulk_failures(run):
    user = run.user()
    found = results(bulk(run, creation("a", "/Users", run.new_user(userName=user["userName"])), creation("b", "/Users", {"schemas": [USER]}),
                         {"method": "DELETE", "path": "/Users/" + run.tag}, {"method": "PATCH", "path": f"/Users/{user['id']}", "data": {
                             "schemas": [PATCH_OP], "Operations": [replace("id", "x")]}},
                         creation("c", "/Groups", run.new_group(members=[{"value": "bulkId:none"}])), creation("d", "/Users", run.new_user())), 6)
    equal([each["status"] for each in found[:4]], ["409", "400", "404", "400"], "the statuses")
    check(found[4]["status"] in ("400", "409"), f"a bulkId that nothing has gives {found[4]['status']}")
    equal(found[5]["status"], "201", "the status of the last")
    for each, scim_type in zip(found[:4], ("uniqueness", "invalidValue", None, "mutability")):
        response = each["response"]
        equal((response["schemas"], str(response["status"]), response.get("scimType")), ([ERROR], each["status"], scim_type), "response")
        check(response.get("detail"), "no detail")


@scim_case("B6", "failOnErrors ends the work after so many errors", "RFC7644-3.7-L2779", needs=["bulk"])
def bulk_fail_on_errors(run):
    bodies = [run.new_user() for _ in range(2)]
    wrong = {"method": "DELETE", "path": "/Users/" + run.tag}
    found = bulk(run, creation("a", "/Users", bodies[0]), wrong, creation("b", "/Users", bodies[1]), failOnErrors=1)
    equal([each["status"] for each in results(found, 2)], ["201", "404"], "the statuses")
    equal(len(run.find(f'userName eq "{bodies[0]["userName"]}"')), 1, "how many the first made")
    equal(run.find(f'userName eq "{bodies[1]["userName"]}"'), [], "what came after the error")
    results(bulk(run, wrong, wrong, creation("c", "/Users", run.new_user()), failOnErrors=3), 3)


@scim_case("B7", "the limits are in ServiceProviderConfig, and what is over them is 413", "RFC7644-3.7.4-L3495", "RFC7644-3.7.4-L3499", needs=["bulk"])
def bulk_limits(run):
    limits = run.bench.config["bulk"]
    most, octets = limits["maxOperations"], limits["maxPayloadSize"]
    check(most > 0 and octets > 0, f"the limits are {limits}")
    if most <= 10_000:
        wrong = {"method": "DELETE", "path": "/Users/x"}
        reply = refused(bulk(run, *[wrong] * (most + 1)), 413)
        check(str(most) in reply.json.get("detail", ""), f"the limit is not in {reply}")
        results(bulk(run, *[wrong] * most), most)
    if octets <= 1 << 24:
        reply = refused(bulk(run, creation("a", "/Users", run.new_user(displayName="x" * octets))), 413)
        check(str(octets) in reply.json.get("detail", ""), f"the limit is not in {reply}")


@scim_case("B8", "an invalid bulk request is refused", "RFC7644-3.1-L436", needs=["bulk"])
def bulk_errors(run):
    for body in ({"Operations": []}, {"schemas": [USER], "Operations": []}, {"schemas": [BULK_REQUEST], "Operations": {}}, {"schemas": [BULK_REQUEST]},
                 {"schemas": [BULK_REQUEST], "Operations": [], "failOnErrors": "x"}, [], b"{", b""):
        refused(run.post("/Bulk", body), 400, ("invalidSyntax", "invalidValue"))


@scim_case("B9", "operations that are wrong in themselves fail one by one", "RFC7644-3.7-L2779", needs=["bulk"])
def bulk_wrong_operations(run):
    wrong = ({"method": "POST", "path": "/Users", "data": run.new_user()}, {"method": "GET", "path": "/Users", "bulkId": "g"},
             {"path": "/Users", "bulkId": "p", "data": run.new_user()}, {"method": "POST", "bulkId": "q", "data": run.new_user()},
             {"method": "POST", "path": "/Users", "bulkId": "r"}, {"method": "PUT", "path": "/Users", "data": run.new_user()},
             {"method": "POST", "path": "/None", "bulkId": "s", "data": run.new_user()}, {"method": "POST", "path": "/Bulk", "bulkId": "t", "data": {}})
    for each in wrong:
        reply = bulk(run, each, creation("ok", "/Users", run.new_user()))
        if reply.status == 400:
            refused(reply, 400, ("invalidSyntax", "invalidValue", "invalidPath"))
            continue
        found = results(reply, 2)
        check(found[0]["status"][0] == "4" or found[0]["status"] == "501", f"{each} has the status {found[0]['status']}")
        equal(found[1]["status"], "201", "the status of the other")


@scim_case("B10", "an operation with a version is only done to that version", "RFC7644-3.7-L2796", needs=["bulk", "etag"])
def bulk_versions(run):
    user = run.user()
    now = run.change(user, replace("title", "a"))
    operation = {"method": "PATCH", "path": f"/Users/{user['id']}", "data": {"schemas": [PATCH_OP], "Operations": [replace("title", "b")]}}
    found = results(bulk(run, operation | {"version": user["meta"]["version"]}), 1)
    equal(found[0]["status"], "412", "the status of the old version")
    equal(run.read(user), now, "the user afterwards")
    check(results(bulk(run, operation | {"version": now["meta"]["version"]}), 1)[0]["status"] in ("200", "204"), "the new version is refused")


@scim_case("B11", "operations are done so that the result is that of doing them in order", "RFC7644-3.7-L2796", needs=["bulk"])
def bulk_order(run):
    user = run.user(title="0")

    def step(n):
        return {"method": "PATCH", "path": f"/Users/{user['id']}", "data": {"schemas": [PATCH_OP], "Operations": [replace("title", str(n))]}}
    results(bulk(run, *[step(n) for n in range(1, 6)]), 5)
    equal(run.read(user)["title"], "5", "title")
    name = run.new_user()["userName"]
    found = results(bulk(run, creation("a", "/Users", run.new_user(userName=name)), {"method": "DELETE", "path": "/Users/bulkId:a"},
                         creation("b", "/Users", run.new_user(userName=name))), 3)
    equal([each["status"] for each in found], ["201", "204", "201"], "the statuses of make, delete and make again")


# ---- /Me ----

@scim_case("M1", "/Me is the resource of the user that asks, with its own address, or 501", "RFC7644-3.11-L3683")
def me(run):
    name = run.bench.arguments.me
    made = None
    if name and not run.find(f'userName eq "{name}"'):
        made = run.user(userName=name, title="Dr")
    reply = run.get("/Me")
    if reply.status in (404, 501):
        refused(reply, (404, 501))
        check(not made, f"there is a user {name}, and /Me is {reply}")
        raise NotApplicable(f"/Me is {reply.status}: there is no user for this token, or the server does without")
    if reply.status == 308:
        expect(run.get(reply.get("Location")), 200)
        return
    expect(reply, 200)
    equal(reply.get("Location"), path_of(reply.json), "Location")
    check(not reply.get("Location").endswith("/Me"), "Location is the alias itself")
    equal(expect(run.get(reply.get("Location")), 200).json, reply.json, "what is at Location")
    changed = expect(run.patch("/Me", replace("nickName", run.tag)), (200, 204))
    equal(changed.get("Location"), reply.get("Location"), "Location of PATCH")
    equal(expect(run.get("/Me"), 200).json["nickName"], run.tag, "nickName")
    equal(expect(run.get("/Me", {"attributes": "nickName"}), 200).json["nickName"], run.tag, "nickName alone")
