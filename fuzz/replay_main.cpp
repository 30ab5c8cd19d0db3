// SPDX-License-Identifier: Apache-2.0
//
// Stands in for libFuzzer where the compiler has none: fuzz_replay TARGET FILE... runs a fuzz
// target once over each file that is named, or that lies in a folder that is named, and changes
// nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <vector>

// One row for each target: its function has the name of its file behind its own.
#define TARGET(name) \
  extern "C" auto LLVMFuzzerTestOneInput_##name(std::uint8_t const* data, std::size_t size)->int;
#include "replay_targets.inc"
#undef TARGET

namespace {

namespace fs = std::filesystem;

using target = int (*)(std::uint8_t const*, std::size_t);

// Null when there is none of that name.
auto target_of(std::string_view name) -> target {
#define TARGET(other)                      \
  if (name == #other) {                    \
    return LLVMFuzzerTestOneInput_##other; \
  }
#include "replay_targets.inc"
#undef TARGET
  return nullptr;
}

// The files in a fixed order, so that two runs do the same.
auto files_under(fs::path const& path) -> std::vector<fs::path> {
  if (!fs::is_directory(path)) {
    return {path};
  }
  std::vector<fs::path> files;
  for (auto const& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

auto main(int argc, char** argv) -> int {
  auto const run = argc > 1 ? target_of(argv[1]) : nullptr;
  if (run == nullptr) {
    std::fputs("usage: fuzz_replay TARGET FILE...; a target is a file fuzz/TARGET.cpp\n", stderr);
    return 2;
  }
  std::size_t replayed = 0;
  for (int i = 2; i < argc; ++i) {
    fs::path const path = argv[i];
    std::error_code error;
    if (!fs::exists(path, error)) {
      std::fprintf(stderr, "%s: no such file or folder\n", path.c_str());
      return 2;
    }
    for (auto const& file : files_under(path)) {
      std::ifstream in(file, std::ios::binary);
      std::vector<char> const bytes{std::istreambuf_iterator<char>(in), {}};
      if (in.bad() || !in.is_open()) {
        std::fprintf(stderr, "%s: cannot be read\n", file.c_str());
        return 2;
      }
      // Named before it runs: when the target aborts, the last line says on which file.
      std::printf("%s (%zu bytes)\n", file.c_str(), bytes.size());
      std::fflush(stdout);
      // A copy of the exact size on the heap, so that the sanitizers see a read past its end.
      std::vector<std::uint8_t> const input(bytes.begin(), bytes.end());
      run(input.data(), input.size());
      ++replayed;
    }
  }
  if (replayed == 0) {
    std::fputs("no seeds: keep some in fuzz/corpus\n", stderr);
    return 1;
  }
  std::printf("%zu seeds replayed\n", replayed);
  return 0;
}
