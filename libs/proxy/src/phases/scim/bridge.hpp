// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

#include <tidegate/scim/bridge.hpp>
#include <tidegate/scim_server/service.hpp>
#include <tidegate/wire/http1_body.hpp>

namespace tidegate::gateway {

/// What a request on a route with `bridge: scim-cursor` asks for that has to be changed.
enum class bridge_subject : std::uint8_t {
  list,
  list_or_resource,  ///< the answer tells: nothing in the request does
  search,            ///< POST to .search
  abilities,         ///< ServiceProviderConfig
};

/// Nothing for what goes through as it is.
[[nodiscard]] auto bridge_subject_of(request_context const& context)
    -> std::optional<bridge_subject>;

/// Takes framing and the empty line out of the head of a search, whose content comes later.
void open_head(std::string& head);

/// A longer answer is not taken for a page.
inline constexpr std::size_t bridged_octets_max = std::size_t{16} << 20;

/// Pages by cursor in front of a SCIM server that has pages by index only (`bridge: scim-cursor`):
/// one request, as it goes to the upstream, and the answer as it goes to the client.
class bridge_phase {
 public:
  static constexpr std::size_t search_octets_max = std::size_t{1} << 20;

  bridge_phase(request_context const& context, bridge_subject subject,
               scim::cursor_sealer const& cursors);

  /// Whether the content of the request has to be there before it can be sent.
  [[nodiscard]] auto awaits_content() const noexcept -> bool {
    return subject_ == bridge_subject::search;
  }
  /// The target to ask the upstream for.
  [[nodiscard]] auto make_target(request_context const& context, scim::wall_time now)
      -> result<std::string, scim::error>;
  /// Content of a search, framed as it came.
  [[nodiscard]] auto take_content(std::string_view framed) -> result<void, scim::error>;
  /// The content to send when all of a search is there.
  [[nodiscard]] auto make_search(scim::wall_time now) -> result<std::string, scim::error>;

  /// True when the answer is kept, to be changed when it is all there; else it goes through.
  [[nodiscard]] auto takes_answer(wire::response_head const& head, wire::field_set const& drop)
      -> bool;
  [[nodiscard]] auto take_body(std::string_view content) -> result<void, scim::error>;
  /// The answer for the client.
  [[nodiscard]] auto finish(scim::wall_time now) -> scim_answer;
  /// What came of an answer is of no use: the request is sent again.
  void drop_answer();

  /// What is kept in memory.
  [[nodiscard]] auto held_octets() const noexcept -> std::size_t {
    return content_.size() + answer_.size();
  }
  /// The RateLimit fields of the answer.
  [[nodiscard]] auto limit_lines() noexcept -> std::string& { return limit_lines_; }

 private:
  [[nodiscard]] auto find_page(scim::list_request asked, scim::wall_time now)
      -> result<void, scim::error>;
  [[nodiscard]] auto binding() const -> scim::cursor_binding;

  scim::cursor_sealer const& cursors_;
  scim::pagination_options const& options_;
  bridge_subject subject_;
  bool goes_through_ = false;
  std::string endpoint_;
  std::string principal_;
  std::string filter_;  // in one spelling
  scim::list_request asked_{};
  scim::bridged_page page_{};
  // Of a search, until all of it is there.
  wire::body_decoder decoder_;
  std::string content_;
  // Of the answer.
  std::vector<http::field> fields_;
  std::string limit_lines_;
  std::string answer_;
};

}  // namespace tidegate::gateway
