/* AVX2 with FMA: Intel from Haswell, AMD from Excavator. */
#include "kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif

#define NAME "avx2"
#define DEEP 2
#define OFFSET 0
#define ELEMENT 2 /* 16-bit products are exact and as fast as those of 8 bits, which overflow */

#include "kernels_256.h"

/* In assembly because GCC 12 orders the products so that it has to spill the sums. */
#define load_deep(p) ((vi)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(p))))
#define dot_pair(s, w, b) do { \
		vi t; \
		__asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(s), "=&x"(t) : "x"(w), "x"(b)); \
	} while (0)
#define dot_deep dot_pair

#include "kernels_template.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC reset_options
#endif

const og_kernels *og_avx2(void) {
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") ? &kernels : NULL;
}
#else
const og_kernels *og_avx2(void) { return NULL; }
#endif
