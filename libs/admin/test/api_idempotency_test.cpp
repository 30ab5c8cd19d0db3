// SPDX-License-Identifier: Apache-2.0
#include "api/api_idempotency.hpp"

#include "endpoint_fixture.hpp"

#include <tidegate/config/key_scope.hpp>
#include <tidegate/store/memory_idempotency_store.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using idempotency::lookup_key;
using idempotency::record;
using idempotency::record_state;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using enum wire::method;

constexpr std::string_view base = "/api/v1/idempotency";
constexpr idempotency::wall_time begin =
    std::chrono::sys_days{std::chrono::year{2026} / 1 / 2} + 3h + 4min + 5s;

/// Gives no answer to anything.
class store_that_fails final : public store::idempotency_store {
 public:
  void find(lookup_key const&, std::move_only_function<void(store::find_answer)> to) override {
    to(failure(down()));
  }
  void apply(idempotency::change, std::move_only_function<void(store::apply_answer)> to) override {
    to(failure(down()));
  }
  void list_unknown(std::size_t, std::move_only_function<void(store::list_answer)> to) override {
    to(failure(down()));
  }
  void sweep(idempotency::wall_time, std::size_t) override {}
  [[nodiscard]] auto used() const -> usage override { return {}; }

 private:
  static auto down() -> store::store_error {
    return {store::store_fault::unavailable, "a-secret-place is down"};
  }
};

class admin_api_idempotency : public testing::Test {
 protected:
  admin_api_idempotency() {
    use(std::make_unique<store::memory_idempotency_store>(
        store::memory_idempotency_store::options{}));
  }

  void use(std::unique_ptr<store::idempotency_store> in) {
    keys =
        std::make_shared<idempotency_service>(std::move(in), std::array<std::byte, 32>{}, "",
                                              std::make_shared<slewed_clock>(begin, loop->now()));
    keys->hosts.add("a.example");
  }

  auto ask(wire::method method, std::string_view target, std::string_view content = "",
           std::string_view content_type = json_content) -> admin_answer {
    return answer_of(*loop, [&](auto reply) {
      answer_idempotency(*loop, keys, make_request(method, target, content, content_type),
                         std::move(reply));
    });
  }
  auto look_up(std::string_view key) -> admin_answer {
    return ask(get, std::string(base) + "?scope=Bearer+x&key=" + std::string(key));
  }

  /// The id of a key of the scope `Bearer x`.
  [[nodiscard]] auto id_of(std::string_view key, std::string_view host = "a.example") const
      -> lookup_key {
    std::string scope;
    append_scope_value(scope, host);
    append_scope_value(scope, "Bearer x");
    return keys->secret.lookup(scope, key);
  }
  [[nodiscard]] auto path_of(std::string_view key) const -> std::string {
    return std::string(base) + "/" + to_string(id_of(key));
  }
  void add(lookup_key const& key, record const& stored) const {
    idempotency::change change{.key = key, .next = stored};
    if (stored.state == record_state::completed) {
      change.response = idempotency::stored_response{.status = stored.status,
                                                     .fields = {{"X-Token", "a-secret-field"}},
                                                     .body = "a-secret-body"};
    }
    bool made = false;
    keys->store->apply(std::move(change),
                       [&](store::apply_answer const& answer) { made = answer && answer->made; });
    EXPECT_TRUE(made);
  }
  static auto stored(record_state state) -> record {
    record made{.state = state,
                .token = 7,
                .created = begin,
                .changed = begin,
                .ttl = 24h,
                .tombstone = 24h};
    switch (state) {
      case record_state::dispatched: made.lease_until = begin + 60s; break;
      case record_state::completed:
        made.status = 201;
        made.replayable = true;
        break;
      case record_state::unknown: made.reason = idempotency::unknown_reason::no_answer; break;
      case record_state::tombstone: made.status = 201; break;
    }
    return made;
  }

  std::unique_ptr<engine::loop> loop = make_loop();
  std::shared_ptr<idempotency_service> keys;
};

TEST_F(admin_api_idempotency, names_the_methods_of_a_key) {
  struct row {
    std::string_view name;
    wire::method method;
    std::string path;
    std::string_view allow;
  };
  for (auto const& [name, method, path, allow] : std::vector<row>{
           {"one key", put, path_of("k"), "GET, HEAD, DELETE"},
           {"a resolution", get, path_of("k") + "/resolve", "POST"},
           {"a resolution by another method", other, path_of("k") + "/resolve", "POST"},
       }) {
    SCOPED_TRACE(name);
    expect_not_allowed(ask(method, path), allow);
  }
}

TEST_F(admin_api_idempotency, shows_each_state_as_it_is) {
  struct row {
    record_state state;
    std::string_view shown;  // behind the scope
  };
  for (auto const& [state, shown] : {
           row{record_state::dispatched,
               R"("state":"dispatched","attempt":1,"replayable":false,)"
               R"("created":"2026-01-02T03:04:05Z","changed":"2026-01-02T03:04:05Z",)"
               R"("lease-until":"2026-01-02T03:05:05Z"})"},
           row{record_state::completed,
               R"("state":"completed","attempt":1,"status":201,"replayable":true,)"
               R"("created":"2026-01-02T03:04:05Z","changed":"2026-01-02T03:04:05Z",)"
               R"("replayed-until":"2026-01-03T03:04:05Z",)"
               R"("remembered-until":"2026-01-04T03:04:05Z"})"},
           row{record_state::unknown,
               R"("state":"unknown","reason":"no-answer","attempt":1,"replayable":false,)"
               R"("created":"2026-01-02T03:04:05Z","changed":"2026-01-02T03:04:05Z",)"
               R"("remembered-until":"2026-01-04T03:04:05Z"})"},
       }) {
    auto const name = std::string(name_of(state));
    SCOPED_TRACE(name);
    add(id_of(name), stored(state));
    auto const found = look_up(name);
    EXPECT_EQ(found.status, 200);
    EXPECT_EQ(found.content_type, json_content);
    EXPECT_THAT(found.content, EndsWith("\"," + std::string(shown) + "\n"));
    EXPECT_EQ(ask(get, path_of(name)).content, found.content);
    EXPECT_EQ(ask(head, path_of(name)).content, found.content);
  }
}

TEST_F(admin_api_idempotency, takes_a_lease_that_has_ended_for_an_unknown_outcome) {
  auto left = stored(record_state::dispatched);
  left.lease_until = begin - 1s;
  add(id_of("left"), left);
  EXPECT_THAT(look_up("left").content,
              HasSubstr(R"("state":"unknown","reason":"gateway-stopped")"));
}

TEST_F(admin_api_idempotency, shows_what_a_request_was_for_and_neither_key_nor_response) {
  auto answered = stored(record_state::completed);
  answered.origin = {"orders", "ops", "POST", "a.example", "/v1/orders"};
  add(id_of("swordfish"), answered);
  EXPECT_THAT(
      look_up("swordfish").content,
      AllOf(HasSubstr(R"("route":"orders","method":"POST","host":"a.example",)"
                      R"("path":"/v1/orders","principal":"ops","state":)"),
            Not(HasSubstr("swordfish")), Not(HasSubstr("Bearer")), Not(HasSubstr("a-secret"))));
}

TEST_F(admin_api_idempotency, finds_a_key_in_every_spelling_and_host) {
  constexpr std::string_view uuid = "8e03978e-40d5-43e8-bc93-6894a57f9324";
  add(id_of("a-key"), stored(record_state::completed));
  add(id_of(uuid), stored(record_state::completed));
  add(id_of("far", "b.example"), stored(record_state::completed));
  auto const root = std::string(base);
  struct row {
    std::string_view name;
    std::string_view query;
    int status;
  };
  for (auto const& [name, query, status] : {
           row{"the key itself", "scope=Bearer+x&key=a-key", 200},
           row{"as the field says it", "scope=Bearer%20x&key=%22a-key%22", 200},
           row{"another key", "scope=Bearer+x&key=b-key", 404},
           row{"another scope", "scope=Bearer+y&key=a-key", 404},
           row{"one value too many", "scope=Bearer+x&scope=&key=a-key", 404},
           row{"a UUID in upper case", "scope=Bearer+x&key=8E03978E-40D5-43E8-BC93-6894A57F9324",
               200},
           row{"its host", "host=A.example:443&scope=Bearer+x&key=a-key", 200},
           row{"another host", "host=b.example&scope=Bearer+x&key=a-key", 404},
           row{"a host that no request has named", "scope=Bearer+x&key=far", 404},
           row{"a host that is asked for", "host=b.example&scope=Bearer+x&key=far", 200},
           row{"no scope", "key=a-key", 400},
           row{"no key", "scope=Bearer+x", 400},
           row{"an empty key", "scope=Bearer+x&key=", 400},
           row{"two keys", "scope=Bearer+x&key=a&key=b", 400},
           row{"an open quote", "scope=Bearer+x&key=%22a", 400},
           row{"a bad host", "host=a%20b&scope=Bearer+x&key=a-key", 400},
           row{"nothing", "", 400},
       }) {
    SCOPED_TRACE(name);
    EXPECT_EQ(ask(get, root + "?" + std::string(query)).status, status);
  }
}

TEST_F(admin_api_idempotency, looks_a_key_up_by_what_the_content_says) {
  add(id_of("a-key"), stored(record_state::completed));
  auto const path = std::string(base) + "/lookup";
  struct row {
    std::string_view content;
    int status;
    std::string_view part;
  };
  for (auto const& [content, status, part] : {
           row{R"({"scope":["Bearer x"],"key":"a-key"})", 200, R"("state":"completed")"},
           row{R"({"scope":"Bearer x","key":"\"a-key\""})", 200, R"("state":"completed")"},
           row{R"({"scope":"Bearer x","key":"a-key","host":"a.example"})", 200, "completed"},
           row{R"({"scope":"Bearer y","key":"a-key"})", 404, "There is no such key."},
           row{R"({"key":"a-key"})", 400, "scope is missing"},
           row{R"({"scope":[],"key":"a-key"})", 400, "scope is missing"},
           row{R"({"scope":"Bearer x"})", 400, "key must be given once"},
           row{R"({"scope":"Bearer x","key":["a-key"]})", 400, "key must be a string"},
           row{R"({"scope":[1],"key":"a-key"})", 400, "or an array of them"},
           row{R"({"scope":{},"key":"a-key"})", 400, "or an array of them"},
           row{R"({"scope":"Bearer x","key":"a-key","more":1})", 400, "nknown member"},
           row{R"({"scope":"Bearer x","key":"a-key","host":"a b"})", 400, "host: "},
           row{"[]", 400, "the body must be"},
           row{"{", 400, "the body must be"},
           row{"", 400, "the body must be"},
       }) {
    SCOPED_TRACE(content);
    auto const answer = ask(post, path, content);
    EXPECT_EQ(answer.status, status) << answer.content;
    EXPECT_THAT(answer.content, HasSubstr(part));
  }
  expect_problem(ask(post, path, "{}", "text/plain"), 415, "application/json");
}

TEST_F(admin_api_idempotency, refuses_ids_and_actions_that_there_are_not) {
  for (auto const& path :
       {std::string(base) + "/", std::string(base) + "/0123", std::string(base) + "/unknown/",
        path_of("k") + "/", path_of("k") + "/resolved", path_of("k") + "0"}) {
    SCOPED_TRACE(path);
    expect_problem(ask(get, path), 404, "There is no such key.");
  }
  expect_problem(ask(get, path_of("k")), 404, "There is no such key.");
}

TEST_F(admin_api_idempotency, resolves_an_unknown_outcome_and_nothing_else) {
  struct row {
    std::string_view name;
    std::optional<record_state> state;
    std::string_view content;
    int status;
    std::string_view part;
  };
  for (auto const& [name, state, content, status, part] : {
           row{"executed", record_state::unknown, R"({"outcome":"executed"})", 200,
               R"("state":"completed","attempt":1,"replayable":false,)"},
           row{"not-executed", record_state::unknown, R"({ "outcome" : "not-executed" })", 200,
               R"("state":"absent"})"},
           row{"answered", record_state::completed, R"({"outcome":"executed"})", 409,
               "Nothing was changed: "},
           row{"runs", record_state::dispatched, R"({"outcome":"not-executed"})", 409,
               "Nothing was changed: "},
           row{"absent", std::nullopt, R"({"outcome":"executed"})", 404, "There is no such key."},
           row{"another-outcome", record_state::unknown, R"({"outcome":"lost"})", 400,
               "The body must be"},
           row{"one-member-more", record_state::unknown, R"({"outcome":"executed","x":1})", 400,
               "The body must be"},
           row{"not-json", record_state::unknown, "executed", 400, "The body must be"},
           row{"empty", record_state::unknown, "", 400, "The body must be"},
       }) {
    SCOPED_TRACE(name);
    if (state) {
      add(id_of(name), stored(*state));
    }
    auto const answer = ask(post, path_of(name) + "/resolve", content);
    EXPECT_EQ(answer.status, status) << answer.content;
    EXPECT_THAT(answer.content, HasSubstr(part));
  }
  EXPECT_EQ(look_up("not-executed").status, 404);
  EXPECT_THAT(look_up("another-outcome").content, HasSubstr(R"("state":"unknown")"));
  expect_problem(
      ask(post, path_of("empty") + "/resolve", R"({"outcome":"executed"})", "text/plain"), 415,
      "application/json");
}

TEST_F(admin_api_idempotency, forgets_a_key_unless_its_request_runs) {
  struct row {
    record_state state;
    int status;
  };
  for (auto const& [state, status] : {
           row{record_state::completed, 204},
           row{record_state::unknown, 204},
           row{record_state::dispatched, 409},
       }) {
    auto const name = std::string(name_of(state));
    SCOPED_TRACE(name);
    add(id_of(name), stored(state));
    keys->running.add(id_of(name), stored(state));
    auto const answer = ask(delete_, path_of(name));
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.content.empty(), status == 204);
    EXPECT_EQ(look_up(name).status, status == 204 ? 404 : 200);
    EXPECT_EQ(keys->running.find(id_of(name)).has_value(), status != 204);
  }
}

TEST_F(admin_api_idempotency, lists_unknown_outcomes_the_newest_first) {
  auto const path = std::string(base) + "/unknown";
  EXPECT_EQ(ask(get, path).content, "{\"unknown\":[],\"more\":false}\n");
  for (int i = 0; i < 3; ++i) {
    auto each = stored(record_state::unknown);
    each.changed = begin + std::chrono::seconds(i);
    each.attempt = static_cast<std::uint32_t>(i + 1);
    add(id_of(std::to_string(i)), each);
  }
  auto const all = ask(get, path).content;
  EXPECT_THAT(all, EndsWith("],\"more\":false}\n"));
  EXPECT_LT(all.find("\"attempt\":3"), all.find("\"attempt\":2"));
  EXPECT_LT(all.find("\"attempt\":2"), all.find("\"attempt\":1"));
  auto const two = ask(get, path + "?limit=2").content;
  EXPECT_THAT(two, AllOf(HasSubstr("\"attempt\":2"), Not(HasSubstr("\"attempt\":1,")),
                         EndsWith("],\"more\":true}\n")));
  for (auto const* const limit : {"0", "501", "-1", "x", "2x", "", "99999999999999999999"}) {
    SCOPED_TRACE(limit);
    expect_problem(ask(get, path + "?limit=" + limit), 400, "limit is a number from 1 to 500.");
  }
  EXPECT_EQ(ask(get, path + "?limit=500").status, 200);
}

TEST_F(admin_api_idempotency, says_when_the_store_gives_no_answer_and_not_where_it_is) {
  use(std::make_unique<store_that_fails>());
  for (auto const& [method, path] : std::vector<std::pair<wire::method, std::string>>{
           {get, path_of("k")},
           {delete_, path_of("k")},
           {get, std::string(base) + "/unknown"},
           {get, std::string(base) + "?scope=Bearer+x&key=k"},
       }) {
    SCOPED_TRACE(path);
    auto const answer = ask(method, path);
    expect_problem(answer, 503, "does not answer");
    EXPECT_THAT(answer.content, Not(HasSubstr("a-secret")));
  }
}

TEST_F(admin_api_idempotency, says_that_no_route_has_keys) {
  auto const path = path_of("k");
  keys.reset();
  auto const root = std::string(base);
  for (auto const& [method, target] : std::vector<std::pair<wire::method, std::string>>{
           {get, root},
           {get, root + "/unknown"},
           {post, root + "/lookup"},
           {get, path},
           {delete_, path},
       }) {
    SCOPED_TRACE(target);
    expect_problem(ask(method, target), 404, "No route has idempotency keys.");
  }
}

}  // namespace
}  // namespace tidegate::gateway
