// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim_server/service.hpp>

#include <tidegate/engine/loop.hpp>
#include <tidegate/wire/http1_body.hpp>

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

namespace tidegate::gateway {

class exchange;

/// A request to a service of our own that is under way.
struct service_call {
  service_call(exchange& asks, scim_request wanted, wire::body_decoder framing)
      : of(&asks), request(std::move(wanted)), decoder(framing) {}

  exchange* of;  ///< null when nobody waits any more
  scim_request request;
  wire::body_decoder decoder;
  bool waits = false;            ///< until the client has taken other answers
  std::size_t asked_octets = 0;  ///< of the content, which the directory has by now
};

/// Whether a URL says more than scheme and host.
[[nodiscard]] inline auto has_path(std::string_view url) -> bool {
  return url.find('/', url.find("//") + 2) != std::string_view::npos;
}

/// Has `take(answer)` called on the thread of `loop`, wherever the answer comes from.
template <class Take>
[[nodiscard]] auto answered_on(engine::loop& loop, Take take) -> scim_service::answer_to {
  return [&loop, take = std::move(take)](scim_answer answer) {
    if (loop.runs_here()) {
      take(std::move(answer));
      return;
    }
    auto const carried = std::make_shared<scim_answer>(std::move(answer));
    loop.post([take, carried] { take(std::move(*carried)); });
  };
}

}  // namespace tidegate::gateway
