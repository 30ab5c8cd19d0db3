// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Structured Field Values for HTTP in three dialects: RFC 9651, RFC 8941 and
/// draft-ietf-httpbis-header-structure-11.

#include <tidegate/sf/dialect.hpp>
#include <tidegate/sf/error.hpp>
#include <tidegate/sf/json.hpp>
#include <tidegate/sf/parse.hpp>
#include <tidegate/sf/reader.hpp>
#include <tidegate/sf/serialize.hpp>
#include <tidegate/sf/values.hpp>
#include <tidegate/sf/writer.hpp>
