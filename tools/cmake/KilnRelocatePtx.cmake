# Removes this machine's paths from the .file lines of PTX: cmake -D PTX=a.ptx -D FROM=/source/ -P KilnRelocatePtx.cmake
file(READ ${PTX} before)
string(REPLACE "\"${FROM}" "\"" after "${before}")
string(REGEX REPLACE "(\n[ \t]*\\.file[ \t]+[0-9]+[ \t]+\")/[^\"\n]*/([^\"/\n]+\")" "\\1\\2" after "${after}")
if(NOT after STREQUAL before)
    file(WRITE ${PTX} "${after}")
endif()
