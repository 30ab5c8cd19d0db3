// SPDX-License-Identifier: Apache-2.0
#pragma once

/// JSON (RFC 8259) read, written and compared: values that own what is in them, a reader for those
/// who make their own, one canonical spelling, and pointers into it (RFC 6901). No I/O.

#include <tidegate/json/canonical.hpp>
#include <tidegate/json/error.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/json/pointer.hpp>
#include <tidegate/json/reader.hpp>
#include <tidegate/json/string.hpp>
#include <tidegate/json/value.hpp>
