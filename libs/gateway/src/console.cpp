// SPDX-License-Identifier: Apache-2.0
#include "console.hpp"

#include <tidegate/explain/fields.hpp>
#include <tidegate/explain/header_text.hpp>
#include <tidegate/http/json_string.hpp>

#include <sys/random.h>

#include <array>

namespace tidegate::gateway {

namespace {

/// Nobody else can guess it. Empty when the system gives no random numbers.
[[nodiscard]] auto make_nonce() -> std::string {
  std::array<unsigned char, 16> octets{};
  if (::getrandom(octets.data(), octets.size(), 0) != static_cast<ssize_t>(octets.size())) {
    return {};
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string nonce;
  for (auto const octet : octets) {
    nonce += {digits[octet >> 4U], digits[octet & 15U]};
  }
  return nonce;
}

}  // namespace

auto console_figures(std::string_view metrics, std::chrono::system_clock::time_point now)
    -> std::string {
  auto const at =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  std::string out = "{\"at\":" + std::to_string(at) + ",\"metrics\":";
  http::append_json_string(out, metrics);
  out += "}";
  return out;
}

auto console_page(std::string_view figures) -> admin_answer {
  auto const nonce = make_nonce();
  if (nonce.empty()) {
    return admin_problem(503, "The system gives no random numbers.");
  }
  admin_answer page{200, "text/html; charset=utf-8", {}};
  page.security_policy = "default-src 'none'; script-src 'nonce-" + nonce + "'; style-src 'nonce-" +
                         nonce +
                         "'; connect-src 'self'; img-src data:; base-uri 'none'; "
                         "form-action 'none'; frame-ancestors 'none'";
  auto& out = page.content;
  for (auto piece : console_pieces()) {
    while (!piece.empty()) {
      auto const plain = piece.substr(0, piece.find_first_of("\1\2"));
      out.append(plain);
      piece.remove_prefix(plain.size());
      if (piece.empty()) {
        break;
      }
      if (piece.front() == '\1') {
        out.append(nonce);
      } else {
        for (char const c : figures) {  // an element ends at "</"
          c == '<' ? out.append("\\u003c") : out.append(1, c);
        }
      }
      piece.remove_prefix(1);
    }
  }
  return page;
}

auto explain_pasted(std::string_view text, std::chrono::system_clock::time_point now)
    -> admin_answer {
  auto const read = explain::read_header_text(text);
  auto const findings = explain::explain_fields({read.fields, read.status},
                                                std::chrono::floor<std::chrono::seconds>(now));
  return {200, "application/json", explain::to_json(findings)};
}

}  // namespace tidegate::gateway
