// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/field.hpp>
#include <tidegate/idempotency/change.hpp>
#include <tidegate/idempotency/record.hpp>

#include <gtest/gtest.h>

#include <random>

namespace tidegate::TIDEGATE_ABI::idempotency {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

auto completed_record() -> record {
  record r;
  r.state = record_state::completed;
  r.token = 0x0123'4567'89ab'cdef;
  r.attempt = 2;
  r.status = 201;
  r.replayable = true;
  r.created = wall_time(1'700'000'000'000ms);
  r.changed = wall_time(1'700'000'000'250ms);
  r.ttl = 24h;
  r.tombstone = 168h;
  r.fingerprint.parts[0][0] = std::byte{1};
  r.fingerprint.parts[3][15] = std::byte{255};
  return r;
}

auto octets_of(record const& r) -> std::string {
  std::string out;
  append_record(out, r);
  return out;
}

auto octets_of(stored_response const& r) -> std::string {
  std::string out;
  append_response(out, r);
  return out;
}

auto recorded(std::vector<http::field> const& fields, std::vector<std::string_view> const& body,
              std::size_t body_max = 1024) -> stored_response {
  response_recorder recorder(200, fields, body_max);
  for (auto piece : body) {
    recorder.add(piece);
  }
  return recorder.finish();
}

TEST(idempotency_record, is_read_as_it_was_written) {
  auto dispatched = completed_record();
  dispatched.state = record_state::dispatched;
  dispatched.status = 0;
  dispatched.replayable = false;
  dispatched.lease_until = wall_time::max();
  dispatched.reason = unknown_reason::timed_out;  // of the attempt before
  auto unknown = dispatched;
  unknown.state = record_state::unknown;
  unknown.lease_until = {};
  auto tombstone = completed_record();
  tombstone.state = record_state::tombstone;
  tombstone.replayable = false;
  auto resolved = completed_record();
  resolved.status = 0;
  resolved.replayable = false;
  auto extreme = unknown;
  extreme.token = UINT64_MAX;
  extreme.attempt = UINT32_MAX;
  extreme.created = wall_time::min();
  extreme.changed = wall_time::max();
  extreme.ttl = std::chrono::seconds::max();
  extreme.fingerprint.rule = "p2:/a0:";
  for (auto const& r : {completed_record(), dispatched, unknown, tombstone, resolved, extreme}) {
    auto const read = read_record(octets_of(r));
    ASSERT_TRUE(read.has_value()) << name_of(r.state) << ": " << to_string(read.error());
    EXPECT_EQ(*read, r) << name_of(r.state);
  }
}

auto unknown_record_with_origin() -> record {
  auto r = completed_record();
  r.state = record_state::unknown;
  r.reason = unknown_reason::no_answer;
  r.status = 0;
  r.replayable = false;
  r.origin = {"payments", "shop", "POST", "a.example", "/payments/7"};
  return r;
}

TEST(idempotency_record, says_which_request_it_is_about_until_that_was_answered) {
  auto const r = unknown_record_with_origin();
  EXPECT_EQ(read_record(octets_of(r)), r);
  for (auto change : {&request_origin::route, &request_origin::principal, &request_origin::method,
                      &request_origin::host, &request_origin::path}) {
    auto sparse = r;
    sparse.origin = {};
    sparse.origin.*change = "x";
    EXPECT_EQ(read_record(octets_of(sparse)), sparse);
  }
  auto claimed = r;
  claimed.state = record_state::dispatched;
  lookup_key const key{};
  auto const answered = complete(key, claimed, recorded({}, {}), wall_time(5ms));
  EXPECT_TRUE(answered.next->origin.empty()) << "it would make every record larger";
  EXPECT_EQ(mark_unknown(key, claimed, unknown_reason::no_answer, wall_time(5ms)).next->origin,
            r.origin);
}

TEST(idempotency_record, is_read_in_the_form_before_origins) {
  auto r = unknown_record_with_origin();
  r.origin = {};
  auto const old_form = octets_of(r);
  EXPECT_EQ(old_form.front(), 1);
  EXPECT_EQ(read_record(old_form), r);
  auto const new_form = octets_of(unknown_record_with_origin());
  EXPECT_EQ(new_form.front(), 2);
  EXPECT_EQ(new_form.substr(1, old_form.size() - 1), old_form.substr(1));
}

TEST(idempotency_record, refuses_an_origin_that_is_empty_or_too_long) {
  auto r = unknown_record_with_origin();
  r.origin.path.assign(origin_text_max, 'x');
  EXPECT_EQ(read_record(octets_of(r)), r);
  r.origin.path += 'x';
  EXPECT_EQ(read_record(octets_of(r)).error().fault, format_fault::invalid_value);
  r.origin = {};
  auto empty = octets_of(r) + "\0\0\0\0\0"s;
  empty[0] = 2;
  EXPECT_EQ(read_record(empty).error().fault, format_fault::invalid_value);
}

TEST(idempotency_record, takes_about_a_hundred_octets) {
  EXPECT_LE(octets_of(completed_record()).size(), 110U);
}

TEST(idempotency_record, is_refused_when_anything_is_missing_or_too_much) {
  auto const whole = octets_of(completed_record());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    auto const read = read_record(whole.substr(0, size));
    ASSERT_FALSE(read.has_value()) << size;
    EXPECT_EQ(read.error().fault, format_fault::truncated) << size;
  }
  EXPECT_EQ(read_record(whole + "x").error(),
            (format_error{format_fault::trailing_octets, whole.size()}));
}

TEST(idempotency_record, is_refused_when_it_holds_what_is_never_written) {
  auto const changed = [](auto change) {
    auto r = completed_record();
    change(r);
    auto const read = read_record(octets_of(r));
    return !read && read.error().fault == format_fault::invalid_value;
  };
  EXPECT_FALSE(changed([](record&) {}));
  EXPECT_TRUE(changed([](record& r) { r.state = static_cast<record_state>(4); }));
  EXPECT_TRUE(changed([](record& r) { r.reason = static_cast<unknown_reason>(6); }));
  EXPECT_TRUE(changed([](record& r) { r.reason = unknown_reason::no_answer; }));
  EXPECT_TRUE(changed([](record& r) { r.state = record_state::unknown; }));
  EXPECT_TRUE(changed([](record& r) { r.status = 199; }));
  EXPECT_TRUE(changed([](record& r) { r.status = 600; }));
  EXPECT_TRUE(changed([](record& r) { r.status = 0; })) << "nothing to replay";
  EXPECT_TRUE(changed([](record& r) { r.state = record_state::tombstone; })) << "replayable";
  EXPECT_TRUE(changed([](record& r) { r.attempt = 0; }));
  EXPECT_TRUE(changed([](record& r) { r.ttl = -1s; }));
  EXPECT_TRUE(changed([](record& r) { r.tombstone = -1s; }));
  EXPECT_TRUE(changed([](record& r) { r.lease_until = wall_time(1ms); }));
  EXPECT_TRUE(changed([](record& r) { r.fingerprint.rule = "?"; }));
  auto other = octets_of(completed_record());
  other[0] = 3;
  EXPECT_EQ(read_record(other).error(), (format_error{format_fault::unknown_version, 0}));
  auto longer = octets_of(completed_record());
  longer.replace(1, 1, "\x81\0"s);  // the number 1 in two octets
  EXPECT_EQ(read_record(longer).error(), (format_error{format_fault::invalid_value, 1}));
  auto eleven = octets_of(completed_record());
  eleven.replace(3, 9, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"s);  // a token of 65 bits
  EXPECT_EQ(read_record(eleven).error(), (format_error{format_fault::invalid_value, 3}));
}

TEST(idempotency_record, ends_when_its_times_say_so) {
  auto r = completed_record();
  EXPECT_EQ(expires(r), r.changed + 24h);
  EXPECT_EQ(forgotten(r), r.changed + 192h);
  r.state = record_state::dispatched;
  r.lease_until = r.changed + 30s;
  EXPECT_EQ(forgotten(r), r.changed + 30s + 192h);
  r.ttl = std::chrono::seconds::max();
  EXPECT_EQ(expires(r), wall_time::max());
  EXPECT_EQ(forgotten(r), wall_time::max());
  r.changed = wall_time::min();
  r.ttl = 1s;
  EXPECT_EQ(expires(r), wall_time::min() + 1s);
}

TEST(idempotency_response, is_read_as_it_was_written) {
  stored_response const empty{204, {}, "", 0, true};
  stored_response const full{
      201,
      {{"Location", "/orders/1"}, {"x-a", ""}, {"X-A", "\xc3\xa9\tb"}, {"x-a", ""}},
      "\0\r\n\xff"s,
      4,
      true};
  stored_response const left_out{200, {{"ETag", "\"1\""}}, "", 1ULL << 40, false};
  stored_response const with_trailers{200, {{"a", "b"}}, "abc",
                                      3,   true,         {{"grpc-status", "0"}, {"x-sum", ""}}};
  for (auto const& r : {empty, full, left_out, with_trailers}) {
    auto const read = read_response(octets_of(r));
    ASSERT_TRUE(read.has_value()) << r.status << ": " << to_string(read.error());
    EXPECT_EQ(*read, r) << r.status;
  }
}

TEST(idempotency_response, is_refused_when_it_could_not_be_sent) {
  auto const refused = [](stored_response const& r) {
    auto const read = read_response(octets_of(r));
    return !read && read.error().fault == format_fault::invalid_value;
  };
  EXPECT_TRUE(refused({100, {}, "", 0, true}));
  EXPECT_TRUE(refused({600, {}, "", 0, true}));
  EXPECT_TRUE(refused({200, {{"", "a"}}, "", 0, true}));
  EXPECT_TRUE(refused({200, {{"a b", "a"}}, "", 0, true}));
  EXPECT_TRUE(refused({200, {{"a:", "a"}}, "", 0, true}));
  EXPECT_TRUE(refused({200, {{"a", "b\r\nc: d"}}, "", 0, true}));
  EXPECT_TRUE(refused({200, {{"a", "b\0"s}}, "", 0, true}));
  EXPECT_TRUE(
      refused({200, std::vector<http::field>(stored_fields_max + 1, {"a", "b"}), "", 0, true}));
  auto const fault = [](stored_response const& r) {
    return read_response(octets_of(r)).error().fault;
  };
  EXPECT_EQ(fault({200, {}, "abc", 4, true}), format_fault::truncated);
  EXPECT_EQ(fault({200, {}, "abc", UINT64_MAX, true}), format_fault::truncated);
  EXPECT_EQ(fault({200, {}, "abc", 2, true}), format_fault::trailing_octets);
  EXPECT_EQ(fault({200, {}, "abc", 3, false}), format_fault::trailing_octets);
}

TEST(idempotency_response, is_refused_when_it_is_cut_anywhere) {
  auto const whole = octets_of(stored_response{200, {{"a", "b"}, {"c", "d"}}, "body", 4, true});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(read_response(whole.substr(0, size)).has_value()) << size;
  }
}

// Whatever is read is what would be written, so there is one form for each value.
TEST(idempotency_response, and_record_are_written_again_as_they_were_read) {
  std::mt19937 random(3);
  auto const record_octets = octets_of(completed_record());
  auto const response_octets =
      octets_of(stored_response{200, {{"a", "b"}, {"c", "d"}}, "body", 4, true});
  int read_count = 0;
  for (int i = 0; i < 50'000; ++i) {
    for (auto const& octets : {record_octets, response_octets}) {
      auto broken = octets;
      for (auto left = 1 + random() % 3; left > 0; --left) {
        broken[random() % broken.size()] = static_cast<char>(random());
      }
      if (auto const r = read_record(broken)) {
        EXPECT_EQ(octets_of(*r), broken);
        ++read_count;
      }
      if (auto const r = read_response(broken)) {
        EXPECT_EQ(octets_of(*r), broken);
        ++read_count;
      }
    }
  }
  EXPECT_GT(read_count, 1'000) << "else this shows nothing";
}

TEST(idempotency_recorder, keeps_end_to_end_fields_in_order) {
  auto const response = recorded({{"Date", "Tue, 15 Nov 1994 08:12:31 GMT"},
                                  {"Set-Cookie", "a=b"},
                                  {"Vary", "a"},
                                  {"Connection", "close, X-Hop ,keep-alive"},
                                  {"x-hop", "1"},
                                  {"Keep-Alive", "5"},
                                  {"WWW-Authenticate", "Basic"},
                                  {"Authentication-Info", "x"},
                                  {"Alt-Svc", "h3"},
                                  {"Transfer-Encoding", "chunked"},
                                  {"RateLimit", "\"a\";r=1"},
                                  {"X-RateLimit-Limit", "1"},
                                  {"Idempotent-Replayed", "true"},
                                  {"vary", "b"},
                                  {"X-Hope", "1"},
                                  {"Content-Type", "application/json"},
                                  {"Content-Length", "2"}},
                                 {"{", "}"});
  EXPECT_EQ(response.fields, (std::vector<http::field>{
                                 {"Date", "Tue, 15 Nov 1994 08:12:31 GMT"},
                                 {"Vary", "a"},
                                 {"vary", "b"},
                                 {"X-Hope", "1"},
                                 {"Content-Type", "application/json"},
                                 {"Content-Length", "2"},
                             }));
  EXPECT_EQ(response.body, "{}");
  EXPECT_EQ(response.body_size, 2U);
  EXPECT_TRUE(response.body_kept);
  EXPECT_EQ(response.status, 200);
}

TEST(idempotency_recorder, leaves_out_a_body_that_is_too_large_and_counts_it) {
  EXPECT_TRUE(recorded({}, {"abc", "d"}, 4).body_kept);
  auto const over = recorded({{"Location", "/1"}}, {"abc", "de", "f"}, 4);
  EXPECT_FALSE(over.body_kept);
  EXPECT_EQ(over.body, "");
  EXPECT_EQ(over.body_size, 6U);
  EXPECT_EQ(over.fields.size(), 1U);
  EXPECT_TRUE(recorded({}, {}, 0).body_kept);
}

TEST(idempotency_recorder, leaves_out_a_stream_of_events) {
  for (auto const* type : {"text/event-stream", "Text/Event-Stream ; charset=utf-8"}) {
    auto const stream = recorded({{"content-type", type}}, {"data: 1\n\n"});
    EXPECT_FALSE(stream.body_kept) << type;
    EXPECT_EQ(stream.body, "");
    EXPECT_EQ(stream.body_size, 9U);
  }
  EXPECT_TRUE(recorded({{"content-type", "text/event-streams"}}, {"x"}).body_kept);
}

TEST(idempotency_recorder, keeps_no_more_fields_than_can_be_read) {
  std::vector<http::field> const many(stored_fields_max + 1, {"a", "b"});
  auto const response = recorded(many, {"x"});
  EXPECT_FALSE(response.body_kept);
  EXPECT_TRUE(read_response(octets_of(response)).has_value());
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::idempotency
