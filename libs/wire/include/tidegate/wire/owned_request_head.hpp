// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http1_head.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::wire {

/// A request head that owns its text, for a request that has to wait: the copy says the same as the
/// head it was made from, and lives when the buffer of that one is gone.
class owned_request_head {
 public:
  explicit owned_request_head(request_head const& head) : head_(head) {
    std::array const parts = {head.method_text(), head.target(), head.field_lines()};
    text_.reserve(parts[0].size() + parts[1].size() + parts[2].size());  // it does not move then
    std::array<char const*, parts.size()> copies{};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      copies[i] = text_.data() + text_.size();
      text_.append(parts[i]);
    }
    // Views of literals, such as the path "/" of an absolute target without one, stay.
    auto const rebase = [&](std::string_view& view) {
      std::less_equal<> const not_after;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (not_after(parts[i].data(), view.data()) &&
            not_after(view.data() + view.size(), parts[i].data() + parts[i].size())) {
          view = {copies[i] + (view.data() - parts[i].data()), view.size()};
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
  owned_request_head(owned_request_head const&) = delete;
  auto operator=(owned_request_head const&) -> owned_request_head& = delete;

  /// The head itself.
  [[nodiscard]] auto head() const noexcept -> request_head const& { return head_; }

 private:
  std::string text_;
  request_head head_;
};

}  // namespace tidegate::TIDEGATE_ABI::wire
