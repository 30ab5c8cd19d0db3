// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/local_reply.hpp"

#include <tidegate/wire/http1_head.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Requests of gRPC, whose clients read the outcome of a call from `grpc-status` and not from the
/// status of HTTP.
namespace tidegate::gateway {

enum class grpc_kind : std::uint8_t { none, grpc, web, web_text };

/// What a request is, by its Content-Type.
[[nodiscard]] auto grpc_kind_of(wire::request_head const& request) -> grpc_kind;

/// The code of gRPC for a status that we refuse a request with.
[[nodiscard]] auto grpc_status_of(int status) noexcept -> int;

/// How long a call may take, by the value of `grpc-timeout`; nothing when it is malformed.
[[nodiscard]] auto parse_grpc_timeout(std::string_view value)
    -> std::optional<std::chrono::nanoseconds>;

/// The value of `grpc-timeout`, and whether there are several.
struct grpc_timeout_field {
  std::string_view value{};
  std::size_t count = 0;
};
[[nodiscard]] auto find_grpc_timeout(wire::request_head const& request) -> grpc_timeout_field;

/// Appends `text` as the value of `grpc-message`: printable ASCII, the rest in percent-encoding.
void append_grpc_message(std::string& out, std::string_view text);

/// The trailers that say how a call has ended.
void append_grpc_end(std::string& out, int grpc_status, std::string_view message);

/// Makes a refusal one that clients of gRPC understand: status 200 and no content, the outcome in
/// the head. Its lines are written to `lines`.
void become_grpc(local_reply& reply, grpc_kind kind, std::string& lines);

}  // namespace tidegate::gateway
