// SPDX-License-Identifier: Apache-2.0
#include "gateway.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tidegate/json/parse.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace tidegate::e2e {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

auto lint(std::vector<std::string> arguments) -> outcome {
  arguments.insert(arguments.begin(), {TIDEGATE_BINARY, "lint"});
  return run(arguments);
}

/// The ids of the rules with that outcome, out of what `--json` prints.
auto rules_with(std::string_view wanted, outcome const& of) -> std::set<std::string> {
  auto const read = json::parse(of.out);
  std::set<std::string> ids;
  if (!read) {
    ADD_FAILURE() << of.out << of.err;
    return ids;
  }
  for (auto const& one : *read->find("rules")->if_array()) {
    if (*one.find("outcome")->if_string() == wanted) {
      ids.insert(*one.find("id")->if_string());
    }
  }
  return ids;
}

auto broken(std::vector<std::string> arguments) -> std::set<std::string> {
  arguments.insert(arguments.begin(), "--json");
  return rules_with("broken", lint(std::move(arguments)));
}

/// A configuration of examples/ without the addresses, which the test gives.
auto example(std::string const& name) -> std::string {
  std::ifstream file(TIDEGATE_SOURCE_DIR "/examples/" + name);
  std::string config;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("listen:") && !line.starts_with("admin:")) {
      config += line + "\n";
    }
  }
  EXPECT_THAT(config, HasSubstr("routes:"));
  return config;
}

/// A place for what a gateway keeps.
class data_folder {
 public:
  data_folder() {
    auto name = (std::filesystem::temp_directory_path() / "tidegate_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  data_folder(data_folder const&) = delete;
  auto operator=(data_folder const&) -> data_folder& = delete;
  ~data_folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] auto setting() const -> std::string { return "data: " + path_.string() + "\n"; }

 private:
  std::filesystem::path path_;
};

auto answer(std::string const& status, std::string const& lines, std::string const& content)
    -> std::string {
  return response(status, content, lines);
}

auto status_of(outcome const& of) -> std::string {
  return std::to_string(of.status) + "\n" + of.out + of.err;
}

// ── what is right ──

TEST(lint_command, finds_nothing_wrong_with_the_example_of_quotas) {
  data_folder const data;
  gateway const running(data.setting() + example("quickstart.yaml"));
  auto const url = "http://" + running.authority() + "/";
  auto const few = lint({url});
  EXPECT_EQ(few.status, 0) << status_of(few);
  // To the end of the quota, and with a credential that must not show.
  auto const many =
      lint({"--json", "--requests", "50", "-H", "X-Api-Key: swordfish", url + "search"});
  EXPECT_EQ(many.status, 0) << status_of(many);
  EXPECT_THAT(rules_with("broken", many), IsEmpty());
  EXPECT_THAT(rules_with("holds", many),
              IsSupersetOf({"ratelimit-violated-policies", "ratelimit-violated-names",
                            "retry-after-before-reset", "ratelimit-partition-key-secret",
                            "problem-status"}));
}

TEST(lint_command, finds_nothing_wrong_with_the_example_of_a_directory) {
  data_folder const data;
  gateway const running(data.setting() + example("scim.yaml"));
  for (int i = 0; i < 5; ++i) {
    std::string const user =
        R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"u)" +
        std::to_string(i) + "\"}";
    EXPECT_EQ(running
                  .ask("POST /scim/v2/Users HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "
                       "change-me\r\nContent-Type: "
                       "application/scim+json\r\nContent-Length: " +
                       std::to_string(user.size()) + "\r\n\r\n" + user)
                  .status(),
              201);
  }
  auto const found =
      lint({"--json", "-H", "Authorization: Bearer change-me", "-H",
            "Content-Type: application/scim+json", "-d",
            R"({"userName":"lint","schemas":["urn:ietf:params:scim:schemas:core:2.0:User"]})",
            "http://" + running.authority() + "/scim/v2/Users"});
  EXPECT_EQ(found.status, 0) << status_of(found);
  EXPECT_THAT(rules_with("broken", found), IsEmpty());
  EXPECT_THAT(
      rules_with("holds", found),
      IsSupersetOf({"scim-next-page", "scim-previous-page", "scim-invalid-cursor-type",
                    "scim-count-zero", "idempotency-reuse-refused", "idempotency-retry-content"}));
}

TEST(lint_command, finds_nothing_wrong_with_required_keys) {
  serving_origin api([number = 0](message const& /*request*/) mutable {
    return answer("201 Created", "", std::to_string(++number));
  });
  data_folder const data;
  for (std::string const draft : {"draft-09", "draft-07"}) {
    gateway const running(data.setting() + "upstreams: {api: \"" + api.url() + R"("}
policies: {burst: {quota: 100, window: 1m}, daily: {quota: 1000, window: 1d}}
fields: {ratelimit: )" + draft +
                          R"(, legacy: true}
routes: [{match: {path: /**}, upstream: api, limits: [burst, daily], idempotency: {mode: required}}]
)");
    auto const found = lint({"--json", "-H", "Authorization: Bearer x", "-d", R"({"amount":5})",
                             "--require-key", "http://" + running.authority() + "/orders"});
    EXPECT_EQ(found.status, 0) << status_of(found);
    EXPECT_THAT(rules_with("broken", found), IsEmpty());
    EXPECT_THAT(rules_with("holds", found),
                IsSupersetOf({"idempotency-missing-key-status", "idempotency-reuse-status",
                              "idempotency-refusal-documented", "idempotency-malformed-refused",
                              "x-ratelimit-disagrees"}));
  }
}

TEST(lint_command, finds_nothing_wrong_with_the_example_of_payments) {
  serving_origin const api([number = 0](message const& /*request*/) mutable {
    return answer("201 Created", "", std::to_string(++number));
  });
  auto config = example("payments/gateway.yaml");
  std::string const in_the_example = "http://127.0.0.1:3000";
  ASSERT_THAT(config, HasSubstr(in_the_example));
  config.replace(config.find(in_the_example), in_the_example.size(), api.url());
  data_folder const data;
  gateway const running(data.setting() + config);
  auto const found =
      lint({"--json", "-H", "Authorization: Bearer t1", "-d", R"({"amount":5})", "--require-key",
            "--requests", "100", "http://" + running.authority() + "/payments"});
  EXPECT_EQ(found.status, 0) << status_of(found);
  EXPECT_THAT(rules_with("broken", found), IsEmpty());
  EXPECT_THAT(rules_with("holds", found),
              IsSupersetOf({"idempotency-reuse-refused", "ratelimit-violated-policies"}));
}

// ── what is wrong ──

TEST(lint_command, finds_fields_that_clients_cannot_read) {
  struct wrong_fields {
    std::string lines;
    std::string rule;
  };
  for (auto const& [lines, rule] : std::vector<wrong_fields>{
           {"RateLimit: limit=NaN, remaining=NaN, reset=NaN\r\n", "ratelimit-limit-value"},
           {"RateLimit: \"a\";r=NaN;t=5\r\n", "ratelimit-remaining-value"},
           {"RateLimit: \"a\";r=5;t=undefined\r\n", "ratelimit-reset-value"},
           {"X-RateLimit-Limit: 5\r\nX-RateLimit-Remaining: NaN\r\n", "x-ratelimit-value"},
           {"RateLimit: \"a\";t=5\r\n", "ratelimit-remaining-missing"},
           {"RateLimit: default;r=5;t=5\r\n", "ratelimit-name-type"},
           {"RateLimit-Policy: 10;w=1, 10;w=60\r\nRateLimit: limit=10, remaining=9, reset=1\r\n",
            "ratelimit-quota-repeated"},
           {"RateLimit: \"a\";r=5;t=1715947212\r\n", "ratelimit-reset-implausible"},
       }) {
    serving_origin const api(answer("200 OK", lines, "{}"));
    auto const found = lint({"--json", api.url()});
    EXPECT_EQ(found.status, 1) << lines;
    EXPECT_THAT(rules_with("broken", found), Contains(rule)) << lines;
  }
}

TEST(lint_command, finds_refusals_that_mislead) {
  serving_origin const api(
      answer("429 Too Many Requests",
             "Retry-After: 1\r\nRateLimit-Policy: \"a\";q=5;w=60\r\nRateLimit: \"a\";r=0;t=60\r\n"
             "Content-Type: application/problem+json\r\n",
             R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",)"
             R"("status":503,"violated-policies":["b"]})"));
  EXPECT_THAT(broken({api.url()}), IsSupersetOf({"retry-after-before-reset", "problem-status",
                                                 "ratelimit-violated-names"}));
}

/// An API whose work is a number that goes up.
class careless_api {
 public:
  /// One that remembers refuses keys that it has seen, but with the wrong answers and without a
  /// word on why.
  explicit careless_api(bool remembers) : remembers_(remembers) {}

  [[nodiscard]] auto url() const -> std::string { return serving_.url(); }

 private:
  [[nodiscard]] auto react(message const& request) -> std::string {
    if (request.start_line.starts_with("GET")) {
      return answer("200 OK", "", "{}");
    }
    if (request.count("Idempotency-Key") == 0 && remembers_) {
      return answer("428 Precondition Required", "", "");
    }
    auto const key = request.field("Idempotency-Key");
    if (remembers_ && seen_.contains(key)) {
      return seen_[key] == request.body ? answer("409 Conflict", "", "")
                                        : answer("400 Bad Request", "", "");
    }
    seen_[key] = request.body;
    return answer("201 Created", "", std::to_string(++number_));
  }

  bool const remembers_;
  int number_ = 0;
  std::map<std::string, std::string> seen_;
  serving_origin serving_{[this](message const& request) { return react(request); }};
};

TEST(lint_command, finds_keys_that_mean_nothing) {
  careless_api const api(false);
  EXPECT_THAT(broken({"-d", R"({"amount":5})", "--require-key", api.url()}),
              IsSupersetOf({"idempotency-missing-key-refused", "idempotency-retry-content",
                            "idempotency-reuse-refused", "idempotency-malformed-refused",
                            "idempotency-concurrent-once"}));
}

TEST(lint_command, finds_refusals_of_keys_in_other_forms) {
  careless_api const api(true);
  EXPECT_THAT(broken({"-d", R"({"amount":5})", "--require-key", api.url()}),
              IsSupersetOf({"idempotency-missing-key-status", "idempotency-retry-status",
                            "idempotency-reuse-status", "idempotency-conflict-described"}));
}

TEST(lint_command, finds_pages_that_lead_nowhere) {
  serving_origin const directory([](message const& request) {
    auto const& target = request.start_line;
    auto const scim = [](std::string const& content) {
      return answer("200 OK", "Content-Type: application/scim+json\r\n", content);
    };
    std::string const list =
        R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],"totalResults":9,)";
    std::string const resources = R"("Resources":[{"id":"1"},{"id":"2"},{"id":"3"}]})";
    if (target.contains("ServiceProviderConfig")) {
      return scim(
          R"({"schemas":[],"pagination":{"cursor":"yes","index":true,"pageSize":10,"cursorTimeout":"1h"}})");
    }
    if (target.contains("cursor=next")) {
      return scim(list + R"("nextCursor":"",)" + resources);
    }
    return scim(list + R"("nextCursor":"next","previousCursor":"a/b",)" + resources);
  });
  EXPECT_THAT(broken({directory.url() + "/Users"}),
              IsSupersetOf({"scim-config-booleans", "scim-config-numbers", "scim-config-names",
                            "scim-count", "scim-count-zero", "scim-count-negative",
                            "scim-cursor-form", "scim-first-previous", "scim-pages-disjoint",
                            "scim-invalid-cursor", "scim-invalid-count"}));
}

// ── the command ──

TEST(lint_command, changes_nothing_unless_it_is_asked_to) {
  std::mutex mutex;
  std::set<std::string> methods;
  serving_origin const api([&](message const& request) {
    std::lock_guard const lock(mutex);
    methods.insert(request.start_line.substr(0, request.start_line.find(' ')));
    return answer("200 OK", "", "");
  });
  EXPECT_EQ(lint({"--scim", api.url()}).status, 1);
  {
    std::lock_guard const lock(mutex);
    EXPECT_THAT(methods, testing::ElementsAre("GET"));
  }
  (void)lint({"-X", "PATCH", api.url()});
  std::lock_guard const lock(mutex);
  EXPECT_THAT(methods, testing::ElementsAre("GET", "PATCH"));
}

TEST(lint_command, reports_in_words) {
  serving_origin const api(answer("200 OK", "RateLimit: \"a\";t=5\r\n", "{}"));
  auto const found = lint({api.url()});
  EXPECT_EQ(found.status, 1);
  EXPECT_THAT(found.out, HasSubstr("error  RateLimit: item 1: r is required"));
  EXPECT_THAT(found.out, HasSubstr("draft-ietf-httpapi-ratelimit-headers-09, section 4.1"));
  EXPECT_THAT(found.out, HasSubstr("and 3 more"));
  EXPECT_THAT(found.out, Not(HasSubstr("\x1b")));
}

TEST(lint_command, fails_on_advice_where_it_is_asked_to) {
  serving_origin const server(response("429 Too Many Requests", "slow down"));
  auto const url = server.url();
  EXPECT_EQ(run({TIDEGATE_BINARY, "lint", "--no-scim", url}).status, 0);
  auto const strict = run({TIDEGATE_BINARY, "lint", "--no-scim", "--fail-on", "advice",
                           url.substr(std::string("http://").size())});
  EXPECT_EQ(strict.status, 1) << strict.err;
  EXPECT_THAT(strict.out, testing::HasSubstr("this API says nothing about its limits"));
}

TEST(lint_command, says_when_there_is_no_answer) {
  auto const closed = origin::refusing();
  auto const found = lint({closed.url()});
  EXPECT_EQ(found.status, 1);
  EXPECT_EQ(found.out, "");
  EXPECT_THAT(found.err, testing::StartsWith("error: " + closed.url()));
}

TEST(lint_command, exits_with_2_when_a_url_is_none_that_it_can_ask) {
  for (auto const* const url : {"ftp://a/", "/path"}) {
    auto const got = run({TIDEGATE_BINARY, "lint", url});
    EXPECT_EQ(got.status, 2) << url;
    EXPECT_THAT(got.err, testing::HasSubstr(url));
  }
}

TEST(lint_command, exits_with_2_when_it_is_called_wrongly) {
  EXPECT_EQ(lint({}).status, 2);
  EXPECT_EQ(lint({"--scim", "--no-scim", "http://a"}).status, 2);
  EXPECT_EQ(lint({"-H", "nonsense", "http://a"}).status, 2);
  EXPECT_EQ(lint({"--require-key", "http://a"}).status, 2);
  EXPECT_EQ(lint({"-X", "GET", "-d", "{}", "http://a"}).status, 2);
  EXPECT_EQ(lint({"-d", "@/nowhere/at/all", "http://a"}).status, 2);
  EXPECT_EQ(lint({"--requests", "0", "http://a"}).status, 2);
}

TEST(lint_command, prints_its_rules) {
  auto const printed = lint({"--rules"});
  EXPECT_EQ(printed.status, 0);
  EXPECT_THAT(printed.out, HasSubstr("| `ratelimit-remaining-missing` | error |"));
}

}  // namespace
}  // namespace tidegate::e2e
