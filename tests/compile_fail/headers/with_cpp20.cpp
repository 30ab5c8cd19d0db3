// expect: Tidegate needs std::expected: use -std=c\+\+23
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf.hpp>
