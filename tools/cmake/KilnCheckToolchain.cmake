# kiln_check_toolchain(RESULT [LIBRARY MACHINE])
#
# Checks that compiler, C library and machine meet the runtime's requirements, by compiling and linking a program, also with
# LIBRARY, a runtime built for MACHINE. RESULT is empty if that works, and otherwise says why it does not.
include_guard(GLOBAL)

function(kiln_check_toolchain result)
    set(${result} "" PARENT_SCOPE)
    if(CMAKE_C_COMPILER_LOADED)
        set(language C)
        set(suffix c)
    elseif(CMAKE_CXX_COMPILER_LOADED)
        set(language CXX)
        set(suffix cc)
    else()
        return()
    endif()
    set(checked ${CMAKE_${language}_COMPILER} ${CMAKE_${language}_FLAGS} ${CMAKE_EXE_LINKER_FLAGS})
    set(library "")
    set(problem "${CMAKE_${language}_COMPILER} cannot make programs with kiln's runtime, which needs C11 and dlopen on a 64-bit \
little-endian machine")
    if(ARGC GREATER 1)
        set(library ${ARGV1})
        list(APPEND checked ${kiln_DIR})
        set(problem "programs of ${CMAKE_${language}_COMPILER} do not link with the kiln in ${kiln_DIR}, whose runtime is for ${ARGV2}")
    endif()
    if("${KILN_CHECKED_TOOLCHAIN}" STREQUAL "${checked}")
        return()
    endif()
    set(source ${CMAKE_BINARY_DIR}/CMakeFiles/kiln_toolchain.${suffix})
    file(WRITE ${source} [[
#if __SIZEOF_POINTER__ != 8 || __SIZEOF_LONG__ != 8 || __SIZEOF_INT__ != 4 || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error kiln needs a 64-bit little-endian machine with 64-bit long and 32-bit int
#endif
#if !defined __cplusplus && __STDC_VERSION__ < 201112L
#error kiln needs C11
#endif
#include <dlfcn.h>
#include <stdint.h>
struct padded { char byte; uint64_t number; };
typedef char numbers_of_64_bits_are_aligned_to_8_bytes[sizeof(struct padded) == 16 ? 1 : -1];
#ifdef KILN_RUNTIME
#include <kiln/kiln.h>
#else
#define kiln_version() 1
#endif
int main(void) { return kiln_version() == 0 || dlopen("libcuda.so.1", RTLD_NOW) == 0; }
]])
    set(CMAKE_TRY_COMPILE_TARGET_TYPE EXECUTABLE)
    set(definitions)
    if(library)
        set(definitions COMPILE_DEFINITIONS -DKILN_RUNTIME)
    endif()
    try_compile(KILN_TOOLCHAIN_WORKS ${CMAKE_BINARY_DIR}/CMakeFiles/kiln_toolchain ${source} ${definitions}
        LINK_LIBRARIES ${library} ${CMAKE_DL_LIBS} OUTPUT_VARIABLE output C_STANDARD 11 C_STANDARD_REQUIRED ON)
    set(is_fine ${KILN_TOOLCHAIN_WORKS})
    unset(KILN_TOOLCHAIN_WORKS CACHE)
    if(is_fine)
        set(KILN_CHECKED_TOOLCHAIN "${checked}" CACHE INTERNAL "the toolchain that kiln_check_toolchain found to work")
        return()
    endif()
    string(REGEX MATCHALL "[^\n]*(error|undefined|cannot|incompatible|wrong format)[^\n]*" lines "${output}")
    list(JOIN lines "\n  " lines)
    set(${result} "${problem}:\n  ${lines}\n" PARENT_SCOPE)
endfunction()
