# kiln_add_generator(NAME FAMILIES variable ... SOURCES file.c ... [ALONE])
#
# Makes a program NAME, a kiln with your own families, for kiln_add_bundle(... GENERATOR NAME). FAMILIES are the variables
# of type kiln_family (kiln/author/family.h) that the sources define: "const kiln_family saxpy_family = {...};". It also has
# kiln's own families, except with ALONE.
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/KilnOwnTargets.cmake)

function(kiln_add_generator)
    set(usage "it is called as kiln_add_generator(NAME FAMILIES variable ... SOURCES file.c ... [ALONE])")
    if(ARGC EQUAL 0)
        message(FATAL_ERROR "kiln_add_generator: the name is missing; ${usage}")
    endif()
    set(name ${ARGV0})
    cmake_parse_arguments(PARSE_ARGV 1 arg "ALONE" "" "FAMILIES;SOURCES")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "kiln_add_generator(${name}): unknown argument '${arg_UNPARSED_ARGUMENTS}'; ${usage}")
    endif()
    if(NOT arg_FAMILIES OR NOT arg_SOURCES)
        message(FATAL_ERROR "kiln_add_generator(${name}): FAMILIES and SOURCES are needed; ${usage}")
    endif()
    set(own "")
    set(list "")
    set(libraries kiln::main)
    if(NOT arg_ALONE)
        set(list "KILN_FAMILIES, ")
        list(APPEND libraries kiln::kernels)
    endif()
    foreach(family IN LISTS arg_FAMILIES)
        if(NOT family MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
            message(FATAL_ERROR "kiln_add_generator(${name}): '${family}' is no name of a variable")
        endif()
        string(APPEND own "extern const kiln_family ${family};\n")
        string(APPEND list "&${family}, ")
    endforeach()
    set(main ${CMAKE_CURRENT_BINARY_DIR}/${name}_main.c)
    file(CONFIGURE OUTPUT ${main} CONTENT "/* Made by kiln_add_generator. */
#include <kiln/author/families.h>

${own}
int main(int argc, char **argv)
{
    static const kiln_family *const families[] = {${list}0};
    return kiln_main(argc, argv, families);
}
" @ONLY)
    _kiln_ignore_parent()
    add_executable(${name} ${arg_SOURCES} ${main})
    set_source_files_properties(${main} PROPERTIES COMPILE_OPTIONS -Wno-error)
    target_compile_features(${name} PRIVATE c_std_11)
    target_link_libraries(${name} PRIVATE ${libraries})
endfunction()
