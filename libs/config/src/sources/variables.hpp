// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/hidden_values.hpp>
#include <tidegate/config/sources.hpp>
#include <tidegate/config/yaml.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// Replaces `${NAME}` and `${file:PATH}` in values by what the sources have for them. Each is asked
/// for once, so that a configuration sees one value of it.
class variables {
 public:
  /// Paths are relative to `folder`. The sources must outlive this.
  variables(config_sources const& sources, std::string folder)
      : sources_(sources), folder_(std::move(folder)) {}

  /// Replaces in the nodes of `document` from the one at `first` on. What cannot be replaced stays,
  /// and is a fault at the place of its node.
  void replace(yaml_document& document, std::size_t first, std::vector<yaml_fault>& faults);

  /// All values that were taken over, for messages.
  [[nodiscard]] auto taken() -> hidden_values& { return taken_; }

 private:
  using text_result = result<std::string, std::string>;

  [[nodiscard]] auto replaced(std::string_view text, bool& has_values) -> text_result;
  [[nodiscard]] auto value_of(std::string_view reference) -> text_result const&;
  [[nodiscard]] auto look_up(std::string_view reference) const -> text_result;
  [[nodiscard]] auto content_of(std::string_view path) const -> text_result;

  config_sources const& sources_;
  std::string folder_;
  std::map<std::string, text_result, std::less<>> values_;  // by what stands between the braces
  std::size_t octets_ = 0;                                  // of all that was put into texts
  hidden_values taken_;
};

}  // namespace tidegate::gateway
