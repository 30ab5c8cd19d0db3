// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "observe/metrics.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/scim_server/service.hpp>
#include <tidegate/wire/http1_body.hpp>

namespace tidegate::gateway {

class exchange;

/// One request to the SCIM service: collects the content, asks, and gives the answer to the
/// exchange. What was asked for is done also when the client has gone.
class scim_phase {
 public:
  scim_phase(exchange& owner, scim_request request, wire::body_framing framing)
      : owner_(&owner), request_(std::move(request)), decoder_(framing) {}

  /// Why the content is refused by its declared length; empty when it is not.
  [[nodiscard]] auto refusal_by_length(wire::body_framing framing) const
      -> std::optional<scim_answer>;
  /// Takes content, framed as it came; what to answer when it is too long.
  [[nodiscard]] auto take_content(std::string_view framed) -> std::optional<scim_answer>;
  /// Asks the service. `has_time`: it may read on this thread.
  static void ask(std::shared_ptr<scim_phase> const& self, scim_service& service,
                  engine::loop& loop, bool has_time);
  /// The client has to take other answers first.
  void wait() noexcept { waits_ = true; }
  /// True when it was waiting.
  [[nodiscard]] auto stop_waiting() noexcept -> bool { return std::exchange(waits_, false); }
  [[nodiscard]] auto is_waiting() const noexcept -> bool { return waits_; }
  /// No client waits for the answer any more.
  void detach() noexcept { owner_ = nullptr; }

  /// What is kept in memory of the content, here or by the directory.
  [[nodiscard]] auto held_octets() const noexcept -> std::size_t {
    return request_.content.size() + asked_octets_;
  }

 private:
  [[nodiscard]] auto too_long() const -> scim_answer;

  exchange* owner_;
  scim_request request_;
  wire::body_decoder decoder_;
  bool waits_ = false;
  std::size_t asked_octets_ = 0;  // of the content, which the directory has by now
};

}  // namespace tidegate::gateway
