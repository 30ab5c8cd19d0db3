// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_directory/schema.hpp>

#include <tidegate/json/parse.hpp>

#include <utility>

namespace tidegate::store_directory {
namespace {

/// To be raised when `index_key` makes other keys of the same values: all indexes are built again.
constexpr int key_format = 1;

}  // namespace

auto is_multi_valued(scim::index_definition const& index) noexcept -> bool {
  return index.path.parent->multi_valued ||
         (index.path.sub != nullptr && index.path.sub->multi_valued);
}

auto stored_runs(scim::model_type const& type) -> std::vector<stored_run> {
  std::vector<stored_run> all;
  for (std::size_t i = 0; i < type.indexes.size(); ++i) {
    all.push_back({i, false});
    if (is_multi_valued(type.indexes[i])) {
      all.push_back({i, true});
    }
  }
  return all;
}

auto key_definition(scim::index_definition const& index, std::string_view values) -> std::string {
  auto const* const leaf = index.path.leaf();
  auto text = std::to_string(key_format) + ' ';
  text += is_multi_valued(index) ? values : "value";
  return text + ' ' + std::to_string(static_cast<int>(leaf->type)) +
         (leaf->case_exact ? " exact" : " folded");
}

auto id_index(scim::model_type const& type) noexcept -> std::size_t {
  auto const found = std::ranges::find(type.indexes, "id", &scim::index_definition::name);
  return static_cast<std::size_t>(found - type.indexes.begin());
}

auto parse_stored(std::string_view store, std::int64_t rid, std::string_view text)
    -> outcome<json::value> {
  // It was read before it was written, so only what it takes to be read is asked of it here.
  auto read =
      json::parse(text, {.octets_max = std::numeric_limits<std::size_t>::max(), .depth_max = 64});
  if (!read) {
    return failure(store::store_error{
        store::store_fault::damaged,
        std::string(store) + ": resource " + std::to_string(rid) + ": " + to_string(read.error())});
  }
  return *std::move(read);
}

auto read_group(std::string_view store, std::int64_t rid, std::string_view id,
                std::string_view type, std::string_view text) -> outcome<store::directory_member> {
  TIDEGATE_TRY(auto const resource, parse_stored(store, rid, text));
  auto const* const name = resource.find("displayName");
  auto const* const display = name != nullptr ? name->if_string() : nullptr;
  return store::directory_member{static_cast<std::uint64_t>(rid), std::string(id),
                                 std::string(type), display != nullptr ? *display : std::string()};
}

}  // namespace tidegate::store_directory
