// SPDX-License-Identifier: Apache-2.0
#include "console.hpp"

#include "random_hex.hpp"

#include <tidegate/explain/fields.hpp>
#include <tidegate/explain/header_text.hpp>
#include <tidegate/json/string.hpp>

#include <algorithm>

namespace tidegate::gateway {

namespace {

/// The lines that say something of this moment: without what metrics are for and of which kind.
[[nodiscard]] auto without_comments(std::string_view metrics) -> std::string {
  std::string out;
  out.reserve(metrics.size());
  while (!metrics.empty()) {
    auto const line = metrics.substr(0, std::min(metrics.find('\n'), metrics.size() - 1) + 1);
    if (!line.starts_with('#')) {
      out.append(line);
    }
    metrics.remove_prefix(line.size());
  }
  return out;
}

}  // namespace

auto console_figures(std::string_view metrics, std::string_view history,
                     std::chrono::system_clock::time_point now) -> std::string {
  auto const at =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  std::string out = "{\"at\":" + std::to_string(at) + ",\"metrics\":";
  auto const values = without_comments(metrics);
  out.reserve(out.size() + values.size() * 5 / 4);
  json::append_string(out, values);
  out.append(",\"history\":").append(history).append("}");
  return out;
}

namespace {

/// JSON within an element of HTML, which ends at "</".
void append_json(std::string& out, std::string_view json) {
  for (char const c : json) {
    c == '<' ? out.append("\\u003c") : out.append(1, c);
  }
}

/// What a page has in it besides its nonce, each as JSON.
struct page_values {
  std::string_view figures{};
  std::string_view caller{};
  std::string_view about{};
};

[[nodiscard]] auto page_of(std::span<std::string_view const> pieces, page_values const& values)
    -> admin_answer {
  auto const nonce = random_hex();
  if (nonce.empty()) {
    return admin_problem(503, "The system has no random numbers.");
  }
  admin_answer page{200, "text/html; charset=utf-8", {}};
  page.security_policy = "default-src 'none'; script-src 'nonce-" + nonce + "'; style-src 'nonce-" +
                         nonce +
                         "'; connect-src 'self'; img-src data:; base-uri 'none'; "
                         "form-action 'none'; frame-ancestors 'none'";
  auto& out = page.content;
  for (auto piece : pieces) {
    while (!piece.empty()) {
      auto const plain = piece.substr(0, piece.find_first_of("\1\2\3\4"));
      out.append(plain);
      piece.remove_prefix(plain.size());
      if (piece.empty()) {
        break;
      }
      switch (piece.front()) {
        case '\1': out.append(nonce); break;
        case '\2': append_json(out, values.figures); break;
        case '\3': append_json(out, values.caller); break;
        default: append_json(out, values.about); break;
      }
      piece.remove_prefix(1);
    }
  }
  return page;
}

}  // namespace

auto console_page(std::string_view figures, std::string_view caller, std::string_view about)
    -> admin_answer {
  return page_of(console_pieces(), {figures, caller, about});
}

auto login_page() -> admin_answer {
  return page_of(login_pieces(), {});
}

auto explain_pasted(std::string_view text, std::chrono::system_clock::time_point now)
    -> admin_answer {
  auto const read = explain::read_header_text(text);
  auto const findings = explain::explain_fields({read.fields, read.status},
                                                std::chrono::floor<std::chrono::seconds>(now));
  return {200, "application/json", explain::to_json(findings)};
}

}  // namespace tidegate::gateway
