// SPDX-License-Identifier: Apache-2.0
#include "reader/parts.hpp"

namespace tidegate::gateway {

namespace {

void read_fields(option_reader& in, section const& top, config& made) {
  auto const fields = in.open_at(top, "fields");
  auto const version = in.take(fields, "ratelimit", read_choice);
  if (version == "none") {
    made.fields.ratelimit = std::nullopt;
  } else if (version == "draft-07") {
    made.fields.ratelimit = ratelimit::draft::draft_07;
  }
  made.fields.legacy = in.take_or_default(fields, "legacy", read_boolean);
}

}  // namespace

void read_http(option_reader& in, section const& top, config& made) {
  read_fields(in, top, made);
  auto const http = in.open_at(top, "http");
  made.http = {
      .header_timeout = in.take_or_default(http, "header-timeout", read_duration),
      .body_timeout = in.take_or_default(http, "body-timeout", read_duration),
      .idle_timeout = in.take_or_default(http, "idle-timeout", read_duration),
      .max_header_size = in.take_or_default(http, "max-header-size", read_size),
      .max_headers = in.take_or_default(http, "max-headers", read_integer),
      .max_uri = in.take_or_default(http, "max-uri", read_size),
      .max_body = in.take(http, "max-body", read_size),
      .max_connections = in.take_or_default(http, "max-connections", read_integer),
      .refuses_ambiguous_paths =
          in.take_or_default(http, "ambiguous-paths", read_choice) == "refuse",
      .max_buffered = in.take_or_default(http, "max-buffered", read_size),
  };
}

}  // namespace tidegate::gateway
