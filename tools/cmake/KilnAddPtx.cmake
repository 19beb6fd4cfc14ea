# kiln_add_ptx(NAME SOURCES file.cu ... ARCHS 80 90a ... [COMPILER nvcc|clang|program] [OPTIONS option ...])
#
# Compiles CUDA sources to PTX at build time, for bundles that embed it: kiln_add_bundle(app CONFIG kernels.yaml PTX NAME),
# where kernels.yaml has an item `ptx: NAME`. Each source is compiled once for each architecture; its kernels are its
# `__global__` functions, preferably `extern "C"`. A change of a source, of a header that it includes, or of an option
# recompiles it, and then the bundles that embed it.
#
#   ARCHS     80 or sm_80 also runs on newer devices; 90a or 100f only on that architecture or family. Each target of the
#             bundle needs an architecture that runs on it
#   COMPILER  nvcc (the default), clang, or the path of either. Looks for nvcc on PATH, in CUDACXX and in /usr/local/cuda
#   OPTIONS   for the compiler: -O3, -std=c++17, -I..., -DX=1
#
# The PTX is NAME/file.sm_80.ptx in the current binary folder. It contains no path of this machine: files in the current
# source folder are named relative to it, and other files without their folders. nvcc also hashes the source's path into the names of
# static functions and anonymous namespaces; kiln makes it hash that short name instead. Full debug information (-G) still has
# paths.
include_guard(GLOBAL)

function(kiln_add_ptx)
    set(usage "it is called as kiln_add_ptx(NAME SOURCES file.cu ... ARCHS 80 90a ... [COMPILER nvcc|clang|program] \
[OPTIONS option ...])")
    if(ARGC EQUAL 0)
        message(FATAL_ERROR "kiln_add_ptx: the name is missing; ${usage}")
    endif()
    set(name ${ARGV0})
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "COMPILER" "SOURCES;ARCHS;OPTIONS")
    _kiln_check_ptx_arguments()
    _kiln_find_cuda_compiler(compiler kind)
    if(kind STREQUAL "nvcc")
        _kiln_try_source_name()
    endif()
    set(relocate ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/KilnRelocatePtx.cmake)
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
    file(MAKE_DIRECTORY ${folder})
    set(all)
    set(groups)
    foreach(source IN LISTS arg_SOURCES)
        cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
        cmake_path(GET source STEM LAST_ONLY stem)
        if(NOT EXISTS ${source})
            _kiln_ptx_error("there is no ${source}")
        endif()
        set(files)
        foreach(arch IN LISTS arg_ARCHS)
            set(ptx ${folder}/${stem}.sm_${arch}.ptx)
            if(ptx IN_LIST all OR ptx IN_LIST files)
                _kiln_ptx_error("two sources are called ${stem}, or sm_${arch} is listed twice")
            endif()
            _kiln_compile_ptx()
            list(APPEND files ${ptx})
        endforeach()
        list(APPEND all ${files})
        list(JOIN files "," files)
        list(APPEND groups ${files})
    endforeach()
    add_custom_target(${name} DEPENDS ${all})
    set_target_properties(${name} PROPERTIES KILN_PTX_FILES "${all}" KILN_PTX_GROUPS "${groups}")
endfunction()

macro(_kiln_compile_ptx)
    string(REPLACE " " "\\ " escaped "${ptx}") # as depfiles escape it
    if(kind STREQUAL "nvcc")
        set(options -ptx -arch=compute_${arch} "-Xcompiler=\"-fmacro-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}/=\"") # its quotes
        if(hashes_name)
            cmake_path(IS_PREFIX CMAKE_CURRENT_SOURCE_DIR ${source} is_inside)
            cmake_path(GET source FILENAME named)
            if(is_inside)
                cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE named)
            endif()
            string(MD5 named "${named}") # nvcc does not quote the name for its shell
            list(APPEND options -Xcicc --orig_src_path_name=${named})
        endif()
    else()
        set(options -x cuda --cuda-device-only --cuda-gpu-arch=sm_${arch} -S
            "-ffile-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}/=")
    endif()
    add_custom_command(OUTPUT ${ptx} DEPFILE ${ptx}.d
        COMMAND ${compiler} ${options} ${arg_OPTIONS} ${source} -o ${ptx} -MD -MF ${ptx}.d -MT ${escaped}
        COMMAND ${CMAKE_COMMAND} -D PTX=${ptx} -D FROM=${CMAKE_CURRENT_SOURCE_DIR}/ -P ${relocate}
        DEPENDS ${source} ${relocate}
        COMMENT "Compiling ${stem} for sm_${arch}"
        VERBATIM)
endmacro()

function(_kiln_ptx_error text)
    message(FATAL_ERROR "kiln_add_ptx(${name}): ${text}")
endfunction()

macro(_kiln_check_ptx_arguments)
    if(arg_UNPARSED_ARGUMENTS)
        _kiln_ptx_error("unknown argument '${arg_UNPARSED_ARGUMENTS}'; ${usage}")
    endif()
    foreach(list SOURCES ARCHS)
        if(NOT arg_${list})
            _kiln_ptx_error("${list} is missing")
        endif()
    endforeach()
    if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
        _kiln_ptx_error("the name is an identifier, which the configuration names after 'ptx:'")
    endif()
    foreach(arch IN LISTS arg_ARCHS)
        if(NOT arch MATCHES "^(sm_|compute_)?[1-9][0-9][0-9]?[af]?$")
            _kiln_ptx_error("ARCHS lists '${arch}'; an architecture is written as in 80 or sm_80, 90a or sm_90a")
        endif()
    endforeach()
    list(TRANSFORM arg_ARCHS REPLACE "^(sm_|compute_)" "")
    if(CMAKE_CURRENT_BINARY_DIR MATCHES ",")
        _kiln_ptx_error("the build folder has a comma in its name")
    endif()
    if(TARGET ${name})
        _kiln_ptx_error("there is a target of that name already")
    endif()
endmacro()

# Sets the program, and which compiler's options it takes.
function(_kiln_find_cuda_compiler result_program result_kind)
    set(wanted nvcc)
    if(DEFINED arg_COMPILER)
        set(wanted ${arg_COMPILER})
    endif()
    cmake_path(GET wanted FILENAME file)
    if(file MATCHES "nvcc")
        set(kind nvcc)
    elseif(file MATCHES "clang")
        set(kind clang)
    else()
        _kiln_ptx_error("COMPILER is nvcc, clang or the path of either, found '${wanted}'")
    endif()
    unset(KILN_CUDA_COMPILER CACHE)
    find_program(KILN_CUDA_COMPILER NAMES ${wanted} HINTS $ENV{CUDACXX} PATHS /usr/local/cuda/bin NO_CACHE NO_CMAKE_FIND_ROOT_PATH)
    if(kind STREQUAL "nvcc" AND wanted STREQUAL "nvcc" AND EXISTS "$ENV{CUDACXX}")
        set(KILN_CUDA_COMPILER $ENV{CUDACXX})
    endif()
    if(NOT KILN_CUDA_COMPILER)
        _kiln_ptx_error("there is no ${wanted} here. The CUDA toolkit brings nvcc; Debian and Ubuntu: apt-get install clang")
    endif()
    set(${result_program} ${KILN_CUDA_COMPILER} PARENT_SCOPE)
    set(${result_kind} ${kind} PARENT_SCOPE)
endfunction()

# Sets ${hashes_name}: whether this nvcc has the option that replaces the path it hashes. The option is undocumented, so this tries it.
macro(_kiln_try_source_name)
    get_property(hashes_name GLOBAL PROPERTY KILN_NVCC_${compiler})
    if("${hashes_name}" STREQUAL "")
        execute_process(COMMAND ${compiler} -ptx -x cu /dev/null -o /dev/null -Xcicc --orig_src_path_name=x
            RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
        set(hashes_name ON)
        if(NOT status EQUAL 0)
            set(hashes_name OFF)
            message(STATUS "kiln_add_ptx: ${compiler} hashes the folder of a source into the names of static functions and \
anonymous namespaces, so its PTX differs from folder to folder")
        endif()
        set_property(GLOBAL PROPERTY KILN_NVCC_${compiler} ${hashes_name})
    endif()
endmacro()
