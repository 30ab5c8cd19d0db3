// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "upstream/http2_upstream_stream.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace tidegate::gateway {

/// Streams of one connection of HTTP/2 whose request is over, kept for the next ones.
class spare_streams {
 public:
  /// Text that a stream may keep.
  static constexpr std::size_t kept_octets_max = 4096;

  /// Null when there is none.
  [[nodiscard]] auto take() -> std::unique_ptr<http2_upstream_stream> {
    if (streams_.empty()) {
      return nullptr;
    }
    auto taken = std::move(streams_.back());
    streams_.pop_back();
    return taken;
  }

  void put(std::unique_ptr<http2_upstream_stream> done) {
    if (streams_.size() < streams_max && done->kept_.capacity() <= kept_octets_max) {
      streams_.push_back(std::move(done));
    } else {
      done->kept_.shrink_to_fit();
      retired_.push_back(std::move(done));
    }
  }

  /// At the end of a turn: until then a function of one of them may be under way.
  void drop_retired() { retired_.clear(); }

 private:
  static constexpr std::size_t streams_max = 64;

  std::vector<std::unique_ptr<http2_upstream_stream>> streams_;
  std::vector<std::unique_ptr<http2_upstream_stream>> retired_;
};

}  // namespace tidegate::gateway
