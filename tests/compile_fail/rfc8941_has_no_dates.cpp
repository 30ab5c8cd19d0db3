// expect: no matching function|no match|could not convert|conversion
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf.hpp>

using namespace tidegate::sf;

basic_bare_item<dialect::rfc8941> item = date(integer(1));

auto main() -> int {}
