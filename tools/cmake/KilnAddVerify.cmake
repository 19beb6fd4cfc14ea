# kiln_add_verify(TARGET BUNDLE [MANIFEST file.json])
#
# Makes an executable TARGET that verifies the bundle BUNDLE, a library that kiln_add_bundle made, and with it the emulated
# driver. Without MANIFEST it is the target's property KILN_MANIFEST, else BUNDLE.json in the folder where the target was
# made.
include_guard(GLOBAL)

set(KILN_VERIFY_INPUTS 1 CACHE STRING
    "Inputs that programs of kiln_add_verify try at each size, in turn; 0 for all; their option --inputs comes first")

function(kiln_add_verify target bundle)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "MANIFEST" "")
    if(NOT arg_MANIFEST)
        get_target_property(arg_MANIFEST ${bundle} KILN_MANIFEST)
    endif()
    if(NOT arg_MANIFEST)
        get_target_property(folder ${bundle} BINARY_DIR)
        set(arg_MANIFEST ${folder}/${bundle}.json)
    endif()
    cmake_path(GET arg_MANIFEST PARENT_PATH folder)
    cmake_path(GET arg_MANIFEST FILENAME name)
    get_property(main GLOBAL PROPERTY KILN_VERIFY_MAIN)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}_main.c) # a copy: what it is built from differs from bundle to bundle
    configure_file(${main} ${source} COPYONLY)
    set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${arg_MANIFEST})
    add_executable(${target} ${source})
    target_compile_definitions(${target} PRIVATE
        KILN_VERIFY_INDEX=${bundle}_index KILN_VERIFY_MANIFEST="${name}" KILN_VERIFY_INPUTS=${KILN_VERIFY_INPUTS})
    target_include_directories(${target} PRIVATE ${folder})
    target_link_libraries(${target} PRIVATE $<TARGET_NAME_IF_EXISTS:kiln_flags> kiln::verify ${bundle})
    set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON) # families' functions are looked up by name
    if(TARGET emulator)
        add_dependencies(${target} emulator)
    endif()
endfunction()
