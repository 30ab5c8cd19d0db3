// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/client/error.hpp>
#include <tidegate/client/message.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/scim/error.hpp>
#include <tidegate/scim/list_request.hpp>
#include <tidegate/scim/list_response.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// How to go through the resources of a SCIM server, page by page (RFC 7644, section 3.4.2.4; RFC
/// 9865 and its draft 02). No I/O: what to ask comes out, answers go in.
namespace tidegate::client {

/// Which resources, and how they are asked for.
struct scim_query {
  std::string url;              ///< of the resources, such as `https://example.com/scim/v2/Users`
  std::vector<field> fields{};  ///< of every request, such as Authorization
  std::string filter{};         ///< empty: all of them
  std::string sort_by{};        ///< empty: as it suits the walk
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
  /// So many pages in a row may bring nothing new, beyond those that were there before a walk began
  /// anew.
  std::uint32_t barren_pages_max = 1'000;
  /// So often a walk begins anew, and so often in a row it goes on by id without getting anything.
  std::uint32_t restarts_max = 8;
  /// So often in all resources are gone through by index, when some were deleted meanwhile or are
  /// missing.
  std::uint32_t passes_max = 3;
};

/// Why there are no more resources.
enum class scim_fault : std::uint8_t {
  no_answer,         ///< `detail` says why
  answer_too_large,  ///< also with one resource a page
  refused,           ///< with `status` and, where the server tells, `type` and `detail`
  invalid_answer,    ///< what came is no list of resources
  place_lost,        ///< the server does not take its cursor any more, and there is no other way on
  stuck,             ///< the server brings nothing new, and has no end or says that there is more
  no_way_back,       ///< the server gives no cursor of the page before
};

/// `no-answer`, `refused` and so on, for programs.
[[nodiscard]] auto name_of(scim_fault fault) noexcept -> std::string_view;

struct scim_error {
  scim_fault fault{};
  int status = 0;
  scim::scim_type type = scim::scim_type::none;
  std::string detail{};
  auto operator==(scim_error const&) const -> bool = default;
};

/// One line for people.
[[nodiscard]] auto to_string(scim_error const& error) -> std::string;

/// Reads why a server refused, in the form of SCIM or of problem details.
[[nodiscard]] auto refusal_of(int status, std::string_view body) -> scim_error;

/// Which page is to be asked for: enough to go on in another process.
struct scim_place {
  /// Nothing until the first page is there.
  std::optional<scim::pagination_method> method{};
  std::string cursor{};
  std::uint64_t start_index = 1;
  std::optional<std::uint32_t> count{};
  bool by_id = false;       ///< sorted by id, though the query does not say so
  bool descending = false;  ///< the order that is asked for
  bool backward = false;    ///< against that order
  std::string beyond{};     ///< only what comes behind this id
  std::string edge{};  ///< the id of the last resource that was got, in the direction of the walk
  /// How many ids have come in their order; nothing when one did not.
  std::optional<std::uint64_t> ids_in_order = 0;
  std::optional<std::uint64_t> total_results{};
  /// By index, some were deleted on the way: others may have moved to pages that were read before.
  bool shrunk = false;
  auto operator==(scim_place const&) const -> bool = default;
};

/// As one line of JSON, and back. Nothing when it is none.
[[nodiscard]] auto to_json(scim_place const& place) -> std::string;
[[nodiscard]] auto scim_place_of(json::value const& value) -> std::optional<scim_place>;

/// To be sent with GET and the fields of the query; the answer goes to `take`.
struct walk_request {
  std::string url;
};

/// There is nothing more in this direction.
struct walk_end {};

/// What comes next. A resource is the walk's own, until `take`, `turn` or its end.
using walk_step = std::variant<walk_request, json::value const*, walk_end>;

/// Goes through the resources of a query, once each.
///
/// By cursor where the server has them, else by index. When the server does not take a cursor any
/// more, the walk goes on behind the last id, if resources come in the order of their ids (as code
/// points) and the server takes such a filter; else it begins anew and leaves out what it has
/// given.
///
/// The promise: what is there throughout is given exactly once. It holds as far as that of the
/// server does, and these are the limits: by index, something that is deleted and something else
/// that is made between two pages may hide a resource; resources without an `id` cannot be told
/// apart; beyond `seen_max` a walk cannot begin anew, nor after a turn.
class scim_walk {
 public:
  explicit scim_walk(scim_query query, scim_walk_options options = {});
  /// Goes on at `place`, which another walk with the same query was at. What that has given is told
  /// by `has_seen`, so that nothing comes twice.
  scim_walk(scim_query query, scim_place place, scim_walk_options options = {});

  /// A resource with this id was given before.
  void has_seen(std::string_view id);

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

  /// Where the walk is. When `next` has returned a request, the place has all before it.
  [[nodiscard]] auto place() const -> scim_place const& { return place_; }
  /// What the server says about how many there are, of those that it was last asked for.
  [[nodiscard]] auto total_results() const -> std::optional<std::uint64_t> {
    return place_.total_results;
  }
  [[nodiscard]] auto query() const -> scim_query const& { return query_; }
  /// How often the walk went on in another way because its place was lost.
  [[nodiscard]] auto restarts() const -> std::uint32_t { return restarts_; }

 private:
  using digest = std::array<std::byte, 16>;

  [[nodiscard]] auto asks_for_less() -> bool;
  [[nodiscard]] auto list_url() const -> std::string;
  [[nodiscard]] auto configuration_url() const -> std::string;
  [[nodiscard]] auto is_sorted_by_id() const -> bool;
  [[nodiscard]] auto can_go_on_by_id() const -> bool;
  void take_configuration(std::string_view body);
  void take_page(scim::list_response page);
  void take_refusal(scim_error error);
  [[nodiscard]] auto asks_for_less(scim_error const& error) -> bool;
  void look_at_order(json::array const& resources);
  [[nodiscard]] static auto digest_of(std::string_view id) -> digest;
  [[nodiscard]] auto is_known(json::value const& resource) const -> bool;
  [[nodiscard]] auto is_new(json::value const& resource) -> bool;
  [[nodiscard]] auto leave_page() -> bool;
  [[nodiscard]] auto next_place() const -> std::optional<scim_place>;
  [[nodiscard]] auto has_no_way_back() const -> bool;
  [[nodiscard]] auto is_short() const -> bool;
  [[nodiscard]] auto is_too_long(scim::list_response const& page) const -> bool;
  void find_another_way(scim_error why);
  void begin_anew();
  void fail(scim_error error);

  scim_query query_;
  scim_walk_options options_;
  scim_place place_;
  std::optional<scim_error> failed_;
  bool discovering_ = false;

  // What the server is known to do.
  bool has_cursors_ = false;           // it says so
  bool has_previous_cursors_ = false;  // it has given one
  bool takes_ids_ = true;              // in filters, as far as is known
  std::optional<std::uint32_t> count_;

  // The page that is being given, and what came with it.
  bool has_page_ = false;
  json::array page_;
  std::size_t at_ = 0;  // between two of its resources
  scim::list_head head_;
  std::string page_cursor_;
  std::uint64_t page_index_ = 1;
  std::size_t page_items_ = 0;  // those included that were given before
  std::string page_first_;
  std::string page_last_;
  std::size_t stride_ = 0;  // the most that ever came

  // What was given.
  std::set<digest> seen_;
  bool knows_all_seen_ = true;
  bool turned_ = false;
  std::uint64_t pages_ = 0;
  std::uint64_t barren_ = 0;
  std::uint64_t barren_max_ = 0;
  std::uint32_t restarts_ = 0;
  std::uint32_t fruitless_ = 0;  // restarts that brought nothing yet
  std::uint32_t anew_ = 0;
  std::uint32_t passes_ = 1;
  // By index, since it was last begun with.
  std::uint64_t news_ = 0;                      // pages that brought something
  std::optional<std::uint64_t> total_least_{};  // that the server spoke of
};

}  // namespace tidegate::client
