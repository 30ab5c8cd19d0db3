// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim_server/service.hpp>

#include <tidegate/base/result.hpp>
#include <tidegate/json/value.hpp>
#include <tidegate/scim/error.hpp>
#include <tidegate/scim/index_key.hpp>
#include <tidegate/scim/projection.hpp>
#include <tidegate/store/directory.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

/// What the parts of the SCIM service share. Errors of clients are `scim::error`; a directory that
/// does not do what it should is one with status 503, after which its work is given up.
namespace tidegate::gateway {

/// What the path of a request means.
enum class scim_endpoint : std::uint8_t {
  nothing,
  root,
  search,  ///< `/.search`, or below a type
  bulk,
  me,
  schemas,
  resource_types,
  service_provider_config,
  type,
  resource,
};

struct scim_target {
  scim_endpoint endpoint = scim_endpoint::nothing;
  scim::model_type const* type = nullptr;  ///< of type, resource and search; null for all types
  std::string name{};                      ///< an id, a URN or the name of a type; may be empty
};

[[nodiscard]] auto find_scim_target(scim::model const& model, std::string_view path) -> scim_target;

/// A request under way.
struct scim_call {
  std::shared_ptr<scim_parts const> parts;
  scim_request request;
  scim_target target;
  scim::wall_time now;  ///< when it came

  [[nodiscard]] auto model() const -> scim::model const& { return *parts->model; }
};

[[nodiscard]] auto bad_request(scim::scim_type type, std::string detail) -> scim::error;
[[nodiscard]] auto not_found(std::string_view what) -> scim::error;
[[nodiscard]] auto unavailable(store::store_error const& error) -> scim::error;

/// The value, or that the directory is unavailable when it gave none.
template <class T>
[[nodiscard]] auto or_unavailable(store::directory_outcome<T> outcome) -> result<T, scim::error> {
  if (!outcome) {
    return failure(unavailable(outcome.error()));
  }
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return *std::move(outcome);
  }
}

/// An answer with a resource or a message in it.
[[nodiscard]] auto json_answer(int status, std::string content) -> scim_answer;

/// The text as it stands inside of a JSON string.
[[nodiscard]] auto json_escaped(std::string_view text) -> std::string;

/// `W/"3"`
[[nodiscard]] auto etag_of(std::uint64_t version) -> std::string;
/// Whether a list of entity tags, as in If-Match, has the version, or is `*`. Weak and strong are
/// the same.
[[nodiscard]] auto names_version(std::string_view etags, std::uint64_t version) -> bool;

/// How resources of a type are shown to a client.
struct resource_view {
  scim::model const* model = nullptr;
  scim::model_type const* type = nullptr;
  scim::projection shows;
  std::string base;            ///< of URIs, as it stands inside of a JSON string
  std::string location;        ///< what comes before the id of a resource in its `meta`
  std::size_t octets_max = 0;  ///< of the answer that it is shown in
};

[[nodiscard]] auto make_view(scim_call const& call, scim::model_type const& type,
                             scim::projection shows) -> resource_view;

/// `attributes` and `excludedAttributes` of the query of a request.
[[nodiscard]] auto view_of(scim_call const& call, scim::model_type const& type)
    -> result<resource_view, scim::error>;

/// A resource as a directory keeps it.
struct kept_resource {
  std::uint64_t rid = 0;
  std::string_view id;
  std::string_view text;
  bool maybe_in_groups = false;
};

/// Appends what the client gets of a resource: with its location, its groups or its members. What
/// is shown by default is not parsed for that.
[[nodiscard]] auto append_shown(std::string& out, store::directory_reader& from,
                                resource_view const& view, kept_resource const& resource)
    -> result<void, scim::error>;

/// Whether a resource is shown as it is kept, without a look inside.
[[nodiscard]] auto is_shown_as_kept(resource_view const& view) -> bool;

/// An answer with one resource, its ETag and its location.
[[nodiscard]] auto resource_answer(int status, store::directory_reader& from,
                                   resource_view const& view, std::string const& base,
                                   store::directory_resource const& resource)
    -> result<scim_answer, scim::error>;

/// The user that `/Me` stands for: whose userName is the name of the token.
[[nodiscard]] auto find_me(scim_call const& call, store::directory_reader& in)
    -> result<store::directory_resource, scim::error>;

// What is asked of the directory, in answers. What can be said without it was said before.

[[nodiscard]] auto answer_discovery(scim_call const& call) -> scim_answer;

/// How much a read may do.
enum class read_effort : std::uint8_t {
  any,
  quick,  ///< on a loop, which others wait for
};
struct scim_read {
  /// Nothing when it takes more than `quick`.
  std::function<std::optional<result<scim_answer, scim::error>>(store::directory_reader&,
                                                                read_effort)>
      answer;
  bool looks_quick = false;
};
/// May be called again, after everything it wrote was undone. What it wrote is kept when it returns
/// no error.
using scim_write = std::function<result<scim_answer, scim::error>(store::directory_writer&)>;

[[nodiscard]] auto plan_list(std::shared_ptr<scim_call const> call)
    -> result<scim_read, scim::error>;
[[nodiscard]] auto plan_get(std::shared_ptr<scim_call const> call)
    -> result<scim_read, scim::error>;
[[nodiscard]] auto plan_write(std::shared_ptr<scim_call const> call)
    -> result<scim_write, scim::error>;
[[nodiscard]] auto plan_bulk(std::shared_ptr<scim_call const> call)
    -> result<scim_write, scim::error>;

}  // namespace tidegate::gateway
