# SPDX-License-Identifier: Apache-2.0
# Writes tidegate_version.hpp: cmake -DSOURCE_DIR=… -DOUTPUT=… -P WriteVersion.cmake
set(commit unknown)
find_program(git git)
# A source tree that was unpacked inside another repository has no commit of its own.
if(git AND EXISTS "${SOURCE_DIR}/.git")
  execute_process(
    COMMAND "${git}" -C "${SOURCE_DIR}" rev-parse --short=12 HEAD
    RESULT_VARIABLE failed
    OUTPUT_VARIABLE answer
    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed)
    set(commit "${answer}")
  endif()
endif()

set(text "// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#define TIDEGATE_COMMIT \"${commit}\"
")
set(before "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT text STREQUAL before)
  file(WRITE "${OUTPUT}" "${text}")
endif()
