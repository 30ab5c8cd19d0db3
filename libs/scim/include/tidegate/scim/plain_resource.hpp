// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/json/value.hpp>
#include <tidegate/scim/index_key.hpp>
#include <tidegate/scim/model.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// New resources as most clients send them, read in one go.
namespace tidegate::TIDEGATE_ABI::scim {

/// A resource as a directory gets it.
struct kept_form {
  std::string text;
  std::vector<index_entry> entries;
  auto operator==(kept_form const&) const -> bool = default;
};

/// Makes of the text of a new resource what `json::parse`, `read_resource` and `index_entries` make
/// of it together with `own`, an object with the `id` and the `meta` that the service gives it:
/// they come behind `schemas` and at the end.
///
/// Nothing when the text is not plain, be it in order or not; they tell then. It is plain when it
/// could be kept as it stands but for whitespace: `schemas` is first and lists what there is, in
/// its order; names are spelled as in the schemas; there are strings without escapes, booleans, and
/// of each multi-valued attribute one value; nothing is there that would be left out. Groups never
/// are. `text` is not too long: the caller has looked.
[[nodiscard]] auto read_plain_resource(std::string_view text, model_type const& type,
                                       json::value const& own) -> std::optional<kept_form>;

}  // namespace tidegate::TIDEGATE_ABI::scim
