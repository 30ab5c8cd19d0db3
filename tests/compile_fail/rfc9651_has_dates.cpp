// expect: ok
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf.hpp>

using namespace tidegate::sf;

basic_bare_item<dialect::rfc9651> item = date(integer(1));

auto main() -> int {}
