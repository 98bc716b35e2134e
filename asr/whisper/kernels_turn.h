/* Squares of numbers, turned over: their rows become columns. */
#ifndef OTOGRAPH_KERNELS_TURN_H
#define OTOGRAPH_KERNELS_TURN_H

#include <immintrin.h>

__attribute__((target("avx512f"), always_inline)) static inline void avx512_turn(__m512 r[16])
{
	__m512 t[16];
	_Pragma("GCC unroll 8") for (int i = 0; i < 16; i += 2) t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]), t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
#define PAIRS(half, a, b) _mm512_castpd_ps(_mm512_unpack##half##_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)))
	_Pragma("GCC unroll 4") for (int i = 0; i < 16; i += 4)
	{
		r[i] = PAIRS(lo, t[i], t[i + 2]), r[i + 1] = PAIRS(hi, t[i], t[i + 2]);
		r[i + 2] = PAIRS(lo, t[i + 1], t[i + 3]), r[i + 3] = PAIRS(hi, t[i + 1], t[i + 3]);
	}
#undef PAIRS
	enum { EVEN = 0x88, ODD = 0xdd };
	_Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)
	{
		t[i] = _mm512_shuffle_f32x4(r[i], r[4 + i], EVEN), t[4 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], EVEN);
		t[8 + i] = _mm512_shuffle_f32x4(r[i], r[4 + i], ODD), t[12 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], ODD);
	}
	_Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)
	{
		r[i] = _mm512_shuffle_f32x4(t[i], t[4 + i], EVEN), r[8 + i] = _mm512_shuffle_f32x4(t[i], t[4 + i], ODD);
		r[4 + i] = _mm512_shuffle_f32x4(t[8 + i], t[12 + i], EVEN), r[12 + i] = _mm512_shuffle_f32x4(t[8 + i], t[12 + i], ODD);
	}
}

__attribute__((target("avx2"), always_inline)) static inline void avx2_turn(__m256 r[8])
{
	__m256 t[8];
	_Pragma("GCC unroll 4") for (int i = 0; i < 8; i += 2) t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]), t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
#define PAIRS(half, a, b) _mm256_castpd_ps(_mm256_unpack##half##_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)))
	_Pragma("GCC unroll 2") for (int i = 0; i < 8; i += 4)
	{
		r[i] = PAIRS(lo, t[i], t[i + 2]), r[i + 1] = PAIRS(hi, t[i], t[i + 2]);
		r[i + 2] = PAIRS(lo, t[i + 1], t[i + 3]), r[i + 3] = PAIRS(hi, t[i + 1], t[i + 3]);
	}
#undef PAIRS
	_Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) t[i] = _mm256_permute2f128_ps(r[i], r[4 + i], 0x20), t[4 + i] = _mm256_permute2f128_ps(r[i], r[4 + i], 0x31);
	_Pragma("GCC unroll 8") for (int i = 0; i < 8; i++) r[i] = t[i];
}

#endif
