// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidegate::app {

/// What every subcommand exits with.
inline constexpr int exit_success = 0;
inline constexpr int exit_failure = 1;        ///< the answer is no, or the work is not all done
inline constexpr int exit_usage = 2;          ///< the command line or the configuration is wrong
inline constexpr int exit_interrupted = 130;  ///< ended by Ctrl-C

}  // namespace tidegate::app
