# Keeps a parent project's settings away from kiln's targets and bundles: README.md has the table. Each macro applies to the
# targets that follow in the caller's folder or function.
include_guard(GLOBAL)

# Resets unity builds, which C sources here do not support; visibility, because shared objects of bundles and programs of
# kiln_add_verify look symbols up; checks meant for the parent's code; and the names of files that other programs open.
macro(_kiln_ignore_parent)
    set(CMAKE_UNITY_BUILD OFF)
    set(CMAKE_C_VISIBILITY_PRESET default)
    set(CMAKE_COMPILE_WARNING_AS_ERROR OFF)
    set(CMAKE_LINK_WARNING_AS_ERROR OFF)
    set(CMAKE_LINK_LIBRARIES_ONLY_TARGETS OFF)
    foreach(_kiln_check CLANG_TIDY CPPCHECK CPPLINT ICSTAT INCLUDE_WHAT_YOU_USE PVS_STUDIO)
        set(CMAKE_C_${_kiln_check} "")
    endforeach()
    foreach(_kiln_config IN LISTS CMAKE_CONFIGURATION_TYPES CMAKE_BUILD_TYPE)
        string(TOUPPER ${_kiln_config} _kiln_config)
        set(CMAKE_${_kiln_config}_POSTFIX "")
    endforeach()
endmacro()

# Puts outputs of these kinds (RUNTIME, LIBRARY, ARCHIVE) into the folder, also if the parent sets folders per configuration.
macro(_kiln_put_outputs folder)
    get_property(_kiln_is_multi GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
    foreach(_kiln_kind ${ARGN})
        set(CMAKE_${_kiln_kind}_OUTPUT_DIRECTORY ${folder})
        foreach(_kiln_config IN LISTS CMAKE_CONFIGURATION_TYPES CMAKE_BUILD_TYPE)
            string(TOUPPER ${_kiln_config} _kiln_config)
            if(DEFINED CMAKE_${_kiln_kind}_OUTPUT_DIRECTORY_${_kiln_config})
                set(CMAKE_${_kiln_kind}_OUTPUT_DIRECTORY_${_kiln_config} ${folder}$<${_kiln_is_multi}:/$<CONFIG>>)
            endif()
        endforeach()
    endforeach()
endmacro()
