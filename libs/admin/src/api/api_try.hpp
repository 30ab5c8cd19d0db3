// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/proxy/control.hpp>
#include "http.hpp"

#include <tidegate/engine/loop.hpp>

#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>

namespace tidegate::gateway {

class probe_connection;

/// Sends requests through a listener of this gateway, as any client on this machine could, and
/// answers with what came back:
///
///     POST /api/v1/try  {"method": "GET", "path": "/a", "host": "a.example",
///                        "fields": [["Name", "value"]], "body": "…"}
///
/// All but `path` may be left out. It connects to nothing else. Time, content and number are
/// bounded.
class try_api {
 public:
  /// `seen` outlives it.
  explicit try_api(control const& seen);
  ~try_api();
  try_api(try_api const&) = delete;
  auto operator=(try_api const&) -> try_api& = delete;

  // It is noted what was sent, and the status of the response or of the reply where there was none,
  // when the method may change something.

  /// `reply` is called once, on the thread of the loop, perhaps before this returns, and never when
  /// the gateway ends.
  void answer(admin_request const& request, admin_note note, admin_reply reply);

 private:
  friend class probe_connection;

  control const& control_;
  std::unordered_map<probe_connection*, std::unique_ptr<probe_connection>> open_;
};

}  // namespace tidegate::gateway
