// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/error.hpp>

#include <tidegate/json/parse.hpp>
#include <tidegate/scim/list_request.hpp>

#include <gtest/gtest.h>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

auto written(error const& e) -> std::string {
  std::string out;
  append_error(out, e);
  return out;
}

// RFC 7644, section 3.12: its two examples.
TEST(scim_error, reads_and_writes_the_examples) {
  error const not_found{404, scim_type::none,
                        "Resource 2819c223-7f76-453a-919d-413861904646 not found"};
  EXPECT_EQ(parse_error(R"({
     "schemas": ["urn:ietf:params:scim:api:messages:2.0:Error"],
     "detail":"Resource 2819c223-7f76-453a-919d-413861904646 not found",
     "status": "404"
   })"),
            not_found);
  EXPECT_EQ(
      written(not_found),
      R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],)"
      R"("detail":"Resource 2819c223-7f76-453a-919d-413861904646 not found","status":"404"})");
  error const mutability{400, scim_type::mutability, "Attribute 'id' is readOnly"};
  EXPECT_EQ(parse_error(R"({
     "schemas": ["urn:ietf:params:scim:api:messages:2.0:Error"],
     "scimType":"mutability",
     "detail":"Attribute 'id' is readOnly",
     "status": "400"
   })"),
            mutability);
  EXPECT_EQ(written(mutability), R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],)"
                                 R"("scimType":"mutability","detail":"Attribute 'id' is readOnly",)"
                                 R"("status":"400"})");
}

TEST(scim_error, has_its_status_as_a_string_and_is_json_whatever_it_says) {
  for (std::string const detail : {"", "\"\\\n\x01", "\xff\xfe", "</script>"}) {
    auto const read = json::parse(written({413, scim_type::none, detail}));
    ASSERT_TRUE(read);
    EXPECT_EQ(*read->find("status"), json::value("413"));
    EXPECT_EQ(read->find("scimType"), nullptr);
    EXPECT_EQ(read->find("detail") == nullptr, detail.empty());
  }
  EXPECT_EQ(scim_json, "application/scim+json");
}

// RFC 7644, table 9, and RFC 9865, table 3.
TEST(scim_error, has_every_scim_type_by_its_name) {
  std::string_view const names[] = {
      "invalidFilter", "tooMany",       "uniqueness",   "mutability",  "invalidSyntax",
      "invalidPath",   "noTarget",      "invalidValue", "invalidVers", "sensitive",
      "invalidCursor", "expiredCursor", "invalidCount"};
  auto type = scim_type::none;
  EXPECT_EQ(to_string(type), "");
  for (auto name : names) {
    type = static_cast<scim_type>(static_cast<int>(type) + 1);
    EXPECT_EQ(to_string(type), name);
    EXPECT_EQ(parse_error(written({400, type, "d"})), (error{400, type, "d"}));
  }
  EXPECT_EQ(type, scim_type::invalid_count);
}

TEST(scim_error, is_read_as_other_servers_write_it) {
  auto const body = [](std::string const& members) {
    return R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],)" + members + "}";
  };
  EXPECT_EQ(parse_error(body(R"("status":409,"scimType":"uniqueness")"))->status, 409);
  EXPECT_EQ(parse_error(body(R"("status":"400","scimType":"unheardOf")"))->type, scim_type::none);
  EXPECT_EQ(parse_error(body(R"("status":"400","scimType":null,"detail":7)"))->detail, "");
  for (auto const* wrong :
       {R"("a":1)", R"("status":"")", R"("status":"40")", R"("status":"4x4")", R"("status":"999")",
        R"("status":99)", R"("status":"-40")", R"("status":600)", R"("status":[])"}) {
    EXPECT_FALSE(parse_error(body(wrong))) << wrong;
  }
  EXPECT_FALSE(parse_error("<html>"));
  EXPECT_FALSE(parse_error(R"({"status":"400"})"));
}

// The contract: the same body for all causes of invalidCursor.
TEST(scim_error, is_one_for_each_fault_of_a_cursor) {
  EXPECT_EQ(error_of(cursor_fault::invalid).type, scim_type::invalid_cursor);
  EXPECT_EQ(error_of(cursor_fault::invalid).status, 400);
  EXPECT_EQ(error_of(cursor_fault::expired).type, scim_type::expired_cursor);
  EXPECT_EQ(error_of(cursor_fault::expired).status, 400);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
