# The parts of kiln-lm that need no GPU: reading models, tokenizing texts, choosing tokens.
kiln_need(CMOCKA_LIBRARY libcmocka-dev LIBRARY cmocka)
kiln_need(CMOCKA_INCLUDE_DIR libcmocka-dev HEADER cmocka.h)
set(text_folder ${PROJECT_SOURCE_DIR}/tests/consumer/language_model)
add_library(lm_text STATIC ${text_folder}/chat.c ${PROJECT_SOURCE_DIR}/generator/model/gguf.c ${text_folder}/sample.c
    ${text_folder}/text_stream.c ${text_folder}/tokenizer.c ${text_folder}/unicode_tables.c)
target_include_directories(lm_text PUBLIC ${text_folder} ${PROJECT_SOURCE_DIR}/generator/model)
target_link_libraries(lm_text PUBLIC kiln_flags m)

set(gguf_files ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/gguf_files.py)
add_custom_command(OUTPUT valid.gguf COMMAND ${gguf_files} valid valid.gguf COMMAND ${gguf_files} all gguf_wrong
    DEPENDS gguf_files.py VERBATIM)
add_custom_target(gguf_files ALL DEPENDS valid.gguf)

add_executable(tokenizer_encode tokenizer_encode.c)
target_link_libraries(tokenizer_encode PRIVATE lm_text)
add_test(NAME lm.gguf.mistakes COMMAND ${gguf_files} check $<TARGET_FILE:tokenizer_encode>)

add_executable(tokenizer_test tokenizer_test.c)
target_include_directories(tokenizer_test PRIVATE ${CMOCKA_INCLUDE_DIR})
target_link_libraries(tokenizer_test PRIVATE lm_text ${CMOCKA_LIBRARY})
target_link_options(tokenizer_test PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=pread)
add_test(NAME lm.text COMMAND tokenizer_test ${CMAKE_CURRENT_BINARY_DIR}/valid.gguf)

# llama.cpp's tokens of texts, with the real model's vocabulary.
add_test(NAME lm.tokenizer COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/tokenizer_check.py check
    $<TARGET_FILE:tokenizer_encode> ${CMAKE_CURRENT_SOURCE_DIR}/tokenizer_golden.txt)
set_tests_properties(lm.tokenizer PROPERTIES SKIP_RETURN_CODE 77)

# Every build replays the files found by fuzzing, and the wrong ones. Build the fuzzer with the preset `fuzz` and run it by
# hand in build-fuzz/tests/lm, where NEW is an empty folder:
#   gguf_fuzz -max_total_time=600 -max_len=640 NEW gguf_fuzzed gguf_wrong/small
# To update gguf_fuzzed.txt, reduce the inputs to the smallest set that reaches the same code. MERGED is a new folder; remove
# the wrong files from it again before packing.
#   cp gguf_wrong/* MERGED; gguf_fuzz -set_cover_merge=1 -use_counters=0 MERGED gguf_fuzzed NEW
#   tests/cases.py pack MERGED tests/lm/gguf_fuzzed.txt
unpack_cases(gguf_fuzzed)
add_executable(gguf_replay gguf_fuzz.c ${PROJECT_SOURCE_DIR}/tests/replay.c)
target_include_directories(gguf_replay PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(gguf_replay PRIVATE lm_text)
add_test(NAME lm.gguf.fuzzed COMMAND gguf_replay gguf_fuzzed gguf_wrong)
if(KILN_FUZZ)
    add_executable(gguf_fuzz gguf_fuzz.c)
    target_include_directories(gguf_fuzz PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(gguf_fuzz PRIVATE lm_text)
    target_link_options(gguf_fuzz PRIVATE -fsanitize=fuzzer)
endif()
