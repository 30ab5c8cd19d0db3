// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/case_fold.hpp>
