// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a stored record, a stored response and a rule of fingerprints:
//
// - never a crash, and no memory beyond what the bytes themselves take; an error names a byte or
//   the end;
// - whatever is read is written again as the same bytes;
// - a response that is read can be sent: nothing in it ends a line;
// - every transition of a record that is read makes a record that can be read.
#include "check.hpp"

#include <tidegate/idempotency/change.hpp>
#include <tidegate/idempotency/decide.hpp>
#include <tidegate/idempotency/record.hpp>

#include <string>
#include <string_view>

namespace {

using namespace tidegate::idempotency;
using tidegate::fuzz::check;
using namespace std::chrono_literals;

void check_written(change const& c) {
  if (c.next) {
    std::string out;
    append_record(out, *c.next);
    check(read_record(out) == *c.next);
  }
}

void check_record(std::string_view octets) {
  auto const read = read_record(octets);
  if (!read) {
    check(read.error().offset <= octets.size());
    check(!to_string(read.error()).empty());
    return;
  }
  std::string out;
  append_record(out, *read);
  check(out == octets);
  check(expires(*read) >= read->changed);

  for (auto now :
       {wall_time(), read->changed, read->lease_until, expires(*read), forgotten(*read)}) {
    auto const state = state_at(*read, now);
    check(!state || now < forgotten(*read));
    if (auto const aged = expire({}, *read, now)) {
      check(holds(aged->when, &*read));
      check_written(*aged);
    }
    if (auto const resolved = resolve({}, *read, resolution::executed, now)) {
      check_written(*resolved);
    }
    if (now > wall_time::max() - 1min) {
      continue;  // a lease that begins then has no end
    }
    policy const retrying{.upstream_deduplicates = true, .retry_unknown = true};
    auto const d = decide(&*read, {.fingerprint = read->fingerprint, .token = 1}, retrying, now);
    if (d.claim) {
      check(d.verdict == verdict::run && holds(d.claim->when, &*read));
      check_written(*d.claim);
    }
    if (read->state == record_state::dispatched) {
      check_written(complete({}, *read, {}, now));
      check_written(release({}, *read, now));
      check_written(mark_unknown({}, *read, unknown_reason::cut_answer, now));
      check_written(renew({}, *read, retrying, now));
    }
  }
}

void check_response(std::string_view octets) {
  auto const read = read_response(octets);
  if (!read) {
    check(read.error().offset <= octets.size());
    return;
  }
  std::string out;
  append_response(out, *read);
  check(out == octets);
  for (auto const& field : read->fields) {
    check(!field.name.empty());
    check((field.name + field.value).find_first_of(std::string_view("\r\n\0", 3)) ==
          std::string::npos);
  }
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto const octets = std::string_view(reinterpret_cast<char const*>(data), size);
  check_record(octets);
  check_response(octets);
  if (auto const rule = fingerprint_rule::parse(octets)) {
    check(rule->text() == octets);
  }
  return 0;
}
