// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http1_head.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// Memory that all connections of a thread share. What is in it is gone when the loop runs the next
/// handler.
struct turn_buffers {
  static constexpr std::size_t input_octets_max = 64 * 1024;
  std::array<char, input_octets_max> input;  // NOLINT: what is not read is not looked at
  wire::request_head request;
  wire::response_head response;
  std::string to_client;
  std::string http2_output;
  std::string http2_text;
  std::string path;
  std::string field_lines;
  std::string text;
  std::string reply_lines;              // of a reply that a phase makes
  std::vector<std::string_view> lines;  // of one field
};

}  // namespace tidegate::gateway
