// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a field of type dictionary in dialect draft11: the properties are stated in the
// header.
#include "sf_field_fuzz.hpp"

TIDEGATE_SF_FUZZ(draft11, dictionary)
