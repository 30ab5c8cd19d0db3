// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/aead/aes_256_gcm.hpp>
