// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/record.hpp>

#include <tidegate/base/ascii.hpp>

#include <algorithm>
#include <array>

namespace tidegate::TIDEGATE_ABI::idempotency {

namespace {

constexpr std::uint8_t record_version = 1;
constexpr std::uint8_t record_version_with_origin = 2;
constexpr std::uint8_t response_version = 1;
constexpr std::uint8_t response_version_with_trailers = 2;

/// `time + duration`, or the last moment there is.
[[nodiscard]] auto later(wall_time time, std::chrono::seconds duration) noexcept -> wall_time {
  auto const from = std::max(time, wall_time());  // below it the difference would overflow
  auto const room = std::chrono::floor<std::chrono::seconds>(wall_time::max() - from);
  return duration > room ? wall_time::max() : time + duration;
}

[[nodiscard]] auto lists(std::string_view connection, std::string_view name) noexcept -> bool {
  while (!connection.empty()) {
    if (equal_ignoring_case(http::take_element(connection), name)) {
      return true;
    }
  }
  return false;
}

[[nodiscard]] auto is_status(std::uint64_t status) noexcept -> bool {
  return status >= 200 && status <= 599;
}

// ---- writing ----

void append_number(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out.push_back(static_cast<char>((value & 0x7f) | 0x80));
  }
  out.push_back(static_cast<char>(value));
}

/// Numbers of either sign, small where they are near zero.
void append_signed(std::string& out, std::int64_t value) {
  auto const bits = static_cast<std::uint64_t>(value);
  append_number(out, value < 0 ? ~(bits << 1) : bits << 1);
}

void append_text(std::string& out, std::string_view text) {
  append_number(out, text.size());
  out += text;
}

void append_time(std::string& out, wall_time time) {
  append_signed(out, time.time_since_epoch().count());
}

// ---- reading ----

/// Reads from front to back. After a fault everything it returns is empty, so that the caller
/// asks once at the end.
class octet_reader {
 public:
  explicit octet_reader(std::string_view octets) noexcept : octets_(octets) {}

  [[nodiscard]] auto number(std::uint64_t max = UINT64_MAX) noexcept -> std::uint64_t {
    auto const begin = position_;
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (failed_) {
        return 0;
      }
      if (position_ == octets_.size()) {
        return fail(format_fault::truncated, position_);
      }
      auto const octet = static_cast<std::uint8_t>(octets_[position_++]);
      // The tenth octet has one bit; and the last one is never 0, which would be a second spelling.
      if ((shift == 63 && octet > 1) || (octet == 0 && shift > 0)) {
        return fail(format_fault::invalid_value, begin);
      }
      value |= static_cast<std::uint64_t>(octet & 0x7f) << shift;
      if (octet < 0x80) {
        break;
      }
    }
    return value <= max ? value : fail(format_fault::invalid_value, begin);
  }

  [[nodiscard]] auto signed_number() noexcept -> std::int64_t {
    auto const bits = number();
    return static_cast<std::int64_t>((bits & 1) != 0 ? ~(bits >> 1) : bits >> 1);
  }

  [[nodiscard]] auto time() noexcept -> wall_time {
    return wall_time(std::chrono::milliseconds(signed_number()));
  }

  [[nodiscard]] auto octets(std::size_t size) noexcept -> std::string_view {
    if (failed_) {
      return {};
    }
    if (octets_.size() - position_ < size) {
      fail(format_fault::truncated, octets_.size());
      return {};
    }
    auto const taken = octets_.substr(position_, size);
    position_ += size;
    return taken;
  }

  [[nodiscard]] auto text() noexcept -> std::string_view {
    auto const size = number();
    // Compared before it is used, so that a size without end reserves nothing.
    if (!failed_ && size > octets_.size() - position_) {
      fail(format_fault::truncated, octets_.size());
    }
    return failed_ ? std::string_view{} : octets(static_cast<std::size_t>(size));
  }

  /// What was read last, from `begin` on, must hold this.
  void require(bool holds, std::size_t begin) noexcept {
    if (!failed_ && !holds) {
      fail(format_fault::invalid_value, begin);
    }
  }

  /// From 1 to `newest`; 0 after a fault.
  auto version(std::uint8_t newest) noexcept -> std::uint8_t {
    auto const first = octets(1);
    auto const read = first.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(first.front());
    if ((read == 0 || read > newest) && !failed_) {
      fail(format_fault::unknown_version, 0);
    }
    return failed_ ? std::uint8_t{0} : read;
  }

  void end() noexcept {
    if (!failed_ && position_ != octets_.size()) {
      fail(format_fault::trailing_octets, position_);
    }
  }

  [[nodiscard]] auto position() const noexcept -> std::size_t { return position_; }
  [[nodiscard]] auto failed() const noexcept -> bool { return failed_; }
  [[nodiscard]] auto error() const noexcept -> format_error const& { return error_; }

 private:
  auto fail(format_fault fault, std::size_t offset) noexcept -> std::uint64_t {
    failed_ = true;
    error_ = {fault, offset};
    return 0;
  }

  std::string_view octets_;
  std::size_t position_ = 0;
  bool failed_ = false;
  format_error error_;
};

/// What every record keeps.
[[nodiscard]] auto is_consistent(record const& r) noexcept -> bool {
  bool const answered = r.state == record_state::completed || r.state == record_state::tombstone;
  bool const has_reason =
      r.state == record_state::unknown || (r.state == record_state::dispatched && r.attempt > 1);
  return has_reason == (r.reason != unknown_reason::none) &&
         (answered ? r.status == 0 || is_status(r.status) : r.status == 0) &&
         (!r.replayable || (r.state == record_state::completed && r.status != 0)) &&
         r.attempt > 0 && (r.state == record_state::dispatched || r.lease_until == wall_time());
}

}  // namespace

auto name_of(record_state state) noexcept -> std::string_view {
  switch (state) {
    case record_state::dispatched: return "dispatched";
    case record_state::completed: return "completed";
    case record_state::unknown: return "unknown";
    case record_state::tombstone: break;
  }
  return "tombstone";
}

auto name_of(unknown_reason reason) noexcept -> std::string_view {
  switch (reason) {
    case unknown_reason::none: return "none";
    case unknown_reason::no_answer: return "no-answer";
    case unknown_reason::cut_answer: return "cut-answer";
    case unknown_reason::timed_out: return "timed-out";
    case unknown_reason::upstream_failed: return "upstream-failed";
    case unknown_reason::gateway_stopped: break;
  }
  return "gateway-stopped";
}

auto expires(record const& record) noexcept -> wall_time {
  return later(record.changed, record.ttl);
}

auto forgotten(record const& record) noexcept -> wall_time {
  auto const since = record.state == record_state::dispatched ? record.lease_until : record.changed;
  return later(later(since, record.ttl), record.tombstone);
}

auto is_kept_field(std::string_view name,
                   std::span<std::string_view const> connection_options) noexcept -> bool {
  constexpr std::array<std::string_view, 20> left_out = {
      "connection",
      "keep-alive",
      "proxy-connection",
      "te",
      "trailer",
      "transfer-encoding",
      "upgrade",
      "set-cookie",
      "www-authenticate",
      "proxy-authenticate",
      "authentication-info",
      "proxy-authentication-info",
      "alt-svc",
      "ratelimit",
      "ratelimit-policy",
      "x-ratelimit-limit",
      "x-ratelimit-remaining",
      "x-ratelimit-reset",
      "idempotent-replayed",
      "idempotency-status",
  };
  return std::none_of(left_out.begin(), left_out.end(),
                      [name](auto other) { return equal_ignoring_case(name, other); }) &&
         std::none_of(connection_options.begin(), connection_options.end(),
                      [name](auto options) { return lists(options, name); });
}

response_recorder::response_recorder(std::uint16_t status, std::span<http::field const> fields,
                                     std::size_t body_max)
    : body_max_(body_max) {
  response_.status = status;
  std::vector<std::string_view> connection_options;
  for (auto const& field : fields) {
    if (equal_ignoring_case(field.name, "connection")) {
      connection_options.emplace_back(field.value);
    }
  }
  for (auto const& field : fields) {
    if (equal_ignoring_case(field.name, "content-type")) {
      response_.body_kept =
          response_.body_kept &&
          !equal_ignoring_case(http::media_type(field.value), "text/event-stream");
    }
    if (!is_kept_field(field.name, connection_options)) {
      continue;
    }
    if (response_.fields.size() == stored_fields_max) {
      response_.body_kept = false;  // without all its fields it is not the response any more
      break;
    }
    response_.fields.push_back(field);
  }
}

void response_recorder::add(std::string_view piece) {
  response_.body_size += piece.size();
  if (response_.body_kept && response_.body_size <= body_max_) {
    response_.body += piece;
    return;
  }
  response_.body_kept = false;
  response_.body = {};
}

void response_recorder::set_trailers(std::span<http::field const> trailers) {
  auto const kept = trailers.first(std::min(trailers.size(), stored_fields_max));
  response_.trailers.assign(kept.begin(), kept.end());
}

auto to_string(format_error const& error) -> std::string {
  auto const what = [&]() -> std::string_view {
    switch (error.fault) {
      case format_fault::unknown_version: return "written by another version";
      case format_fault::truncated: return "ends too early";
      case format_fault::trailing_octets: return "goes on behind its end";
      case format_fault::invalid_value: break;
    }
    return "has a value that cannot be";
  }();
  return std::string(what) + " at offset " + std::to_string(error.offset);
}

void append_record(std::string& out, record const& record) {
  out.push_back(
      static_cast<char>(record.origin.empty() ? record_version : record_version_with_origin));
  append_number(out, static_cast<std::uint64_t>(record.state));
  append_number(out, static_cast<std::uint64_t>(record.reason));
  append_number(out, record.token);
  append_number(out, record.attempt);
  append_number(out, record.status);
  append_number(out, record.replayable ? 1 : 0);
  append_time(out, record.created);
  append_time(out, record.changed);
  append_time(out, record.lease_until);
  append_signed(out, record.ttl.count());
  append_signed(out, record.tombstone.count());
  append_text(out, record.fingerprint.rule);
  for (auto const& part : record.fingerprint.parts) {
    out.append(reinterpret_cast<char const*>(part.data()), part.size());
  }
  if (!record.origin.empty()) {
    append_text(out, record.origin.route);
    append_text(out, record.origin.principal);
    append_text(out, record.origin.method);
    append_text(out, record.origin.host);
    append_text(out, record.origin.path);
  }
}

auto read_record(std::string_view octets) -> result<record, format_error> {
  octet_reader in(octets);
  auto const version = in.version(record_version_with_origin);
  record r;
  r.state =
      static_cast<record_state>(in.number(static_cast<std::uint64_t>(record_state::tombstone)));
  r.reason = static_cast<unknown_reason>(
      in.number(static_cast<std::uint64_t>(unknown_reason::gateway_stopped)));
  r.token = in.number();
  r.attempt = static_cast<std::uint32_t>(in.number(UINT32_MAX));
  r.status = static_cast<std::uint16_t>(in.number(599));
  r.replayable = in.number(1) == 1;
  r.created = in.time();
  r.changed = in.time();
  r.lease_until = in.time();
  auto const durations = in.position();
  r.ttl = std::chrono::seconds(in.signed_number());
  r.tombstone = std::chrono::seconds(in.signed_number());
  in.require(r.ttl.count() >= 0 && r.tombstone.count() >= 0, durations);
  auto const rule = in.position();
  r.fingerprint.rule = in.text();
  in.require(fingerprint_rule::parse(r.fingerprint.rule).has_value(), rule);
  for (auto& part : r.fingerprint.parts) {
    auto const digest = in.octets(part.size());
    std::transform(digest.begin(), digest.end(), part.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
  }
  if (version == record_version_with_origin) {
    auto const begin = in.position();
    for (auto* const text :
         {&r.origin.route, &r.origin.principal, &r.origin.method, &r.origin.host, &r.origin.path}) {
      *text = in.text();
      in.require(text->size() <= origin_text_max, begin);
    }
    in.require(!r.origin.empty(), begin);  // which has the other form
  }
  in.require(is_consistent(r), 1);
  in.end();
  if (in.failed()) {
    return failure(in.error());
  }
  return r;
}

namespace {

void append_fields(std::string& out, std::span<http::field const> fields) {
  append_number(out, fields.size());
  for (auto const& field : fields) {
    append_text(out, field.name);
    append_text(out, field.value);
  }
}

void read_fields(octet_reader& in, std::vector<http::field>& fields) {
  for (auto left = in.number(stored_fields_max); left > 0 && !in.failed(); --left) {
    auto const begin = in.position();
    auto const name = in.text();
    auto const value = in.text();
    in.require(http::is_token(name) && http::is_field_value(value), begin);
    fields.push_back({std::string(name), std::string(value)});
  }
}

}  // namespace

void append_response(std::string& out, stored_response const& response) {
  bool const has_trailers = !response.trailers.empty();
  out.push_back(
      static_cast<char>(has_trailers ? response_version_with_trailers : response_version));
  append_number(out, response.status);
  append_fields(out, response.fields);
  if (has_trailers) {
    append_fields(out, response.trailers);
  }
  append_number(out, response.body_kept ? 1 : 0);
  append_number(out, response.body_size);
  out += response.body;
}

auto read_response(std::string_view octets) -> result<stored_response, format_error> {
  octet_reader in(octets);
  bool const has_trailers =
      !octets.empty() && static_cast<std::uint8_t>(octets[0]) == response_version_with_trailers;
  in.version(has_trailers ? response_version_with_trailers : response_version);
  stored_response r;
  auto const status = in.position();
  r.status = static_cast<std::uint16_t>(in.number(599));
  in.require(is_status(r.status), status);
  read_fields(in, r.fields);
  if (has_trailers) {
    auto const begin = in.position();
    read_fields(in, r.trailers);
    in.require(!r.trailers.empty(), begin);  // else the first version would say it
  }
  r.body_kept = in.number(1) == 1;
  r.body_size = in.number();
  if (r.body_kept && !in.failed()) {
    auto const size = std::min<std::uint64_t>(r.body_size, octets.size());
    r.body = in.octets(
        static_cast<std::size_t>(size));  // too few octets in any case if it is the latter
  }
  in.end();
  if (in.failed()) {
    return failure(in.error());
  }
  return r;
}

}  // namespace tidegate::TIDEGATE_ABI::idempotency
