// SPDX-License-Identifier: Apache-2.0
//
// Structured Fields: the pull reader to the end with everything visited and decoded, the owning
// tree made and dropped, and the tree written to a buffer that is large enough.
//
// The bars are instructions for one parse: for the reader, the best of every build variant of the
// fastest C parser that was measured; for the tree, a third of the C++ tree parser used in
// browsers.
#include "harness.hpp"

#include <tidegate/sf.hpp>

#include <cstdlib>

namespace {

using namespace tidegate;

struct input {
  char name;
  sf::field_type type;
  std::string text;
  double reader_bar;
  double tree_bar;
};

auto inputs() -> std::vector<input> {
  std::string integers;
  std::string members;
  for (int i = 0; i < 1024; ++i) {
    integers += (i == 0 ? "" : ", ") + std::to_string(i * 7919 % 100000);
    members += (i == 0 ? "k" : ", k") + std::to_string(i) + "=" + std::to_string(i);
  }
  std::string characters;
  for (int i = 0; i < 1024; ++i) {
    characters.push_back(static_cast<char>('a' + i % 26));
  }
  using enum sf::field_type;
  return {
      {'a', list, R"("default";r=50;t=30)", 561, 5036 / 3.0},
      {'b', list, R"("burst";q=100;w=60,"daily";q=1000;w=86400)", 1129, 10862 / 3.0},
      {'c', item, R"("8e03978e-40d5-43e8-bc93-6894a57f9324")", 294, 1426 / 3.0},
      {'d', dictionary,
       R"(a=1, b=2;x=?1, c=(1 2 "three"), d=:cHJldGVuZA==:, e=4.5, f=tok/en, g="a string value")",
       2480, 25834 / 3.0},
      {'e', list, integers, 214139, 2.16e6 / 3},
      {'f', item, '"' + characters + '"', 711, 0},
      {'g', dictionary, members, 249288, 17.4e6 / 3},
  };
}

/// Decodes a bare item the way a user would, into storage on the stack.
auto decode(sf::bare_item_view const& value) -> std::uint64_t {
  switch (value.type()) {
    case sf::bare_item_type::integer: return static_cast<std::uint64_t>(value.as_integer().value());
    case sf::bare_item_type::decimal:
      return static_cast<std::uint64_t>(value.as_decimal().thousandths());
    case sf::bare_item_type::boolean: return value.as_boolean() ? 1 : 0;
    case sf::bare_item_type::date:
      return static_cast<std::uint64_t>(value.as_date().seconds().value());
    case sf::bare_item_type::string:
    case sf::bare_item_type::token:
      if (!value.is_encoded()) {
        bench::keep(value.raw().data());
        return value.raw().size();
      }
      [[fallthrough]];
    default: {
      char out[2048];
      auto const size = value.decode(out);
      bench::keep(&out);
      return size;
    }
  }
}

void read_all(sf::field_type type, std::string_view text) {
  sf::reader reader(type, text);
  std::uint64_t sum = 0;
  for (;;) {
    switch (reader.next()) {
      case sf::event::item:
      case sf::event::inner_item: sum += decode(reader.value()); break;
      case sf::event::parameter: sum += reader.key().size() + decode(reader.value()); break;
      case sf::event::inner_list:
      case sf::event::inner_list_end: break;
      case sf::event::end: bench::keep(sum); return;
      case sf::event::failure: std::abort();
    }
  }
}

void parse_tree(sf::field_type type, std::string_view text) {
  auto check = [](auto const& value) {
    if (!value.has_value()) {
      std::abort();
    }
    bench::keep(&*value);
  };
  switch (type) {
    case sf::field_type::item: return check(sf::parse_item(text));
    case sf::field_type::list: return check(sf::parse_list(text));
    case sf::field_type::dictionary: return check(sf::parse_dictionary(text));
  }
}

template <class Value>
auto writing(Value value) -> std::function<void(std::size_t)> {
  return [value = std::move(value), out = std::string()](std::size_t times) mutable {
    out.reserve(64 * 1024);
    for (; times != 0; --times) {
      out.clear();
      sf::serialize(value, out);
      bench::keep(out.data());
    }
  };
}

auto write_case(input const& in) -> std::function<void(std::size_t)> {
  switch (in.type) {
    case sf::field_type::item: return writing(*sf::parse_item(in.text));
    case sf::field_type::list: return writing(*sf::parse_list(in.text));
    case sf::field_type::dictionary: break;
  }
  return writing(*sf::parse_dictionary(in.text));
}

/// Dictionaries of growing size, with all keys distinct or with each of them many times: the cost
/// of a byte is to stay the same.
auto growing() -> std::vector<std::pair<std::string, std::string>> {
  std::vector<std::pair<std::string, std::string>> texts;
  for (int size : {1024, 100'000}) {
    std::string distinct;
    std::string repeated;
    for (int i = 0; i < size; ++i) {
      auto const number = std::to_string(100'000 + i);
      distinct += (i == 0 ? "key" : ", key") + number + "=1";
      repeated += (i == 0 ? "key" : ", key") + std::to_string(100'000 + i % 500) + "=1";
    }
    texts.emplace_back("distinct-" + std::to_string(size), distinct);
    texts.emplace_back("repeated-" + std::to_string(size), repeated);
  }
  return texts;
}

}  // namespace

auto main(int argc, char** argv) -> int {
  std::vector<bench::bench_case> cases;
  for (auto const& in : inputs()) {
    auto const name = std::string("sf/") + in.name;
    auto repeat = [in](auto work) {
      return [in, work](std::size_t times) {
        for (; times != 0; --times) {
          work(in.type, in.text);
        }
      };
    };
    cases.push_back({name + "/reader", repeat(read_all), in.reader_bar});
    cases.push_back({name + "/tree", repeat(parse_tree), in.tree_bar});
    cases.push_back({name + "/write", write_case(in)});
  }
  for (auto const& [name, text] : growing()) {
    auto run = [&text](auto work) {
      return [text, work](std::size_t times) {
        for (; times != 0; --times) {
          work(sf::field_type::dictionary, text);
        }
      };
    };
    cases.push_back({"sf/" + name + "/reader", run(read_all), 0, text.size()});
    cases.push_back({"sf/" + name + "/tree", run(parse_tree), 0, text.size()});
  }
  return bench::run_cases(cases, argc, argv);
}
