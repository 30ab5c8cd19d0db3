// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace tidegate::store_sqlite {

/// A folder that goes when the test does.
class folder {
 public:
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tidegate_store_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~folder() { std::filesystem::remove_all(path_); }
  folder(folder const&) = delete;
  auto operator=(folder const&) -> folder& = delete;
  [[nodiscard]] auto file(std::string_view name = "idempotency.db") const -> std::string {
    return (path_ / name).string();
  }
  /// Every octet in it.
  [[nodiscard]] auto content() const -> std::string {
    std::string all;
    for (auto const& entry : std::filesystem::directory_iterator(path_)) {
      std::ifstream in(entry.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(in), {});
    }
    return all;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tidegate::store_sqlite
