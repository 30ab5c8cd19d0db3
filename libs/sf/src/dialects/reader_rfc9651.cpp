// SPDX-License-Identifier: Apache-2.0
#include "grammar_machine.hpp"

namespace tidegate::TIDEGATE_ABI::sf {

template class basic_reader<dialect::rfc9651>;

}  // namespace tidegate::TIDEGATE_ABI::sf
