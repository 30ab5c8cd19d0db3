// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

namespace tidegate::gateway {

/// An answer of the gateway itself, as a phase says it; the exchange alone sends it. Its texts are
/// literals, of the configuration, or in buffers of the thread, which hold until it is sent.
struct local_reply {
  int status = 200;
  std::string_view reason{};  ///< why the gateway answers, for the access log; a literal
  std::string_view content{};
  /// What HTTP/1.1 says of status and content, when it was made before; see `append_content_head`.
  std::string_view content_head{};
  std::chrono::nanoseconds retry_after{0};  ///< 0: there is no Retry-After
  bool has_resets = true;                   ///< false: RateLimit of draft-09 has no `t`
};

}  // namespace tidegate::gateway
