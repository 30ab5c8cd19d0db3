// SPDX-License-Identifier: Apache-2.0
//
// Lists of the SCIM service: filters, orders, pages by index and by cursor.
#include "process.hpp"
#include "scim.hpp"

#include <fstream>
#include <set>

namespace tidegate::e2e {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

auto names_of(scim_message const& list, std::string_view name = "userName")
    -> std::vector<std::string> {
  std::vector<std::string> names;
  auto const* const resources = list.body.find("Resources");
  if (resources != nullptr) {
    for (auto const& each : *resources->if_array()) {
      auto const* const value = each.find(name);
      names.push_back(value == nullptr ? "(none)" : *value->if_string());
    }
  }
  return names;
}

/// What stands in a query for a text.
auto encoded(std::string_view text) -> std::string {
  std::string out;
  for (char const c : text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    bool const is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_plain) {
      out += c;
    } else {
      auto const octet = static_cast<unsigned char>(c);
      out += {'%', digits[octet >> 4U], digits[octet & 15U]};
    }
  }
  return out;
}

class gateway_scim_list : public scim_test {
 protected:
  explicit gateway_scim_list(std::string const& options = "") : scim_test(options) {}

  void make_users(int count, std::string const& prefix = "u") {
    for (int i = 0; i < count; ++i) {
      // Titles go the other way than names, and each third user has none.
      auto const number = std::to_string(100 + i);
      auto const title = i % 3 == 2 ? "" : R"("title":")" + std::to_string(900 - i) + "\"";
      ASSERT_EQ(client_.post("/Users", user(prefix + number, title)).status(), 201);
    }
  }
  auto filter(std::string_view text, std::string_view more = "") const -> scim_message {
    return client_.get("/Users?filter=" + encoded(text) + std::string(more));
  }
};

// ---- pages by index ----

TEST_F(gateway_scim_list, pages_by_index) {
  make_users(5);
  auto const all = client_.get("/Users");
  EXPECT_EQ(all.status(), 200);
  EXPECT_EQ(all.at("schemas.0"), "urn:ietf:params:scim:api:messages:2.0:ListResponse");
  EXPECT_EQ(all.at("totalResults"), "5");
  EXPECT_EQ(all.at("itemsPerPage"), "5");
  EXPECT_EQ(all.at("startIndex"), "1");
  EXPECT_EQ(all.at("nextCursor"), "(none)");
  auto const page = client_.get("/Users?startIndex=2&count=2");
  EXPECT_THAT(names_of(page), ElementsAre("u101", "u102"));
  EXPECT_EQ(page.at("totalResults"), "5");
  EXPECT_EQ(page.at("startIndex"), "2");
  EXPECT_THAT(names_of(client_.get("/Users?startIndex=5&count=2")), ElementsAre("u104"));
  auto const behind = client_.get("/Users?startIndex=9&count=2");
  EXPECT_THAT(names_of(behind), IsEmpty());
  EXPECT_EQ(behind.at("totalResults"), "5");
  EXPECT_THAT(names_of(client_.get("/Users?startIndex=-3&count=1")), ElementsAre("u100"));
}

TEST_F(gateway_scim_list, counts_without_resources_when_count_is_0_or_less) {
  make_users(3);
  for (auto const* const query : {"?count=0", "?count=-1", "?cursor&count=0"}) {
    auto const counted = client_.get("/Users" + std::string(query));
    EXPECT_EQ(counted.at("totalResults"), "3") << query;
    EXPECT_EQ(counted.at("itemsPerPage"), "0");
    EXPECT_EQ(counted.at("nextCursor"), "(none)");
  }
}

TEST_F(gateway_scim_list, finds_nothing_with_200) {
  auto const none = filter("userName eq \"missing\"");
  EXPECT_EQ(none.status(), 200);
  EXPECT_EQ(none.at("totalResults"), "0");
  EXPECT_EQ(none.at("Resources"), "[]");
}

// ---- filters ----

TEST_F(gateway_scim_list, filters_with_and_without_an_index) {
  make_users(9);
  EXPECT_THAT(names_of(filter("userName eq \"U104\"")), ElementsAre("u104"));
  EXPECT_THAT(names_of(filter("USERNAME sw \"u10\" and title eq \"899\"")), ElementsAre("u101"));
  EXPECT_THAT(names_of(filter("title pr", "&count=2&startIndex=3")), ElementsAre("u103", "u104"));
  EXPECT_EQ(filter("title pr", "&count=2").at("totalResults"), "6");
  EXPECT_THAT(names_of(filter("not (title pr)")), ElementsAre("u102", "u105", "u108"));
  EXPECT_THAT(names_of(client_.get("/Users?filter=userName+eq+%22u100%22")), ElementsAre("u100"));
  expect_error(filter("userName xx \"a\""), 400, "invalidFilter");
  expect_error(filter("nothing eq \"a\""), 400, "invalidFilter");
  expect_error(filter("password eq \"a\""), 400, "invalidFilter");
}

TEST_F(gateway_scim_list, searches_by_post) {
  make_users(4);
  auto const found = client_.post(
      "/Users/.search",
      R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:SearchRequest"],"filter":"userName gt \"u101\"",)"
      R"("attributes":["userName"],"count":1,"sortBy":"userName","sortOrder":"descending"})");
  EXPECT_EQ(found.status(), 200) << found.raw.body;
  EXPECT_THAT(names_of(found), ElementsAre("u103"));
  EXPECT_EQ(found.at("totalResults"), "2");
  EXPECT_EQ(found.at("Resources.0.meta"), "(none)");
  expect_error(client_.post("/Users/.search", "{}"), 400, "invalidSyntax");
}

// ---- orders ----

TEST_F(gateway_scim_list, sorts_by_an_attribute_with_an_index) {
  for (auto const* const name : {"b", "A", "c"}) {
    ASSERT_EQ(client_.post("/Users", user(name)).status(), 201);
  }
  EXPECT_THAT(names_of(client_.get("/Users?sortBy=userName")), ElementsAre("A", "b", "c"));
  EXPECT_THAT(names_of(client_.get("/Users?sortBy=username&sortOrder=descending")),
              ElementsAre("c", "b", "A"));
}

TEST_F(gateway_scim_list, sorts_by_an_attribute_without_an_index) {
  make_users(6);
  auto const ascending = client_.get("/Users?sortBy=title");
  EXPECT_THAT(names_of(ascending), ElementsAre("u104", "u103", "u101", "u100", "u102", "u105"));
  EXPECT_EQ(ascending.at("totalResults"), "6");
  EXPECT_THAT(
      names_of(client_.get("/Users?sortBy=title&sortOrder=descending&startIndex=2&count=3")),
      ElementsAre("u102", "u100", "u101"));
  expect_error(client_.get("/Users?sortBy=none"), 400, "invalidValue");
  expect_error(client_.get("/Users?sortBy=name"), 400, "invalidValue");
}

// ---- pages by cursor ----

/// Follows a kind of cursor to the end; returns all names, page by page.
auto walk(scim_client const& client, std::string const& query, std::string_view link = "nextCursor",
          std::string cursor = "") -> std::vector<std::string> {
  std::vector<std::string> names;
  for (int pages = 0; pages < 100; ++pages) {
    auto const page = client.get("/Users?" + query + "&cursor=" + cursor);
    EXPECT_EQ(page.status(), 200) << page.raw.body;
    auto const on_page = names_of(page);
    if (link == "nextCursor") {
      names.insert(names.end(), on_page.begin(), on_page.end());
    } else {
      names.insert(names.begin(), on_page.begin(), on_page.end());
    }
    cursor = page.at(link);
    if (cursor == "(none)") {
      return names;
    }
  }
  ADD_FAILURE() << "the walk does not end";
  return names;
}

TEST_F(gateway_scim_list, walks_by_cursor_in_every_order_and_back) {
  make_users(7);
  for (std::string const order : {"", "sortBy=userName", "sortBy=userName&sortOrder=descending",
                                  "sortBy=title", "sortBy=title&sortOrder=descending"}) {
    auto const all = names_of(client_.get("/Users?count=100&" + order));
    ASSERT_EQ(all.size(), 7U) << order;
    EXPECT_EQ(walk(client_, "count=3&" + order), all) << order;
    // To the last page, and from there back to the start, which is filled up.
    auto page = client_.get("/Users?cursor&count=3&" + order);
    EXPECT_EQ(page.at("previousCursor"), "(none)");
    EXPECT_EQ(page.at("startIndex"), "(none)");
    page = client_.get("/Users?count=3&" + order + "&cursor=" + page.at("nextCursor"));
    page = client_.get("/Users?count=3&" + order + "&cursor=" + page.at("nextCursor"));
    EXPECT_EQ(names_of(page), std::vector(all.end() - 1, all.end())) << order;
    EXPECT_EQ(page.at("nextCursor"), "(none)");
    page = client_.get("/Users?count=3&" + order + "&cursor=" + page.at("previousCursor"));
    EXPECT_EQ(names_of(page), std::vector(all.begin() + 3, all.begin() + 6)) << order;
    page = client_.get("/Users?count=3&" + order + "&cursor=" + page.at("previousCursor"));
    EXPECT_EQ(names_of(page), std::vector(all.begin(), all.begin() + 3)) << order;
  }
}

TEST_F(gateway_scim_list, ends_a_page_early_when_it_is_long_enough) {
  constexpr std::size_t users = 15;
  constexpr std::size_t octets = 700'000;  // of each; a page has 8 MiB
  constexpr std::size_t fit = 12;
  for (std::size_t i = 0; i < users; ++i) {
    auto const number = std::to_string(100 + i);
    ASSERT_EQ(
        client_
            .post("/Users", user("u" + number, R"("title":"t)" + number + R"(","nickName":")" +
                                                   std::string(octets, 'x') + "\""))
            .status(),
        201);
  }
  for (std::string const order : {"", "sortBy=userName&sortOrder=descending", "sortBy=title"}) {
    auto const all = names_of(client_.get("/Users?attributes=userName&count=100&" + order));
    ASSERT_EQ(all.size(), users) << order;
    auto const first = client_.get("/Users?count=100&cursor&" + order);
    ASSERT_EQ(first.status(), 200) << first.raw.body.substr(0, 500);
    EXPECT_EQ(names_of(first), std::vector(all.begin(), all.begin() + fit)) << order;
    EXPECT_EQ(first.at("itemsPerPage"), std::to_string(fit));
    EXPECT_EQ(first.at("totalResults"), std::to_string(users));
    EXPECT_LT(first.raw.body.size(), (std::size_t{8} << 20) + 2 * octets);
    auto const second =
        client_.get("/Users?count=100&" + order + "&cursor=" + first.at("nextCursor"));
    EXPECT_EQ(names_of(second), std::vector(all.begin() + fit, all.end())) << order;
    EXPECT_EQ(second.at("nextCursor"), "(none)");
    auto const back =
        client_.get("/Users?count=100&" + order + "&cursor=" + second.at("previousCursor"));
    EXPECT_EQ(names_of(back), names_of(first)) << order;
    EXPECT_EQ(back.at("previousCursor"), "(none)");
  }
  // By index a page is short as well, and what it lacks is asked for.
  for (std::string const order : {"", "&sortBy=title"}) {
    auto const first = client_.get("/Users?startIndex=1&count=100" + order);
    ASSERT_EQ(first.status(), 200) << first.raw.body.substr(0, 500);
    EXPECT_EQ(first.at("itemsPerPage"), std::to_string(fit)) << order;
    EXPECT_EQ(first.at("totalResults"), std::to_string(users)) << order;
    auto const rest = client_.get("/Users?count=100&startIndex=" + std::to_string(fit + 1) + order);
    EXPECT_EQ(names_of(rest).front(), "u112") << order;
    EXPECT_EQ(names_of(rest).size(), users - fit) << order;
  }
  // Over several types, too.
  ASSERT_EQ(client_.post("/Groups", group("g")).status(), 201);
  auto const first = client_.get("/?count=100&cursor");
  EXPECT_EQ(first.count("Resources"), fit);
  auto const second = client_.get("/?count=100&cursor=" + first.at("nextCursor"));
  EXPECT_EQ(second.count("Resources"), users - fit + 1);
  EXPECT_EQ(second.at("Resources.3.displayName"), "g");
  EXPECT_EQ(second.at("nextCursor"), "(none)");
  EXPECT_EQ(client_.get("/?count=100&startIndex=1").at("totalResults"), std::to_string(users + 1));
}

TEST_F(gateway_scim_list, takes_the_example_of_rfc9865_as_it_stands) {
  make_users(3, "J");
  make_users(2, "k");
  auto const page = client_.get("/Users?filter=userName%20sw%20J&cursor&count=10");
  EXPECT_EQ(page.status(), 200) << page.raw.body;
  EXPECT_THAT(names_of(page), ElementsAre("J100", "J101", "J102"));
  auto const first = client_.get("/Users?filter=userName%20sw%20J&cursor&count=2");
  auto const second = client_.get("/Users?filter=" + encoded(R"(userName sw "J")") +
                                  "&count=2&cursor=" + first.at("nextCursor"));
  EXPECT_THAT(names_of(second), ElementsAre("J102"));
}

TEST_F(gateway_scim_list, counts_once_in_a_walk_and_leaves_out_what_is_made_later) {
  make_users(4);
  auto const first = client_.get("/Users?cursor&count=2");
  EXPECT_EQ(first.at("totalResults"), "4");
  make_users(3, "later");
  auto const second = client_.get("/Users?count=2&cursor=" + first.at("nextCursor"));
  EXPECT_THAT(names_of(second), ElementsAre("u102", "u103"));
  EXPECT_EQ(second.at("totalResults"), "4");
  EXPECT_EQ(second.at("nextCursor"), "(none)");
}

TEST_F(gateway_scim_list, continues_where_a_resource_was_deleted) {
  make_users(5);
  auto const first = client_.get("/Users?cursor&count=2");
  EXPECT_EQ(client_.remove("/Users/" + first.at("Resources.1.id")).status(), 204);
  EXPECT_THAT(names_of(client_.get("/Users?count=2&cursor=" + first.at("nextCursor"))),
              ElementsAre("u102", "u103"));
}

TEST_F(gateway_scim_list, fills_up_a_backward_page_that_reaches_the_start) {
  make_users(6);
  auto const first = client_.get("/Users?cursor&count=3");
  auto const second = client_.get("/Users?count=3&cursor=" + first.at("nextCursor"));
  EXPECT_EQ(client_.remove("/Users/" + first.at("Resources.0.id")).status(), 204);
  auto const back = client_.get("/Users?count=3&cursor=" + second.at("previousCursor"));
  EXPECT_THAT(names_of(back), ElementsAre("u101", "u102", "u103"));
  EXPECT_EQ(back.at("previousCursor"), "(none)");
  EXPECT_EQ(back.at("totalResults"), "6");
}

TEST_F(gateway_scim_list, opens_a_cursor_only_for_its_holder_and_its_query) {
  make_users(5);
  auto const query = "/Users?count=2&filter=" + encoded("userName sw \"u\"");
  auto const cursor = "&cursor=" + client_.get(query + "&cursor").at("nextCursor");
  EXPECT_EQ(client_.get(query + cursor).status(), 200);
  EXPECT_EQ(client_.get("/Users?count=2&filter=" + encoded("USERNAME SW \"U\"") + cursor).status(),
            200);
  auto const refused = client_.get(query + "&sortBy=userName" + cursor);
  expect_error(refused, 400, "invalidCursor");
  for (auto const& answer :
       {scim_client(with_, "beta").get(query + cursor),
        scim_client(with_, "gamma").get(query + cursor), client_.get("/Users?count=2" + cursor),
        client_.get(query + "&attributes=title" + cursor), client_.get(query + "&cursor=abc"),
        client_.get(query + cursor + "A")}) {
    EXPECT_EQ(answer.raw.body, refused.raw.body);
  }
  expect_error(client_.get("/Users?count=3&filter=" + encoded("userName sw \"u\"") + cursor), 400,
               "invalidCount");
  expect_error(client_.get(query + cursor + "&startIndex=1"), 400, "invalidValue");
  EXPECT_EQ(client_
                .post("/Users/.search",
                      R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:SearchRequest"],)"
                      R"("filter":"userName sw \"u\"","cursor":")" +
                          cursor.substr(8) + "\"}")
                .status(),
            200);
}

class gateway_scim_cursor_timeout : public gateway_scim_list {
 protected:
  gateway_scim_cursor_timeout() : gateway_scim_list("    scim: {cursor-timeout: 1s}\n") {}
};

TEST_F(gateway_scim_cursor_timeout, is_reported_to_the_holder_of_an_old_cursor) {
  make_users(3);
  auto const cursor = client_.get("/Users?cursor&count=1").at("nextCursor");
  expect_eventually(
      [&] {
        return client_.get("/Users?count=1&cursor=" + cursor).at("scimType") == "expiredCursor";
      },
      "the cursor expires");
  expect_error(scim_client(with_, "beta").get("/Users?count=1&cursor=" + cursor), 400,
               "invalidCursor");
}

TEST(gateway_scim_paging, can_be_by_cursor_only) {
  data_folder const data;
  gateway const with(scim_config(
      data, "    scim: {pagination: cursor, default-page-size: 2, max-page-size: 3}\n"));
  scim_client const client(with);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(client.post("/Users", user(std::to_string(i))).status(), 201);
  }
  auto const first = client.get("/Users");
  EXPECT_EQ(first.at("itemsPerPage"), "2");
  EXPECT_NE(first.at("nextCursor"), "(none)");
  EXPECT_EQ(client.get("/Users?count=100").at("itemsPerPage"), "3");
  expect_error(client.get("/Users?startIndex=2"), 400, "invalidValue");
  EXPECT_EQ(client.get("/ServiceProviderConfig").at("pagination.index"), "false");
}

TEST(gateway_scim_paging, can_be_by_index_only_and_strict_about_count) {
  data_folder const data;
  gateway const with(scim_config(
      data, "    scim: {pagination: index, max-page-size: 100, count-over-max: error}\n"));
  scim_client const client(with);
  expect_error(client.get("/Users?cursor"), 400, "invalidValue");
  expect_error(client.get("/Users?count=101"), 400, "invalidCount");
}

TEST(gateway_scim_paging, gets_a_new_index_at_the_next_start) {
  data_folder const data;
  {
    gateway const with(scim_config(data));
    for (auto const* const title : {"b", "a", "c"}) {
      auto const more = R"("title":")" + std::string(title) + "\"";
      ASSERT_EQ(scim_client(with).post("/Users", user(title, more)).status(), 201);
    }
  }
  gateway const with(scim_config(data, "    scim: {indexes: [title]}\n"));
  scim_client const client(with);
  EXPECT_THAT(names_of(client.get("/Users?sortBy=title")), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names_of(client.get("/Users?filter=title+ge+%22B%22")), ElementsAre("b", "c"));
}

TEST(gateway_scim_paging, does_not_start_with_an_index_of_nothing) {
  data_folder const data;
  auto const file = data.path() + "/t.yaml";
  std::ofstream(file) << "listen: \"127.0.0.1:0\"\n"
                      << scim_config(data, "    scim: {indexes: [nothing]}\n");
  auto const served = run({TIDEGATE_BINARY, "serve", "-c", file});
  EXPECT_EQ(served.status, 1);
  EXPECT_THAT(served.err, HasSubstr("nothing"));
  auto const checked = run({TIDEGATE_BINARY, "check", "-c", file});
  EXPECT_EQ(checked.status, 2);
  EXPECT_THAT(checked.err, testing::MatchesRegex(file + ":[0-9]+:21: scim: nothing: .*\n"));
}

// ---- all types ----

TEST_F(gateway_scim_list, lists_all_types_one_after_the_other) {
  make_users(3);
  ASSERT_EQ(client_.post("/Groups", group("g1")).status(), 201);
  ASSERT_EQ(client_.post("/Groups", group("g2")).status(), 201);
  make_users(1, "v");
  auto const all = client_.get("/");
  EXPECT_EQ(all.at("totalResults"), "6");
  EXPECT_EQ(all.count("Resources"), 6U);
  auto const page = client_.get("/?startIndex=4&count=2");
  EXPECT_THAT(names_of(page), ElementsAre("v100", "(none)"));
  EXPECT_EQ(page.at("Resources.1.displayName"), "g1");
  EXPECT_EQ(page.at("totalResults"), "6");
  std::multiset<std::string> seen;
  std::string cursor;
  do {
    auto const part = client_.get("/?count=2&cursor=" + cursor);
    ASSERT_EQ(part.status(), 200) << part.raw.body;
    EXPECT_EQ(part.at("totalResults"), "6");
    for (auto const& each : *part.body.find("Resources")->if_array()) {
      seen.insert(*each.find("id")->if_string());
    }
    cursor = part.at("nextCursor");
  } while (cursor != "(none)");
  EXPECT_EQ(seen.size(), 6U);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 6U);
  EXPECT_EQ(client_.get("/?filter=" + encoded("displayName eq \"g2\"")).at("totalResults"), "1");
  EXPECT_EQ(client_.get("/?filter=" + encoded("userName eq \"u100\"")).at("totalResults"), "1");
  EXPECT_EQ(client_.get("/?filter=" + encoded("meta.resourceType eq \"User\"")).at("totalResults"),
            "4");
  EXPECT_EQ(client_
                .post("/.search",
                      R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:SearchRequest"]})")
                .at("totalResults"),
            "6");
  EXPECT_EQ(client_.get("/?filter=" + encoded("not (userName pr)")).at("totalResults"), "2");
  EXPECT_EQ(client_.get("/?filter=" + encoded("userName eq \"u100\" or members.value eq \"x\""))
                .at("totalResults"),
            "1");
  EXPECT_EQ(client_.get("/?filter=" + encoded("nothing eq 1")).at("totalResults"), "0");
  expect_error(client_.get("/?filter=" + encoded("nothing is 1")), 400, "invalidFilter");
  expect_error(client_.get("/?sortBy=id"), 400, "invalidValue");
}

// ---- what has no index ----

class gateway_scim_scan : public gateway_scim_list {
 protected:
  gateway_scim_scan() : gateway_scim_list("    scim: {scan-budget: 1ms}\n") {}
};

TEST_F(gateway_scim_scan, ends_a_page_when_its_budget_is_spent_and_resumes_from_there) {
  std::string operations;
  constexpr int users = 6000;
  for (int from = 0; from < users; from += 1000) {
    operations.clear();
    for (int i = from; i < from + 1000; ++i) {
      operations += (i == from ? "" : ",") +
                    std::string(R"({"method":"POST","path":"/Users","bulkId":"b)") +
                    std::to_string(i) + R"(","data":)" +
                    user("u" + std::to_string(i), R"("title":"t)" + std::to_string(i) + "\"") + "}";
    }
    ASSERT_EQ(
        client_
            .post(
                "/Bulk",
                R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:BulkRequest"],"Operations":[)" +
                    operations + "]}")
            .status(),
        200);
  }
  std::vector<std::string> found;
  std::string cursor;
  int pages = 0;
  do {
    auto const page =
        client_.get("/Users?count=100&filter=" + encoded("title ew \"99\"") + "&cursor=" + cursor);
    ASSERT_EQ(page.status(), 200) << page.raw.body;
    auto const names = names_of(page);
    found.insert(found.end(), names.begin(), names.end());
    cursor = page.at("nextCursor");
    ++pages;
  } while (cursor != "(none)");
  EXPECT_EQ(found.size(), 60U);
  EXPECT_EQ(std::set(found.begin(), found.end()).size(), 60U);
  EXPECT_GT(pages, 1);
}

// ---- bulk ----

auto bulk(std::string const& operations, std::string const& more = "") -> std::string {
  return R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:BulkRequest"],)" + more +
         R"("Operations":[)" + operations + "]}";
}

class gateway_scim_bulk : public scim_test {};

TEST_F(gateway_scim_bulk, carries_out_operations_that_refer_to_each_other) {
  // The group comes before the user that is to be its member.
  auto const made = client_.post(
      "/Bulk",
      bulk(
          R"({"method":"POST","path":"/Groups","bulkId":"g","data":)" +
          group("Tours", {"bulkId:u"}) +
          R"(},{"method":"POST","path":"/Users","bulkId":"u","data":)" + user("alice") +
          R"(},{"method":"PATCH","path":"/Users/bulkId:u","data":{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],)"
          R"("Operations":[{"op":"add","path":"title","value":"t"}]}})"));
  EXPECT_EQ(made.status(), 200) << made.raw.body;
  EXPECT_EQ(made.at("schemas.0"), "urn:ietf:params:scim:api:messages:2.0:BulkResponse");
  EXPECT_EQ(made.at("Operations.0.status"), "201") << made.raw.body;
  EXPECT_EQ(made.at("Operations.0.bulkId"), "g");
  EXPECT_EQ(made.at("Operations.1.version"), "W/\"1\"");
  EXPECT_EQ(made.at("Operations.2.status"), "200") << made.raw.body;
  auto const groups = client_.get("/Groups");
  auto const users = client_.get("/Users");
  EXPECT_EQ(groups.at("Resources.0.members.0.value"), users.at("Resources.0.id"));
  EXPECT_EQ(users.at("Resources.0.title"), "t");
  EXPECT_EQ(made.at("Operations.1.location"), users.at("Resources.0.meta.location"));
}

TEST_F(gateway_scim_bulk, resolves_groups_that_have_each_other_as_members) {
  auto const made =
      client_.post("/Bulk", bulk(R"({"method":"POST","path":"/Groups","bulkId":"a","data":)" +
                                 group("A", {"bulkId:b"}) +
                                 R"(},{"method":"POST","path":"/Groups","bulkId":"b","data":)" +
                                 group("B", {"bulkId:a"}) + "}"));
  EXPECT_EQ(made.at("Operations.0.status"), "201") << made.raw.body;
  EXPECT_EQ(made.at("Operations.1.status"), "201");
  auto const groups = client_.get("/Groups?sortBy=displayName");
  EXPECT_EQ(groups.at("Resources.0.members.0.value"), groups.at("Resources.1.id"));
  EXPECT_EQ(groups.at("Resources.1.members.0.value"), groups.at("Resources.0.id"));
}

TEST_F(gateway_scim_bulk, puts_ids_in_the_place_of_references_anywhere) {
  auto const made = client_.post(
      "/Bulk",
      bulk(
          R"({"method":"POST","path":"/Users","bulkId":"e","data":{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User",)"
          R"("urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],"userName":"e",)"
          R"("urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"manager":{"value":"bulkId:m"}}}},)"
          R"({"method":"POST","path":"/Users","bulkId":"m","data":)" +
          user("m") + "}"));
  EXPECT_EQ(made.at("Operations.0.status"), "201") << made.raw.body;
  auto const boss = client_.get("/Users?filter=userName+eq+%22m%22").at("Resources.0.id");
  EXPECT_THAT(client_.get("/Users?filter=userName+eq+%22e%22").raw.body,
              HasSubstr(R"("manager":{"value":")" + boss));
}

TEST_F(gateway_scim_bulk, continues_after_errors_up_to_the_number_that_is_allowed) {
  ASSERT_EQ(client_.post("/Users", user("taken")).status(), 201);
  auto const operations =
      R"({"method":"POST","path":"/Users","bulkId":"1","data":)" + user("one") +
      R"(},{"method":"POST","path":"/Users","bulkId":"2","data":)" + user("taken") +
      R"(},{"method":"DELETE","path":"/Users/none"},{"method":"POST","path":"/Groups","bulkId":"3","data":)" +
      group("g", {"bulkId:2"}) + R"(},{"method":"POST","path":"/Users","bulkId":"4","data":)" +
      user("four") + "}";
  auto const stopped = client_.post("/Bulk", bulk(operations, R"("failOnErrors":1,)"));
  EXPECT_EQ(stopped.status(), 200);
  EXPECT_EQ(stopped.count("Operations"), 2U);
  EXPECT_EQ(client_.get("/Users").at("totalResults"), "2");
  auto const all = client_.post("/Bulk", bulk(operations));
  EXPECT_EQ(all.count("Operations"), 5U);
  EXPECT_EQ(all.at("Operations.0.status"), "409");  // made by the first bulk request
  EXPECT_EQ(all.at("Operations.1.status"), "409");
  EXPECT_EQ(all.at("Operations.1.response.scimType"), "uniqueness");
  EXPECT_EQ(all.at("Operations.1.location"), "(none)");
  EXPECT_EQ(all.at("Operations.2.status"), "404");
  EXPECT_THAT(all.at("Operations.2.location"), HasSubstr("/Users/none"));
  EXPECT_EQ(all.at("Operations.3.status"), "409");
  EXPECT_EQ(all.at("Operations.4.status"), "201");
  EXPECT_EQ(client_.get("/Groups").at("totalResults"), "0");
}

TEST_F(gateway_scim_bulk, refuses_invalid_bulk_requests) {
  expect_error(client_.post("/Bulk", "{}"), 400, "invalidSyntax");
  expect_error(client_.post("/Bulk", bulk("", R"("failOnErrors":0,)")), 400, "invalidValue");
  auto const odd = client_.post(
      "/Bulk", bulk(R"({"method":"GET","path":"/Users"},{"method":"POST","path":"/Users","data":)" +
                    user("x") +
                    R"(},{"method":"POST","path":"/Users/x","bulkId":"1","data":{}},)"
                    R"({"method":"POST","path":"/Users","bulkId":"2","data":{}},)"
                    R"({"method":"DELETE","path":"/Users/bulkId:9"},7)"));
  EXPECT_EQ(odd.status(), 200) << odd.raw.body;
  EXPECT_EQ(odd.at("Operations.0.status"), "400");
  EXPECT_EQ(odd.at("Operations.1.status"), "400");
  EXPECT_EQ(odd.at("Operations.2.status"), "405");
  EXPECT_EQ(odd.at("Operations.3.status"), "400");
  EXPECT_EQ(odd.at("Operations.4.status"), "409");
  EXPECT_EQ(odd.at("Operations.5.status"), "400");
}

TEST(gateway_scim_options, bounds_bulk_requests) {
  data_folder const data;
  gateway const with(scim_config(data, "    scim: {bulk: {max-operations: 1}}\n"));
  scim_client const client(with);
  auto const two = client.post(
      "/Bulk",
      bulk(R"({"method":"DELETE","path":"/Users/1"},{"method":"DELETE","path":"/Users/2"})"));
  expect_error(two, 413);
  EXPECT_THAT(two.at("detail"), HasSubstr("1"));
  EXPECT_EQ(client.get("/ServiceProviderConfig").at("bulk.maxOperations"), "1");
}

}  // namespace
}  // namespace tidegate::e2e
