# kiln_add_verify(TARGET BUNDLE [REFERENCES file.c ...] [UNCOMPARED kernel ...] [MANIFEST file.json])
#
# Makes an executable TARGET that verifies the bundle BUNDLE, a library that kiln_add_bundle made; also builds the
# emulated driver.
#
# A bundle with only cubins does not run on the emulated driver: the program then runs the PTX that they are compiled from, and
# says so. First it compares that PTX with the hashes in the cubins' manifest.
#
#   REFERENCES  C sources with references for your own families and for external PTX: see kiln/reference.h
#   UNCOMPARED  families and external kernels, by their functions' names, that may run without a reference. Any other kernel
#               without a reference fails the program, as does a name here that is unknown or has a reference
#   MANIFEST    overrides the target's property KILN_MANIFEST, and BUNDLE.json in the folder where it was made
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/KilnOwnTargets.cmake)

set(KILN_VERIFY_INPUTS 1 CACHE STRING
    "Inputs that programs of kiln_add_verify try at each size, in turn; 0 for all; their option --inputs comes first")

function(kiln_add_verify)
    set(usage "it is called as kiln_add_verify(TARGET BUNDLE [REFERENCES file.c ...] [UNCOMPARED kernel ...] \
[MANIFEST file.json])")
    if(ARGC LESS 2)
        message(FATAL_ERROR "kiln_add_verify(${ARGV}): TARGET and BUNDLE are needed; ${usage}")
    endif()
    set(target ${ARGV0})
    set(bundle ${ARGV1})
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "MANIFEST" "REFERENCES;UNCOMPARED")
    set(caller "kiln_add_verify(${target} ${bundle})")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "${caller}: unknown argument '${arg_UNPARSED_ARGUMENTS}'; ${usage}")
    endif()
    if(arg_KEYWORDS_MISSING_VALUES)
        message(FATAL_ERROR "${caller}: nothing stands after ${arg_KEYWORDS_MISSING_VALUES}")
    endif()
    if(NOT TARGET ${bundle})
        message(FATAL_ERROR "${caller}: there is no bundle ${bundle}; kiln_add_bundle makes it")
    endif()
    foreach(kernel IN LISTS arg_UNCOMPARED)
        if(NOT kernel MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
            message(FATAL_ERROR "${caller}: UNCOMPARED lists '${kernel}'; a family's or an external kernel's name is wanted, \
without variants")
        endif()
    endforeach()
    list(JOIN arg_UNCOMPARED " " uncompared)
    set(shipped)
    get_target_property(twin ${bundle} KILN_PTX_BUNDLE)
    if(twin)
        if(NOT TARGET ${twin})
            message(FATAL_ERROR "${caller}: the images of ${bundle} are cubins alone, and the program runs the PTX that they are \
made of: kiln_add_bundle(${bundle} ...) needs CONFIG and a generator")
        endif()
        get_target_property(shipped ${bundle} KILN_MANIFEST)
        set(bundle ${twin})
    endif()
    if(NOT arg_MANIFEST)
        get_target_property(arg_MANIFEST ${bundle} KILN_MANIFEST)
    endif()
    if(NOT arg_MANIFEST)
        get_target_property(folder ${bundle} BINARY_DIR)
        set(arg_MANIFEST ${folder}/${bundle}.json)
    endif()
    get_target_property(prefix ${bundle} KILN_BUNDLE)
    if(NOT prefix)
        set(prefix ${bundle})
    endif()
    cmake_path(GET arg_MANIFEST PARENT_PATH folder)
    cmake_path(GET arg_MANIFEST FILENAME name)
    get_property(main GLOBAL PROPERTY KILN_VERIFY_MAIN)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}_main.c) # a copy, since its definitions differ between bundles
    configure_file(${main} ${source} COPYONLY)
    set(definitions "KILN_VERIFY_INDEX=${prefix}_index;KILN_VERIFY_MANIFEST=\"${name}\";KILN_VERIFY_INPUTS=${KILN_VERIFY_INPUTS};\
KILN_VERIFY_UNCOMPARED=\"${uncompared}\"")
    if(shipped)
        file(RELATIVE_PATH path ${folder} ${shipped})
        list(APPEND definitions "KILN_VERIFY_SHIPPED=\"${path}\"")
    endif()
    set_source_files_properties(${source} PROPERTIES
        OBJECT_DEPENDS "${arg_MANIFEST};${shipped}" COMPILE_DEFINITIONS "${definitions}" COMPILE_OPTIONS -Wno-error)
    _kiln_ignore_parent()
    add_executable(${target} ${source} ${arg_REFERENCES})
    target_compile_features(${target} PRIVATE c_std_11)
    target_include_directories(${target} PRIVATE ${folder})
    target_link_libraries(${target} PRIVATE $<TARGET_NAME_IF_EXISTS:kiln_flags> kiln::verify ${bundle})
    set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON) # the program looks families' functions up by name
    if(TARGET kiln::emulator)
        add_dependencies(${target} kiln::emulator)
    endif()
endfunction()
