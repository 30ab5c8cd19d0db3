// SPDX-License-Identifier: Apache-2.0
#include "phases/scim/scim.hpp"

#include "phases/exchange_fixture.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Keeps all work and begins none of it.
class waiting_directory final : public store::directory {
 public:
  explicit waiting_directory(std::vector<write_answer>& writes) : writes_(writes) {}
  void read(std::string_view /*tenant*/, read_transaction transaction) override {
    transaction(failure(store::store_error{store::store_fault::unavailable, "down"}));
  }
  void write(std::string_view /*tenant*/, write_transaction /*transaction*/,
             write_answer answer) override {
    writes_.push_back(std::move(answer));
  }

 private:
  std::vector<write_answer>& writes_;
};

constexpr std::string_view user =
    R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"a"})";

[[nodiscard]] auto post_of(std::string_view content) -> std::string {
  return "POST /scim/Users HTTP/1.1\r\nHost: h\r\nContent-Type: application/scim+json\r\n"
         "Content-Length: " +
         std::to_string(content.size()) + "\r\n\r\n";
}

class proxy_scim : public testing::Test {
 protected:
  proxy_scim() {
    auto const& how = *with_.on->current->active->config.routes.front().scim;
    with_.shared.scim = std::make_unique<scim_service>(*make_scim_model(how),
                                                       std::make_unique<waiting_directory>(writes_),
                                                       std::span<std::byte const>(secret_));
  }
  /// A phase of its own, for content only.
  [[nodiscard]] auto phase_with(exchange& owner, wire::body_framing framing) -> scim_phase {
    scim_request request;
    request.options = &*with_.on->current->active->config.routes.front().scim;
    request.method = "POST";
    request.path = "/Users";
    return {owner, std::move(request), framing};
  }

  std::array<std::byte, 32> secret_{};
  std::vector<store::directory::write_answer> writes_;
  exchange_fixture with_{
      "data: /nowhere\nroutes: [{match: {path: /scim/**}, service: scim, scim: {max-body: "
      "1KiB}}]\n"};
};

TEST_F(proxy_scim, refuses_content_by_its_declared_length) {
  struct row {
    std::string_view name;
    wire::body_framing framing;
    bool refused;
  };
  exchange owner(*with_.on);
  for (auto const& [name, framing, refused] : std::vector<row>{
           {"none", {}, false},
           {"as long as may be", {wire::body_kind::content_length, 1024}, false},
           {"longer", {wire::body_kind::content_length, 1025}, true},
           {"in chunks", {wire::body_kind::chunked, 0}, false},
       }) {
    auto const said = phase_with(owner, framing).refusal_by_length(framing);
    ASSERT_EQ(said.has_value(), refused) << name;
    if (refused) {
      EXPECT_EQ(said->status, 413);
      EXPECT_THAT(said->content, HasSubstr("1024 bytes")) << name;
    }
  }
}

TEST_F(proxy_scim, counts_content_as_it_comes) {
  exchange owner(*with_.on);
  auto phase = phase_with(owner, {wire::body_kind::chunked, 0});
  EXPECT_FALSE(phase.take_content("3\r\nabc\r\n3f"));
  EXPECT_EQ(phase.held_octets(), 3U);
  EXPECT_FALSE(phase.take_content("d\r\n" + std::string(1021, 'x') + "\r\n"));
  EXPECT_EQ(phase.held_octets(), 1024U);
  auto const said = phase.take_content("1\r\ny\r\n0\r\n\r\n");
  ASSERT_TRUE(said);
  EXPECT_EQ(said->status, 413);
}

TEST_F(proxy_scim, takes_what_is_behind_its_content_for_another_request) {
  exchange owner(*with_.on);
  auto phase = phase_with(owner, {wire::body_kind::content_length, 3});
  EXPECT_FALSE(phase.take_content("abcGET / HTTP/1.1"));
  EXPECT_EQ(phase.held_octets(), 3U);
}

TEST_F(proxy_scim, waits_once) {
  exchange owner(*with_.on);
  auto phase = phase_with(owner, {});
  EXPECT_FALSE(phase.stop_waiting());
  phase.wait();
  EXPECT_TRUE(phase.is_waiting());
  EXPECT_TRUE(phase.stop_waiting());
  EXPECT_FALSE(phase.is_waiting());
  EXPECT_FALSE(phase.stop_waiting());
}

TEST_F(proxy_scim, gives_the_answer_to_the_client) {
  one_request asked(with_, "GET /scim/ServiceProviderConfig HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("whole 200"));
  EXPECT_THAT(asked.client.lines, HasSubstr("Content-Type: application/scim+json\r\n"));
  EXPECT_THAT(asked.client.lines, HasSubstr("Date: "));
  EXPECT_THAT(asked.client.content, HasSubstr("ServiceProviderConfig"));
}

TEST_F(proxy_scim, sends_no_content_for_head) {
  one_request asked(with_, "HEAD /scim/ServiceProviderConfig HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("head 200", "end"));
  EXPECT_EQ(asked.client.content, "");
  EXPECT_GT(asked.client.length.value_or(0), 0U) << "the length is that of a GET";
}

TEST_F(proxy_scim, asks_when_all_of_the_content_is_there) {
  one_request asked(with_, post_of(user));
  asked.body(user.substr(0, 10), false);
  with_.turn();
  EXPECT_THAT(writes_, IsEmpty());
  EXPECT_EQ(asked->held_octets(), 10U);
  asked.body(user.substr(10), true);
  ASSERT_EQ(writes_.size(), 1U);
  EXPECT_EQ(asked->held_octets(), user.size()) << "the directory has it now";
  EXPECT_THAT(asked.client.trace, IsEmpty());
  writes_.front()(failure(store::store_error{store::store_fault::unavailable, "down"}));
  ASSERT_TRUE(asked.is_answered());
  EXPECT_THAT(asked.client.trace, ElementsAre("whole 503"));
  EXPECT_EQ(with_.shared.memory.buffered.load(), 0);
}

TEST_F(proxy_scim, answers_413_to_content_that_turns_out_too_long) {
  one_request declared(with_, post_of(std::string(1025, 'x')));
  EXPECT_THAT(declared.client.trace, ElementsAre("whole 413"));

  one_request chunked(with_,
                      "POST /scim/Users HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  chunked.body("401\r\n" + std::string(1025, 'x'), false);
  EXPECT_THAT(chunked.client.trace, ElementsAre("whole 413"));
  EXPECT_THAT(writes_, IsEmpty());
}

TEST_F(proxy_scim, tells_a_client_to_go_on_that_waits_for_that) {
  auto head = post_of(user);
  head.insert(head.size() - 2, "Expect: 100-continue\r\n");
  one_request asked(with_, head);
  EXPECT_THAT(asked.client.trace, ElementsAre("interim 100"));
}

TEST_F(proxy_scim, is_done_also_when_the_client_has_gone) {
  one_request asked(with_, post_of(user), user);
  ASSERT_EQ(writes_.size(), 1U);
  asked.leave();
  EXPECT_EQ(with_.shared.memory.buffered.load(), 0);
  writes_.front()({});
  with_.turn();
  EXPECT_THAT(asked.client.trace, IsEmpty());
}

TEST_F(proxy_scim, is_not_asked_while_the_client_has_not_taken_other_answers) {
  one_request asked(with_, post_of(user));
  asked.client.takes = false;
  asked.body(user, true);
  with_.turn();
  EXPECT_THAT(writes_, IsEmpty());
  asked.client.takes = true;
  asked->client_resumed();
  EXPECT_EQ(writes_.size(), 1U);
}

}  // namespace
}  // namespace tidegate::gateway
