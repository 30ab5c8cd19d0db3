// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "observe/access_log_line.hpp"
#include "request/request_context.hpp"

namespace tidegate::gateway {

/// What a client was told before its request was over.
struct early_answer {
  int status = 0;  ///< 0: nothing
  std::size_t octets = 0;
  std::string_view reason{};  ///< a literal
};

/// The line of the access log for one request, written in parts as they become known.
class exchange_log {
 public:
  /// For the next request, of which nothing is logged unless `begin` is called.
  void reset() noexcept { line_.clear(); }
  void begin(request_context const& context, http::ip_address const& client,
             std::string_view protocol);
  [[nodiscard]] auto is_on() const noexcept -> bool { return !line_.empty(); }

  /// Which server is asked.
  void set_server(std::string_view authority) {
    if (is_on()) {
      server_.assign(authority);
    }
  }
  /// What became of a request with a key; `id` is empty where none could be read.
  void set_key(std::string id, std::string_view outcome) {
    if (is_on()) {
      key_id_ = std::move(id);
      key_outcome_ = outcome;
    }
  }
  /// The line so far, for what policies said.
  [[nodiscard]] auto line() noexcept -> std::string& { return line_; }
  /// The line, complete. `local_octets` of content are of the gateway itself.
  [[nodiscard]] auto finish(request_context const& context, early_answer const& early,
                            std::size_t local_octets) -> std::string const&;

 private:
  std::string line_;  // so far; empty while nothing is logged
  std::string server_;
  std::string key_id_;
  std::string_view key_outcome_;
};

}  // namespace tidegate::gateway
