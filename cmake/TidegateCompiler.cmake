# SPDX-License-Identifier: Apache-2.0
# How our own targets are compiled. Nothing here reaches a project that includes Tidegate.
# -Wnull-dereference is left out: at -O2 g++ 12 sees it in the growth of a std::vector<std::string>.
# -Wmaybe-uninitialized is off in the presets asan and tsan: their checks mislead g++ there.

set(TIDEGATE_COMPILE_OPTIONS
    -Wall
    -Wextra
    -Wpedantic
    -Wconversion
    -Wsign-conversion
    -Wold-style-cast
    -Wnon-virtual-dtor
    -Woverloaded-virtual
    -Wcast-align
    -Wimplicit-fallthrough
    # A variable is often named like its type (`key key`), which g++ would call shadowing. Clang does not.
    "$<IF:$<CXX_COMPILER_ID:GNU>,-Wshadow=local,-Wshadow>"
    # Clang sees std::get_temporary_buffer in the stable_sort of libstdc++ 12.
    "$<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>"
    # The libraries are position-independent, but their functions are never replaced by others: they
    # may be inlined into each other.
    -fno-semantic-interposition
    # Messages of assert and of the tests name files as the repository does.
    "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
if(TIDEGATE_WERROR)
  list(APPEND TIDEGATE_COMPILE_OPTIONS -Werror)
endif()

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_COLOR_DIAGNOSTICS ON)

  if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
    find_program(TIDEGATE_CCACHE ccache)
    mark_as_advanced(TIDEGATE_CCACHE)
    if(TIDEGATE_CCACHE)
      set(CMAKE_CXX_COMPILER_LAUNCHER "${TIDEGATE_CCACHE}")
    endif()
  endif()

  find_program(TIDEGATE_MOLD mold)
  find_program(TIDEGATE_LLD ld.lld)
  mark_as_advanced(TIDEGATE_MOLD TIDEGATE_LLD)
  if(TIDEGATE_MOLD)
    add_link_options(-fuse-ld=mold)
  elseif(TIDEGATE_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()

# Gives one of our own targets the language, the warnings and no extensions.
function(tidegate_compile_options target)
  target_compile_features(${target} PRIVATE cxx_std_23)
  target_compile_options(${target} PRIVATE ${TIDEGATE_COMPILE_OPTIONS})
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()
