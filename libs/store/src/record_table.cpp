// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store/record_table.hpp>

#include <algorithm>
#include <limits>

namespace tidegate::TIDEGATE_ABI::store {

using idempotency::lookup_key;
using idempotency::wall_time;

namespace {

[[nodiscard]] auto seconds_of(std::chrono::seconds duration) noexcept -> std::uint32_t {
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(duration.count(), 0, most));
}

/// What a node of a tree takes.
constexpr std::size_t unknown_octets = 64;

[[nodiscard]] auto time_of(std::int64_t milliseconds) noexcept -> wall_time {
  return wall_time(std::chrono::milliseconds(milliseconds));
}

}  // namespace

auto octets_of(idempotency::stored_response const& response) noexcept -> std::size_t {
  auto octets = response.body.size();
  for (auto const* const all : {&response.fields, &response.trailers}) {
    for (auto const& field : *all) {
      octets += field.name.size() + field.value.size();
    }
  }
  return octets;
}

/// The slot that holds the key, or the empty one where it would go.
auto record_table::slot_of(lookup_key const& key) const noexcept -> std::size_t {
  auto const mask = slots_.size() - 1;
  auto slot = idempotency::lookup_key_hash{}(key)&mask;
  while (slots_[slot] != nowhere && at(slots_[slot]).key != key) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

auto record_table::place_of(lookup_key const& key) const noexcept -> std::uint32_t {
  return slots_.empty() ? nowhere : slots_[slot_of(key)];
}

auto record_table::find(lookup_key const& key) const -> std::optional<entry> {
  auto const place = place_of(key);
  if (place == nowhere) {
    return std::nullopt;
  }
  auto const& p = at(place);
  entry found;
  auto& r = found.record;
  r.state = p.state;
  r.reason = p.reason;
  r.token = p.token;
  r.attempt = p.attempt;
  r.status = p.status;
  r.replayable = p.replayable;
  r.created = time_of(p.created);
  r.changed = time_of(p.changed);
  r.lease_until = time_of(p.lease_until);
  r.ttl = std::chrono::seconds(p.ttl);
  r.tombstone = std::chrono::seconds(p.tombstone);
  r.fingerprint.rule = rules_[p.rule];
  r.fingerprint.parts = p.parts;
  if (auto const of = origins_.find(place); of != origins_.end()) {
    r.origin = of->second;
  }
  found.response = p.response;
  found.row = p.row;
  found.stored = p.stored;
  return found;
}

void record_table::put(lookup_key const& key, entry entry) {
  if (4 * (size() + 1) > 3 * slots_.size()) {
    grow();
  }
  auto const slot = slot_of(key);
  if (slots_[slot] == nowhere) {
    if (free_.empty()) {
      if (places_ == blocks_.size() * block_size) {
        blocks_.push_back(std::make_unique<block>());
      }
      slots_[slot] = static_cast<std::uint32_t>(places_++);
    } else {
      slots_[slot] = free_.back();
      free_.pop_back();
    }
  }
  auto const place = slots_[slot];
  auto& p = at(place);
  auto const& r = entry.record;
  forget_unknown(place);
  stored_octets_ += entry.stored;
  stored_octets_ -= p.used ? p.stored : 0;
  p.key = key;
  p.row = entry.row;
  p.stored = entry.stored;
  p.token = r.token;
  p.created = r.created.time_since_epoch().count();
  p.changed = r.changed.time_since_epoch().count();
  p.lease_until = r.lease_until.time_since_epoch().count();
  p.parts = r.fingerprint.parts;
  p.ttl = seconds_of(r.ttl);
  p.tombstone = seconds_of(r.tombstone);
  p.attempt = r.attempt;
  p.rule = number_of(r.fingerprint.rule);
  p.status = r.status;
  p.state = r.state;
  p.reason = r.reason;
  p.replayable = r.replayable;
  p.used = true;
  if (p.state == idempotency::record_state::unknown) {
    unknown_.emplace(p.changed, place);
  }
  set_response(p, std::move(entry.response));
  set_origin(place, std::move(entry.record.origin));
}

void record_table::erase(lookup_key const& key) {
  auto const place = place_of(key);
  if (place == nowhere) {
    return;
  }
  set_response(at(place), nullptr);
  set_origin(place, {});
  stored_octets_ -= at(place).stored;
  forget_unknown(place);
  at(place).used = false;
  // An entry behind the gap that would be looked for in it moves up.
  auto const mask = slots_.size() - 1;
  auto gap = slot_of(key);
  for (auto slot = (gap + 1) & mask; slots_[slot] != nowhere; slot = (slot + 1) & mask) {
    auto const home = idempotency::lookup_key_hash{}(at(slots_[slot]).key) & mask;
    if (((slot - home) & mask) >= ((slot - gap) & mask)) {
      slots_[gap] = slots_[slot];
      gap = slot;
    }
  }
  slots_[gap] = nowhere;
  free_.push_back(place);
}

void record_table::drop_response(lookup_key const& key) {
  if (auto const place = place_of(key); place != nowhere) {
    set_response(at(place), nullptr);
  }
}

auto record_table::memory() const noexcept -> std::size_t {
  return blocks_.size() * sizeof(block) + blocks_.capacity() * sizeof(blocks_.front()) +
         (free_.capacity() + slots_.capacity()) * sizeof(std::uint32_t) +
         unknown_.size() * unknown_octets + origin_octets_;
}

void record_table::forget_unknown(std::uint32_t place) {
  auto const& p = at(place);
  if (p.used && p.state == idempotency::record_state::unknown) {
    unknown_.erase({p.changed, place});
  }
}

auto record_table::newest_unknown(std::size_t count) const -> std::vector<lookup_key> {
  std::vector<lookup_key> keys;
  for (auto it = unknown_.rbegin(); it != unknown_.rend() && keys.size() < count; ++it) {
    keys.push_back(at(it->second).key);
  }
  return keys;
}

auto record_table::key_at(std::size_t place) const noexcept -> std::optional<lookup_key> {
  return at(place).used ? std::optional(at(place).key) : std::nullopt;
}

auto record_table::number_of(std::string const& rule) -> std::uint32_t {
  auto const found = std::find(rules_.begin(), rules_.end(), rule);
  auto const number = static_cast<std::uint32_t>(found - rules_.begin());
  if (found == rules_.end()) {
    rules_.push_back(rule);
  }
  return number;
}

void record_table::grow() {
  slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), nowhere);
  for (std::size_t place = 0; place < places_; ++place) {
    if (at(place).used) {
      slots_[slot_of(at(place).key)] = static_cast<std::uint32_t>(place);
    }
  }
}

void record_table::set_origin(std::uint32_t place, idempotency::request_origin origin) {
  auto const octets = [](idempotency::request_origin const& of) {
    constexpr std::size_t around = 32;  // what a node of a table takes
    return around + sizeof of + of.route.size() + of.principal.size() + of.method.size() +
           of.host.size() + of.path.size();
  };
  if (auto const found = origins_.find(place); found != origins_.end()) {
    origin_octets_ -= octets(found->second);
    origins_.erase(found);
  }
  if (!origin.empty()) {
    origin_octets_ += octets(origin);
    origins_.emplace(place, std::move(origin));
  }
}

void record_table::set_response(packed& p,
                                std::shared_ptr<idempotency::stored_response const> response) {
  response_octets_ -= p.response ? octets_of(*p.response) : 0;
  response_octets_ += response ? octets_of(*response) : 0;
  p.response = std::move(response);
}

}  // namespace tidegate::TIDEGATE_ABI::store
