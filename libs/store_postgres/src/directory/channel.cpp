// SPDX-License-Identifier: Apache-2.0
#include "directory/channel.hpp"

#include <cstddef>

namespace tidegate::store_postgres {

namespace {

/// So many members are sent at once.
constexpr std::size_t members_max = 1000;

}  // namespace

auto directory_channel::ask(fixed_statement const& which, parameters const& values)
    -> outcome<rows> {
  TIDEGATE_TRY_VOID(send_members());
  return server_.ask(number_of(which), values);
}

auto directory_channel::ask(std::string const& text, parameters const& values) -> outcome<rows> {
  TIDEGATE_TRY_VOID(send_members());
  return server_.ask(text, values);
}

auto directory_channel::send(fixed_statement const& which, parameters const& values)
    -> outcome<void> {
  return server_.send(number_of(which), values);
}

auto directory_channel::write(fixed_statement const& which, parameters const& values)
    -> outcome<void> {
  TIDEGATE_TRY_VOID(make_savepoint());
  TIDEGATE_TRY_VOID(send_members());
  return send(which, values);
}

auto directory_channel::write_member(std::int64_t group, std::int64_t member, std::int64_t place,
                                     std::string_view display) -> outcome<void> {
  if (added_.group != group) {
    TIDEGATE_TRY_VOID(send_members());
  }
  added_.group = group;
  added_.rids.push_back(member);
  added_.places.push_back(place);
  added_.displays.emplace_back(display);
  return added_.rids.size() >= members_max ? send_members() : outcome<void>();
}

auto directory_channel::send_members() -> outcome<void> {
  if (added_.rids.empty()) {
    return {};
  }
  auto const added = std::exchange(added_, {});
  std::vector<std::string_view> const displays(added.displays.begin(), added.displays.end());
  TIDEGATE_TRY_VOID(
      write(sql.insert_members, parameters(added.group, added.rids, added.places, displays)));
  return write(sql.mark_in_groups, parameters(added.rids));
}

void directory_channel::begin_transaction(bool is_alone) noexcept {
  is_alone_ = is_alone;
  has_savepoint_ = false;
  forget_members();
}

auto directory_channel::make_savepoint() -> outcome<void> {
  if (!has_savepoint_ && !is_alone_) {
    TIDEGATE_TRY_VOID(send(sql.savepoint));
    has_savepoint_ = true;
  }
  return {};
}

auto directory_channel::keep_transaction() -> outcome<void> {
  TIDEGATE_TRY_VOID(send_members());
  return std::exchange(has_savepoint_, false) ? send(sql.release) : outcome<void>();
}

auto directory_channel::undo_transaction() -> outcome<void> {
  forget_members();
  if (!std::exchange(has_savepoint_, false)) {
    return {};
  }
  // What went wrong in this transaction is not said again.
  auto const ended = server_.finish();
  if (!ended && server_.is_broken()) {
    return failure(ended.error());
  }
  TIDEGATE_TRY_VOID(send(sql.undo));
  return send(sql.release);
}

}  // namespace tidegate::store_postgres
