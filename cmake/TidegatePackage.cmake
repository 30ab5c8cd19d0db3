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
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET HEADERS
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(
    EXPORT tidegate-${module}
    FILE tidegate-${module}.cmake
    NAMESPACE tidegate::
    DESTINATION "${package_dir}")

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
  install(FILES "${PROJECT_BINARY_DIR}/package/tidegate-${module}.pc" DESTINATION "${pkgconfig_dir}")
endforeach()
list(JOIN modules " " TIDEGATE_MODULES_IN_ORDER)

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/tidegate-config.cmake.in"
  "${PROJECT_BINARY_DIR}/package/tidegate-config.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/tidegate-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package/tidegate-config.cmake"
              "${PROJECT_BINARY_DIR}/package/tidegate-config-version.cmake"
        DESTINATION "${package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
