// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a field of type dictionary in dialect rfc9651: the properties are stated in the
// header.
#include "sf_field_fuzz.hpp"

TIDEGATE_SF_FUZZ(rfc9651, dictionary)
