// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything of the module.
#include <tidegate/wire/http1_body.hpp>
#include <tidegate/wire/http1_head.hpp>
#include <tidegate/wire/http1_write.hpp>
#include <tidegate/wire/known_field.hpp>
