// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An HTTP client that does what servers say: paced by their RateLimit fields, with
/// Idempotency-Keys and safe retries; and a range over the resources of a SCIM server.

#include <tidegate/client/error.hpp>
#include <tidegate/client/message.hpp>
#include <tidegate/client/scim_error.hpp>
#include <tidegate/client/scim_position.hpp>
#include <tidegate/client/scim_range.hpp>
#include <tidegate/client/scim_walk.hpp>
#include <tidegate/client/session.hpp>
