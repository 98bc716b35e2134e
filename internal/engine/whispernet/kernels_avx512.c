/* AVX-512 with VNNI: Intel from Ice Lake, AMD from Zen 4. */
#include "kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c,prefer-vector-width=512")
#endif

#define MAX _mm512_max_ps
#define VL 16
#define MR 12
#define NAME "avx512"
#define DEEP 4
#define OFFSET 128 /* VNNI multiplies unsigned by signed numbers: the panels' numbers are unsigned */
#define ELEMENT 1

static inline __attribute__((always_inline)) __m512 load_half(const uint16_t *p) {
	return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
static inline __attribute__((always_inline)) __m512 load_byte(const int8_t *p) {
	return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
static inline __attribute__((always_inline)) void store_half(uint16_t *p, __m512 v) {
	_mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/* In assembly because GCC 12 copies and spills the sums around its builtins. */
#define load_deep(p) ((vi)_mm512_loadu_si512(p))
#define dot_deep(s, w, b) __asm__("vpdpbusd %2, %1, %0" : "+v"(s) : "v"(w), "v"(b))
#define dot_pair(s, w, b) __asm__("vpdpwssd %2, %1, %0" : "+v"(s) : "v"(w), "v"(b))

#include "kernels_template.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC reset_options
#endif

const og_kernels *og_avx512(void) {
	__builtin_cpu_init();
	int has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
		__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma");
	return has ? &kernels : NULL;
}
#else
const og_kernels *og_avx512(void) { return NULL; }
#endif
