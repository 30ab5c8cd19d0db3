// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/json.hpp>
#include <tidegate/scim/case_fold.hpp>
#include <tidegate/scim/cursor.hpp>
#include <tidegate/scim/date_time.hpp>
#include <tidegate/scim/error.hpp>
#include <tidegate/scim/filter.hpp>
#include <tidegate/scim/list_request.hpp>
#include <tidegate/scim/list_response.hpp>
#include <tidegate/scim/patch.hpp>
#include <tidegate/scim/projection.hpp>
#include <tidegate/scim/resource.hpp>
#include <tidegate/scim/schema.hpp>
#include <tidegate/scim/service_provider_config.hpp>
#include <tidegate/scim/walk.hpp>
