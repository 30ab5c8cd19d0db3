// expect: ok
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/aead.hpp>
#include <tidegate/base.hpp>
#include <tidegate/client.hpp>
#include <tidegate/explain.hpp>
#include <tidegate/http.hpp>
#include <tidegate/idempotency.hpp>
#include <tidegate/json.hpp>
#include <tidegate/lint.hpp>
#include <tidegate/ratelimit.hpp>
#include <tidegate/scim.hpp>
#include <tidegate/sf.hpp>
#include <tidegate/store.hpp>
#include <tidegate/store_quota.hpp>
#include <tidegate/wire.hpp>

// The only macros that they leave behind.
#if !defined(TIDEGATE_TRY) || !defined(TIDEGATE_ABI) || defined(TIDEGATE_JOIN)
#error "the macros are not those of base/result.hpp and version.hpp"
#endif
static_assert(tidegate::library_version == TIDEGATE_VERSION);
