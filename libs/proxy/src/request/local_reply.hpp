// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/problem.hpp>

#include <chrono>
#include <memory>

namespace tidegate::gateway {

/// An answer of the gateway itself, as a phase says it; the exchange alone sends it. Its texts are
/// literals, of the configuration, or in buffers of the thread, which hold until it is sent.
struct local_reply {
  int status = 200;
  std::string_view reason{};  ///< why the gateway answers, for the access log; a literal
  /// Empty: a field line says it, and status codes without content get no Content-Length.
  std::string_view content_type = http::problem_json;
  std::string_view content_begin{};  ///< what comes before `content`
  std::string_view content{};
  /// What HTTP/1.1 says of status and content, when it was made before; see `append_content_head`.
  std::string_view content_head{};
  std::string_view field_lines{};           ///< complete lines that only this answer has
  std::chrono::nanoseconds retry_after{0};  ///< 0: there is no Retry-After
  bool has_resets = true;                   ///< false: RateLimit of draft-09 has no `t`
  bool is_service = false;                  ///< its content counts as that of an upstream
  bool closes = false;                      ///< the rest of the request is not waited for
  /// Keeps `content` for as long as it has to wait, so that no copy of it is made.
  std::shared_ptr<void const> owner{};
};

/// Where phases write the texts of a reply. Of the thread: what is in it is gone with the turn.
struct reply_texts {
  std::string& content;
  std::string& lines;
};

/// A problem without a type of its own.
[[nodiscard]] inline auto problem_reply(reply_texts texts, std::string_view reason, int status,
                                        std::string_view title, std::string_view detail)
    -> local_reply {
  texts.content.clear();
  http::problem_writer(texts.content, {.title = title, .status = status, .detail = detail});
  return {.status = status, .reason = reason, .content = texts.content};
}

}  // namespace tidegate::gateway
