// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/owned_request_head.hpp>

#include <array>
#include <functional>

namespace tidegate::wire {

namespace {

/// A text that was copied, and where its copy is.
struct copied_text {
  std::string_view from;
  char const* to;
};

}  // namespace

owned_request_head::owned_request_head(request_head const& head) : head_(head) {
  std::array const parts = {head.method_text(), head.target(), head.field_lines()};
  std::size_t size = 0;
  for (auto const part : parts) {
    size += part.size();
  }
  text_.reserve(size);  // the text does not move any more
  std::array<copied_text, parts.size()> copies{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    copies[i] = {parts[i], text_.data() + text_.size()};
    text_.append(parts[i]);
  }
  // Views of literals, such as the path "/" of an absolute target without one, stay.
  auto const rebase = [&](std::string_view& view) {
    std::less_equal<char const*> const not_after;
    for (auto const& [from, to] : copies) {
      if (not_after(from.data(), view.data()) &&
          not_after(view.data() + view.size(), from.data() + from.size())) {
        view = {to + (view.data() - from.data()), view.size()};
        return;
      }
    }
  };
  for (std::size_t i = 0; i < head_.fields_count_; ++i) {
    rebase(head_.fields_[i].name);
    rebase(head_.fields_[i].value);
  }
  for (auto* const view : {&head_.field_lines_, &head_.method_text_, &head_.target_, &head_.path_,
                           &head_.query_, &head_.authority_}) {
    rebase(*view);
  }
}

}  // namespace tidegate::wire
