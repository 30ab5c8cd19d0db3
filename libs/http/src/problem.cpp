// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/problem.hpp>

#include <cassert>
#include <charconv>
#include <system_error>

namespace tidegate::TIDEGATE_ABI::http {

namespace {

void append_integer(std::string& out, auto value) {
  std::array<char, 20> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  auto const [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  assert(error == std::errc());
  out.append(buffer.data(), end);
}

}  // namespace

problem_writer::problem_writer(std::string& out, problem const& standard) : out_(out) {
  assert(standard.status == 0 || (standard.status >= 100 && standard.status <= 599));
  out_.append("{}", 2);
  text_member("type", standard.type);
  text_member("title", standard.title);
  if (standard.status != 0) {
    begin_member("status");
    end_member(std::int64_t{standard.status});
  }
  text_member("detail", standard.detail);
  text_member("instance", standard.instance);
}

auto problem_writer::extension(extension_name name, std::string_view text) -> problem_writer& {
  text_member(name.text(), text);
  return *this;
}

/// Opens the object again. Names are never escaped: ours and the checked ones need no escape.
void problem_writer::begin_member(std::string_view name) {
  assert(out_.ends_with('}'));
  out_.pop_back();
  if (!out_.ends_with('{')) {  // no value ends with one
    out_.push_back(',');
  }
  out_.push_back('"');
  out_.append(name);
  out_.append("\":", 2);
}

auto problem_writer::end_member(std::string_view rest) -> problem_writer& {
  out_.append(rest);
  out_.push_back('}');
  return *this;
}

auto problem_writer::end_member(std::int64_t value) -> problem_writer& {
  append_integer(out_, value);
  return end_member(std::string_view());
}

auto problem_writer::end_member(std::uint64_t value) -> problem_writer& {
  append_integer(out_, value);
  return end_member(std::string_view());
}

void problem_writer::text_member(std::string_view name, std::string_view text) {
  if (!text.empty()) {
    begin_member(name);
    json::append_string(out_, text);
    end_member(std::string_view());
  }
}

}  // namespace tidegate::TIDEGATE_ABI::http
