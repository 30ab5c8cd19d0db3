# SPDX-License-Identifier: Apache-2.0
# The installed form: the CMake package `tidegate` with one component per module, and one pkg-config file
# per module. Everything in it is relative, so that the installed tree can be moved.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tidegate")
set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH TIDEGATE_PREFIX_FROM_PC "/prefix/${pkgconfig_dir}" "/prefix")
string(REGEX REPLACE "/$" "" TIDEGATE_PREFIX_FROM_PC "${TIDEGATE_PREFIX_FROM_PC}")

get_property(modules GLOBAL PROPERTY TIDEGATE_MODULES)
set(TIDEGATE_COMPONENTS "")
foreach(module IN LISTS modules)
  get_property(depends GLOBAL PROPERTY TIDEGATE_${module}_DEPENDS)
  get_property(finds GLOBAL PROPERTY TIDEGATE_${module}_FIND)
  get_property(description GLOBAL PROPERTY TIDEGATE_${module}_DESCRIPTION)
  string(APPEND TIDEGATE_COMPONENTS "set(_tidegate_${module}_depends ${depends})\n")
  string(APPEND TIDEGATE_COMPONENTS "set(_tidegate_${module}_find \"${finds}\")\n")

  install(
    TARGETS tidegate_${module}
    EXPORT tidegate-${module}
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev
    FILE_SET HEADERS
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    COMPONENT dev)
  install(
    EXPORT tidegate-${module}
    FILE tidegate-${module}-targets.cmake
    NAMESPACE tidegate::
    DESTINATION "${package_dir}"
    COMPONENT dev)

  set(TIDEGATE_PC_NAME ${module})
  set(TIDEGATE_PC_DESCRIPTION "${description}")
  list(TRANSFORM depends PREPEND tidegate- OUTPUT_VARIABLE requires)
  list(JOIN requires " " TIDEGATE_PC_REQUIRES)
  get_target_property(type tidegate_${module} TYPE)
  set(TIDEGATE_PC_LIBS "")
  if(type STREQUAL "STATIC_LIBRARY")
    get_property(flags GLOBAL PROPERTY TIDEGATE_${module}_FLAGS)
    list(JOIN flags " " flags)
    string(STRIP "-L\${libdir} -ltidegate_${module} ${flags}" TIDEGATE_PC_LIBS)
  endif()
  configure_file("${PROJECT_SOURCE_DIR}/packaging/tidegate-module.pc.in"
                 "${PROJECT_BINARY_DIR}/package/tidegate-${module}.pc" @ONLY)
  install(
    FILES "${PROJECT_BINARY_DIR}/package/tidegate-${module}.pc"
    DESTINATION "${pkgconfig_dir}"
    COMPONENT dev)
endforeach()
list(JOIN modules " " TIDEGATE_MODULES_IN_ORDER)

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/tidegate-config.cmake.in"
  "${PROJECT_BINARY_DIR}/package/tidegate-config.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/tidegate-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package/tidegate-config.cmake"
              "${PROJECT_BINARY_DIR}/package/tidegate-config-version.cmake"
        DESTINATION "${package_dir}"
        COMPONENT dev)
# Debian has one copy of this licence for all packages.
if(NOT TIDEGATE_PACKAGE)
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
endif()

# Manual pages, completions and the schema for editors: made by the program, so never older than it.
if(TIDEGATE_APPS)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(manual "${PROJECT_BINARY_DIR}/manual")
  set(manual_files tidegate.1.gz tidegate.yaml.5.gz tidegate.bash _tidegate tidegate.fish
      tidegate.schema.json)
  list(TRANSFORM manual_files PREPEND "${manual}/")
  add_custom_command(
    OUTPUT ${manual_files}
    COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/make_manual" "$<TARGET_FILE:tidegate>" "${manual}"
    DEPENDS tidegate "${PROJECT_SOURCE_DIR}/tools/make_manual"
    COMMENT "Writing the manual pages")
  add_custom_target(tidegate_manual ALL DEPENDS ${manual_files})
  install(FILES "${manual}/tidegate.1.gz" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT tidegate)
  install(FILES "${manual}/tidegate.yaml.5.gz" DESTINATION "${CMAKE_INSTALL_MANDIR}/man5" COMPONENT tidegate)
  set(share "${CMAKE_INSTALL_DATAROOTDIR}")
  install(
    FILES "${manual}/tidegate.bash"
    RENAME tidegate
    DESTINATION "${share}/bash-completion/completions"
    COMPONENT tidegate)
  install(FILES "${manual}/_tidegate" DESTINATION "${share}/zsh/vendor-completions" COMPONENT tidegate)
  install(FILES "${manual}/tidegate.fish" DESTINATION "${share}/fish/vendor_completions.d" COMPONENT tidegate)
  install(FILES "${manual}/tidegate.schema.json" DESTINATION "${share}/tidegate" COMPONENT tidegate)
endif()
