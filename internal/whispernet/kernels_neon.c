/* 64-bit Arm with the dot product of 8-bit numbers: from Armv8.2 (2017) on, all of
 * Apple's. */
#include "kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#else
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif

#define MAX vmaxq_f32
#define VL 4
#define MR 12
#define NAME "neon"
#define DEEP 4
#define OFFSET 0
#define ELEMENT 1

static inline __attribute__((always_inline)) float32x4_t load_half(const uint16_t *p) {
	return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
static inline __attribute__((always_inline)) float32x4_t load_byte(const int8_t *p) {
	int32_t four;
	__builtin_memcpy(&four, p, 4);
	return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
}
static inline __attribute__((always_inline)) void store_half(uint16_t *p, float32x4_t v) {
	vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v)));
}

static inline __attribute__((always_inline)) void tile_q8(const int m, const uint8_t *a, long stride, const float *as, const int32_t *start, const uint8_t *w, const float *ws, int k, int groups, float *tile) {
	for (int g = 0; g < groups; g++, ws += 8) {
		int32x4_t s[MR][2];
		int from = g * GROUP, to = from + GROUP < k ? from + GROUP : k;
#pragma GCC unroll 16
		for (int i = 0; i < m; i++) s[i][0] = s[i][1] = vdupq_n_s32(start[i * groups + g]);
		for (int x = from; x < to; x += 4, w += 32) {
			int8x16_t w0 = vld1q_s8((const int8_t *)w), w1 = vld1q_s8((const int8_t *)w + 16);
#pragma GCC unroll 16
			for (int i = 0; i < m; i++) {
				int8x16_t b = vreinterpretq_s8_s32(vdupq_n_s32(*(const int32_t *)(a + i * stride + x)));
				s[i][0] = vdotq_s32(s[i][0], w0, b);
				s[i][1] = vdotq_s32(s[i][1], w1, b);
			}
		}
		float32x4_t s0 = vld1q_f32(ws), s1 = vld1q_f32(ws + 4);
#pragma GCC unroll 16
		for (int i = 0; i < m; i++) {
			float by = as[i * groups + g];
			float *t = tile + i * 8;
			float32x4_t t0 = g > 0 ? vld1q_f32(t) : vdupq_n_f32(0), t1 = g > 0 ? vld1q_f32(t + 4) : vdupq_n_f32(0);
			vst1q_f32(t, vfmaq_f32(t0, vcvtq_f32_s32(s[i][0]), vmulq_n_f32(s0, by)));
			vst1q_f32(t + 4, vfmaq_f32(t1, vcvtq_f32_s32(s[i][1]), vmulq_n_f32(s1, by)));
		}
	}
}

#include "kernels_template.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC reset_options
#endif

const og_kernels *og_neon(void) {
#if defined(__linux__)
	if (!(getauxval(AT_HWCAP) & (1 << 20))) return NULL; /* HWCAP_ASIMDDP */
#endif
	return &kernels;
}
#else
const og_kernels *og_neon(void) { return NULL; }
#endif
