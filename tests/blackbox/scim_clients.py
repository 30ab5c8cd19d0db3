# SPDX-License-Identifier: Apache-2.0
"""Cases of what deployed clients send: the validator of Microsoft, mandatory (V) and preview (W), its quirks (X), Okta (O), what the
documentation and the reference collection of Microsoft print (C), and python-scim (N)."""

from cases import NotApplicable, check
from scim_bench import ENTERPRISE, GROUP, SCIM_JSON, USER, equal, expect, ids, listed, path_of, refused, scim_case, without

UNIQUE = "unique-group-names"


def validator_case(name, what):
    return scim_case(name, what, variant=UNIQUE)


def full_user(run):
    """A user as the validator makes it."""
    return run.new_user(
        active=True, displayName="Lela", title="Engineer", emails=[{"type": "work", "value": run.tag + "@work.example", "primary": True}],
        preferredLanguage="en-US", name={"givenName": "Lela", "familyName": "Bo", "formatted": "Lela Bo"},
        addresses=[{"type": "work", "formatted": "1 Quay", "streetAddress": "1 Quay", "locality": "Kiel", "region": "SH", "postalCode": "24103",
                    "primary": True, "country": "DE"}],
        phoneNumbers=[{"type": "work", "value": "1"}, {"type": "mobile", "value": "2"}, {"type": "fax", "value": "3"}], externalId=run.tag,
        locale="en", timezone="UTC", userType="Employee", nickName="Le", roles=[{"primary": "True", "display": "d", "value": "v", "type": "t"}]) | {
            "schemas": [USER, ENTERPRISE], ENTERPRISE: {"employeeNumber": "7", "department": "Tides", "costCenter": "c", "organization": "o", "division": "d"}}


def op(kind, path, value=None):
    return {"op": kind, "path": path} | ({} if value is None else {"value": value})


# ---- mandatory ----

@validator_case("V1", "POST /Users makes a user with all that Entra knows of one")
def make_user(run):
    body = full_user(run)
    user = expect(run.post("/Users", body), 201).json
    for name in without(body, "schemas", "roles", "password"):
        equal(user.get(name), body[name], name)
    check(user["roles"][0]["primary"] is True, f"roles[0].primary is {user['roles'][0].get('primary')}")
    equal(sorted(user["schemas"]), sorted(body["schemas"]), "schemas")


@validator_case("V2", "POST /Users of the same user again is 409")
def make_user_twice(run):
    body = full_user(run)
    expect(run.post("/Users", body), 201)
    refused(run.post("/Users", body), 409, "uniqueness")


@validator_case("V3", "GET /Users with a filter finds the user, by userName and by another joining property")
def filter_users(run):
    user = expect(run.post("/Users", full_user(run)), 201).json
    for expression in (f'userName eq "{user["userName"]}"', f'externalId eq "{run.tag}"', f'emails[type eq "work"].value eq "{run.tag}@work.example"'):
        page = run.get("/Users", {"filter": expression})
        equal(ids(listed(page)), [user["id"]], f"what {expression} finds")
        equal(page.json["totalResults"], 1, "totalResults")


@validator_case("V4", "GET /Users with a filter that matches none is 200 with totalResults 0")
def filter_no_users(run):
    page = run.get("/Users", {"filter": f'userName eq "{run.tag}"'})
    equal((listed(page), page.json["totalResults"]), ([], 0), "the page")


@validator_case("V5", "GET /Users with a filter in another case finds the user")
def filter_users_by_case(run):
    user = expect(run.post("/Users", full_user(run)), 201).json
    for expression in (f'userName eq "{user["userName"].upper()}"', f'USERNAME eq "{user["userName"]}"', f'userName Eq "{user["userName"].title()}"'):
        equal(ids(run.find(expression)), [user["id"]], f"what {expression} finds")


@validator_case("V6", "PATCH /Users replaces many attributes, each by its path")
def replace_many(run):
    user = expect(run.post("/Users", full_user(run)), 201).json
    values = {"displayName": "N", "title": "T", "preferredLanguage": "de", "userType": "Guest", "nickName": "K", "locale": "de-DE", "timezone": "CET",
              "name.givenName": "G", "name.familyName": "F", "name.formatted": "G F", 'emails[type eq "work"].value': run.tag + "@new.example",
              'emails[type eq "work"].primary': False, 'addresses[type eq "work"].streetAddress': "2 Quay", 'addresses[type eq "work"].country': "SE",
              'phoneNumbers[type eq "mobile"].value': "22", 'phoneNumbers[type eq "fax"].value': "33", f"{ENTERPRISE}:department": "Moon",
              f"{ENTERPRISE}:employeeNumber": "8", "externalId": run.tag + "2"}
    after = run.change(user, *[op("replace", path, value) for path, value in values.items()])
    for name in ("displayName", "title", "preferredLanguage", "userType", "nickName", "locale", "timezone", "externalId"):
        equal(after[name], values[name], name)
    equal(after["name"], {"givenName": "G", "familyName": "F", "formatted": "G F"}, "name")
    equal((after["emails"][0]["value"], after["emails"][0].get("primary", False)), (run.tag + "@new.example", False), "emails")
    equal((after["addresses"][0]["streetAddress"], after["addresses"][0]["country"], after["addresses"][0]["locality"]), ("2 Quay", "SE", "Kiel"), "addresses")
    equal([each["value"] for each in after["phoneNumbers"]], ["1", "22", "33"], "phoneNumbers")
    equal((after[ENTERPRISE]["department"], after[ENTERPRISE]["employeeNumber"], after[ENTERPRISE]["division"]), ("Moon", "8", "d"), "the extension")


@validator_case("V7", "PATCH /Users changes userName without a path")
def replace_user_name(run):
    user, name = expect(run.post("/Users", full_user(run)), 201).json, run.new_user()["userName"]
    equal(run.change(user, {"op": "replace", "value": {"userName": name}})["userName"], name, "userName")
    equal(ids(run.find(f'userName eq "{name}"')), [user["id"]], "what the new userName finds")


@validator_case("V8", "PATCH /Users disables a user")
def disable(run):
    for value in (False, "False", "false"):
        user = expect(run.post("/Users", full_user(run) | {"externalId": run.tag}), 201).json
        equal(run.change(user, op("Replace", "active", value))["active"], False, f"active after {value!r}")
        equal(ids(run.find(f'id eq "{user["id"]}" and active eq false')), [user["id"]], "what the filter finds")


@validator_case("V9", "PATCH /Users adds many attributes, each by its path")
def add_many(run):
    user = run.user()
    values = {"displayName": "N", "title": "T", "preferredLanguage": "de", "name.givenName": "G", "name.familyName": "F",
              'emails[type eq "work"].value': "w@example.com", 'emails[type eq "work"].primary': "True", 'addresses[type eq "work"].locality': "Kiel",
              'addresses[type eq "work"].country': "DE", 'phoneNumbers[type eq "work"].value': "1", 'phoneNumbers[type eq "mobile"].value': "2",
              'roles[primary eq "True"].value': "r", 'roles[primary eq "True"].display': "d", f"{ENTERPRISE}:department": "Tides",
              f"{ENTERPRISE}:employeeNumber": "7"}
    after = run.change(user, *[op("Add", path, value) for path, value in values.items()])
    equal(after["emails"], [{"type": "work", "value": "w@example.com", "primary": True}], "emails")
    equal(after["addresses"], [{"type": "work", "locality": "Kiel", "country": "DE"}], "addresses")
    equal([(each["type"], each["value"]) for each in after["phoneNumbers"]], [("work", "1"), ("mobile", "2")], "phoneNumbers")
    equal(after["roles"], [{"primary": True, "value": "r", "display": "d"}], "roles")
    equal((after["displayName"], after["title"], after["name"]), ("N", "T", {"givenName": "G", "familyName": "F"}), "the user")
    equal(after[ENTERPRISE], {"department": "Tides", "employeeNumber": "7"}, "the extension")


def manager_of(user):
    return user.get(ENTERPRISE, {}).get("manager", {}).get("value")


@validator_case("V10", "PATCH /Users adds a manager, by the URN")
def add_manager(run):
    boss = run.user()
    for value in (boss["id"], {"value": boss["id"]}):
        user = run.user()
        equal(manager_of(run.change(user, op("Add", f"{ENTERPRISE}:manager", value))), boss["id"], f"manager.value after {value}")
        equal(ids(run.find(f'id eq "{user["id"]}" and {ENTERPRISE}:manager.value eq "{boss["id"]}"')), [user["id"]], "what the filter finds")


@validator_case("V11", "PATCH /Users replaces the manager")
def replace_manager(run):
    first, second, third = run.user(), run.user(), run.user()
    user = run.user({ENTERPRISE: {"manager": {"value": first["id"]}}})
    equal(manager_of(run.change(user, op("Replace", f"{ENTERPRISE}:manager", second["id"]))), second["id"], "manager.value")
    equal(manager_of(run.change(user, op("Replace", f"{ENTERPRISE}:manager", {"value": third["id"]}))), third["id"], "manager.value")


@validator_case("V12", "PATCH /Users removes the manager")
def remove_manager(run):
    for operation in (op("Remove", f"{ENTERPRISE}:manager"), op("Replace", f"{ENTERPRISE}:manager", "")):
        user = run.user({ENTERPRISE: {"manager": {"value": run.user()["id"]}, "department": "Tides"}})
        after = run.change(user, operation)
        check(not manager_of(after), f"the manager is {manager_of(after)} after {operation['op']}")
        equal(after[ENTERPRISE]["department"], "Tides", "department")


@validator_case("V13", "DELETE /Users: then 404")
def delete_user(run):
    user = run.user()
    expect(run.delete(path_of(user)), 204)
    refused(run.get(path_of(user)), 404)


@validator_case("V14", "GET of a group with excludedAttributes=members leaves them out")
def group_without_members(run):
    group = run.group(members=[{"value": run.user()["id"]}])
    equal(run.read(group, {"excludedAttributes": "members"}), without(group, "members"), "the group")


@validator_case("V15", "GET /Groups with a filter and excludedAttributes=members finds the group without them")
def filter_groups_without_members(run):
    group = run.group(members=[{"value": run.user()["id"]}])
    equal(run.find(f'displayName eq "{group["displayName"]}"', "/Groups", excludedAttributes="members"), [without(group, "members")], "the groups")


@validator_case("V16", "GET /Groups with a filter finds the group")
def filter_groups(run):
    group = run.group(externalId=run.tag)
    for expression in (f'displayName eq "{group["displayName"]}"', f'externalId eq "{run.tag}"', f'id eq "{group["id"]}"'):
        equal(ids(run.find(expression, "/Groups")), [group["id"]], f"what {expression} finds")


@validator_case("V17", "GET /Groups with a filter for none is 200 with totalResults 0")
def filter_no_groups(run):
    page = run.get("/Groups", {"filter": f'displayName eq "{run.tag}"', "excludedAttributes": "members"})
    equal((listed(page), page.json["totalResults"]), ([], 0), "the page")


@validator_case("V18", "GET /Groups with a filter in another case finds the group")
def filter_groups_by_case(run):
    group = run.group()
    for expression in (f'displayName eq "{group["displayName"].upper()}"', f'DISPLAYNAME EQ "{group["displayName"]}"'):
        equal(ids(run.find(expression, "/Groups")), [group["id"]], f"what {expression} finds")


@validator_case("V19", "POST /Groups makes a group")
def make_group(run):
    body = run.new_group(externalId=run.tag, members=[])
    group = expect(run.post("/Groups", body), 201).json
    equal((group["displayName"], group["externalId"], group.get("members", [])), (body["displayName"], run.tag, []), "the group")


@validator_case("V20", "POST /Groups of the same group again is 409, where names of groups are unique")
def make_group_twice(run):
    body = run.new_group(externalId=run.tag)
    expect(run.post("/Groups", body), 201)
    reply = run.post("/Groups", body | {"displayName": body["displayName"].upper()})
    if reply.status == 201 and UNIQUE not in run.bench.variants:
        raise NotApplicable(f"names of groups are not unique here; needs --variant {UNIQUE}=URL")
    refused(reply, 409, "uniqueness")
    other = run.group()
    refused(run.patch(path_of(other), op("replace", "displayName", body["displayName"])), 409, "uniqueness")
    refused(run.put(path_of(other), body), 409, "uniqueness")


@validator_case("V21", "PATCH /Groups replaces attributes")
def replace_group(run):
    group, name = run.group(), run.new_group()["displayName"]
    equal(run.change(group, op("Replace", "displayName", name))["displayName"], name, "displayName")
    equal(ids(run.find(f'displayName eq "{name}"', "/Groups")), [group["id"]], "what the new name finds")


@validator_case("V22", "PATCH /Groups changes externalId")
def replace_group_external_id(run):
    group = run.group(externalId=run.tag)
    equal(run.change(group, {"op": "replace", "value": {"externalId": run.tag + "2"}})["externalId"], run.tag + "2", "externalId")
    equal(run.find(f'externalId eq "{run.tag}"', "/Groups"), [], "what the old externalId finds")


def members_of(group):
    return sorted(each["value"] for each in group.get("members", []))


@validator_case("V23", "PATCH /Groups adds a member")
def add_member(run):
    user, group = run.user(), run.group()
    equal(members_of(run.change(group, op("Add", "members", [{"$ref": None, "value": user["id"]}]))), [user["id"]], "members")


@validator_case("V24", "PATCH /Groups removes a member")
def remove_member(run):
    user, other = run.user(), run.user()
    group = run.group(members=[{"value": user["id"]}, {"value": other["id"]}])
    equal(members_of(run.change(group, op("Remove", f'members[value eq "{user["id"]}"]'))), [other["id"]], "members")


@validator_case("V25", "DELETE /Groups: then 404")
def delete_group(run):
    group = run.group()
    expect(run.delete(path_of(group)), 204)
    refused(run.get(path_of(group)), 404)


# ---- preview ----

@validator_case("W1", "PATCH /Users with several operations on different attributes")
def several_attributes(run):
    user = expect(run.post("/Users", full_user(run)), 201).json
    after = run.change(user, op("Remove", "title"), op("Add", "nickName", "N"), op("Replace", "displayName", "D"),
                       op("Remove", 'phoneNumbers[type eq "fax"]'), op("Replace", 'emails[type eq "work"].value', "n@example.com"))
    equal((after.get("title"), after["nickName"], after["displayName"], len(after["phoneNumbers"]), after["emails"][0]["value"]),
          (None, "N", "D", 2, "n@example.com"), "the user")


@validator_case("W2", "PATCH /Users with several operations on the same attribute")
def same_attribute(run):
    user = expect(run.post("/Users", full_user(run)), 201).json
    after = run.change(user, op("Remove", "displayName"), op("Add", "displayName", "B"), op("Replace", "displayName", "C"))
    equal(after["displayName"], "C", "displayName")


@validator_case("W3", "DELETE of a user that never was is 404")
def delete_no_user(run):
    refused(run.delete("/Users/" + run.tag), 404)


@validator_case("W4", "DELETE of a user for the second time is 404")
def delete_user_twice(run):
    user = run.user()
    expect(run.delete(path_of(user)), 204)
    refused(run.delete(path_of(user)), 404)


@validator_case("W5", "DELETE of a group that never was is 404")
def delete_no_group(run):
    refused(run.delete("/Groups/" + run.tag), 404)


@validator_case("W6", "DELETE of a group for the second time is 404")
def delete_group_twice(run):
    group = run.group()
    expect(run.delete(path_of(group)), 204)
    refused(run.delete(path_of(group)), 404)


@validator_case("W7", "PATCH /Groups with several operations on the same attribute")
def same_attribute_of_group(run):
    group, name = run.group(), run.new_group()["displayName"]
    after = run.change(group, op("Replace", "displayName", name + "a"), op("Replace", "displayName", name))
    equal(after["displayName"], name, "displayName")
    one, two = run.user()["id"], run.user()["id"]
    after = run.change(group, op("Add", "members", [{"value": one}]), op("Remove", f'members[value eq "{one}"]'), op("Add", "members", [{"value": two}]))
    equal(members_of(after), [two], "members")


# ---- quirks ----

@validator_case("X1", "booleans written as \"True\" and \"False\" are booleans, in POST, PUT and PATCH")
def boolean_texts(run):
    body = run.new_user(active="True", roles=[{"value": "a", "primary": "True"}])
    user = expect(run.post("/Users", body), 201).json
    equal((user["active"], user["roles"][0]["primary"]), (True, True), "what POST makes")
    after = expect(run.put(path_of(user), body | {"active": "False"}), 200).json
    equal(after["active"], False, "what PUT makes")
    after = run.change(user, op("Add", "roles", [{"value": "b", "primary": "True"}]), op("Replace", "active", "True"))
    equal((after["active"], [each.get("primary", False) for each in after["roles"]]), (True, [False, True]), "what PATCH makes")


@validator_case("X2", "filters may go on behind the bracket: emails[type eq \"work\"].value eq \"x\"")
def filter_behind_bracket(run):
    user = run.user(emails=[{"type": "work", "value": run.tag + "@w.example"}, {"type": "home", "value": run.tag + "@h.example"}])
    for value, wanted in (("@w.example", [user["id"]]), ("@W.EXAMPLE", [user["id"]]), ("@h.example", [])):
        equal(ids(run.find(f'emails[type eq "work"].value eq "{run.tag}{value}"')), wanted, f"what {value} finds")


@validator_case("X3", "the names of operations may begin with a capital")
def capital_operations(run):
    user = run.user(nickName="a")
    after = run.change(user, op("Add", "title", "b"), op("Replace", "nickName", "c"), op("ADD", "displayName", "d"), op("Remove", "title"))
    equal((after["nickName"], after["displayName"], after.get("title")), ("c", "d", None), "the user")


@validator_case("X4", "members may be removed by a value with the path members")
def remove_by_value(run):
    one, two, three = (run.user()["id"] for _ in range(3))
    group = run.group(members=[{"value": each} for each in (one, two, three)])
    equal(members_of(run.change(group, op("Remove", "members", [{"value": one}]))), sorted([two, three]), "members")
    equal(members_of(run.change(group, op("Remove", "members", [{"$ref": None, "value": two}, {"value": "nobody"}]))), [three], "members")


@validator_case("X5", "an operation without a path may have dotted names and URNs as names")
def names_in_values(run):
    user = run.user(name={"givenName": "Ada"})
    after = run.change(user, {"op": "Replace", "value": {"name.familyName": "King", f"{ENTERPRISE}:department": "Tides", "displayName": "A"}})
    equal(after["name"], {"givenName": "Ada", "familyName": "King"}, "name")
    equal((after[ENTERPRISE], after["displayName"]), ({"department": "Tides"}, "A"), "the user")
    after = run.change(user, {"op": "Add", "value": {ENTERPRISE: {"division": "Moon"}}})
    equal(after[ENTERPRISE], {"department": "Tides", "division": "Moon"}, "the extension")


# ---- Okta ----

@scim_case("O1", "Okta looks a user up before it makes it, and reads it back")
def okta_import(run):
    body = run.new_user(name={"givenName": "Ada", "familyName": "K"}, emails=[{"primary": True, "value": "a@example.com", "type": "work"}],
                        displayName="Ada K", locale="en-US", externalId=run.tag, groups=[], password="1mz050nq", active=True)
    query = {"filter": f'userName eq "{body["userName"]}"', "startIndex": 1, "count": 100}
    page = run.get("/Users", query)
    equal((listed(page), page.json["totalResults"], page.json["startIndex"]), ([], 0, 1), "the page before")
    user = expect(run.post("/Users", body), 201).json
    equal(ids(listed(run.get("/Users", query))), [user["id"]], "what it finds then")
    equal(expect(run.put(path_of(user), body | {"id": user["id"], "displayName": "B"}), 200).json["displayName"], "B", "displayName after PUT")


@scim_case("O2", "Okta deactivates and activates with a value and no path")
def okta_deactivate(run):
    user = run.user(active=True)
    for value in (False, True):
        equal(run.change(user, {"op": "replace", "value": {"active": value}})["active"], value, "active")


@scim_case("O3", "Okta renames a group with a value that has its id")
def okta_rename(run):
    group, name = run.group(), run.new_group()["displayName"]
    after = run.change(group, {"op": "replace", "value": {"id": group["id"], "displayName": name}})
    equal((after["id"], after["displayName"]), (group["id"], name), "the group")


@scim_case("O4", "Okta changes members by filter, adds them with their names, and replaces them all")
def okta_members(run):
    users = [run.user(displayName=f"n{n}") for n in range(3)]
    one, two, three = ids(users)
    group = run.group(members=[{"value": one, "display": "n0"}])
    after = run.change(group, op("remove", f'members[value eq "{one}"]'), op("add", "members", [{"value": two, "display": "n1"}]))
    equal(members_of(after), [two], "members")
    after = run.change(group, op("replace", "members", [{"value": one, "display": "n0"}, {"value": three, "display": "n2"}]))
    equal(members_of(after), sorted([one, three]), "members after replace")
    after = expect(run.put(path_of(group), run.new_group(members=[{"value": two, "display": "n1"}])), 200).json
    equal(members_of(after), [two], "members after PUT")


@scim_case("O5", "Okta sends a password with PUT and PATCH and never sees it again")
def okta_password(run):
    user = run.user()
    reply = expect(run.patch(path_of(user), {"op": "replace", "value": {"password": "s3cret-" + run.tag}}), (200, 204))
    check(b"s3cret" not in reply.body and "password" not in run.read(user), "it is shown")


# ---- what Microsoft prints ----

@scim_case("C1", "a schema that the server does not have is left out: Entra makes groups with one of its own")
def unknown_schema(run):
    body = run.new_group(externalId=run.tag, meta={"resourceType": "Group"})
    body["schemas"] = [GROUP, "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"]
    group = expect(run.post("/Groups", body), 201).json
    equal((group["schemas"], group["displayName"], group["externalId"]), ([GROUP], body["displayName"], run.tag), "the group")


@scim_case("C2", "sub-attributes that no schema has are left out: Entra sends app roles with a displayName")
def unknown_in_roles(run):
    role = {"primary": False, "type": "WindowsAzureActiveDirectoryRole", "value": "Admin"}
    user = run.user(roles=[role | {"displayName": "Administrator"}])
    equal(user["roles"], [role], "roles")
    after = run.change(user, op("Add", "roles", [{"value": "Reader", "displayName": "Who reads"}]))
    equal([each["value"] for each in after["roles"]], ["Admin", "Reader"], "roles after PATCH")


@scim_case("C3", "members that are added with a displayName are added")
def unknown_in_members(run):
    user, group = run.user(), run.group()
    equal(members_of(run.change(group, op("add", "members", [{"displayName": "new User", "value": user["id"]}]))), [user["id"]], "members")
    equal(members_of(run.change(group, op("remove", "members", [{"displayName": "new User", "value": user["id"]}]))), [], "members at the end")


@scim_case("C4", "null for attributes of an extension beside those of the core says nothing")
def null_beside(run):
    user = run.user(addresses=None, phoneNumbers=None, title=None, department=None, manager=None, active=True)
    equal([name for name in ("addresses", "title", "department", "manager", ENTERPRISE) if name in user], [], "what it has of them")


@scim_case("C5", "PUT with a name that no schema has takes the rest")
def unknown_in_put(run):
    user = run.user()
    after = expect(run.put(path_of(user), run.new_user(displayName="B", adreses=[{"country": "DE"}], name={"givenName": "A", "nick": "x"})), 200).json
    equal((after["displayName"], after["name"], "adreses" in after), ("B", {"givenName": "A"}, False), "the user")


@scim_case("C6", "a path that no schema has is invalidPath all the same")
def unknown_path(run):
    user = run.user()
    for path in ("adreses", "name.nick", 'emails[type eq "work"].nick', "urn:example:none:attr"):
        refused(run.patch(path_of(user), op("Add", path, "x")), 400, "invalidPath")
    equal(run.read(user), user, "the user afterwards")


@scim_case("C7", "the manager may be a text in POST and PUT, and is found and changed by its name alone, also as a list of one")
def manager_forms(run):
    def manager(user):
        return user.get(ENTERPRISE, {}).get("manager")
    boss = run.user()
    body = run.new_user() | {"schemas": [USER, ENTERPRISE], ENTERPRISE: {"manager": "123456"}}
    user = expect(run.post("/Users", body), 201).json
    equal(manager(user)["value"], "123456", "the manager")
    user = expect(run.put(path_of(user), body | {ENTERPRISE: {"manager": boss["id"]}}), 200).json
    equal(manager(user)["value"], boss["id"], "the manager after PUT")
    user = run.change(user, op("Add", "manager", [{"$ref": "http://localhost/scim/Users/7", "value": "7"}]))
    equal(manager(user)["value"], "7", "the manager after PATCH")
    for expression in (f'id eq "{user["id"]}" and manager eq "7"', f'id eq "{user["id"]}" and manager.value eq "7"'):
        equal(ids(run.find(expression)), [user["id"]], f"what {expression} finds")
    for path in ("manager", f"{ENTERPRISE}:manager"):
        for none in ("", [""], {"value": ""}, []):
            run.change(user, op("Replace", path, boss["id"]))
            user = run.change(user, op("Replace", path, none))
            equal(manager(user), None, f"the manager after it was replaced by {none!r}")
    for none in ("", {"value": ""}, []):
        user = expect(run.put(path_of(user), body | {ENTERPRISE: {"manager": none}}), 200).json
        equal(manager(user), None, f"the manager after PUT with {none!r}")


@scim_case("C8", "a word without quotes in a filter is a text")
def bare_words(run):
    user = run.user(name={"familyName": run.tag}, emails=[{"value": f"{run.tag}@example.com"}], externalId=run.tag, active=True)
    for expression in (f"userName sw {user['userName'][:-1]}", f"externalId eq {run.tag}", f"id eq {user['id']}",
                       f"name.FamilyName eq {run.tag} and (emails.Value co example.com or emails.Value co example.org)",
                       f"id eq {user['id']} and meta.Created gt 2015-10-10T14:38:21.8617979-07:00", f"emails[value sw {run.tag}]"):
        equal(ids(run.find(expression)), [user["id"]], f"what {expression} finds")
    equal(ids(run.find(f'externalId eq {run.tag} and active eq true')), [user["id"]], "what true finds")
    equal(ids(run.find(f'externalId eq {run.tag} and nickName eq null')), [user["id"]], "what null finds")
    padded = run.user(nickName="0012", externalId=run.tag + "0")
    equal(ids(run.find(f"id eq {padded['id']} and nickName eq 0012")), [padded["id"]], "what a number that is none of JSON finds")
    refused(run.get("/Users", {"filter": "userName eq 7"}), 400, "invalidFilter")


@scim_case("C9", "application/json is what a client gets that accepts nothing else")
def plain_json(run):
    def type_of(accept, path="/Users"):
        return run.get(path, fields={"Accept": accept}).get("Content-Type").split(";")[0]
    for accept in ("application/json", "application/json;charset=utf-8", "application/json, application/scim+json;q=0.5"):
        equal(type_of(accept), "application/json", f"the type for {accept}")
    equal(type_of("application/json", "/Users/" + run.tag), "application/json", "the type of an error")
    for accept in ("*/*", SCIM_JSON, "application/json;q=0.5, application/scim+json", "application/json, application/scim+json"):
        equal(type_of(accept), SCIM_JSON, f"the type for {accept}")


@scim_case("C10", "taking members out of a group that has none makes no new version")
def no_members(run):
    group = run.group()
    for each in (op("remove", "members"), op("replace", "members", []), {"op": "replace", "value": {"members": []}}):
        equal(run.change(group, each)["meta"], group["meta"], f"meta after {each}")


@scim_case("C11", "where a server is strict, what no schema has is refused", variant="refuse-unknown")
def refuse_unknown(run):
    if "refuse-unknown" not in run.bench.variants:
        raise NotApplicable("needs --variant refuse-unknown=URL, which refuses what no schema has")
    user = run.user(title=None, department=None)
    for body in (run.new_user(shoeSize=4), run.new_user(roles=[{"value": "a", "displayName": "A"}]), run.new_user(schemas=[USER, "urn:example:" + run.tag])):
        refused(run.post("/Users", body), 400, ("invalidSyntax", "invalidValue"))
        refused(run.put(path_of(user), body), 400, ("invalidSyntax", "invalidValue"))
    for each in ({"op": "add", "value": {"shoeSize": 4}}, op("add", "roles", [{"value": "a", "displayName": "A"}])):
        refused(run.patch(path_of(user), each), 400, ("invalidSyntax", "invalidValue", "invalidPath"))
    equal(run.read(user), user, "the user afterwards")


@scim_case("C12", "an attribute that only one extension has is taken by its name alone in POST and PUT")
def extension_by_name(run):
    user = run.user(department="Tides")
    equal(user.get(ENTERPRISE), {"department": "Tides"}, "the extension after POST")
    body = run.new_user(department="Gates") | {"schemas": [USER, ENTERPRISE], ENTERPRISE: {"division": "North"}}
    equal(expect(run.put(path_of(user), body), 200).json.get(ENTERPRISE), {"division": "North", "department": "Gates"}, "the extension after PUT")
    body[ENTERPRISE]["department"] = "Locks"
    equal(expect(run.put(path_of(user), body), 200).json[ENTERPRISE]["department"], "Locks", "the department that both places have")


# ---- python-scim ----

@scim_case("N1", "schemas inside of an extension, as python-scim writes them, are ignored")
def schemas_in_extension(run):
    extension = {"schemas": [ENTERPRISE], "department": "d"}
    user = expect(run.post("/Users", run.new_user() | {"schemas": [USER, ENTERPRISE], ENTERPRISE: extension}), 201).json
    equal(user[ENTERPRISE], {"department": "d"}, "what POST makes")
    user = run.change(user, op("add", ENTERPRISE, {"schemas": [ENTERPRISE], "division": "v"}))
    equal(user[ENTERPRISE], {"department": "d", "division": "v"}, "what add makes")
    user = run.change(user, op("replace", ENTERPRISE, {"schemas": [ENTERPRISE], "department": "e"}))
    equal(user[ENTERPRISE]["department"], "e", "what replace makes")
    user = run.change(user, op("remove", ENTERPRISE))
    equal(user.get(ENTERPRISE), None, "what remove leaves")


URN_VALUES = {
    "displayName": ("a", "b"), "nickName": ("a", "b"), "profileUrl": ("https://a.example/", "https://b.example/"), "title": ("a", "b"),
    "userType": ("a", "b"), "preferredLanguage": ("de", "en"), "locale": ("de-DE", "en-US"), "timezone": ("UTC", "CET"), "active": (True, False),
    "externalId": ("a", "b"), "name": ({"givenName": "a"}, {"givenName": "b"}),
    **{name: ([{"value": "a", "type": "work"}], [{"value": "b", "type": "home"}, {"value": "c"}])
       for name in ("emails", "phoneNumbers", "ims", "photos", "entitlements", "roles")},
    "addresses": ([{"locality": "a", "type": "work"}], [{"locality": "b"}]), "x509Certificates": ([{"value": "AQ=="}], [{"value": "Ag=="}]),
}


@scim_case("N2", "each attribute is added, replaced and removed by its name behind the URN of its schema", needs=["patch"])
def by_urn(run):
    user = run.user()
    enterprise = {f"{ENTERPRISE}:{name}": ("a", "b") for name in ("employeeNumber", "costCenter", "organization", "division", "department")}
    for urn, (first, second) in ({f"{USER}:{name}": values for name, values in URN_VALUES.items()} | enterprise).items():
        of, name = urn.rsplit(":", 1)
        def value():
            return (run.read(user) if of == USER else run.read(user).get(ENTERPRISE, {})).get(name)
        run.change(user, op("add", urn, first))
        equal(value(), first, f"{urn} after add")
        run.change(user, op("replace", urn, second))
        equal(value(), second, f"{urn} after replace")
        run.change(user, op("remove", urn))
        equal(value(), None, f"{urn} after remove")
