// SPDX-License-Identifier: Apache-2.0
#include "grammar_machine.hpp"

namespace tidegate::TIDEGATE_ABI::sf {

template class basic_reader<dialect::rfc8941>;

}  // namespace tidegate::TIDEGATE_ABI::sf
