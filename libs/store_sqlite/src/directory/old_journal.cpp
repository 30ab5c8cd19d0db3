// SPDX-License-Identifier: Apache-2.0
#include "directory/old_journal.hpp"

#include "crc32c.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace tidegate::store_sqlite {

using store::store_error;
using store::store_fault;

namespace {

/// How many groups one transaction takes.
constexpr int groups_at_once = 256;

[[nodiscard]] auto take_number(std::string_view& from, std::uint64_t& value) -> bool {
  if (from.size() < 8) {
    return false;
  }
  value = 0;
  for (int i = 7; i >= 0; --i) {
    value = (value << 8) | static_cast<unsigned char>(from[static_cast<std::size_t>(i)]);
  }
  from.remove_prefix(8);
  return true;
}

[[nodiscard]] auto take_text(std::string_view& from, std::string_view& text) -> bool {
  std::uint64_t size = 0;
  if (!take_number(from, size) || size > from.size()) {
    return false;
  }
  text = from.substr(0, size);
  from.remove_prefix(size);
  return true;
}

/// The groups of a journal, each with its number. A group is `octets of the content | checksum |
/// salt | identity | number | content`, in little endian. A bit behind the checksum says that the
/// next one begins at a multiple of 4,096 octets. What follows the last one that is whole does not
/// count.
class journal_reader {
 public:
  journal_reader(std::string const& name, std::uint64_t identity)
      : name_(name), in_(name, std::ios::binary), identity_(identity) {
    std::error_code failed;
    size_ = std::filesystem::file_size(name, failed);
    is_missing_ = failed == std::errc::no_such_file_or_directory;
  }

  struct group {
    std::uint64_t number = 0;
    std::string_view content;  ///< good until the next one
  };
  /// Nothing at the end.
  [[nodiscard]] auto next() -> outcome<std::optional<group>> {
    constexpr std::uint64_t head_octets = 40;
    constexpr std::uint64_t next_at_block = std::uint64_t{1} << 32;
    constexpr std::uint64_t block = 4096;
    std::uint64_t octets = 0;
    std::uint64_t checksum = 0;
    if (is_missing_) {
      return std::nullopt;
    }
    if (!read(head_octets)) {
      return at_end();
    }
    std::string_view head(octets_);
    if (!take_number(head, octets) || octets == 0 || octets > size_ || !read(octets)) {
      return at_end();
    }
    head = std::string_view(octets_).substr(8);
    group found;
    std::uint64_t salt = 0;
    std::uint64_t identity = 0;
    if (!take_number(head, checksum) ||
        crc32c(std::string_view(octets_).substr(16)) != (checksum & ~next_at_block) ||
        !take_number(head, salt) || !take_number(head, identity) ||
        !take_number(head, found.number)) {
      return std::nullopt;
    }
    if (number_ != 0 && (salt != salt_ || found.number != number_ + 1)) {
      return std::nullopt;
    }
    if (identity != identity_) {
      return failure(store_error{store_fault::damaged, name_ + ": is of another directory"});
    }
    salt_ = salt;
    number_ = found.number;
    found.content = head;
    auto const at = static_cast<std::uint64_t>(in_.tellg());
    if ((checksum & next_at_block) != 0) {
      in_.seekg(static_cast<std::streamoff>((at + block - 1) / block * block));
    }
    is_new_ = true;
    return found;
  }

 private:
  /// What cannot be read is not the end: there are answered writes in it.
  [[nodiscard]] auto at_end() const -> outcome<std::optional<group>> {
    if (!in_.is_open() || in_.bad()) {
      return failure(store_error{store_fault::unavailable, name_ + ": cannot be read"});
    }
    return std::nullopt;
  }
  /// Appends to what was read of this group.
  [[nodiscard]] auto read(std::uint64_t octets) -> bool {
    if (std::exchange(is_new_, false)) {
      octets_.clear();
    }
    auto const before = octets_.size();
    if (octets > size_) {
      return false;
    }
    octets_.resize(before + octets);
    return static_cast<bool>(
        in_.read(octets_.data() + before, static_cast<std::streamsize>(octets)));
  }

  std::string name_;
  std::ifstream in_;
  std::uint64_t identity_;
  std::uintmax_t size_ = 0;
  bool is_missing_ = false;
  std::string octets_;
  bool is_new_ = true;
  std::uint64_t salt_ = 0;
  std::uint64_t number_ = 0;
};

/// One change of a group.
struct journal_change {
  enum class what : std::uint8_t {
    insert = 1,
    update,
    remove,
    add_member,
    remove_member,
    remove_members,
  };
  what done{};
  std::uint64_t rid = 0;     ///< of the resource, or of the group
  std::uint64_t member = 0;  ///< its rid
  std::string_view tenant{};
  std::string_view type{};
  std::string_view id{};
  std::string_view text{};  ///< of the resource, or what the member is called
};

[[nodiscard]] auto take_change(std::string_view& from) -> std::optional<journal_change> {
  using what = journal_change::what;
  if (from.empty() || from.front() < static_cast<char>(what::insert) ||
      from.front() > static_cast<char>(what::remove_members)) {
    return std::nullopt;
  }
  journal_change one{.done = static_cast<what>(from.front())};
  from.remove_prefix(1);
  bool const is_whole = take_number(from, one.rid) && take_number(from, one.member) &&
                        take_text(from, one.tenant) && take_text(from, one.type) &&
                        take_text(from, one.id) && take_text(from, one.text);
  return is_whole ? std::optional(one) : std::nullopt;
}

[[nodiscard]] auto repeat(journal_change const& one, directory_session& into,
                          scim::model const& model) -> outcome<void> {
  using what = journal_change::what;
  auto const journal = into.file().file() + ".journal";
  auto const* const type = model.find(one.type);
  if (type == nullptr && one.done <= what::remove) {
    return failure(store_error{store_fault::unavailable,
                               journal + ": has changes of the resource type \"" +
                                   std::string(one.type) + "\", which does not exist any more"});
  }
  into.begin_transaction(one.tenant);
  switch (one.done) {
    case what::insert: {
      TIDEGATE_TRY(auto const resource,
                   parse_stored(into.file().file(), static_cast<std::int64_t>(one.rid), one.text));
      TIDEGATE_TRY(auto const rid,
                   into.insert(*type, one.id, one.text, index_entries(*type, resource)));
      if (rid != one.rid) {
        return failure(store_error{store_fault::damaged,
                                   into.file().file() + ": is not what its journal is of"});
      }
      return {};
    }
    case what::update: {
      TIDEGATE_TRY(auto const resource,
                   parse_stored(into.file().file(), static_cast<std::int64_t>(one.rid), one.text));
      return into.update(*type, one.rid, one.text, index_entries(*type, resource));
    }
    case what::remove: return into.remove(*type, one.rid);
    case what::add_member:
      TIDEGATE_TRY_VOID(into.add_member(one.rid, one.member, one.text));
      return {};
    case what::remove_member: TIDEGATE_TRY_VOID(into.remove_member(one.rid, one.member)); return {};
    case what::remove_members: return into.remove_members(one.rid);
  }
  return {};
}

/// The groups behind `applied`; its number is that of the last one.
[[nodiscard]] auto repeat_all(journal_reader& journal, std::int64_t applied,
                              directory_session& into, scim::model const& model) -> outcome<void> {
  auto& file = into.file();
  int groups = 0;
  for (;;) {
    TIDEGATE_TRY(auto const group, journal.next());
    if (!group) {
      break;
    }
    auto const number = static_cast<std::int64_t>(group->number);
    if (number <= applied) {
      continue;
    }
    if (number != applied + 1) {
      return failure(
          store_error{store_fault::damaged, file.file() + ": lacks what was before its journal"});
    }
    applied = number;
    if (groups == 0) {
      TIDEGATE_TRY_VOID(into.begin_write());
    }
    for (auto rest = group->content; !rest.empty();) {
      auto const one = take_change(rest);
      if (!one) {
        return failure(store_error{store_fault::damaged,
                                   file.file() + ".journal: has what no directory writes"});
      }
      TIDEGATE_TRY_VOID(repeat(*one, into, model));
    }
    if (++groups == groups_at_once) {
      TIDEGATE_TRY_VOID(
          file.execute(("UPDATE journal SET applied = " + std::to_string(applied)).c_str()));
      TIDEGATE_TRY_VOID(into.commit());
      groups = 0;
    }
  }
  if (groups > 0) {
    TIDEGATE_TRY_VOID(
        file.execute(("UPDATE journal SET applied = " + std::to_string(applied)).c_str()));
    TIDEGATE_TRY_VOID(into.commit());
  }
  return {};
}

}  // namespace

auto carry_over_old_journal(directory_session& into, scim::model const& model) -> outcome<void> {
  auto& file = into.file();
  auto const name = file.file() + ".journal";
  TIDEGATE_TRY(auto const tables,
               file.number("SELECT count(*) FROM sqlite_schema WHERE name = 'journal'"));
  if (tables > 0) {
    TIDEGATE_TRY(auto const identity, file.number("SELECT identity FROM journal"));
    TIDEGATE_TRY(auto const applied, file.number("SELECT applied FROM journal"));
    journal_reader journal(name, static_cast<std::uint64_t>(identity));
    if (auto made = repeat_all(journal, applied, into, model); !made) {
      into.rollback();
      return made;
    }
    TIDEGATE_TRY_VOID(file.execute("DROP TABLE journal"));
  }
  // All of it is in the file.
  std::error_code ignored;
  std::filesystem::remove(name, ignored);
  return {};
}

}  // namespace tidegate::store_sqlite
