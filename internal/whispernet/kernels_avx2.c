/* AVX2 with FMA: Intel from Haswell, AMD from Excavator. */
#include "kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif

#define MAX _mm256_max_ps
#define VL 8
#define MR 6
#define NAME "avx2"
#define DEEP 2
#define OFFSET 0
#define ELEMENT 2 /* 16-bit products are exact and as fast as those of 8 bits, which overflow */

static inline __attribute__((always_inline)) __m256 load_half(const uint16_t *p) {
	return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
static inline __attribute__((always_inline)) __m256 load_byte(const int8_t *p) {
	return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
static inline __attribute__((always_inline)) void store_half(uint16_t *p, __m256 v) {
	_mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static inline __attribute__((always_inline)) void tile_q8(const int m, const uint8_t *a, long stride, const float *as, const int32_t *start, const uint8_t *w, const float *ws, int k, int groups, float *tile) {
	for (int g = 0; g < groups; g++, ws += 16) {
		__m256i s[MR][2];
		int from = g * GROUP, to = from + GROUP < k ? from + GROUP : k;
#pragma GCC unroll 16
		for (int i = 0; i < m; i++) s[i][0] = s[i][1] = _mm256_set1_epi32(start[i * groups + g]);
		for (int x = from; x < to; x += 2, w += 32) {
			__m256i w0 = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)w));
			__m256i w1 = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(w + 16)));
#pragma GCC unroll 16
			for (int i = 0; i < m; i++) {
				__m256i b = _mm256_set1_epi32(*(const int32_t *)(a + 2 * (i * stride + x)));
				s[i][0] = _mm256_add_epi32(s[i][0], _mm256_madd_epi16(w0, b));
				s[i][1] = _mm256_add_epi32(s[i][1], _mm256_madd_epi16(w1, b));
			}
		}
		__m256 s0 = _mm256_loadu_ps(ws), s1 = _mm256_loadu_ps(ws + 8);
#pragma GCC unroll 16
		for (int i = 0; i < m; i++) {
			__m256 by = _mm256_set1_ps(as[i * groups + g]);
			float *t = tile + i * 16;
			__m256 t0 = g > 0 ? _mm256_loadu_ps(t) : _mm256_setzero_ps(), t1 = g > 0 ? _mm256_loadu_ps(t + 8) : _mm256_setzero_ps();
			_mm256_storeu_ps(t, _mm256_fmadd_ps(_mm256_cvtepi32_ps(s[i][0]), _mm256_mul_ps(s0, by), t0));
			_mm256_storeu_ps(t + 8, _mm256_fmadd_ps(_mm256_cvtepi32_ps(s[i][1]), _mm256_mul_ps(s1, by), t1));
		}
	}
}

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
