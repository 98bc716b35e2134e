//go:build !windows

/* The kernels of kernels_x86.h for AVX2 and for AVX-512. */
#include "kernels.h"

#ifdef __x86_64__

#include "kernels_turn.h"

#include <math.h>
#include <string.h>

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define STRING_(a) #a
#define STRING(a) STRING_(a)
#define NAME(name) CAT(CAT(SET, _), name)

enum { ROWS = 6, AHEAD = 16 }; /* of a tile, and how many rows ahead memory is asked for */

/* e to the power of x, for x up to 0: the polynomial of Cephes' expf */
#define POWER_OF(x)                                                                          \
	VECTOR n = ROUND(x * ALL(1.44269504088896341f));                                     \
	VECTOR f = MULADD(n, ALL(-0.693359375f), x);                                         \
	f = MULADD(n, ALL(2.12194440e-4f), f);                                               \
	VECTOR y = ALL(1.9875691500e-4f);                                                    \
	y = MULADD(y, f, ALL(1.3981999507e-3f)), y = MULADD(y, f, ALL(8.3334519073e-3f));    \
	y = MULADD(y, f, ALL(4.1665795894e-2f)), y = MULADD(y, f, ALL(1.6666665459e-1f));    \
	y = MULADD(y, f, ALL(5.0000001201e-1f)), y = MULADD(y, f * f, f) + ALL(1);

#define SET avx512
#define TARGET __attribute__((target("avx512f,avx2,fma,f16c")))
#define VECTOR __m512
#define LANES 16
#define WIDE 4 /* vectors in a tile's row */
#define DEEP 4 /* rows of weights at a time */
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define ZERO _mm512_setzero_ps
#define ALL _mm512_set1_ps
#define MULADD _mm512_fmadd_ps
#define MOST _mm512_max_ps
#define SUM _mm512_reduce_add_ps
#define WIDEN(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p)))
#define ROUND(x) _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

TARGET static inline VECTOR avx512_power(VECTOR x)
{
	x = MOST(x, ALL(-87));
	POWER_OF(x)
	return _mm512_scalef_ps(y, n);
}

#include "kernels_x86.h"

#undef SET
#undef TARGET
#undef VECTOR
#undef LANES
#undef WIDE
#undef DEEP
#undef LOAD
#undef STORE
#undef ZERO
#undef ALL
#undef MULADD
#undef MOST
#undef SUM
#undef WIDEN
#undef ROUND

#define SET avx2
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define VECTOR __m256
#define LANES 8
#define WIDE 2
#define DEEP 2
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define ZERO _mm256_setzero_ps
#define ALL _mm256_set1_ps
#define MULADD _mm256_fmadd_ps
#define MOST _mm256_max_ps
#define SUM avx2_sum
#define WIDEN(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p)))
#define ROUND(x) _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

TARGET static inline float avx2_sum(VECTOR x)
{
	__m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
	s = _mm_add_ps(s, _mm_movehl_ps(s, s));
	return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

TARGET static inline VECTOR avx2_power(VECTOR x)
{
	x = MOST(x, ALL(-87));
	POWER_OF(x)
	__m256i exponent = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
	return y * _mm256_castsi256_ps(exponent);
}

#include "kernels_x86.h"

#endif
