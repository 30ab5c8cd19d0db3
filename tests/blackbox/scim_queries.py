# SPDX-License-Identifier: Apache-2.0
"""Cases of filters (F), sorting (S), pages by index (I) and by cursor (K), searches by POST (Q)."""

import string
import time
import urllib.parse

from cases import NotApplicable, check, unseen
from http_ends import PATIENCE
from scim_bench import (ENTERPRISE, GROUP, LIST_RESPONSE, SEARCH_REQUEST, USER, equal, expect, ids, listed, path_of, refused, scim_case)

UNRESERVED = string.ascii_letters + string.digits + "-._~"


class People:
    """A handful of users that filters tell apart, by the name that each has here."""

    def __init__(self, run, **people):
        self.run = run
        self.made = {name: run.user(attributes, externalId=f"{run.tag}-{name}") for name, attributes in people.items()}
        self.names = {user["id"]: name for name, user in self.made.items()}

    def __getitem__(self, name):
        return self.made[name]

    def named(self, resources):
        return [self.names[each["id"]] for each in resources]

    def found(self, expression, wanted):
        """That of these users a filter finds `wanted`, names with spaces between them."""
        seen = self.named(self.run.find(f'externalId sw "{self.run.tag}" and ({expression})', count=100))
        equal(sorted(seen), sorted(wanted.split()), f"what {expression} finds")

    def sorted(self, **query):
        return self.named(listed(self.run.get("/Users", {"filter": f'externalId sw "{self.run.tag}"', "count": 100} | query)))


def four_people(run):
    return People(
        run,
        ada={"nickName": "Ada", "title": "Countess", "active": True, "name": {"givenName": "Augusta", "familyName": "King"},
             "emails": [{"value": "ada@work.example", "type": "work", "primary": True}, {"value": "ada@home.example", "type": "home"}]},
        bob={"nickName": "bob", "title": "countess", "active": False, "name": {"givenName": "Robert", "familyName": "Ng"},
             "emails": [{"value": "bob@home.example", "type": "work"}]},
        cyd={"nickName": "Cyd", "active": True, "emails": [{"value": "cyd@other.example", "type": "other"}]},
        dan={"nickName": "dan Ada", "title": "Ünït \"7\" \\ 日本"})


# ---- filters ----

@scim_case("F1", "eq finds texts in any case, and only those", "RFC7644-3.4.2.2-L944", "RFC7644-3.4.2.2-L1217", "RFC7643-7-L1748",
           "EXTRA-CASE-INSENSITIVE", needs=["filter"])
def filter_eq(run):
    people = four_people(run)
    people.found('nickName eq "Ada"', "ada")
    people.found('nickName eq "aDA"', "ada")
    people.found('title eq "COUNTESS"', "ada bob")
    people.found('title eq "Count"', "")
    people.found('title eq "ünït \\"7\\" \\\\ 日本"', "dan")
    name = people["ada"]["userName"]
    for each in (name, name.upper()):
        equal(ids(run.find(f'userName eq "{each}"')), [people["ada"]["id"]], f"what userName eq {each} finds")


@scim_case("F2", "every operator compares as it should", "RFC7644-3.4.2.2-L944", needs=["filter"])
def filter_operators(run):
    people = four_people(run)
    people.found('nickName ne "ADA"', "bob cyd dan")
    people.found('nickName co "da"', "ada dan")
    people.found('nickName sw "D"', "dan")
    people.found('nickName ew "ADA"', "ada dan")
    people.found('nickName ew "bo"', "")
    people.found('nickName sw "ob"', "")
    people.found('nickName gt "bob"', "cyd dan")
    people.found('nickName ge "bob"', "bob cyd dan")
    people.found('nickName lt "BOB"', "ada")
    people.found('nickName le "BOB"', "ada bob")
    people.found("title pr", "ada bob dan")
    people.found("emails pr", "ada bob cyd")
    people.found("name pr", "ada bob")
    people.found("nickName co \"\"", "ada bob cyd dan")


@scim_case("F3", "and, or, not and parentheses: and binds tighter than or", needs=["filter"])
def filter_logic(run):
    people = four_people(run)
    people.found('nickName eq "ada" or nickName eq "bob" and active eq true', "ada")
    people.found('(nickName eq "ada" or nickName eq "bob") and active eq false', "bob")
    people.found('nickName eq "bob" and active eq true or nickName eq "cyd"', "cyd")
    people.found("not (title pr)", "cyd")
    people.found('not (nickName eq "ada" or nickName eq "bob")', "cyd dan")
    people.found('title pr and not (active eq true)', "bob dan")
    people.found('((((nickName eq "cyd"))))', "cyd")


@scim_case("F4", "what stands in brackets is asked of one value", "RFC7644-3.4.2.2-L1197", needs=["filter"])
def filter_value_paths(run):
    people = four_people(run)
    people.found('emails[type eq "work" and value co "home"]', "bob")
    people.found('emails.type eq "work" and emails.value co "home"', "ada bob")
    people.found('emails[type eq "home" or type eq "other"]', "ada cyd")
    people.found('emails[not (type eq "work")]', "ada cyd")
    people.found('emails[primary eq true]', "ada")
    people.found('emails[type eq "work"] and active eq false', "bob")
    people.found('not (emails[type eq "work"])', "cyd dan")
    people.found('emails[type eq "work" and value eq "ADA@work.example"]', "ada")


@scim_case("F5", "a multi-valued attribute without sub-attribute is asked by its value", needs=["filter"])
def filter_implicit_value(run):
    people = four_people(run)
    people.found('emails eq "ada@HOME.example"', "ada")
    people.found('emails.value sw "bob@"', "bob")
    people.found('emails co "other.example"', "cyd")


@scim_case("F6", "sub-attributes, and names behind the URN of their schema", "RFC7644-3.4.2.2-L1197", needs=["filter"])
def filter_names(run):
    run.needs_enterprise()
    boss = run.user()
    people = People(run, ada={"name": {"familyName": "King"}, ENTERPRISE: {"department": "Tides", "manager": {"value": boss["id"]}}},
                    bob={"name": {"familyName": "Ng"}, ENTERPRISE: {"department": "Moon"}}, cyd={})
    people.found('name.familyName eq "king"', "ada")
    people.found(f'{USER}:name.familyName co "g"', "ada bob")
    people.found(f'{USER}:userName pr', "ada bob cyd")
    people.found(f'{ENTERPRISE}:department eq "tides"', "ada")
    people.found(f'{ENTERPRISE.upper()}:Department sw "m"', "bob")
    people.found(f'{ENTERPRISE}:manager.value eq "{boss["id"]}"', "ada")
    people.found(f'{ENTERPRISE}:manager pr', "ada")
    people.found(f'not ({ENTERPRISE}:department pr)', "cyd")
    people.found(f'schemas eq "{ENTERPRISE}"', "ada bob")


@scim_case("F7", "names of attributes and operators are taken in any case", needs=["filter"])
def filter_case_of_names(run):
    people = four_people(run)
    people.found('NICKNAME EQ "ada"', "ada")
    people.found('nickname Sw "b" OR Title PR AND NOT (active eq true)', "bob dan")
    people.found('EMAILS[TYPE Eq "other"]', "cyd")


@scim_case("F8", "where case counts, as in id and externalId, it counts in filters", "RFC7643-7-L1748", "EXTRA-CASE-EXACT", needs=["filter"])
def filter_case_exact(run):
    user = run.user(externalId=run.tag + "-Mixed")
    equal(ids(run.find(f'externalId eq "{run.tag}-Mixed"')), [user["id"]], "what the same case finds")
    for expression in (f'externalId eq "{run.tag}-mixed"', f'externalId sw "{run.tag.upper()}"', f'externalId co "{run.tag}-mi"'):
        equal(run.find(expression), [], f"what {expression} finds")
    equal(ids(run.find(f'id eq "{user["id"]}"')), [user["id"]], "what the id finds")
    if user["id"].swapcase() != user["id"]:
        equal(run.find(f'id eq "{user["id"].swapcase()}"'), [], "what the id in another case finds")


@scim_case("F9", "booleans are equal or not; to order them is invalidFilter", "RFC7644-3.4.2.2-L1001", needs=["filter"])
def filter_booleans(run):
    people = four_people(run)
    people.found("active eq true", "ada cyd")
    people.found("active eq false", "bob")
    people.found("active ne true", "bob dan")
    for operator in ("gt", "ge", "lt", "le"):
        refused(run.get("/Users", {"filter": f"active {operator} true"}), 400, "invalidFilter")
        refused(run.get("/Users", {"filter": f'x509Certificates.value {operator} "aGVsbG8="'}), 400, "invalidFilter")


@scim_case("F10", "moments are compared as moments, whatever their zone", "RFC7643-2.3.5-L527", needs=["filter"])
def filter_moments(run):
    user = run.user()
    mine, when = f'id eq "{user["id"]}" and ', user["meta"]["created"]
    for expression, finds in ((f'meta.created eq "{when}"', True), (f'meta.created ge "{when}"', True), (f'meta.created gt "{when}"', False),
                              (f'meta.lastModified le "{when}"', True), ('meta.created lt "2011-05-13T04:42:34Z"', False),
                              ('meta.lastModified gt "2011-05-13T04:42:34+02:00"', True), (f'meta.created ne "{when}"', False),
                              ("meta.created pr", True)):
        equal(ids(run.find(mine + expression)), [user["id"]] if finds else [], f"what {expression} finds")
    after = run.change(user, {"op": "replace", "path": "title", "value": "Dr"})
    equal(ids(run.find(mine + f'meta.lastModified eq "{after["meta"]["lastModified"]}"')), [user["id"]], "what the new moment finds")


@scim_case("F11", "null is not a value", needs=["filter"])
def filter_null(run):
    people = four_people(run)
    people.found("title eq null", "cyd")
    people.found("title ne null", "ada bob dan")


@scim_case("F12", "an invalid filter is refused with invalidFilter", "RFC7644-3.4.2.2-L1127", "RFC7644-3.4.2.2-L944",
           "RFC7644-3.4.2.2-L1208", "RFC7644-3.4.2.2-L1197", needs=["filter"])
def filter_errors(run):
    for expression in ("", " ", "userName", "userName eq", 'eq "x"', 'userName eq "x', 'userName is "x"', 'userName regex "x"',
                       'userName eq "x" and', 'userName eq "x" userName eq "y"', '(userName eq "x"', 'userName eq "x")', "userName eq 'x'",
                       'not userName eq "x"', 'emails[type eq "work"', 'emails[]', 'user name eq "x"', 'userName pr "x"', '9name eq "x"',
                       'userName eq "\\x"', 'userName eq {"a":1}', "&&", 'userName eq "x" xor userName eq "y"', "active eq tru",
                       'name eq "x"', 'addresses eq "x"', 'meta.created gt "yesterday"', 'userName eq "a" or or userName eq "b"'):
        refused(run.get("/Users", {"filter": expression}), 400, "invalidFilter")


@scim_case("F13", "an attribute that does not exist finds nothing, or is invalidFilter", needs=["filter"])
def filter_unknown_names(run):
    for expression in ('noSuchThing eq "x"', 'userName.sub eq "x"', 'urn:example:none:attr eq "x"'):
        reply = run.get("/Users", {"filter": expression})
        if reply.status == 200:
            equal(listed(reply), [], f"what {expression} finds")
        else:
            refused(reply, 400, ("invalidFilter", "invalidPath"))


@scim_case("F14", "filters on what the server keeps itself: id, meta, schemas", needs=["filter"])
def filter_common_attributes(run):
    people = four_people(run)
    ada = people["ada"]
    people.found(f'id eq "{ada["id"]}"', "ada")
    people.found('meta.resourceType eq "User"', "ada bob cyd dan")
    people.found('meta.resourceType eq "Group"', "")
    people.found(f'schemas eq "{USER}"', "ada bob cyd dan")


@scim_case("F15", "members and groups can be asked for", needs=["filter"])
def filter_members(run):
    people = four_people(run)
    ada, bob = people["ada"]["id"], people["bob"]["id"]
    first, second = run.group(members=[{"value": ada}, {"value": bob}]), run.group(members=[{"value": ada}])
    mine = f'displayName sw "{run.tag}" and '
    for expression, wanted in ((f'members.value eq "{bob}"', [first]), (f'members[value eq "{ada}"]', [first, second]),
                               (f'members eq "{bob}"', [first]), ('members.value eq "nobody"', [])):
        equal(sorted(ids(run.find(mine + expression, "/Groups"))), sorted(ids(wanted)), f"what {expression} finds")
    people.found(f'groups.value eq "{first["id"]}"', "ada bob")
    people.found(f'groups eq "{second["id"]}"', "ada")


@scim_case("F16", "filters that are very long or deep are answered or refused, never an error of the server", needs=["filter"])
def filter_hostile(run):
    for expression in ("(" * 2000 + 'userName eq "x"' + ")" * 2000, "not (" * 1000 + "userName pr" + ")" * 1000,
                       " or ".join(['userName eq "x"'] * 100), 'userName eq "' + "x" * 4000 + '"', 'userName co "' + "%_'" * 50 + '"',
                       "userName eq \"' or 1=1 --\"", 'userName eq "\\u0000"'):
        reply = run.get("/Users", {"filter": expression})
        check(reply.status in (200, 400, 414, 431), f"got {reply}")
        check(reply.status != 200 or not listed(reply), "it finds something")


@scim_case("F17", "what means something to a database means nothing in a value", needs=["filter"])
def filter_wildcards(run):
    people = People(run, ada={"title": "100%_x"}, bob={"title": "100abx"}, cyd={"title": "a*b?[c]"})
    people.found('title co "%_"', "ada")
    people.found('title sw "100%"', "ada")
    people.found('title ew "_x"', "ada")
    people.found('title co "*"', "cyd")
    people.found('title eq "100%%x"', "")
    people.found('title co "[c]"', "cyd")


@scim_case("F18", "in a query a plus is a space, and percent-encoding is undone once", needs=["filter"])
def filter_encoding(run):
    user = run.user(title="a+b %41")
    for query in (f'filter=id+eq+%22{user["id"]}%22', f'filter=id%20eq%20%22{user["id"]}%22', f'%66ilter=id%20eq%20%22{user["id"]}%22'):
        equal(ids(listed(run.get("/Users", query))), [user["id"]], f"what {query} finds")
    equal(ids(run.find(f'id eq "{user["id"]}" and title eq "a+b %41"')), [user["id"]], "what plus and percent find")


@scim_case("F19", "a query without results is 200 with totalResults 0", "RFC7644-3.4.2-L847", "RFC7644-3.4.2-L817", needs=["filter"])
def nothing_found(run):
    for path in ("/Users", "/Groups"):
        page = expect(run.get(path, {"filter": f'displayName eq "{run.tag}"'}), 200).json
        equal(page["totalResults"], 0, "totalResults")
        equal(page.get("Resources", []), [], "Resources")
        equal(page["schemas"], [LIST_RESPONSE], "schemas")


@scim_case("F20", "a query of the root looks at all types, and an attribute that a type lacks has no value there", "RFC7644-3.4.2.1-L918",
           needs=["filter"])
def root_query(run):
    user, group = run.user(externalId=run.tag), run.group(externalId=run.tag)
    mine = f'externalId eq "{run.tag}"'
    searches = [lambda e: run.post("/.search", {"schemas": [SEARCH_REQUEST], "filter": e}), lambda e: run.get("/", {"filter": e})]
    answered = 0
    for search in searches:
        if search(mine).status in (403, 404, 405, 501):
            continue
        answered += 1
        for expression, wanted in ((mine, [user, group]), (f'{mine} and meta.resourceType eq "Group"', [group]), (f"{mine} and userName pr", [user]),
                                   (f'{mine} and (meta.resourceType eq "User" or meta.resourceType eq "Group")', [user, group]),
                                   (f"{mine} and not (userName pr)", [group]), (f"{mine} and displayName pr", [group])):
            page = search(expression)
            equal(sorted(ids(listed(page))), sorted(ids(wanted)), f"what {expression} finds")
            equal(page.json.get("totalResults", len(wanted)), len(wanted), "totalResults")
        refused(search("nonsense"), 400, "invalidFilter")
    if not answered:
        raise NotApplicable("the server has no queries of the root")


# ---- sorting ----

@scim_case("S1", "sortBy sorts ascending unless told otherwise", "RFC7644-3.4.2.3-L1319", needs=["sort"])
def sort_order(run):
    people = People(run, b={"displayName": "beta"}, a={"displayName": "alpha"}, c={"displayName": "gamma"})
    equal(people.sorted(sortBy="displayName"), ["a", "b", "c"], "the order")
    equal(people.sorted(sortBy="displayName", sortOrder="ascending"), ["a", "b", "c"], "ascending")
    equal(people.sorted(sortBy="DISPLAYNAME", sortOrder="Descending"), ["c", "b", "a"], "descending")
    equal(people.sorted(sortBy=USER + ":displayName"), ["a", "b", "c"], "by the URN")
    refused(run.get("/Users", {"sortBy": "displayName", "sortOrder": "sideways"}), 400, ("invalidValue", "invalidSyntax"))


@scim_case("S2", "texts are sorted by the case rule of their attribute", "RFC7644-3.4.2.3-L1321", needs=["sort"])
def sort_by_type(run):
    people = People(run, one={"displayName": "Delta"}, two={"displayName": "alpha"}, three={"displayName": "Beta"}, four={"displayName": "gamma"})
    equal(people.sorted(sortBy="displayName"), ["two", "three", "one", "four"], "without regard to case")
    exact = [run.user(externalId=f"{run.tag}/{each}") for each in ("b", "A", "a", "B")]
    seen = run.find(f'externalId sw "{run.tag}/"', sortBy="externalId")
    equal([each["externalId"][-1] for each in seen], ["A", "B", "a", "b"], "by the case")
    equal(len(seen), len(exact), "how many")


@scim_case("S3", "what has no value is last, and first when descending", "RFC7644-3.4.2.3-L1321", needs=["sort"])
def sort_missing(run):
    people = People(run, none={}, b={"title": "b"}, a={"title": "a"})
    equal(people.sorted(sortBy="title"), ["a", "b", "none"], "ascending")
    equal(people.sorted(sortBy="title", sortOrder="descending"), ["none", "b", "a"], "descending")


@scim_case("S4", "of several values the primary counts, or else the first", "RFC7644-3.4.2.3-L1321", needs=["sort"])
def sort_multi_valued(run):
    people = People(run, one={"emails": [{"value": "z@example.com"}, {"value": "b@example.com", "primary": True}]},
                    two={"emails": [{"value": "a@example.com"}, {"value": "y@example.com"}]},
                    three={"emails": [{"value": "c@example.com"}]})
    for name in ("emails", "emails.value"):
        equal(people.sorted(sortBy=name), ["two", "one", "three"], f"the order by {name}")


@scim_case("S5", "sub-attributes, extensions, moments and what the server keeps can be sorted by", "RFC7644-3.4.2.3-L1321", needs=["sort"])
def sort_other_attributes(run):
    run.needs_enterprise()
    people = People(run, b={"name": {"familyName": "b"}, "active": True, ENTERPRISE: {"department": "1"}},
                    a={"name": {"familyName": "A"}, "active": False, ENTERPRISE: {"department": "2"}})
    equal(people.sorted(sortBy="name.familyName"), ["a", "b"], "by name.familyName")
    equal(people.sorted(sortBy=ENTERPRISE + ":department"), ["b", "a"], "by the department")
    equal(people.sorted(sortBy="meta.created"), ["b", "a"], "by meta.created")
    equal(people.sorted(sortBy="active"), ["a", "b"], "by active")
    equal(people.sorted(sortBy="id"), [name for name, _ in sorted(people.made.items(), key=lambda each: each[1]["id"])], "by id")


@scim_case("S6", "equal keys are in one order on all pages", needs=["sort"])
def sort_ties(run):
    people = People(run, **{f"p{n}": {"title": "same"} for n in range(7)})
    whole = people.sorted(sortBy="title")
    pages = [people.sorted(sortBy="title", startIndex=n, count=2) for n in range(1, 8, 2)]
    equal(sum(pages, []), whole, "the pages together")
    equal(people.sorted(sortBy="title", sortOrder="descending"), whole[::-1], "descending")


@scim_case("S7", "to sort by what does not exist is refused or ignored", needs=["sort"])
def sort_unknown(run):
    for name in ("noSuchThing", "name", "userName.sub", "x y"):
        reply = run.get("/Users", {"sortBy": name, "count": 1})
        if reply.status != 200:
            refused(reply, 400)


# ---- pages by index ----

@scim_case("I1", "a page has totalResults, startIndex and itemsPerPage, and not more than count resources", "RFC7644-3.4.2.4-L1363",
           "RFC7644-3.4.2-L817", needs=["index"])
def index_pages(run):
    made = [run.user(externalId=run.tag) for _ in range(7)]
    query = {"filter": f'externalId eq "{run.tag}"', "count": 3}
    seen = []
    for start, size in ((1, 3), (4, 3), (7, 1)):
        page = run.get("/Users", query | {"startIndex": start})
        resources = listed(page)
        seen += ids(resources)
        equal((page.json["totalResults"], page.json["startIndex"], page.json["itemsPerPage"], len(resources)), (7, start, size, size), f"the page at {start}")
    equal(sorted(seen), sorted(ids(made)), "what is on the pages")
    beyond = run.get("/Users", query | {"startIndex": 100})
    equal(listed(beyond), [], "what is behind the end")
    equal(beyond.json["totalResults"], 7, "totalResults behind the end")


@scim_case("I2", "a startIndex below 1 is 1", "RFC7644-3.4.2.4-L1358", needs=["index"])
def start_index(run):
    for _ in range(3):
        run.user(externalId=run.tag)
    query = {"filter": f'externalId eq "{run.tag}"', "count": 2}
    first = ids(listed(run.get("/Users", query | {"startIndex": 1})))
    for start in (0, -1, -100):
        page = run.get("/Users", query | {"startIndex": start})
        equal(ids(listed(page)), first, f"the page at {start}")
        equal(page.json["startIndex"], 1, "startIndex")


@scim_case("I3", "count 0 gives totalResults only, and a negative count is 0", "RFC7644-3.4.2.4-L1363", needs=["index"])
def count_zero(run):
    for _ in range(2):
        run.user(externalId=run.tag)
    for count in (0, -1, -1000):
        page = run.get("/Users", {"filter": f'externalId eq "{run.tag}"', "count": count, "startIndex": 1})
        equal(listed(page), [], f"Resources with count={count}")
        equal(page.json["totalResults"], 2, "totalResults")


@scim_case("I4", "numbers that are none are refused", needs=["index"])
def index_errors(run):
    for query in ({"count": "many"}, {"count": "1.5"}, {"count": "1x"}):
        refused(run.get("/Users", query), 400, ("invalidCount", "invalidValue", "invalidSyntax"))
    for query in ({"startIndex": "first"}, {"startIndex": "1.5"}):
        refused(run.get("/Users", query), 400, ("invalidValue", "invalidSyntax"))
    expect(run.get("/Users", {"startIndex": "9" * 30, "count": "9" * 30}), 200)


@scim_case("I5", "too many results are refused with tooMany where a server does not page them", "RFC7644-3.4.2.1-L912")
def too_many(run):
    reply = run.get("/Users")
    if reply.status == 400:
        refused(reply, 400, "tooMany")
    else:
        limit = run.bench.config.get("pagination", {}).get("defaultPageSize", run.bench.config["filter"].get("maxResults", 10**6))
        check(len(listed(reply)) <= limit, "a page has more than its maximum")
        check(len(listed(run.get("/Users", {"count": 10**9}))) <= run.bench.config["filter"].get("maxResults", 10**6),
              "a page has more than filter.maxResults")


# ---- pages by cursor ----

class Walk:
    """A query that is walked by cursor."""

    def __init__(self, run, path="/Users", by_post=False, **query):
        self.run, self.path, self.by_post, self.query = run, path, by_post, {"filter": f'externalId sw "{run.tag}"'} | query

    def page(self, cursor, **query):
        parameters = self.query | {"cursor": cursor} | query
        parameters = {name: value for name, value in parameters.items() if value is not None}
        if self.by_post:
            return self.run.post(self.path + "/.search", {"schemas": [SEARCH_REQUEST]} | parameters)
        return self.run.get(self.path, parameters)

    def first(self):
        return listed_page(self.page(""))

    def forwards(self):
        """All pages, from the first to the last."""
        return self.follow(self.first(), "nextCursor")

    def follow(self, page, name):
        pages = [page]
        while name in pages[-1]:
            check(len(pages) < 1000, "the walk does not end")
            pages.append(listed_page(self.page(pages[-1][name])))
        return pages


def listed_page(reply):
    listed(reply)
    return reply.json


def on(pages):
    return [ids(each.get("Resources", [])) for each in pages]


def ten_users(run):
    return [run.user(externalId=f"{run.tag}-{n}", title=f"t{n % 3}") for n in range(10)]


@scim_case("K1", "ServiceProviderConfig tells of pagination in the words of draft-02 and of RFC 9865", needs=["cursor"])
def cursor_configuration(run):
    pagination = run.bench.config["pagination"]
    for name in ("cursor", "index"):
        check(isinstance(pagination[name], bool), f"{name} is {pagination.get(name)}")
    for name in ("defaultPageSize", "maximumPageSize", "maxPageSize", "cursorTimeout"):
        check(isinstance(pagination.get(name), int) and pagination[name] > 0, f"{name} is {pagination.get(name)}")
    equal(pagination["maximumPageSize"], pagination["maxPageSize"], "maximumPageSize")
    check(pagination.get("defaultPaginationMethod") in ("cursor", "index"), f"defaultPaginationMethod is {pagination.get('defaultPaginationMethod')}")


@scim_case("K2", "a walk has every resource once; nextCursor is on all pages but the last, previousCursor on all but the first", needs=["cursor"])
def cursor_forwards(run):
    made = ids(ten_users(run))
    for count, sizes in ((3, [3, 3, 3, 1]), (5, [5, 5]), (10, [10]), (100, [10]), (1, [1] * 10)):
        pages = Walk(run, count=count).forwards()
        equal([len(each) for each in on(pages)], sizes, f"the sizes of pages with count={count}")
        equal(sorted(sum(on(pages), [])), sorted(made), "what is on the pages")
        equal(["previousCursor" in each for each in pages], [False] + [True] * (len(pages) - 1), "previousCursor")
        for page in pages:
            equal(page.get("totalResults", 10), 10, "totalResults")
            equal(page.get("itemsPerPage", len(page["Resources"])), len(page["Resources"]), "itemsPerPage")


@scim_case("K3", "previousCursor leads back over the same pages", needs=["cursor"])
def cursor_backwards(run):
    ten_users(run)
    for query in ({}, {"sortBy": "title"}, {"sortBy": "title", "sortOrder": "descending"}, {"sortBy": "nickName"}):
        walk = Walk(run, count=3, **query)
        pages = walk.forwards()
        equal(len(sum(on(pages), [])), 10, "how many resources are on the pages")
        if "previousCursor" not in pages[-1]:
            raise NotApplicable("the server has no previousCursor")
        back = walk.follow(pages[-1], "previousCursor")
        equal(on(back), on(pages)[::-1], f"the pages backwards with {query}")
        check("nextCursor" in back[-1], "the first page has no nextCursor when it is come back to")
        equal(on(walk.follow(back[-1], "nextCursor")), on(pages), "the pages forwards again")


@scim_case("K4", "a cursor has only unreserved characters", needs=["cursor"])
def cursor_characters(run):
    ten_users(run)
    for page in Walk(run, count=3).forwards():
        for name in ("nextCursor", "previousCursor"):
            check(set(page.get(name, "")) <= set(UNRESERVED), f"{name} is {page.get(name)}")


@scim_case("K5", "a cursor that was changed, or made up, is invalidCursor, always with the same answer", needs=["cursor"])
def cursor_tampered(run):
    ten_users(run)
    walk = Walk(run, count=3)
    cursor = walk.first()["nextCursor"]
    letters = string.ascii_letters + string.digits + "-_"
    wrong = [cursor[:n] + ("A" if cursor[n] != "A" else "B") + cursor[n + 1:] for n in range(0, len(cursor), max(1, len(cursor) // 40))]
    wrong += [cursor[:-1] + each for each in letters if each != cursor[-1]]
    wrong += [cursor[:-1], cursor[1:], cursor + "A", cursor + "=", cursor + "==", cursor * 2, cursor.swapcase(), "A", "AAAA", "x" * 5000, "%00", "é",
              " ", cursor + " ", " " + cursor, "null"]
    answers = set()
    for each in wrong:
        answers.add(refused(walk.page(each), 400, "invalidCursor").body)
    equal(len(answers), 1, "the number of different answers")
    listed(walk.page(cursor))


@scim_case("K6", "a cursor goes with its query: another filter, order, choice of attributes or endpoint is invalidCursor", needs=["cursor"])
def cursor_of_another_query(run):
    ten_users(run)
    run.group(externalId=run.tag)
    walk = Walk(run, count=3, sortBy="externalId", attributes="externalId,title")
    cursor = walk.first()["nextCursor"]
    for other in ({"filter": f'externalId sw "{run.tag}-"'}, {"filter": None}, {"filter": f'externalId sw "{run.tag}" and userName pr'},
                  {"sortBy": "userName"}, {"sortBy": None}, {"sortOrder": "descending"}, {"attributes": "title"}, {"attributes": None},
                  {"attributes": None, "excludedAttributes": "title"}):
        refused(walk.page(cursor, **other), 400, "invalidCursor")
    refused(run.get("/Groups", walk.query | {"cursor": cursor}), 400, "invalidCursor")
    listed(walk.page(cursor))


@scim_case("K7", "the same query in other words is the same: names in another case, as in the example of the draft", needs=["cursor"])
def cursor_of_the_same_query(run):
    ten_users(run)
    walk = Walk(run, count=3, filter=f'externalId sw "{run.tag}" and userName pr', sortBy="userName", attributes="userName,title")
    pages = walk.forwards()
    for other in ({"filter": f'EXTERNALID SW "{run.tag}" AND username PR'}, {"filter": f'(externalId sw "{run.tag}") and (userName pr)'},
                  {"sortBy": "USERNAME"}, {"sortOrder": "ascending"}, {"attributes": "USERNAME,Title"}, {"attributes": "title,userName"}):
        equal(ids(listed(walk.page(pages[0]["nextCursor"], **other))), on(pages)[1], f"the second page with {other}")


@scim_case("K8", "a cursor of another tenant, or of another token of the same tenant, is invalidCursor", needs=["cursor"])
def cursor_of_another(run):
    token = run.option("other-token", "another token")
    ten_users(run)
    walk = Walk(run, count=3)
    cursor = walk.first()["nextCursor"]
    own = refused(walk.page(cursor[:-2] + "zz"), 400, "invalidCursor").body
    for each in filter(None, (token, run.bench.arguments.read_only_token)):
        reply = refused(run.get("/Users", walk.query | {"cursor": cursor}, token=each), 400, "invalidCursor")
        equal(reply.body, own, "the answer")
    listed(walk.page(cursor))


@scim_case("K9", "count: the same on every page, or left out; another one is invalidCount", needs=["cursor"])
def cursor_count(run):
    ten_users(run)
    walk = Walk(run, count=3)
    pages = walk.forwards()
    cursor = pages[0]["nextCursor"]
    equal(ids(listed(walk.page(cursor, count=None))), on(pages)[1], "the second page without count")
    for count in (2, 4, 0, -1):
        refused(walk.page(cursor, count=count), 400, "invalidCount")
    for count in ("x", "1.5", ""):
        refused(walk.page(cursor, count=count), 400, "invalidCount")
        refused(walk.page("", count=count), 400, "invalidCount")


@scim_case("K10", "count 0, or below, gives totalResults and no cursors", needs=["cursor"])
def cursor_count_zero(run):
    ten_users(run)
    for count in (0, -5):
        page = listed_page(Walk(run, count=count).page(""))
        equal(page.get("Resources", []), [], "Resources")
        equal(page.get("totalResults"), 10, "totalResults")
        check("nextCursor" not in page and "previousCursor" not in page, f"there are cursors with count={count}")


@scim_case("K11", "cursor and startIndex together are refused", needs=["cursor", "index"])
def cursor_and_start_index(run):
    ten_users(run)
    walk = Walk(run, count=3)
    refused(walk.page("", startIndex=1), 400, "invalidValue")
    refused(walk.page(walk.first()["nextCursor"], startIndex=4), 400, "invalidValue")


@scim_case("K12", "a cursor without a value begins a walk", needs=["cursor"])
def cursor_empty(run):
    ten_users(run)
    expression = urllib.parse.quote(f'externalId sw "{run.tag}"')
    for query in (f"filter={expression}&count=3&cursor", f"filter={expression}&count=3&cursor=", f"cursor&filter={expression}&count=3"):
        page = listed_page(run.get("/Users", query))
        equal(len(page["Resources"]), 3, "the size of the page")
        check("nextCursor" in page and "previousCursor" not in page, f"the cursors are {sorted(page)}")
    by_index = listed_page(run.get("/Users", f"filter={expression}&count=3&startIndex=1"))
    check("nextCursor" not in by_index, "a page by index has a cursor")


@scim_case("K13", "POST to .search walks by cursor as GET does", needs=["cursor"])
def cursor_by_post(run):
    ten_users(run)
    walk = Walk(run, by_post=True, count=4, sortBy="title")
    pages = walk.forwards()
    equal(on(pages), on(Walk(run, count=4, sortBy="title").forwards()), "the pages")
    equal(on(walk.follow(pages[-1], "previousCursor")), on(pages)[::-1], "the pages backwards")
    refused(walk.page(pages[0]["nextCursor"] + "A"), 400, "invalidCursor")
    refused(walk.page(pages[0]["nextCursor"], count=5), 400, "invalidCount")
    refused(walk.page("", count="5"), 400, ("invalidCount", "invalidSyntax", "invalidValue"))
    refused(walk.page("", startIndex=1), 400, "invalidValue")


@scim_case("K14", "what stays as it is comes exactly once, while others come, go and change", needs=["cursor"])
def cursor_under_change(run):
    made = ten_users(run)
    for query in ({}, {"sortBy": "userName"}, {"sortBy": "userName", "sortOrder": "descending"}):
        walk = Walk(run, count=2, **query)
        page, seen, gone = walk.first(), [], set()
        while True:
            seen += ids(page.get("Resources", []))
            if "nextCursor" not in page:
                break
            late = run.user(externalId=f"{run.tag}-late")
            if len(gone) < 2:  # what the walk has seen, and what its next page begins with
                leaving = run.user(externalId=f"{run.tag}-leaving")
                expect(run.delete(path_of(leaving)), 204)
                gone |= {leaving["id"]}
            run.change(made[len(seen) % 10], {"op": "replace", "path": "title", "value": late["id"]})
            page = listed_page(walk.page(page["nextCursor"]))
            check(len(seen) < 100, "the walk does not end")
        for each in made:
            equal(seen.count(each["id"]), 1, f"how often one is seen with {query}")
        equal(len(set(seen)), len(seen), "the number of resources seen")


@scim_case("K15", "a page whose neighbours were deleted is still found from", needs=["cursor"])
def cursor_over_deleted(run):
    ten_users(run)
    walk = Walk(run, count=3)
    pages = walk.forwards()
    for each in (pages[0]["Resources"][2], pages[1]["Resources"][0]):  # both sides of the cursor
        expect(run.delete(path_of(each)), 204)
    second = listed_page(walk.page(pages[0]["nextCursor"]))
    equal(ids(second["Resources"]), on(pages)[1][1:] + on(pages)[2][:1], "the second page")


@scim_case("K16", "a cursor can be used again", needs=["cursor"])
def cursor_again(run):
    ten_users(run)
    walk = Walk(run, count=3)
    cursor = walk.first()["nextCursor"]
    pages = [ids(listed(walk.page(cursor))) for _ in range(3)]
    equal(pages[1:], pages[:1] * 2, "the page again")


@scim_case("K17", "a walk through groups, and one without a filter", needs=["cursor"])
def cursor_other_walks(run):
    groups = [run.group(externalId=f"{run.tag}-{n}") for n in range(5)]
    equal(sorted(sum(on(Walk(run, "/Groups", count=2).forwards()), [])), sorted(ids(groups)), "the groups")
    whole = sum(on(Walk(run, "/Groups", filter=None, attributes="id", count=50).forwards()), [])
    check(set(ids(groups)) <= set(whole) and len(set(whole)) == len(whole), "a walk over all groups lost or repeated one")


@scim_case("K18", "a count over the maximum is lowered to it, and may be repeated", variant="small-pages")
def cursor_small_pages(run):
    pagination = expect(run.get("/ServiceProviderConfig"), 200).json.get("pagination", {})
    most, usual = pagination.get("maxPageSize", 500), pagination.get("defaultPageSize", 500)
    if most > 20 or not pagination.get("cursor"):
        raise NotApplicable("needs --variant small-pages=URL, with a maximum of 20 or less")
    made = [run.user(externalId=f"{run.tag}-{n}") for n in range(2 * most + 1)]
    walk = Walk(run, count=most + 7)
    pages = walk.forwards()
    equal([len(each) for each in on(pages)], [most, most, 1], "the sizes of pages")
    equal(sorted(sum(on(pages), [])), sorted(ids(made)), "what is on the pages")
    equal(ids(listed(walk.page(pages[0]["nextCursor"], count=most))), on(pages)[1], "the second page with the maximum")
    equal(len(listed(Walk(run).page(""))), usual, "the size without count")
    equal(len(listed(run.get("/Users", {"filter": walk.query["filter"], "count": 1000}))), most, "the size of a page by index")


@scim_case("K19", "where a server is strict, a count over the maximum is invalidCount", variant="strict-count")
def cursor_strict_count(run):
    if "strict-count" not in run.bench.variants:
        raise NotApplicable("needs --variant strict-count=URL, which refuses a count over its maximum")
    most = expect(run.get("/ServiceProviderConfig"), 200).json["pagination"]["maxPageSize"]
    listed(Walk(run, count=most).page(""))
    refused(Walk(run, count=most + 1).page(""), 400, "invalidCount")


@scim_case("K20", "where cursors are the only method, a query without one begins a walk, and startIndex is refused", variant="cursor-only")
def cursor_only(run):
    if "cursor-only" not in run.bench.variants:
        raise NotApplicable("needs --variant cursor-only=URL, which has no pages by index")
    pagination = expect(run.get("/ServiceProviderConfig"), 200).json["pagination"]
    equal((pagination["cursor"], pagination["index"]), (True, False), "cursor and index")
    ten_users(run)
    page = listed_page(Walk(run, count=3).page(None))
    check("nextCursor" in page, "the first page has no nextCursor")
    equal(len(sum(on(Walk(run, count=3).follow(page, "nextCursor")), [])), 10, "how many resources the walk has")
    refused(run.get("/Users", {"startIndex": 11}), 400)


@scim_case("K21", "an old cursor is expiredCursor; one that was changed too is invalidCursor", variant="expiry")
def cursor_expiry(run):
    if "expiry" not in run.bench.variants:
        raise NotApplicable("needs --variant expiry=URL, where cursors expire within seconds")
    ten_users(run)
    walk = Walk(run, count=3)
    cursor = walk.first()["nextCursor"]
    listed(walk.page(cursor))
    end = time.monotonic() + PATIENCE
    while (reply := walk.page(cursor)).status == 200 and time.monotonic() < end:
        time.sleep(0.1)
    refused(reply, 400, "expiredCursor")
    refused(walk.page(cursor, count=4), 400, ("expiredCursor", "invalidCount"))
    refused(walk.page(cursor[:-1]), 400, "invalidCursor")
    refused(walk.page(cursor, filter=f'externalId sw "{run.tag}-"'), 400, "invalidCursor")


unseen("K22", "a filter without an index gets short pages rather than a stalled server", "needs more resources than a test makes",
       "scim_walk.gives_short_pages_where_the_budget_is_spent")


# ---- searches by POST ----

@scim_case("Q1", "POST to .search of a type is the same query as GET", "RFC7644-3.4.3-L1476")
def search(run):
    people = four_people(run)
    body = {"schemas": [SEARCH_REQUEST], "filter": f'externalId sw "{run.tag}"', "sortBy": "nickName", "sortOrder": "descending", "startIndex": 2,
            "count": 2, "attributes": ["nickName", "title"]}
    page = run.post("/Users/.search", body)
    equal(people.named(listed(page)), ["cyd", "bob"], "what is found")
    query = {name: ",".join(value) if isinstance(value, list) else value for name, value in body.items() if name != "schemas"}
    equal(page.json, expect(run.get("/Users", query), 200).json, "the page")
    excluded = listed(run.post("/Users/.search", {"schemas": [SEARCH_REQUEST], "filter": body["filter"], "excludedAttributes": ["nickName"]}))
    check(len(excluded) == 4 and not any("nickName" in each for each in excluded), "nickName was not left out")


@scim_case("Q2", "a search needs its schema", "RFC7644-3.4.3-L1476", "RFC7644-3.1-L436")
def search_schema(run):
    for body in ({"filter": "userName pr"}, {"schemas": [USER], "filter": "userName pr"}, {"schemas": []}, [], b"", b"{"):
        refused(run.post("/Users/.search", body), 400, ("invalidSyntax", "invalidValue"))
    refused(run.post("/Users/.search", {"schemas": [SEARCH_REQUEST], "filter": "nonsense"}), 400, "invalidFilter")
    refused(run.post("/Users/.search", {"schemas": [SEARCH_REQUEST], "count": "x"}), 400)


@scim_case("Q3", "a search of the root finds users and groups, in pages", "RFC7644-3.4.3-L1476", "RFC7644-3.4.2.1-L918")
def search_root(run):
    users, groups = [run.user(externalId=run.tag) for _ in range(3)], [run.group(externalId=run.tag) for _ in range(2)]
    body = {"schemas": [SEARCH_REQUEST], "filter": f'externalId eq "{run.tag}"', "attributes": ["displayName", "userName"]}
    reply = run.post("/.search", body)
    if reply.status in (404, 405, 501):
        raise NotApplicable("the server has no searches of the root")
    equal(sorted(ids(listed(reply))), sorted(ids(users + groups)), "what is found")
    equal(reply.json["totalResults"], 5, "totalResults")
    paged = [ids(listed(run.post("/.search", body | {"startIndex": start, "count": 2}))) for start in (1, 3, 5)]
    equal([len(each) for each in paged], [2, 2, 1], "the sizes of pages")
    equal(sorted(sum(paged, [])), sorted(ids(users + groups)), "what the pages have")
    if run.bench.config.get("pagination", {}).get("cursor"):
        walk = Walk(run, "", by_post=True, filter=body["filter"], count=2)
        pages = walk.forwards()
        equal(sorted(sum(on(pages), [])), sorted(ids(users + groups)), "what a walk has")
        equal(on(walk.follow(pages[-1], "previousCursor")), on(pages)[::-1], "the pages backwards")
    kinds = {each["schemas"][0] for each in listed(reply)}
    equal(kinds, {USER, GROUP}, "the schemas")
