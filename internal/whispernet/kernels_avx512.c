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
#define OFFSET 128 /* VNNI multiplies unsigned by signed numbers: the panels' are the unsigned */
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

/* s += w * b, in assembly because GCC 12 copies and spills the sums around its builtin. */
static inline __attribute__((always_inline)) void dot(__m512i *s, __m512i w, __m512i b) {
	__asm__("vpdpbusd %2, %1, %0" : "+v"(*s) : "v"(w), "v"(b));
}

static inline __attribute__((always_inline)) void tile_q8(const int m, const uint8_t *a, long stride, const float *as, const int32_t *start, const uint8_t *w, const float *ws, int k, int groups, float *tile) {
	for (int g = 0; g < groups; g++, ws += 32) {
		__m512i s[MR][2];
		int from = g * GROUP, to = from + GROUP < k ? from + GROUP : k;
#pragma GCC unroll 16
		for (int i = 0; i < m; i++) s[i][0] = s[i][1] = _mm512_set1_epi32(start[i * groups + g]);
		for (int x = from; x < to; x += 4, w += 128) {
			__m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(w + 64);
#pragma GCC unroll 16
			for (int i = 0; i < m; i++) {
				__m512i b = _mm512_set1_epi32(*(const int32_t *)(a + i * stride + x));
				dot(&s[i][0], w0, b);
				dot(&s[i][1], w1, b);
			}
		}
		__m512 s0 = _mm512_loadu_ps(ws), s1 = _mm512_loadu_ps(ws + 16);
#pragma GCC unroll 16
		for (int i = 0; i < m; i++) {
			__m512 by = _mm512_set1_ps(as[i * groups + g]);
			float *t = tile + i * 32;
			__m512 t0 = g > 0 ? _mm512_loadu_ps(t) : _mm512_setzero_ps(), t1 = g > 0 ? _mm512_loadu_ps(t + 16) : _mm512_setzero_ps();
			_mm512_storeu_ps(t, _mm512_fmadd_ps(_mm512_cvtepi32_ps(s[i][0]), _mm512_mul_ps(s0, by), t0));
			_mm512_storeu_ps(t + 16, _mm512_fmadd_ps(_mm512_cvtepi32_ps(s[i][1]), _mm512_mul_ps(s1, by), t1));
		}
	}
}

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
