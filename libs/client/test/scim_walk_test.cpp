// SPDX-License-Identifier: Apache-2.0
#include <tidegate/client/scim_walk.hpp>

#include <tidegate/json/parse.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

namespace tidegate::TIDEGATE_ABI::client {
namespace {

using scim::list_head;
using scim::list_request;
using scim::pagination_method;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct answer {
  int status;
  std::string body;
};

/// A directory in memory that has of SCIM what a test lets it have.
class pretended_server {
 public:
  bool configuration = true;
  bool tells_pagination = true;
  bool cursors = true;
  bool previous_cursors = true;
  bool knows_cursor_parameter = true;  // else it is a fault
  bool sorts = true;
  bool really_sorts = true;
  bool takes_id_filters = true;
  bool follows_start_index = true;
  bool total = true;
  std::size_t page_max = 100;
  int generation = 0;  // cursors of others are lost

  std::map<std::uint64_t, std::string> resources;  // by creation
  std::vector<std::string> asked;

  void add(std::string id) { resources[++last_] = std::move(id); }
  void remove(std::string const& id) {
    std::erase_if(resources, [&](auto const& each) { return each.second == id; });
  }

  [[nodiscard]] auto ask(std::string const& url) -> answer {
    asked.push_back(url);
    if (url.ends_with("/ServiceProviderConfig")) {
      return configuration ? answer{200, configuration_body()} : answer{404, ""};
    }
    auto const query = url.substr(url.find('?') + 1);
    auto const request = scim::parse_list_query(query, {});
    if (!request) {
      return refusal("invalidValue");
    }
    if (request->method == pagination_method::cursor && !knows_cursor_parameter) {
      return refusal("invalidValue");
    }
    if (!request->sort_by.empty() && !sorts) {
      return refusal("invalidValue");
    }
    if (request->filter && !takes_id_filters) {
      return refusal("invalidFilter");
    }
    return list(*request);
  }

 private:
  struct place {
    bool backward = false;
    std::string id;          // when sorted
    std::uint64_t made = 0;  // when not
  };
  using entry = std::pair<std::uint64_t, std::string>;

  static auto refusal(std::string const& type) -> answer {
    return {400, R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"status":"400",)"
                 R"("scimType":")" +
                     type + "\"}"};
  }

  [[nodiscard]] auto configuration_body() const -> std::string {
    auto const word = [](bool value) { return std::string(value ? "true" : "false"); };
    std::string out =
        R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"],)"
        R"("sort":{"supported":)" +
        word(sorts) + R"(},"filter":{"supported":true})";
    if (tells_pagination) {
      out += R"(,"pagination":{"cursor":)" + word(cursors) + R"(,"index":true,"maxPageSize":)" +
             std::to_string(page_max) + "}";
    }
    return out + "}";
  }

  [[nodiscard]] auto list(list_request const& request) const -> answer {
    bool const by_id = really_sorts && !request.sort_by.empty();
    std::vector<entry> all(resources.begin(), resources.end());
    if (request.filter) {
      bool const above = request.filter->find("id gt ") != std::string::npos;
      auto const begin = request.filter->rfind("id ") + 7;
      auto const bound = request.filter->substr(begin, request.filter->rfind('"') - begin);
      std::erase_if(all, [&](entry const& each) {
        return above ? each.second <= bound : each.second >= bound;
      });
    }
    if (by_id) {
      std::ranges::sort(all, {}, &entry::second);
      if (request.descending) {
        std::ranges::reverse(all);
      }
    }
    auto const count = std::min<std::size_t>(request.count.value_or(page_max), page_max);
    list_head head;
    if (total) {
      head.total_results = all.size();
    }
    std::size_t begin = 0;
    std::size_t end = 0;
    if (request.method == pagination_method::cursor && cursors) {
      if (request.cursor.empty()) {
        end = std::min(count, all.size());
      } else {
        auto const dot = request.cursor.find('.');
        if (request.cursor.substr(0, dot) != std::to_string(generation)) {
          return refusal("expiredCursor");
        }
        auto const rest = request.cursor.substr(dot + 1);
        bool const back = rest.starts_with("b");
        auto const key = rest.substr(1);
        auto const is_before = [&](entry const& each) {  // at or before the key
          if (by_id) {
            return request.descending ? each.second >= key : each.second <= key;
          }
          return each.first <= std::stoull(key);
        };
        auto const at = static_cast<std::size_t>(std::ranges::count_if(all, is_before));
        if (back) {
          auto const has =
              static_cast<std::size_t>(std::ranges::count_if(all, [&](entry const& each) {
                return is_before(each) &&
                       (by_id ? each.second != key : each.first != std::stoull(key));
              }));
          end = has;
          begin = has > count ? has - count : 0;
        } else {
          begin = at;
          end = std::min(at + count, all.size());
        }
      }
      auto const cursor = [&](std::string const& way, entry const& of) {
        return std::to_string(generation) + "." + way +
               (by_id ? of.second : std::to_string(of.first));
      };
      if (end < all.size() && end > begin) {
        head.next_cursor = cursor("f", all[end - 1]);
      }
      if (begin > 0 && end > begin && previous_cursors) {
        head.previous_cursor = cursor("b", all[begin]);
      }
    } else {
      begin = follows_start_index ? std::min<std::size_t>(request.start_index - 1, all.size()) : 0;
      end = std::min(begin + count, all.size());
      head.start_index = begin + 1;
    }
    std::vector<std::string> texts;
    for (auto i = begin; i < end; ++i) {
      texts.push_back("{\"id\":\"" + all[i].second + "\"}");
    }
    std::string body;
    scim::append_list_response(body, head,
                               std::vector<std::string_view>(texts.begin(), texts.end()));
    return {200, body};
  }

  std::uint64_t last_ = 0;
};

auto query(std::uint32_t page_size = 2) -> scim_query {
  return {.url = "https://a.example/scim/v2/Users", .page_size = page_size};
}

/// Takes the order of a few ids for the order of all.
constexpr scim_walk_options trusting{.order_proof = 2};

auto id_of(json::value const& resource) -> std::string {
  return *resource.find("id")->if_string();
}

/// What a walk gives up to its end, or to `most`; `between` is called before each request. An error
/// is its name at the end.
auto given(
    scim_walk& walk, pretended_server& server, std::function<void()> const& between = [] {},
    std::size_t most = 10'000) -> std::vector<std::string> {
  std::vector<std::string> ids;
  while (ids.size() < most) {
    auto const step = walk.next();
    if (!step) {
      ids.emplace_back(name_of(step.error().fault));
      return ids;
    }
    if (auto const* const resource = std::get_if<json::value const*>(&*step)) {
      ids.push_back(id_of(**resource));
    } else if (auto const* const wanted = std::get_if<walk_request>(&*step)) {
      between();
      auto const got = server.ask(wanted->url);
      walk.take(got.status, got.body);
    } else {
      return ids;
    }
  }
  return ids;
}

/// `a`, `b`, `c` and so on.
auto with(std::size_t size) -> pretended_server {
  pretended_server server;
  for (std::size_t i = 0; i < size; ++i) {
    server.add(std::string(1, static_cast<char>('a' + i)));
  }
  return server;
}

TEST(client_scim_walk, follows_next_cursor_to_the_end) {
  auto server = with(5);
  scim_walk walk(query(), trusting);
  EXPECT_THAT(given(walk, server), ElementsAre("a", "b", "c", "d", "e"));
  auto const base = std::string("https://a.example/scim/v2/");
  EXPECT_THAT(server.asked,
              ElementsAre(base + "ServiceProviderConfig", base + "Users?sortBy=id&cursor&count=2",
                          base + "Users?sortBy=id&cursor=0.fb&count=2",
                          base + "Users?sortBy=id&cursor=0.fd&count=2"));
  EXPECT_EQ(walk.total_results(), 5U);
  EXPECT_TRUE(std::holds_alternative<walk_end>(*walk.next())) << "and stays there";
}

TEST(client_scim_walk, says_with_every_page_what_is_wanted) {
  pretended_server server = with(3);
  auto wanted = query();
  wanted.url += "?x=1#y";
  wanted.filter = "id gt \"a\"";
  wanted.sort_by = "userName";
  wanted.descending = true;
  wanted.attributes = {"userName", "emails"};
  wanted.page_size = 0;
  scim_walk walk(wanted, {.discover = false});
  EXPECT_EQ(std::get<walk_request>(*walk.next()).url,
            "https://a.example/scim/v2/"
            "Users?x=1&attributes=userName,emails&filter=id%20gt%20%22a%22&sortBy=userName&"
            "sortOrder=descending&cursor");
}

TEST(client_scim_walk, goes_by_index_when_the_server_says_that_it_has_no_cursors) {
  auto server = with(5);
  server.cursors = false;
  server.knows_cursor_parameter = false;
  scim_walk walk(query(), trusting);
  EXPECT_THAT(given(walk, server), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(server.asked[1], HasSubstr("startIndex=1&count=2"));
  EXPECT_THAT(server.asked[3], HasSubstr("startIndex=5&count=2"));
  EXPECT_EQ(server.asked.size(), 4U);
}

TEST(client_scim_walk, goes_by_index_when_the_first_answer_has_no_cursor) {
  auto server = with(5);
  server.configuration = false;
  server.cursors = false;
  scim_walk walk(query(), trusting);
  EXPECT_THAT(given(walk, server), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(server.asked[1], HasSubstr("?cursor&count=2"));
  EXPECT_THAT(server.asked[2], HasSubstr("?startIndex=3&count=2"));
}

TEST(client_scim_walk, goes_by_index_when_a_cursor_is_refused_at_first) {
  auto server = with(3);
  server.configuration = false;
  server.knows_cursor_parameter = false;
  server.cursors = false;
  scim_walk walk(query(), trusting);
  EXPECT_THAT(given(walk, server), ElementsAre("a", "b", "c"));
}

TEST(client_scim_walk, goes_by_index_without_a_total_until_a_page_is_empty) {
  auto server = with(4);
  server.cursors = false;
  server.total = false;
  scim_walk walk(query(), trusting);
  EXPECT_THAT(given(walk, server), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(server.asked.back(), HasSubstr("startIndex=5"));
}

TEST(client_scim_walk, follows_a_server_that_gives_less_than_it_is_asked_for) {
  for (bool const cursors : {true, false}) {
    auto server = with(7);
    server.cursors = cursors;
    server.tells_pagination = false;
    server.page_max = 3;
    scim_walk walk(query(5));
    EXPECT_THAT(given(walk, server), ElementsAre("a", "b", "c", "d", "e", "f", "g"));
  }
}

TEST(client_scim_walk, asks_for_no_more_than_the_server_says_it_gives) {
  auto server = with(3);
  server.page_max = 2;
  scim_walk walk(query(500));
  EXPECT_THAT(given(walk, server), ElementsAre("a", "b", "c"));
  EXPECT_THAT(server.asked[1], HasSubstr("count=2"));
}

TEST(client_scim_walk, takes_the_cursors_of_a_server_that_has_nothing_else) {
  auto const page = [](std::string const& id, std::string const& next) {
    return R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],"totalResults":2,)" +
           (next.empty() ? std::string() : R"("nextCursor":")" + next + "\",") +
           R"("Resources":[{"id":")" + id + "\"}]}";
  };
  scim_position place{.method = pagination_method::index};
  scim_walk walk(query(0), place);
  walk.take(200, page("a", "x"));
  EXPECT_EQ(id_of(*std::get<json::value const*>(*walk.next())), "a");
  EXPECT_THAT(std::get<walk_request>(*walk.next()).url, HasSubstr("?cursor=x"));
  walk.take(200, page("b", ""));
  EXPECT_EQ(id_of(*std::get<json::value const*>(*walk.next())), "b");
  EXPECT_TRUE(std::holds_alternative<walk_end>(*walk.next()));
}

TEST(client_scim_walk, leaves_out_the_order_that_it_chose_where_it_is_refused) {
  auto server = with(3);
  server.sorts = false;
  scim_walk walk(query(), scim_position{.by_id = true});
  EXPECT_THAT(given(walk, server), ElementsAre("a", "b", "c"));
}

TEST(client_scim_walk, ends_with_the_error_of_a_filter_that_is_wrong) {
  auto server = with(3);
  server.takes_id_filters = false;
  auto wanted = query();
  wanted.filter = "nonsense";
  scim_walk walk(wanted);
  EXPECT_THAT(given(walk, server), ElementsAre("refused"));
  EXPECT_EQ(walk.next().error(), (scim_error{.fault = scim_fault::refused,
                                             .status = 400,
                                             .type = scim::scim_type::invalid_filter}));
  EXPECT_EQ(to_string(walk.next().error()), "the server answered 400 invalidFilter");
}

TEST(client_scim_walk, goes_on_behind_the_last_id_when_its_cursor_is_lost) {
  auto server = with(7);
  scim_walk walk(query(), trusting);
  std::size_t requests = 0;
  EXPECT_THAT(given(walk, server,
                    [&] {
                      if (++requests == 4) {
                        ++server.generation;
                        server.remove("d");  // the last one that was given
                      }
                    }),
              ElementsAre("a", "b", "c", "d", "e", "f", "g"));
  EXPECT_THAT(server.asked[4], HasSubstr("?filter=id%20gt%20%22d%22&sortBy=id&cursor&count=2"));
  EXPECT_EQ(walk.restarts(), 1U);
}

TEST(client_scim_walk, keeps_the_filter_when_it_goes_on_behind_an_id) {
  auto wanted = query();
  wanted.filter = "active eq true or x pr";
  scim_walk walk(wanted, scim_position{.method = pagination_method::cursor,
                                       .cursor = "lost",
                                       .by_id = true,
                                       .edge = "a\"b",
                                       .ids_in_order = 8});
  walk.take(410, "");
  EXPECT_THAT(
      std::get<walk_request>(*walk.next()).url,
      HasSubstr("?filter=%28active%20eq%20true%20or%20x%20pr%29%20and%20id%20gt%20%22a%5C%22b"
                "%22&sortBy=id&cursor"));
}

TEST(client_scim_walk, starts_again_where_ids_do_not_help_and_gives_nothing_twice) {
  enum class why { does_not_sort, does_not_filter, sorts_by_something_else, asked_otherwise };
  for (auto const each : {why::does_not_sort, why::does_not_filter, why::sorts_by_something_else,
                          why::asked_otherwise}) {
    pretended_server server;
    for (auto const* const id : {"d", "b", "a", "e", "c"}) {
      server.add(id);
    }
    auto wanted = query();
    server.sorts = each != why::does_not_sort;
    server.takes_id_filters = each != why::does_not_filter;
    server.really_sorts = each == why::does_not_filter;
    wanted.sort_by = each == why::asked_otherwise ? "userName" : "";
    scim_walk walk(wanted, trusting);
    std::size_t requests = 0;
    auto ids = given(walk, server, [&] { server.generation += ++requests == 4 ? 1 : 0; });
    EXPECT_EQ(walk.restarts(), each == why::does_not_filter ? 2U : 1U);
    std::ranges::sort(ids);
    EXPECT_THAT(ids, ElementsAre("a", "b", "c", "d", "e"));
  }
}

TEST(client_scim_walk, gives_up_when_cursors_never_last) {
  auto server = with(9);
  server.sorts = false;
  scim_walk walk(query(), trusting);
  auto const ids = given(walk, server, [&] { ++server.generation; });
  EXPECT_THAT(ids, ElementsAre("a", "b", "place-lost"));
  EXPECT_EQ(walk.next().error().type, scim::scim_type::expired_cursor);
  EXPECT_EQ(server.asked.size(), 2U + 2 * 8U + 1);
}

TEST(client_scim_walk, comes_through_by_ids_when_cursors_never_last) {
  auto server = with(9);
  scim_walk walk(query(), trusting);
  auto const ids = given(walk, server, [&] { ++server.generation; });
  EXPECT_THAT(ids, ElementsAre("a", "b", "c", "d", "e", "f", "g", "h", "i"));
}

TEST(client_scim_walk, cannot_start_again_when_it_has_forgotten_what_it_gave) {
  auto server = with(9);
  server.sorts = false;
  scim_walk walk(query(), {.seen_max = 3});
  std::size_t requests = 0;
  auto const ids = given(walk, server, [&] { server.generation += ++requests == 4 ? 1 : 0; });
  EXPECT_THAT(ids, ElementsAre("a", "b", "c", "d", "place-lost"));
}

TEST(client_scim_walk, goes_through_again_by_index_when_something_was_deleted) {
  auto server = with(6);
  server.cursors = false;
  server.sorts = false;
  scim_walk walk(query(), trusting);
  std::size_t requests = 0;
  auto const ids = given(walk, server, [&] {
    if (++requests == 3) {
      server.remove("a");  // so that c moves to the page that was read
    }
  });
  EXPECT_THAT(ids, ElementsAre("a", "b", "d", "e", "f", "c"));
}

TEST(client_scim_walk, goes_on_by_id_with_pages_by_index_when_something_was_deleted) {
  auto server = with(6);
  server.cursors = false;
  scim_walk walk(query(), trusting);
  std::size_t requests = 0;
  auto const ids = given(walk, server, [&] {
    if (++requests == 3) {
      server.remove("a");
    }
  });
  EXPECT_THAT(ids, ElementsAre("a", "b", "c", "d", "e", "f"));
}

TEST(client_scim_walk, goes_through_again_by_index_when_there_are_fewer_than_the_server_says) {
  auto server = with(4);
  server.cursors = false;
  server.sorts = false;
  scim_walk walk(query(), trusting);
  std::size_t requests = 0;
  auto const ids = given(walk, server, [&] {
    if (++requests == 3) {
      server.remove("a");  // c moves to the page that was read
      server.add("x");     // and the total stays as it was
    }
  });
  EXPECT_THAT(ids, ElementsAre("a", "b", "d", "x"));
  EXPECT_EQ(server.asked.size(), 3U) << "that is what cannot be seen";
  auto other = with(4);
  other.cursors = false;
  other.sorts = false;
  scim_walk again(query(), trusting);
  requests = 0;
  EXPECT_THAT(given(again, other,
                    [&] {
                      if (++requests == 3) {
                        other.resources[0] = "0";  // in front of all
                      }
                    }),
              ElementsAre("a", "b", "c", "d", "0"));
}

TEST(client_scim_walk, goes_by_id_where_the_server_does_not_follow_start_index) {
  auto server = with(7);
  server.cursors = false;
  server.follows_start_index = false;
  scim_walk walk(query(), trusting);
  EXPECT_THAT(given(walk, server), ElementsAre("a", "b", "c", "d", "e", "f", "g"));
}

TEST(client_scim_walk, does_not_take_a_first_page_for_all_of_them) {
  auto server = with(7);
  server.cursors = false;
  server.follows_start_index = false;
  server.sorts = false;
  scim_walk walk(query(), trusting);
  EXPECT_THAT(given(walk, server), ElementsAre("a", "b", "stuck"));
  EXPECT_EQ(to_string(walk.next().error()),
            "the server brings nothing new and is not at its end: it does not follow startIndex");
}

TEST(client_scim_walk, turns_back_by_previous_cursor) {
  auto server = with(6);
  scim_walk walk(query(), trusting);
  EXPECT_THAT(given(
                  walk, server, [] {}, 5),
              ElementsAre("a", "b", "c", "d", "e"));
  walk.turn();
  EXPECT_THAT(given(walk, server), ElementsAre("e", "d", "c", "b", "a"));
  walk.turn();
  EXPECT_THAT(given(walk, server), ElementsAre("a", "b", "c", "d", "e", "f"));
}

TEST(client_scim_walk, turns_back_at_a_border_of_pages_and_before_an_answer) {
  auto server = with(6);
  scim_walk walk(query(), trusting);
  EXPECT_THAT(given(
                  walk, server, [] {}, 4),
              ElementsAre("a", "b", "c", "d"));
  EXPECT_TRUE(std::holds_alternative<walk_request>(*walk.next()));
  walk.turn();
  EXPECT_THAT(given(walk, server), ElementsAre("d", "c", "b", "a"));
}

TEST(client_scim_walk, turns_back_by_index) {
  auto server = with(7);
  server.cursors = false;
  server.sorts = false;
  scim_walk walk(query(3));
  EXPECT_EQ(given(walk, server).size(), 7U);
  walk.turn();
  EXPECT_THAT(given(walk, server), ElementsAre("g", "f", "e", "d", "c", "b", "a"));
  walk.turn();
  EXPECT_THAT(given(walk, server), ElementsAre("a", "b", "c", "d", "e", "f", "g"));
}

TEST(client_scim_walk, goes_back_by_ids_when_cursors_are_lost_or_lead_forward_only) {
  for (bool const lead_back : {true, false}) {
    auto server = with(7);
    server.previous_cursors = lead_back;
    scim_walk walk(query(), trusting);
    EXPECT_EQ(given(walk, server).size(), 7U);
    ++server.generation;
    walk.turn();
    EXPECT_THAT(given(walk, server), ElementsAre("g", "f", "e", "d", "c", "b", "a"));
    EXPECT_EQ(walk.restarts(), 1U);
    // Back at the end of a query that goes down, there is a way up again.
    walk.turn();
    EXPECT_THAT(given(walk, server), ElementsAre("a", "b", "c", "d", "e", "f", "g"));
  }
}

TEST(client_scim_walk, says_when_there_is_no_way_back) {
  auto server = with(5);
  server.previous_cursors = false;
  server.sorts = false;
  scim_walk walk(query(), trusting);
  EXPECT_EQ(given(walk, server).size(), 5U);
  walk.turn();
  EXPECT_THAT(given(walk, server), ElementsAre("e", "no-way-back"));
  scim_walk other(query());
  other.turn();
  EXPECT_THAT(given(other, server), ElementsAre("no-way-back"));
}

TEST(client_scim_walk, gives_what_a_page_that_is_filled_up_repeats_only_once) {
  auto const page = [](std::string const& ids, std::string const& cursors) {
    std::string out;
    for (auto const id : ids) {
      out += (out.empty() ? "" : ",") + std::string(R"({"id":")") + id + "\"}";
    }
    return R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],)" + cursors +
           R"("Resources":[)" + out + "]}";
  };
  scim_walk walk(query(3), {.discover = false});
  (void)walk.next();
  walk.take(200, page("abc", R"("nextCursor":"n",)"));
  for (int i = 0; i < 4; ++i) {
    (void)walk.next();
  }
  walk.take(200, page("def", R"("previousCursor":"p",)"));
  (void)walk.next();
  walk.turn();
  EXPECT_EQ(id_of(*std::get<json::value const*>(*walk.next())), "d");
  EXPECT_THAT(std::get<walk_request>(*walk.next()).url, HasSubstr("cursor=p"));
  walk.take(200, page("cde", R"("nextCursor":"n",)"));  // a and b are gone
  EXPECT_EQ(id_of(*std::get<json::value const*>(*walk.next())), "c");
  EXPECT_TRUE(std::holds_alternative<walk_end>(*walk.next()));
}

TEST(client_scim_walk, goes_on_in_another_process) {
  for (bool const cursors : {true, false}) {
    for (bool const loses : {true, false}) {
      auto server = with(8);
      server.cursors = cursors;
      scim_walk walk(query(), trusting);
      auto ids = given(
          walk, server, [] {}, 4);
      ASSERT_TRUE(std::holds_alternative<walk_request>(*walk.next()));
      auto const kept = json::parse(to_json(walk.position()));
      ASSERT_TRUE(kept);
      ASSERT_EQ(scim_position_of(*kept), walk.position());
      server.generation += loses ? 1 : 0;
      scim_walk other(query(), *scim_position_of(*kept), trusting);
      for (auto const& id : ids) {
        other.has_seen(id);
      }
      std::ranges::copy(given(other, server), std::back_inserter(ids));
      EXPECT_THAT(ids, ElementsAre("a", "b", "c", "d", "e", "f", "g", "h"));
    }
  }
  EXPECT_FALSE(scim_position_of(json::value(1)));
}

TEST(client_scim_walk, remembers_in_another_process_that_something_was_deleted) {
  auto server = with(8);
  server.cursors = false;
  server.sorts = false;
  scim_walk walk(query(), trusting);
  std::size_t requests = 0;
  auto ids = given(
      walk, server,
      [&] {
        if (++requests == 3) {
          server.remove("a");  // so that c moves to the page that was read
        }
      },
      4);
  EXPECT_THAT(ids, ElementsAre("a", "b", "d", "e"));
  ASSERT_TRUE(std::holds_alternative<walk_request>(*walk.next()));
  server.add("x");  // else there are fewer than the server says, which is another way to see it
  auto const kept = scim_position_of(*json::parse(to_json(walk.position())));
  ASSERT_EQ(kept, walk.position());
  scim_walk other(query(), *kept, trusting);
  for (auto const& id : ids) {
    other.has_seen(id);
  }
  std::ranges::copy(given(other, server), std::back_inserter(ids));
  EXPECT_THAT(ids, ElementsAre("a", "b", "d", "e", "f", "g", "h", "x", "c"));
}

TEST(client_scim_walk, takes_no_cursor_or_id_that_could_not_be_sent_back) {
  auto const page = [](std::string const& name, std::size_t octets, std::string const& id) {
    return R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],")" + name +
           "\":\"" + std::string(octets, 'x') + R"(","Resources":[{"id":")" + id + "\"}]}";
  };
  constexpr std::size_t most = scim_walk_options{}.text_octets_max;
  for (auto const* const name : {"nextCursor", "previousCursor"}) {
    for (bool const is_long : {true, false}) {
      scim_walk walk(query(), {.discover = false});
      walk.take(200, page(name, most + (is_long ? 1 : 0), "a"));
      EXPECT_EQ(walk.next().has_value(), !is_long) << name;
    }
  }
  scim_walk walk(query(), {.discover = false});
  walk.take(200, page("nextCursor", 1, std::string(most + 1, 'a')));
  ASSERT_FALSE(walk.next());
  EXPECT_EQ(walk.next().error().fault, scim_fault::invalid_answer);
}

TEST(client_scim_walk, does_not_take_the_end_of_pages_for_the_end_when_there_is_more) {
  // It does not know startIndex, and does not say so.
  std::string const page =
      R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],"totalResults":5,)"
      R"("Resources":[{"id":"a"},{"id":"b"}]})";
  scim_walk walk(query(), {.discover = false});
  std::size_t requests = 0;
  std::size_t got = 0;
  for (;;) {
    auto const step = walk.next();
    if (!step) {
      EXPECT_EQ(step.error(),
                (scim_error{.fault = scim_fault::stuck,
                            .detail = "it says that there are 5 resources and gives 2"}));
      break;
    }
    ASSERT_FALSE(std::holds_alternative<walk_end>(*step));
    if (std::holds_alternative<walk_request>(*step)) {
      ++requests;
      walk.take(200, page);
    } else {
      ++got;
    }
  }
  EXPECT_EQ(requests, 9U) << "three times three pages";
  EXPECT_EQ(got, 2U);
}

TEST(client_scim_walk, does_not_blame_a_server_for_what_others_make_meanwhile) {
  auto server = with(4);
  server.cursors = false;
  server.sorts = false;
  scim_walk walk(query(), trusting);
  std::uint64_t number = 1000;
  std::size_t requests = 0;
  auto const ids = given(walk, server, [&] {
    if (++requests > 2) {  // always in front of what is read
      server.resources[--number - 1000] = "n" + std::to_string(requests);
    }
  });
  EXPECT_THAT(ids, testing::IsSupersetOf({"a", "b", "c", "d"}));
  EXPECT_THAT(ids, Not(testing::Contains("stuck")));
}

TEST(client_scim_walk, does_not_follow_a_cursor_that_leads_to_itself) {
  scim_walk walk(query(), {.discover = false});
  std::string const page =
      R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],"nextCursor":"x",)"
      R"("Resources":[{"id":"a"}]})";
  std::size_t requests = 0;
  for (;;) {
    auto const step = walk.next();
    if (!step) {
      EXPECT_EQ(step.error().fault, scim_fault::stuck);
      break;
    }
    if (std::holds_alternative<walk_request>(*step)) {
      ++requests;
      walk.take(200, page);
    }
  }
  EXPECT_EQ(requests, 2U);
}

TEST(client_scim_walk, does_not_follow_empty_pages_for_ever) {
  scim_walk walk(query(), {.discover = false, .barren_pages_max = 10});
  for (int requests = 0;; ++requests) {
    auto const step = walk.next();
    if (!step) {
      EXPECT_EQ(step.error().fault, scim_fault::stuck);
      EXPECT_EQ(requests, 11);
      break;
    }
    walk.take(200, R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],)"
                   R"("nextCursor":")" +
                       std::to_string(requests) + R"("})");
  }
}

TEST(client_scim_walk, does_not_ask_for_ever_where_every_page_by_index_is_the_first) {
  scim_walk walk(query(), {.discover = false, .barren_pages_max = 10});
  std::size_t got = 0;
  for (int requests = 0;;) {
    auto const step = walk.next();
    if (!step) {
      EXPECT_EQ(step.error().fault, scim_fault::stuck);
      EXPECT_EQ(requests, 12);
      break;
    }
    if (std::holds_alternative<walk_request>(*step)) {
      ++requests;
      walk.take(200, R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],)"
                     R"("totalResults":1000000,"Resources":[{"id":"a"},{"id":"b"}]})");
    } else {
      ++got;
    }
  }
  EXPECT_EQ(got, 2U);
}

TEST(client_scim_walk, ends_with_an_answer_that_is_not_a_list_of_resources) {
  for (std::string const body :
       {"", "[]", "{}", R"({"Resources":1})",
        R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],"Resources":[1]})"}) {
    scim_walk walk(query(), {.discover = false});
    walk.take(200, body);
    ASSERT_FALSE(walk.next()) << body;
    EXPECT_EQ(walk.next().error().fault, scim_fault::invalid_answer);
  }
  scim_walk walk(query(), {.discover = false, .answer = {.octets_max = 10}});
  for (int i = 0; i < 20 && walk.next(); ++i) {
    walk.take(200, R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"]})");
  }
  ASSERT_FALSE(walk.next()) << "it is longer than it may be, also with one resource";
  EXPECT_EQ(walk.next().error().fault, scim_fault::answer_too_large);
}

TEST(client_scim_walk, says_why_a_server_refused) {
  EXPECT_EQ(refusal_of(429, R"({"type":"about:blank","title":"Too Many"})").detail, "Too Many");
  EXPECT_EQ(refusal_of(502, "<html>").detail, "");
  scim_walk walk(query(), {.discover = false});
  walk.take(client_error{.fault = client_fault::cannot_connect, .detail = "x"});
  EXPECT_EQ(to_string(walk.next().error()), "there is no answer: cannot connect: x");
}

TEST(client_scim_walk, looks_for_the_configuration_beside_the_resources) {
  for (auto const& [url, wanted] : std::map<std::string, std::string>{
           {"https://a/scim/v2/Users", "https://a/scim/v2/ServiceProviderConfig"},
           {"https://a/scim/v2/Users/?a=b/c", "https://a/scim/v2/ServiceProviderConfig"},
           {"https://a/Users#x", "https://a/ServiceProviderConfig"},
           {"https://a", "https://a/ServiceProviderConfig"},
           {"https://a/", "https://a/ServiceProviderConfig"}}) {
    scim_walk walk({.url = url});
    EXPECT_EQ(std::get<walk_request>(*walk.next()).url, wanted) << url;
  }
}

/// Whatever a server can do, and whatever is made and lost meanwhile: what is there throughout
/// comes once.
TEST(client_scim_walk, gives_what_is_there_throughout_exactly_once) {
  std::mt19937 random(7);
  auto const coin = [&](unsigned one_in) { return random() % one_in == 0; };
  for (int round = 0; round < 3'000; ++round) {
    pretended_server server;
    server.configuration = !coin(4);
    server.tells_pagination = !coin(4);
    server.cursors = !coin(3);
    server.knows_cursor_parameter = server.cursors || coin(2);
    server.previous_cursors = coin(2);
    server.sorts = coin(2);
    server.really_sorts = !coin(3);
    server.takes_id_filters = !coin(3);
    server.total = !coin(4);
    server.page_max = 1 + random() % 5;
    bool const is_quiet = !server.cursors;  // by index nothing can be promised when others write
    auto const name = [&] { return std::to_string(random() % 900 + 100); };
    std::set<std::string> lasting;
    for (auto size = random() % 30; size > 0; --size) {
      if (auto const id = name(); lasting.insert(id).second) {
        server.add(id);
      }
    }
    scim_walk walk(query(1 + random() % 4));
    std::set<std::string> others;
    auto const ids = given(walk, server, [&] {
      server.generation += server.generation < 4 && coin(8) ? 1 : 0;
      if (is_quiet) {
        return;
      }
      if (auto const id = name(); coin(3) && !lasting.contains(id) && others.insert(id).second) {
        server.add(id);
      } else if (coin(3) && !others.empty()) {
        server.remove(*others.begin());
      }
    });
    std::map<std::string, int> times;
    for (auto const& id : ids) {
      EXPECT_EQ(++times[id], 1) << "in round " << round;
    }
    for (auto const& id : lasting) {
      EXPECT_EQ(times[id], 1) << id << " in round " << round;
    }
    EXPECT_EQ(times.count("refused") + times.count("place-lost") + times.count("stuck"), 0U)
        << "in round " << round;
    if (testing::Test::HasFailure()) {
      break;
    }
  }
}

TEST(client_scim_walk, asks_for_half_as_many_while_an_answer_is_too_large) {
  scim_walk walk({.url = "https://example.com/Users", .page_size = 8}, {.discover = false});
  auto const url_of = [&] { return std::get<walk_request>(walk.next().value()).url; };
  EXPECT_THAT(url_of(), testing::HasSubstr("count=8"));
  walk.take(client_error{.fault = client_fault::response_too_large});
  EXPECT_THAT(url_of(), testing::HasSubstr("count=4"));
  walk.take(400, R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"status":"400",)"
                 R"("scimType":"tooMany"})");
  EXPECT_THAT(url_of(), testing::HasSubstr("count=2"));
  walk.take(client_error{.fault = client_fault::response_too_large});
  EXPECT_THAT(url_of(), testing::HasSubstr("count=1"));
  walk.take(client_error{.fault = client_fault::response_too_large});
  auto const end = walk.next();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().fault, scim_fault::answer_too_large);
  EXPECT_EQ(name_of(end.error().fault), "answer-too-large");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::client
