// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/field.hpp>
#include <tidegate/scim_server/ignored_names.hpp>
#include <tidegate/scim_server/memory_budget.hpp>
#include <tidegate/store/store_health.hpp>

#include <tidegate/config/config.hpp>
#include <tidegate/idempotency/record.hpp>
#include <tidegate/scim/cursor.hpp>
#include <tidegate/scim/model.hpp>
#include <tidegate/store/directory.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// What a client asks of a SCIM service. It owns its texts: the answer may be made on another
/// thread, when the client and the configuration are gone.
struct scim_request {
  std::shared_ptr<void const> owner;  ///< of `options`
  scim_config const* options = nullptr;
  std::string route;      ///< its name
  bool has_auth = false;  ///< the route asks for tokens
  std::string method;
  std::string path;   ///< below the base; normal, so that it begins with "/" or is empty
  std::string query;  ///< without its "?"
  std::string base;   ///< `https://api.example.com/scim/v2`
  std::string tenant;
  std::string principal;
  bool read_only = false;
  std::string content_type;
  std::string accept;
  std::string if_match;
  std::string if_none_match;
  std::string content;
  std::size_t answer_octets_max = std::size_t{128} << 20;  ///< no answer is longer
  /// A page of a list ends behind the resource with which it is as long as this.
  std::size_t page_octets = std::size_t{8} << 20;

  /// How long the content may be.
  [[nodiscard]] auto content_octets_max() const -> std::uint64_t;
};

/// What it is answered.
struct scim_answer {
  int status = 200;
  std::vector<http::field> fields;  ///< all but Date and the framing
  std::string content;
  /// What the content begins with: of a list, which is known last.
  std::string content_begin{};
  /// It is certain that nothing was read or changed.
  bool was_not_run = false;
  /// Counts the content until the answer is destroyed, by when it counts as waiting for its client.
  memory_budget::reservation counted{};
};

/// What all requests of a SCIM service share. Threads may share it.
struct scim_parts {
  std::shared_ptr<scim::model const> model;
  scim::cursor_sealer cursors;
  std::shared_ptr<scim_ignored> ignored;
};

/// SCIM 2.0 (RFC 7643, RFC 7644, RFC 9865) over a directory. Any thread may use it.
class scim_service {
 public:
  /// Keys of cursors are derived from `secret`. `report` is called with lines for people, on any
  /// thread; it may be empty.
  scim_service(std::shared_ptr<scim::model const> model, std::unique_ptr<store::directory> in,
               std::span<std::byte const> secret,
               std::function<void(std::string_view)> report = {});
  ~scim_service();
  scim_service(scim_service const&) = delete;
  auto operator=(scim_service const&) -> scim_service& = delete;

  using answer_to = std::move_only_function<void(scim_answer)>;

  /// Calls `to` once: before this returns, or later and on a thread of the directory. What can be
  /// read quickly is read here when the caller has the time for it.
  void handle(scim_request request, bool has_time, answer_to to);

  /// Calls `done` once when it is known whether the directory works, perhaps on a thread of the
  /// directory, and notes what came of it: it is read, and where it fails, something is written
  /// that is gone again.
  void probe(std::move_only_function<void()> done);
  /// By what requests and probes see of the directory.
  [[nodiscard]] auto health() -> store::store_health& { return health_; }

  [[nodiscard]] auto model() const -> scim::model const& { return *parts_->model; }
  [[nodiscard]] auto ignored() const -> scim_ignored const& { return *parts_->ignored; }

 private:
  struct waiting_call;

  void read(waiting_call waiting, bool has_time);
  void write(waiting_call waiting);
  void note(store::store_error const& error);

  std::shared_ptr<scim_parts const> parts_;
  memory_budget requests_;  // contents that wait for the directory
  memory_budget answers_;   // made by reads, not yet with the threads of their clients
  store::store_health health_{{"the SCIM directory fails ({})", "the SCIM directory works again"}};
  std::unique_ptr<store::directory> directory_;  // gone first: its work uses the parts
};

/// The key of cursors for one purpose.
[[nodiscard]] auto cursor_key_of(std::span<std::byte const> secret, std::string_view purpose)
    -> scim::cursor_key;

/// An answer in the form of an error of SCIM (RFC 7644, section 3.12).
[[nodiscard]] auto scim_error_answer(scim::error const& error) -> scim_answer;

/// Calls an answer `application/json` where `accept`, the field of the request, wants that more
/// than `application/scim+json` (RFC 7644, section 3.8; RFC 9110, section 12.5.1): by its quality,
/// and then by how closely it is named. Where it says nothing, and where neither is accepted, it
/// stays `application/scim+json`.
void set_accepted_type(scim_answer& answer, std::string_view accept);

/// Reads the files that `schemas` names and makes the model of them. An error is one line for
/// people.
[[nodiscard]] auto make_scim_model(scim_config const& settings)
    -> result<std::shared_ptr<scim::model const>, std::string>;

}  // namespace tidegate::gateway
