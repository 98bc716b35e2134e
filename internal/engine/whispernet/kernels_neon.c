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

#define load_deep(p) ((vi)vld1q_s8((const int8_t *)(p)))
#define dot_deep(s, w, b) (s = (vi)vdotq_s32((int32x4_t)(s), (int8x16_t)(w), (int8x16_t)(b)))

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
