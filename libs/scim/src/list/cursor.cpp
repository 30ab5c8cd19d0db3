// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/cursor.hpp>

#include <tidegate/aead/aes_256_gcm.hpp>
#include <tidegate/base/ascii.hpp>
#include <tidegate/base/base64.hpp>

#include <algorithm>
#include <cassert>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

// A cursor: version, id of the key, nonce, sealed text with its tag.
constexpr char version = 1;
constexpr std::size_t id_size = 4;
constexpr std::size_t derivation_size = 12;  // of the nonce; the rest of it is that of AES-256-GCM
constexpr std::size_t head_size = 1 + id_size + cursor_sealer::nonce_size;
static_assert(cursor_sealer::nonce_size == derivation_size + aead::nonce_size);

// The text: flags, expiry, count, rid_max, total, rid, size of the sort key, sort key, zeros to a
// whole step.
constexpr std::size_t fixed_size = 1 + 8 + 4 + 8 + 8 + 8 + 1;
constexpr std::size_t step = 64;
constexpr unsigned backward_flag = 1;
constexpr unsigned behind_flag = 2;
constexpr unsigned total_flag = 4;

[[nodiscard]] constexpr auto padded(std::size_t size) noexcept -> std::size_t {
  return (size + step - 1) / step * step;
}
static_assert(cursor_octets_max ==
              ((head_size + padded(fixed_size + sort_key_octets_max) + aead::tag_size) * 4 + 2) /
                  3);

void append_big_endian(std::string& out, std::uint64_t value, std::size_t size) {
  for (auto left = size; left > 0; --left) {
    out.push_back(static_cast<char>(value >> (8 * (left - 1))));
  }
}

/// Takes an integer off the front of `text`, which has that many octets.
[[nodiscard]] auto take_big_endian(std::string_view& text, std::size_t size) noexcept
    -> std::uint64_t {
  std::uint64_t value = 0;
  for (char c : text.substr(0, size)) {
    value = value << 8 | static_cast<unsigned char>(c);
  }
  text.remove_prefix(size);
  return value;
}

/// Appends `text` with its size, so that no two lists of texts run into each other.
void append_text(std::string& out, std::string_view text) {
  append_big_endian(out, text.size(), 8);
  out += text;
}

/// Appends names in one order and case; one that comes twice counts once.
void append_names(std::string& out, std::span<std::string const> names) {
  std::vector<std::string> folded;
  folded.reserve(names.size());
  for (auto const& name : names) {
    folded.push_back(lower_case(name));
  }
  std::sort(folded.begin(), folded.end());
  folded.erase(std::unique(folded.begin(), folded.end()), folded.end());
  append_big_endian(out, folded.size(), 8);
  for (auto const& name : folded) {
    append_text(out, name);
  }
}

/// What is signed along with a cursor and not stored in it.
[[nodiscard]] auto associated_data(std::string_view head, cursor_binding const& binding)
    -> std::string {
  std::string out(head);
  append_text(out, binding.tenant);
  append_text(out, binding.principal);
  append_big_endian(out, binding.permission_epoch, 8);
  append_text(out, binding.endpoint);
  append_text(out, binding.filter);
  append_text(out, lower_case(binding.sort_by));
  append_big_endian(out, binding.descending ? 1 : 0, 1);
  append_names(out, binding.attributes);
  append_names(out, binding.excluded_attributes);
  return out;
}

[[nodiscard]] auto text_of(cursor const& c) -> std::string {
  auto const& from = *c.place.from;
  std::string out;
  out.reserve(padded(fixed_size + from.at.sort_key.size()));
  append_big_endian(out,
                    (c.place.towards == direction::backward ? backward_flag : 0U) |
                        (from.behind ? behind_flag : 0U) | (c.total_results ? total_flag : 0U),
                    1);
  append_big_endian(out, static_cast<std::uint64_t>(c.expires.time_since_epoch().count()), 8);
  append_big_endian(out, c.count, 4);
  append_big_endian(out, c.rid_max, 8);
  append_big_endian(out, c.total_results.value_or(0), 8);
  append_big_endian(out, from.at.rid, 8);
  append_big_endian(out, from.at.sort_key.size(), 1);
  out += from.at.sort_key;
  out.resize(padded(out.size()));
  return out;
}

/// Reads what `text_of` wrote; the seal proves that it did.
[[nodiscard]] auto read_text(std::string_view text) -> cursor {
  cursor c;
  auto const flags = static_cast<unsigned>(take_big_endian(text, 1));
  c.place.towards = (flags & backward_flag) != 0 ? direction::backward : direction::forward;
  c.expires =
      wall_time(std::chrono::milliseconds(static_cast<std::int64_t>(take_big_endian(text, 8))));
  c.count = static_cast<std::uint32_t>(take_big_endian(text, 4));
  c.rid_max = take_big_endian(text, 8);
  auto const total = take_big_endian(text, 8);
  if ((flags & total_flag) != 0) {
    c.total_results = total;
  }
  auto& from = c.place.from.emplace();
  from.behind = (flags & behind_flag) != 0;
  from.at.rid = take_big_endian(text, 8);
  auto const size = take_big_endian(text, 1);
  from.at.sort_key = text.substr(0, size);
  return c;
}

}  // namespace

cursor_sealer::cursor_sealer(std::span<cursor_key const> keys) {
  assert(!keys.empty());
  for (auto const& key : keys) {
    hmac_sha256 derive{std::span<std::byte const>(key.secret)};
    derive.update("tidegate scim cursor");
    auto const purpose = derive.finish();
    derivations_.push_back({key.id, hmac_sha256(std::span<std::byte const>(purpose))});
  }
}

auto cursor_sealer::seal(cursor const& c, cursor_binding const& binding, nonce const& random) const
    -> std::optional<std::string> {
  if (!c.place.from || c.place.from->at.sort_key.size() > sort_key_octets_max) {
    return std::nullopt;
  }
  auto const& by = derivations_.front();
  std::string out(1, version);
  append_big_endian(out, by.id, id_size);
  out.append(reinterpret_cast<char const*>(random.data()), random.size());
  auto code = by.keys;
  code.update(std::span(random).first<derivation_size>());
  auto const key = code.finish();
  auto const data = associated_data(out, binding);
  if (!aead::append_sealed(out, {key, std::span(random).last<aead::nonce_size>(), data},
                           text_of(c))) {
    return std::nullopt;
  }
  return to_base64url(out);
}

auto cursor_sealer::open(std::string_view text, cursor_binding const& binding, wall_time now) const
    -> result<cursor, cursor_fault> {
  if (text.size() > cursor_octets_max) {
    return failure(cursor_fault::invalid);
  }
  auto const octets = from_base64url(text);
  if (!octets || !octets->starts_with(version) ||
      octets->size() < head_size + fixed_size + aead::tag_size) {
    return failure(cursor_fault::invalid);
  }
  auto const head = std::string_view(*octets).substr(0, head_size);
  auto rest = head.substr(1);
  auto const id = take_big_endian(rest, id_size);
  auto const by = std::find_if(derivations_.begin(), derivations_.end(),
                               [id](derivation const& d) { return d.id == id; });
  if (by == derivations_.end()) {
    return failure(cursor_fault::invalid);
  }
  auto const random = std::as_bytes(std::span(rest)).first<nonce_size>();
  auto code = by->keys;
  code.update(random.first<derivation_size>());
  auto const key = code.finish();
  auto const data = associated_data(head, binding);
  std::string opened;
  if (!aead::append_opened(opened, {key, random.last<aead::nonce_size>(), data},
                           std::string_view(*octets).substr(head_size))) {
    return failure(cursor_fault::invalid);
  }
  auto c = read_text(opened);
  if (now > c.expires) {
    return failure(cursor_fault::expired);
  }
  return c;
}

}  // namespace tidegate::TIDEGATE_ABI::scim
