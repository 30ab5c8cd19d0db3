// SPDX-License-Identifier: Apache-2.0
#include "memory_limit.hpp"

#include "folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tidegate::store_sqlite {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// A machine with these groups.
class machine {
 public:
  explicit machine(std::string const& groups) { write("proc/self/cgroup", groups); }
  void write(std::string const& name, std::string const& text) const {
    std::filesystem::path const file = where_.file(name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  [[nodiscard]] auto limit() const -> std::uint64_t { return memory_limit(where_.file("")); }

 private:
  folder where_;
};

TEST(store_sqlite_memory_limit, is_what_the_machine_has_where_nobody_set_one) {
  auto const all = machine("").limit();
  EXPECT_GT(all, 0U);
  machine const unlimited("0::/system.slice/x.service\n");
  unlimited.write("sys/fs/cgroup/system.slice/x.service/memory.max", "max\n");
  EXPECT_EQ(unlimited.limit(), all);
  EXPECT_EQ(machine("nonsense\n1:2\n").limit(), all);
}

TEST(store_sqlite_memory_limit, is_the_lowest_of_a_group_and_those_it_is_in) {
  machine const container("0::/\n");
  container.write("sys/fs/cgroup/memory.max", "268435456\n");
  EXPECT_EQ(container.limit(), 256 * mib);

  machine const service("0::/system.slice/x.service\n");
  service.write("sys/fs/cgroup/system.slice/memory.max", "134217728\n");
  service.write("sys/fs/cgroup/system.slice/x.service/memory.max", "max\n");
  EXPECT_EQ(service.limit(), 128 * mib);
  service.write("sys/fs/cgroup/system.slice/x.service/memory.max", "67108864\n");
  EXPECT_EQ(service.limit(), 64 * mib);
}

TEST(store_sqlite_memory_limit, is_that_of_version_1_too) {
  machine const old("5:cpu,cpuacct:/a\n4:memory:/a/b\n0::/\n");
  old.write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "134217728\n");
  old.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(old.limit(), 128 * mib);
}

TEST(store_sqlite_memory_limit, gives_pages_a_quarter_within_bounds) {
  EXPECT_EQ(page_octets_of(512 * mib), 128 * mib);
  EXPECT_EQ(page_octets_of(2048 * mib), 512 * mib);
  EXPECT_EQ(page_octets_of(65536 * mib), 512 * mib);
  EXPECT_EQ(page_octets_of(1), 16 * mib);
}

}  // namespace
}  // namespace tidegate::store_sqlite
