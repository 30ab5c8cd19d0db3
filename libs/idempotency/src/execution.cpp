// SPDX-License-Identifier: Apache-2.0
#include "execution_events.hpp"

namespace tidegate::idempotency {

template class basic_execution<all_rules>;

}  // namespace tidegate::idempotency
