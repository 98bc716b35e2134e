/* Plain C for every CPU: the compiler's own vectors. */
#include "kernels.h"
#include <string.h>

#define MAX(a, b) choose((a) > (b), a, b)
#define VL 4
#define MR 4
#define NAME "generic"
#define DEEP 4
#define OFFSET 0
#define ELEMENT 1

typedef float half_vf __attribute__((vector_size(16)));

static inline half_vf load_half(const uint16_t *p) {
	half_vf v;
	for (int i = 0; i < 4; i++) v[i] = og_half(p[i]);
	return v;
}

static inline half_vf load_byte(const int8_t *p) {
	half_vf v;
	for (int i = 0; i < 4; i++) v[i] = p[i];
	return v;
}

/* The nearest half, ties to even; infinity beyond the largest half. */
static uint16_t nearest_half(float f) {
	uint32_t b;
	memcpy(&b, &f, 4);
	uint32_t sign = b >> 16 & 0x8000;
	b &= 0x7fffffff;
	if (b >= 0x47800000) return (uint16_t)(sign | (b > 0x7f800000 ? 0x7e00 : 0x7c00));
	if (b < 0x38800000) { /* the sum's last bits are the subnormal half */
		float small;
		memcpy(&small, &b, 4);
		small += 0.5f;
		memcpy(&b, &small, 4);
		return (uint16_t)(sign | (b - 0x3f000000));
	}
	b += 0xc8000fff + (b >> 13 & 1);
	return (uint16_t)(sign | b >> 13);
}

static inline void store_half(uint16_t *p, half_vf v) {
	for (int i = 0; i < 4; i++) p[i] = nearest_half(v[i]);
}

#define load_deep(p) load_pairs((const int16_t *)(p))
#define dot_deep(s, w, b) do { \
		for (int l = 0; l < 32; l += 8) s += ((w) << (24 - l) >> 24) * ((b) << (24 - l) >> 24); \
	} while (0)

#include "kernels_template.h"

const og_kernels *og_generic(void) { return &kernels; }
