/* The texts in text/, as lines; @WORD@ in them is replaced. */
#ifndef INIT_TEXT_H
#define INIT_TEXT_H

extern const char *const init_text_cmake[], *const init_text_begin[],
                                                *const init_text_nf4[],
                                                    *const init_text_model[],
                                                        *const init_text_gguf_rows[],
                                                            *const init_text_linear[],
                                                                *const init_text_q8_quantize[],
                                                                    *const init_text_rope[],
                                                                        *const init_text_attention[],
                                                                            *const init_text_nf4_gemm[],
                                                                                *const init_text_nvfp4_gemv[];

#endif
