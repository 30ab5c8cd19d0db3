// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/client/error.hpp>
#include <tidegate/client/message.hpp>
#include <tidegate/client/scim_error.hpp>
#include <tidegate/client/scim_position.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/scim/list_response.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// How to go through the resources of a SCIM server, page by page (RFC 7644, section 3.4.2.4; RFC
/// 9865 and its draft 02). No I/O: what to ask comes out, answers go in.
namespace tidegate::TIDEGATE_ABI::client {

/// Which resources, and how they are asked for.
struct scim_query {
  std::string url;  ///< of the resources, such as `https://example.com/scim/v2/Users`
  std::vector<http::field> fields{};  ///< of every request, such as Authorization
  std::string filter{};               ///< empty: all of them
  std::string sort_by{};              ///< empty: as it suits the walk
  bool descending = false;
  std::vector<std::string> attributes{};
  std::vector<std::string> excluded_attributes{};
  /// How many resources a page may have; less where the server says that it gives less. 0: as the
  /// server likes.
  std::uint32_t page_size = 100;
};

/// How far a walk goes with a server that does not do its part.
struct scim_walk_options {
  /// Ask for ServiceProviderConfig at first.
  bool discover = true;
  /// When the query has no order and the server can sort and filter, resources come by their ids:
  /// then a lost cursor costs one request.
  bool sort_by_id = true;
  /// So many ids must have come in order before that order is trusted: servers take `sortBy` and do
  /// not sort.
  std::uint32_t order_proof = 8;
  json::limits answer{.octets_max = std::size_t{16} << 20, .depth_max = 32};
  /// So many ids are kept in mind, of 64 octets each, to know what was given.
  std::size_t seen_max = 4'000'000;
  /// A cursor or an id that is longer makes an answer invalid: it could not be sent back in a URL.
  std::size_t text_octets_max = std::size_t{32} << 10;
  /// So many pages in a row may bring nothing new, beyond those that were there before a walk
  /// started again.
  std::uint32_t barren_pages_max = 1'000;
  /// So often a walk starts again, and so often in a row it continues by id without getting
  /// anything.
  std::uint32_t restarts_max = 8;
  /// So often in all resources are gone through by index, when some were deleted meanwhile or are
  /// missing.
  std::uint32_t passes_max = 3;
};

/// To be sent with GET and the fields of the query; the answer goes to `take`.
struct walk_request {
  std::string url;
};

/// There is nothing more in this direction.
struct walk_end {};

/// What comes next. A resource is the walk's own, until `take`, `turn` or its end.
using walk_step = std::variant<walk_request, json::value const*, walk_end>;

/// The ids that were given, by their digests.
class seen_ids {
 public:
  explicit seen_ids(std::size_t count_max) : count_max_(count_max) {}

  /// Takes note of an id.
  void add(std::string_view id);
  /// Adds the id of a resource. False when it was there.
  [[nodiscard]] auto add_new(json::value const& resource) -> bool;
  [[nodiscard]] auto contains(json::value const& resource) const -> bool;
  void clear() { digests_.clear(); }
  [[nodiscard]] auto size() const -> std::size_t { return digests_.size(); }
  /// False when some could not be kept.
  [[nodiscard]] auto is_complete() const -> bool { return is_complete_; }

 private:
  using digest = std::array<std::byte, 16>;
  [[nodiscard]] static auto digest_of(std::string_view id) -> digest;

  std::size_t count_max_;
  bool is_complete_ = true;
  std::set<digest> digests_;
};

/// Goes through the resources of a query, once each.
///
/// By cursor where the server has them, else by index. When the server does not accept a cursor any
/// more, the walk continues behind the last id, if resources come in the order of their ids (as
/// code points) and the server takes such a filter; else it starts again and leaves out what it has
/// given.
///
/// The promise: what is there throughout is given exactly once. It holds as far as that of the
/// server does, and these are the limits: by index, something that is deleted and something else
/// that is made between two pages may hide a resource; resources without an `id` cannot be told
/// apart; beyond `seen_max` a walk cannot start again, nor after a turn.
class scim_walk {
 public:
  explicit scim_walk(scim_query query, scim_walk_options options = {});
  /// Continues at `position`, which another walk with the same query was at. What that has given is
  /// told by `has_seen`, so that nothing comes twice.
  scim_walk(scim_query query, scim_position position, scim_walk_options options = {});

  /// A resource with this id was given before.
  void has_seen(std::string_view id) { seen_.add(id); }

  /// The next resource or request. The same request again until its answer was taken; the same
  /// error for ever.
  [[nodiscard]] auto next() -> result<walk_step, scim_error>;
  /// The answer to the request that `next` returned last.
  void take(int status, std::string_view body);
  /// No answer came, and none will.
  void take(client_error const& error);

  /// Goes the other way from here: what was given last comes first. Needs a page to be there, and a
  /// server that gives previousCursor, has pages by index or sorts by id.
  void turn();

  /// Where the walk is. When `next` has returned a request, the position has all before it.
  [[nodiscard]] auto position() const -> scim_position const& { return position_; }
  /// What the server says about how many there are, of those that it was last asked for.
  [[nodiscard]] auto total_results() const -> std::optional<std::uint64_t> {
    return position_.total_results;
  }
  [[nodiscard]] auto query() const -> scim_query const& { return query_; }
  /// How often the walk continued in another way because its place was lost.
  [[nodiscard]] auto restarts() const -> std::uint32_t { return attempts_.restarts; }

 private:
  // What the server is known to do.
  struct server_traits {
    bool has_cursors = false;           // it says so
    bool has_previous_cursors = false;  // it has given one
    bool takes_ids = true;              // in filters, as far as is known
    std::optional<std::uint32_t> count;
  };
  // The page that is being given, and what came with it.
  struct current_page {
    json::array resources;
    std::size_t at = 0;  // between two of its resources
    scim::list_head head;
    std::string cursor;
    std::uint64_t start_index = 1;
    std::size_t items = 0;  // those included that were given before
    std::string first_id;
    std::string last_id;
  };
  // What has been tried, for the bounds of a walk.
  struct attempts {
    std::uint64_t pages = 0;
    std::uint64_t barren_pages = 0;
    std::uint64_t barren_pages_max = 0;
    std::uint32_t restarts = 0;
    std::uint32_t fruitless = 0;   // restarts that brought nothing yet
    std::uint32_t from_start = 0;  // restarts from the first page
    std::uint32_t passes = 1;
  };
  // By index, since the last start from the first page.
  struct index_pass {
    std::uint64_t fruitful_pages = 0;            // that brought something
    std::optional<std::uint64_t> total_least{};  // that the server said
  };

  [[nodiscard]] auto ask_for_smaller_page() -> bool;
  [[nodiscard]] auto list_url() const -> std::string;
  [[nodiscard]] auto is_sorted_by_id() const -> bool;
  [[nodiscard]] auto can_continue_by_id() const -> bool;
  void take_configuration(std::string_view body);
  void take_page(scim::list_response page);
  void show_page(scim::list_response page);
  void take_refusal(scim_error error);
  [[nodiscard]] auto drop_parameter(scim_error const& error) -> bool;
  void check_order(json::array const& resources);
  [[nodiscard]] auto leave_page() -> bool;
  [[nodiscard]] auto next_position() const -> std::optional<scim_position>;
  [[nodiscard]] auto has_no_way_back() const -> bool;
  [[nodiscard]] auto is_short() const -> bool;
  void find_another_way(scim_error why);
  void start_again();
  void fail(scim_error error);

  scim_query query_;
  scim_walk_options options_;
  scim_position position_;
  std::optional<scim_error> failed_;
  bool discovering_ = false;
  server_traits server_;
  bool has_page_ = false;
  current_page page_;
  std::size_t stride_ = 0;  // the most items that a page had
  seen_ids seen_;
  bool turned_ = false;
  attempts attempts_;
  index_pass index_pass_;
};

}  // namespace tidegate::TIDEGATE_ABI::client
