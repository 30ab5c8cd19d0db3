// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http.hpp"

#include <chrono>
#include <span>
#include <string>
#include <string_view>

namespace tidegate::gateway {

/// The page, one piece after the other; the build writes them. `\1` stands for a nonce, `\2` for
/// the first figures, `\3` for the caller and `\4` for what the gateway says of itself.
[[nodiscard]] auto console_pieces() -> std::span<std::string_view const>;
/// The same of the page that asks for a token.
[[nodiscard]] auto login_pieces() -> std::span<std::string_view const>;

/// The figures of a moment in one line of JSON: the time, all metrics without their comments, and
/// a piece of the history, which is JSON already.
[[nodiscard]] auto console_figures(std::string_view metrics, std::string_view history,
                                   std::chrono::system_clock::time_point now) -> std::string;

/// The console with what it shows first, so that it needs no second request for it. It may load
/// nothing from elsewhere, and runs nothing but its own scripts, which the nonce names. `caller` is
/// what `/api/v1/session` answers, `about` what `/api/v1/about` does.
[[nodiscard]] auto console_page(std::string_view figures, std::string_view caller,
                                std::string_view about) -> admin_answer;

/// The page for a client without a token, with nothing of the gateway in it.
[[nodiscard]] auto login_page() -> admin_answer;

/// Says what pasted fields mean.
[[nodiscard]] auto explain_pasted(std::string_view text, std::chrono::system_clock::time_point now)
    -> admin_answer;

}  // namespace tidegate::gateway
