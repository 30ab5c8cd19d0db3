// SPDX-License-Identifier: Apache-2.0
//
// JSON beside Boost.JSON, on what the gateway and its tools read and write: the body of a SCIM
// POST, a body that is fingerprinted, a configuration file of a tool. Boost.JSON runs twice: with
// its default storage, and with a parser and a buffer that are made once, which is the fastest
// that its documentation knows.
#include "harness.hpp"

#include <tidegate/json.hpp>

#include <boost/json/src.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

using namespace tidegate;

constexpr std::string_view scim_post =
    R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User",)"
    R"("urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],"externalId":"701984",)"
    R"("userName":"bjensen@example.com","name":{"formatted":"Ms. Barbara J Jensen, III",)"
    R"("familyName":"Jensen","givenName":"Barbara","middleName":"Jane","honorificPrefix":"Ms.",)"
    R"("honorificSuffix":"III"},"displayName":"Babs Jensen","nickName":"Babs",)"
    R"("emails":[{"value":"bjensen@example.com","type":"work","primary":true},)"
    R"({"value":"babs@jensen.example","type":"home"}],"phoneNumbers":[{"value":"555-555-5555",)"
    R"("type":"work"},{"value":"555-555-4444","type":"mobile"}],"userType":"Employee",)"
    R"("title":"Tour Guide","preferredLanguage":"en-US","locale":"en-US",)"
    R"("timezone":"America/Los_Angeles","active":true,)"
    R"("urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"employeeNumber":"701984",)"
    R"("costCenter":"4130","organization":"Universal Studios","division":"Theme Park",)"
    R"("department":"Tour Operations","manager":{"value":"26118915-6090-4610-87e4-49d8ca9f808d"}}})";

constexpr std::string_view payment =
    R"({"amount": 129900, "currency": "eur", "capture": true, "customer": "cus_8f14e45fceea167a",)"
    R"( "description": "Order 2024-05-17/0042 \u2013 B\u00fccher", "receipt_email": null,)"
    R"( "metadata": {"order_id": "0042", "channel": "web", "discount": 12.50},)"
    R"( "items": [{"sku": "978-3-16-148410-0", "quantity": 2, "unit_amount": 4950, "tax": 0.07},)"
    R"( {"sku": "978-0-306-40615-7", "quantity": 1, "unit_amount": 120000, "tax": 0.19}],)"
    R"( "shipping": {"name": "Jane Doe", "address": {"line1": "Main Street 1", "line2": "",)"
    R"( "postal_code": "12345", "city": "Springfield", "country": "DE"}}})";

auto read_file(std::string const& path) -> std::string {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// What is nearest to the canonical form: members in order, no spaces. Numbers are doubles.
void append_in_order(std::string& out, boost::json::value const& value) {
  if (auto const* const array = value.if_array()) {
    out += '[';
    for (auto const& item : *array) {
      append_in_order(out, item);
      out += ',';
    }
    out.resize(out.size() - (array->empty() ? 0 : 1));
    out += ']';
  } else if (auto const* const object = value.if_object()) {
    std::vector<boost::json::key_value_pair const*> members;
    members.reserve(object->size());
    for (auto const& member : *object) {
      members.push_back(&member);
    }
    std::ranges::sort(members, {}, [](auto const* m) { return std::string_view(m->key()); });
    out += '{';
    for (auto const* const member : members) {
      out += boost::json::serialize(member->key());
      out += ':';
      append_in_order(out, member->value());
      out += ',';
    }
    out.resize(out.size() - (object->empty() ? 0 : 1));
    out += '}';
  } else {
    out += boost::json::serialize(value);
  }
}

using work = std::function<void()>;

/// Gives `use` the value that Boost.JSON reads.
template <class Use>
auto boost_reading(std::string_view text, Use use) -> work {
  return [text, use] {
    boost::json::error_code error;
    auto const value = boost::json::parse(boost::json::string_view(text), error);
    if (error) {
      std::abort();
    }
    use(value);
  };
}

/// The same, with the parser, its memory and that of the values made once.
template <class Use>
auto boost_pooled(std::string_view text, Use use) -> work {
  struct state {
    std::vector<unsigned char> memory = std::vector<unsigned char>(std::size_t{1} << 20);
    boost::json::parser parser;
  };
  return [text, use, kept = std::make_shared<state>()] {
    boost::json::monotonic_resource values(kept->memory.data(), kept->memory.size());
    kept->parser.reset(&values);
    boost::json::error_code error;
    kept->parser.write(text.data(), text.size(), error);
    if (error) {
      std::abort();
    }
    use(kept->parser.release());
  };
}

auto reading(std::string name, std::string_view text) -> bench::comparison {
  auto const keep = [](boost::json::value const& value) { bench::keep(&value); };
  return {"json/" + std::move(name),
          text.size(),
          [text] {
            auto const value = json::parse(text);
            if (!value) {
              std::abort();
            }
            bench::keep(&*value);
          },
          {{"boost", boost_reading(text, keep)}, {"boost_pooled", boost_pooled(text, keep)}}};
}

auto canonicalising(std::string name, std::string_view text) -> bench::comparison {
  auto const use = [out = std::make_shared<std::string>()](boost::json::value const& value) {
    out->clear();
    append_in_order(*out, value);
    bench::keep(out->data());
  };
  return {"json/" + std::move(name),
          text.size(),
          [text, out = std::make_shared<std::string>()] {
            out->clear();
            if (!json::append_canonical(*out, text)) {
              std::abort();
            }
            bench::keep(out->data());
          },
          {{"boost", boost_reading(text, use)}, {"boost_pooled", boost_pooled(text, use)}}};
}

auto writing(std::string name, std::string_view text) -> bench::comparison {
  return {"json/" + std::move(name),
          text.size(),
          [value = *json::parse(text), out = std::make_shared<std::string>()] {
            out->clear();
            json::append(*out, value);
            bench::keep(out->data());
          },
          {{"boost", [value = boost::json::parse(boost::json::string_view(text))] {
              auto const out = boost::json::serialize(value);
              bench::keep(out.data());
            }}}};
}

}  // namespace

auto main() -> int {
  auto const tool = read_file(TIDEGATE_SOURCE_DIR "/examples/observability/grafana.json");
  bench::compare({reading("scim-post", scim_post), canonicalising("fingerprint", payment),
                  reading("tool-configuration", tool), writing("scim-answer", scim_post)});
  return 0;
}
