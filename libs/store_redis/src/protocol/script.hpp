// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/client.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::store_redis {

/// Words for a command, one after the other in one piece of memory.
class word_list {
 public:
  void add(std::string_view word) {
    text_ += word;
    ends_.push_back(text_.size());
  }
  [[nodiscard]] auto size() const noexcept -> std::size_t { return ends_.size(); }
  [[nodiscard]] auto operator[](std::size_t i) const noexcept -> std::string_view {
    auto const begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string text_;
  std::vector<std::size_t> ends_;
};

/// A text in Lua, and the name that servers know it by once one of them has said it.
///
/// The name is a digest of the text, the same on all servers; SCRIPT LOAD answers with it.
class script {
 public:
  /// `text` lives as long as the script.
  explicit script(std::string_view text) noexcept : text_(text) {}

  [[nodiscard]] auto text() const noexcept -> std::string_view { return text_; }
  /// Empty while it is not known.
  [[nodiscard]] auto name() const noexcept -> std::string const& { return name_; }
  /// Takes the answer to SCRIPT LOAD. An error changes nothing: the script runs by its text.
  void take_name(resp_value const& loaded);

 private:
  std::string_view text_;
  std::string name_;
};

/// Has the server of the first key run a script, by its name, or by its text where that is not
/// known: then after whatever was sent meanwhile. The script must live until the answer. With
/// `then`, that command follows on the same connection, and both are answered by an array.
void run(client& on, script& called, word_list keys, word_list arguments, answer_function answer,
         command then = {});
/// Runs it by its text, and so surely before whatever is sent afterwards.
void run_in_order(client& on, script const& called, word_list const& keys,
                  word_list const& arguments, answer_function answer);

}  // namespace tidegate::store_redis
