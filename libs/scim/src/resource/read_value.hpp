// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/scim/resource.hpp>

#include <string>

namespace tidegate::TIDEGATE_ABI::scim {

/// A plain value where an object is expected stands for its `value`: so clients send the manager.
/// An empty text stands for none.
[[nodiscard]] auto as_object(json::value value, attribute const& a) -> json::value;

/// Whether a single complex value has a `value` that is empty, and nothing else: `{"value": ""}`
/// stands for none, as an empty text does.
[[nodiscard]] auto is_empty_reference(json::value const& value, attribute const& a) -> bool;

/// Reads one value of `a`, at `path`, as `read_resource` does, but required sub-attributes may be
/// missing: it may become part of another value. Null when nothing is in it.
[[nodiscard]] auto read_value(json::value value, attribute const& a, std::string const& path)
    -> result<json::value, resource_error>;

}  // namespace tidegate::TIDEGATE_ABI::scim
