# SPDX-License-Identifier: Apache-2.0
include(GNUInstallDirs)
include(GoogleTest)

# tidegate_add_modules(<variable>): adds the modules that TIDEGATE_MODULES names, with those that they use.
# <variable> says whether these are all that there are.
function(tidegate_add_modules variable)
  string(REPLACE "," ";" wanted "${TIDEGATE_MODULES}")
  list(JOIN TIDEGATE_KNOWN_MODULES ", " known)
  if(wanted STREQUAL "all")
    set(wanted ${TIDEGATE_KNOWN_MODULES})
  elseif(NOT wanted)
    message(FATAL_ERROR "TIDEGATE_MODULES is empty (expected all, or some of: ${known})")
  endif()
  foreach(module IN LISTS wanted)
    if(NOT module IN_LIST TIDEGATE_KNOWN_MODULES)
      message(FATAL_ERROR "TIDEGATE_MODULES: there is no module '${module}' (expected all, or some of: ${known})")
    endif()
  endforeach()
  foreach(module IN LISTS wanted)
    tidegate_add_module(${module})
  endforeach()
  get_property(built GLOBAL PROPERTY TIDEGATE_MODULES)
  if(NOT TIDEGATE_MODULES STREQUAL "all")
    list(JOIN built ", " names)
    message(STATUS "Modules: ${names}")
  endif()
  set(missing ${TIDEGATE_KNOWN_MODULES})
  list(REMOVE_ITEM missing ${built})
  set(complete TRUE)
  if(missing)
    set(complete FALSE)
  endif()
  set(${variable} ${complete} PARENT_SCOPE)
endfunction()

# tidegate_add_module(<module>): adds a module that is not there yet. The modules that it uses add themselves.
function(tidegate_add_module module)
  if(NOT TARGET tidegate::${module})
    add_subdirectory("${PROJECT_SOURCE_DIR}/libs/${module}" "${PROJECT_BINARY_DIR}/libs/${module}")
  endif()
endfunction()

# tidegate_module(NAME <m> [DESCRIPTION <text>] [DEPENDS <module>...] [LINK <library>...]
#                 [FIND <package and arguments>...] [FLAGS <linker flag>...] [TEST_LINK <library>...])
#
# Makes the module of the current folder:
#   include/tidegate/**.hpp   the public headers
#   src/**.cpp                the library tidegate::<m>; without sources it is headers only
#   test/**.cpp               the program <m>_test; each TEST becomes one ctest entry
# DEPENDS are modules that the public headers show; they are added when they are not there yet. LINK are libraries that only src/ uses; FIND says
# how the installed package finds them again, one string each ("Boost COMPONENTS json"), and FLAGS how
# pkg-config names them ("-lcurl"). TEST_LINK are libraries that only the tests use.
function(tidegate_module)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;DESCRIPTION" "DEPENDS;LINK;FIND;FLAGS;TEST_LINK")
  if(NOT arg_NAME OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tidegate_module: wrong arguments: ${ARGN}")
  endif()
  foreach(module IN LISTS arg_DEPENDS)
    tidegate_add_module(${module})
  endforeach()
  set(target tidegate_${arg_NAME})

  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/include/*.hpp")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/*.cpp")
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/test/*.cpp")

  if(sources)
    set(scope PUBLIC)
    add_library(${target} STATIC ${sources})
    target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src")
    tidegate_compile_options(${target})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  add_library(tidegate::${arg_NAME} ALIAS ${target})
  target_compile_features(${target} ${scope} cxx_std_23)
  target_sources(
    ${target}
    ${scope}
    FILE_SET
    HEADERS
    BASE_DIRS
    "${CMAKE_CURRENT_SOURCE_DIR}/include"
    FILES
    ${headers})
  foreach(module IN LISTS arg_DEPENDS)
    target_link_libraries(${target} ${scope} tidegate::${module})
  endforeach()
  if(arg_LINK)
    target_link_libraries(${target} PRIVATE ${arg_LINK})
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${arg_NAME} VERIFY_INTERFACE_HEADER_SETS
                                                                     ${PROJECT_IS_TOP_LEVEL})

  # TidegatePackage writes the installed package from these.
  set_property(GLOBAL APPEND PROPERTY TIDEGATE_MODULES ${arg_NAME})
  set_property(GLOBAL PROPERTY TIDEGATE_${arg_NAME}_DESCRIPTION "${arg_DESCRIPTION}")
  set_property(GLOBAL PROPERTY TIDEGATE_${arg_NAME}_DEPENDS "${arg_DEPENDS}")
  set_property(GLOBAL PROPERTY TIDEGATE_${arg_NAME}_FIND "${arg_FIND}")
  set_property(GLOBAL PROPERTY TIDEGATE_${arg_NAME}_FLAGS "${arg_FLAGS}")

  if(TIDEGATE_TESTS AND tests)
    tidegate_test(${arg_NAME}_test SOURCES ${tests} LINK tidegate::${arg_NAME} ${arg_TEST_LINK})
    target_include_directories(${arg_NAME}_test PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src"
                                                        "${CMAKE_CURRENT_SOURCE_DIR}/test")
  endif()
endfunction()

# tidegate_test(<target> SOURCES <file>... [LINK <library>...])
#
# A GoogleTest program; each TEST in it is one ctest entry. Tests run in the root of the source tree and
# know it as TIDEGATE_SOURCE_DIR.
function(tidegate_test target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  set(tests ${arg_SOURCES})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(REMOVE_ITEM arg_SOURCES ${tests})
  tidegate_units(units ${target} SOURCES ${tests})
  add_executable(${target} ${units} ${arg_SOURCES})
  tidegate_compile_options(${target})
  target_compile_definitions(${target} PRIVATE "TIDEGATE_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
  target_link_libraries(${target} PRIVATE ${arg_LINK} GTest::gmock GTest::gtest_main)
  # Most tests do little themselves, and the compiler takes a third of the time without optimising them, with
  # sanitizers even less. These compare with references and models of their own.
  set(busy sf_test ratelimit_test idempotency_test scim_test store_test store_quota_test store_sqlite_test store_postgres_test
           simulation_test)
  if(NOT target IN_LIST busy)
    target_compile_options(${target} PRIVATE -O0)
  endif()
  gtest_discover_tests(${target} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" DISCOVERY_TIMEOUT 60)
endfunction()

# tidegate_units(<variable> <target> SOURCES <file>... [DEFINE <name>])
#
# Sets <variable> to what <target> compiles for these files. With TIDEGATE_UNITS that is a few units with up to sixteen files
# each, written by tools/make_unit: the compiler takes longer for the headers than for most tests. DEFINE is a name that each
# file has for itself: <name>_<stem>.
function(tidegate_units variable target)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "DEFINE" "SOURCES")
  list(TRANSFORM arg_SOURCES REPLACE "^([^/].*)" "${CMAKE_CURRENT_SOURCE_DIR}/\\1")
  set(made "")
  if(TIDEGATE_UNITS AND arg_SOURCES)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    set(define "")
    if(arg_DEFINE)
      set(define --define ${arg_DEFINE})
    endif()
    # Of about the same length, so that none is waited for.
    list(LENGTH arg_SOURCES count)
    math(EXPR units "(${count} + 15) / 16")
    set(begin 0)
    foreach(unit RANGE 1 ${units})
      math(EXPR end "${count} * ${unit} / ${units}")
      math(EXPR length "${end} - ${begin}")
      list(SUBLIST arg_SOURCES ${begin} ${length} part)
      set(begin ${end})
      set(file "${CMAKE_CURRENT_BINARY_DIR}/${target}_unit_${unit}.cpp")
      add_custom_command(
        OUTPUT "${file}"
        COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/make_unit" ${define} "${file}" ${part}
        DEPENDS "${PROJECT_SOURCE_DIR}/tools/make_unit" ${part}
        # Where the compiler runs, too.
        WORKING_DIRECTORY "${PROJECT_BINARY_DIR}"
        COMMENT "Writing ${target}_unit_${unit}.cpp"
        VERBATIM)
      list(APPEND made "${file}")
    endforeach()
    # Units name files by the way from the folder of the build; messages name them as the repository does.
    file(RELATIVE_PATH way "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")
    set_source_files_properties(${made} PROPERTIES COMPILE_OPTIONS "-fmacro-prefix-map=${way}=")
  else()
    set(made ${arg_SOURCES})
    if(arg_DEFINE)
      foreach(file IN LISTS made)
        cmake_path(GET file STEM stem)
        set_source_files_properties("${file}" PROPERTIES COMPILE_DEFINITIONS "${arg_DEFINE}=${arg_DEFINE}_${stem}")
      endforeach()
    endif()
  endif()
  set(${variable} ${made} PARENT_SCOPE)
endfunction()

# tidegate_module_of(<variable> <name>): the module whose name begins <name>, before "_" or the end; the
# longest one when several do. Empty when there is none.
function(tidegate_module_of variable name)
  set(best "")
  foreach(module IN LISTS TIDEGATE_KNOWN_MODULES)
    string(LENGTH "${module}" length)
    string(LENGTH "${best}" best_length)
    if("${name}_" MATCHES "^${module}_" AND length GREATER best_length)
      set(best ${module})
    endif()
  endforeach()
  set(${variable} "${best}" PARENT_SCOPE)
endfunction()
