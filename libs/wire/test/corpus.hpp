// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire.hpp>

#include <charconv>
#include <cstddef>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The corpus of requests in test/corpus, and a server that reads them as a connection would.
namespace tidegate::TIDEGATE_ABI::wire::test {

struct corpus_row {
  std::string expected;
  std::string name;
  std::string bytes;
};

/// Undoes the escapes that corpus/requests.txt describes.
[[nodiscard]] inline auto unescaped(std::string_view text) -> std::string {
  std::string out;
  auto number = [&text](std::size_t at, std::size_t size, int base) {
    std::size_t value = 0;
    std::from_chars(text.data() + at, text.data() + at + size, value, base);
    return value;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'r': out += '\r'; break;
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case '0': out += '\0'; break;
      case 'x':
        out += static_cast<char>(number(i + 1, 2, 16));
        i += 2;
        break;
      case '{': {
        auto const star = text.find('*', i);
        out.append(number(i + 1, star - i - 1, 10), text[star + 1]);
        i = star + 2;
        break;
      }
      default: out += text[i];
    }
  }
  return out;
}

[[nodiscard]] inline auto read_corpus() -> std::vector<corpus_row> {
  std::vector<corpus_row> rows;
  std::ifstream in(TIDEGATE_SOURCE_DIR "/libs/wire/test/corpus/requests.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    auto const first = line.find(" | ");
    auto const second = line.find(" | ", first + 3);
    rows.push_back({line.substr(0, first), line.substr(first + 3, second - first - 3),
                    unescaped(std::string_view(line).substr(second + 3))});
  }
  return rows;
}

/// Reads requests as they come, one after the other, and says in the words of the corpus what came
/// of them. `ends` are the sizes of `bytes` that are there at each step.
[[nodiscard]] inline auto serve(std::string_view bytes, std::span<std::size_t const> ends)
    -> std::string {
  request_head head;
  body_decoder body;
  bool in_body = false;
  std::size_t served = 0;
  std::size_t at = 0;    // of the message or the part of the body that is not consumed yet
  std::size_t seen = 0;  // behind it
  auto refused = [&](int status, std::string_view fault, std::size_t offset) {
    return std::to_string(status) + " " + std::string(fault) + " " + std::to_string(at + offset);
  };
  for (auto const end : ends) {
    // An exact copy, so that a look behind it is seen.
    std::vector<char> const copy(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(end));
    std::string_view const there(copy.data(), copy.size());
    while (at < end) {
      auto const rest = there.substr(at);
      if (in_body) {
        auto const progress = body.feed(rest);
        if (progress.state == body_state::refused) {
          return refused(400, to_string(progress.fault), progress.consumed);
        }
        at += progress.consumed;
        in_body = progress.state != body_state::done;
        served += in_body ? 0 : 1;
        if (in_body && progress.consumed == 0) {
          break;
        }
        continue;
      }
      auto const status = parse_request_head(rest, seen, {}, head);
      if (status.state == head_state::refused) {
        return refused(status_of(status.fault), to_string(status.fault), status.size);
      }
      if (status.state == head_state::http2_preface) {
        return "preface";
      }
      if (status.state == head_state::incomplete) {
        seen = status.size;
        break;
      }
      at += status.size;
      seen = 0;
      body = body_decoder(head.body());
      in_body = !body.done();
      served += in_body ? 0 : 1;
    }
  }
  bool const complete = served != 0 && !in_body && at == bytes.size();
  return complete ? "forwarded" : "incomplete";
}

}  // namespace tidegate::TIDEGATE_ABI::wire::test
