// SPDX-License-Identifier: Apache-2.0
#include "execution_events.hpp"

namespace tidegate::TIDEGATE_ABI::idempotency {

template class basic_execution<all_rules>;

}  // namespace tidegate::TIDEGATE_ABI::idempotency
