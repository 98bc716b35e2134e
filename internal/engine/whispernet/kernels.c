#include "kernels.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const og_kernels *og_choose(const char *name) {
	const og_kernels *all[] = {og_avx512(), og_avxvnni(), og_avx2(), og_neon(), og_generic()};
	for (int i = 0; i < 5; i++)
		if (all[i] && (!*name || !strcmp(name, all[i]->name))) return all[i];
	return NULL;
}

#if defined(_WIN32)
#include <malloc.h>

void *og_alloc(size_t bytes) { return _aligned_malloc(bytes ? bytes : 64, 64); }

void og_release(void *p) { _aligned_free(p); }
#else
void *og_alloc(size_t bytes) {
	void *p = NULL;
	return posix_memalign(&p, 64, bytes ? bytes : 64) ? NULL : p;
}

void og_release(void *p) { free(p); }
#endif

float og_half(uint16_t h) {
	/* shifted into a float's position the exponent is 112 too small; a product
	 * corrects that, even for subnormal halves */
	uint32_t b = (uint32_t)(h & 0x7fff) << 13;
	float f;
	memcpy(&f, &b, 4);
	f *= 0x1p112f;
	return h & 0x8000 ? -f : f;
}

static float half_at(const uint8_t *p) {
	uint16_t h;
	memcpy(&h, p, 2);
	return og_half(h);
}

/* Blocks of 32 numbers, as in ggml-common.h: a scale, in some types a least
 * value, in some types the fifth bits, then 4 bits per number, in bytes with a
 * number of the first and one of the second half. */
static void dequantize_block(int type, const uint8_t *p, float *out) {
	float d = half_at(p), least = 0;
	int five = type == OG_Q5_0 || type == OG_Q5_1, lowest = type == OG_Q4_1 || type == OG_Q5_1;
	uint32_t high = 0;
	p += 2;
	if (lowest) least = half_at(p), p += 2;
	if (five) memcpy(&high, p, 4), p += 4;
	int zero = lowest ? 0 : five ? 16 : 8;
	for (int i = 0; i < 16; i++) {
		int a = (p[i] & 15) | (int)(high >> i & 1) << 4, b = p[i] >> 4 | (int)(high >> (i + 16) & 1) << 4;
		out[i] = (float)(a - zero) * d + least;
		out[i + 16] = (float)(b - zero) * d + least;
	}
}

/* The blocks of 256 numbers of ggml-quants.c, with ggml's names. Parts of 16 or
 * 32 numbers have separate scales. */
static void dequantize_q6_k(const uint8_t *low, float *out) {
	const uint8_t *high = low + 128;
	const int8_t *scale = (const int8_t *)low + 192;
	float d = half_at(low + 208);
	for (int n = 0; n < 2; n++, low += 64, high += 32, scale += 8, out += 128)
		for (int i = 0; i < 128; i++) {
			int part = i / 32, l = i % 32;
			int four = part < 2 ? low[l + part * 32] & 15 : low[l + (part - 2) * 32] >> 4;
			out[i] = d * scale[part * 2 + l / 16] * (float)((four | (high[l] >> 2 * part & 3) << 4) - 32);
		}
}

/* The 6-bit scale and least value of part j of a q4_K or q5_K block. */
static void scale_and_least(const uint8_t *p, int j, int *scale, int *least) {
	*scale = j < 4 ? p[j] & 63 : (p[j + 4] & 15) | p[j - 4] >> 6 << 4;
	*least = j < 4 ? p[j + 4] & 63 : p[j + 4] >> 4 | p[j] >> 6 << 4;
}

static void dequantize_q45_k(int five, const uint8_t *p, float *out) {
	float d = half_at(p), lowest = half_at(p + 2);
	const uint8_t *high = p + 16, *low = five ? high + 32 : high;
	for (int j = 0; j < 8; j++) {
		int scale, least;
		scale_and_least(p + 4, j, &scale, &least);
		for (int l = 0; l < 32; l++) {
			int b = low[j / 2 * 32 + l], q = j % 2 ? b >> 4 : b & 15;
			if (five) q |= (high[l] >> j & 1) << 4;
			*out++ = d * (float)scale * (float)q - lowest * (float)least;
		}
	}
}

static void dequantize_q2_k(const uint8_t *p, float *out) {
	float d = half_at(p + 80), lowest = half_at(p + 82);
	for (int i = 0; i < 256; i++) {
		int sc = p[i / 16], q = p[16 + i / 128 * 32 + i % 32] >> 2 * (i % 128 / 32) & 3;
		out[i] = d * (float)(sc & 15) * (float)q - lowest * (float)(sc >> 4);
	}
}

static void dequantize_q3_k(const uint8_t *p, float *out) {
	const uint8_t *mask = p, *low = p + 32, *s = p + 96;
	float d = half_at(p + 108);
	for (int i = 0; i < 256; i++) {
		int j = i / 16; /* 16 scales of 6 bits: 4 in the first 8 bytes, 2 in the last 4 */
		int scale = (j < 8 ? s[j] & 15 : s[j - 8] >> 4) | (s[8 + j % 4] >> 2 * (j / 4) & 3) << 4;
		int q = (low[i / 128 * 32 + i % 32] >> 2 * (i % 128 / 32) & 3) - (mask[i % 32] >> (i / 32) & 1 ? 0 : 4);
		out[i] = d * (float)(scale - 32) * (float)q;
	}
}

/* Numbers and bytes per block of a type. */
static int block_numbers(int type) { return type < OG_Q4_0 ? 1 : type < OG_Q2_K ? 32 : 256; }
static int block_bytes(int type) {
	static const int bytes[] = {[OG_F32] = 4, [OG_F16] = 2, [OG_Q4_0] = 18, [OG_Q4_1] = 20, [OG_Q5_0] = 22, [OG_Q5_1] = 24, [OG_Q8_0] = 34,
		[OG_Q2_K] = 84, [OG_Q3_K] = 110, [OG_Q4_K] = 144, [OG_Q5_K] = 176, [OG_Q6_K] = 210};
	return bytes[type];
}

static size_t row_bytes(int type, int k) { return (size_t)k / block_numbers(type) * block_bytes(type); }

void og_dequantize(int type, const void *row, int k, float *out) {
	const uint8_t *p = row;
	int numbers = block_numbers(type), bytes = block_bytes(type);
	if (type == OG_F32) {
		memcpy(out, p, (size_t)k * 4);
		return;
	}
	for (int i = 0; i < k; i += numbers, p += bytes, out += numbers) switch (type) {
		case OG_F16: *out = half_at(p); break;
		case OG_Q8_0: {
			float d = half_at(p);
			for (int j = 0; j < 32; j++) out[j] = d * ((const int8_t *)p)[2 + j];
			break;
		}
		case OG_Q2_K: dequantize_q2_k(p, out); break;
		case OG_Q3_K: dequantize_q3_k(p, out); break;
		case OG_Q4_K: dequantize_q45_k(0, p, out); break;
		case OG_Q5_K: dequantize_q45_k(1, p, out); break;
		case OG_Q6_K: dequantize_q6_k(p, out); break;
		default: dequantize_block(type, p, out);
		}
}

static int groups_of(int k) { return (k + GROUP - 1) / GROUP; }

size_t og_panel_bytes(const og_kernels *s, int kind, int k, int n) {
	size_t columns = (size_t)(n + s->nr - 1) / s->nr * s->nr, numbers = columns * k;
	if (kind == OG_I16) return columns * ((k + s->nr - 1) / s->nr * s->nr) * 2;
	return kind == OG_F32 ? numbers * 4 : kind == OG_F16 ? numbers * 2 : numbers;
}

/* The offset of a number in an 8-bit panel. */
static size_t q8_at(const og_kernels *s, int k, int column) { return (size_t)k / s->deep * s->deep * s->nr + column * s->deep + k % s->deep; }

/* The memory in which a row is packed. */
typedef struct scratch {
	float *row;
	void *numbers; /* halves, or 8-bit numbers in a left side's layout */
	float *scales;
	int32_t *start;
} scratch;

static void pack_q8(const og_kernels *s, const scratch *r, int k, int column, uint8_t *panel, float *scales) {
	s->quantize(r->row, k, 1, k, r->numbers, r->scales, r->start);
	for (int g = 0; g < groups_of(k); g++) scales[g * s->nr + column] = r->scales[g];
	uint8_t *to = panel + column * s->deep;
	if (s->element == 2) {
		const int16_t *from = r->numbers;
		for (int i = 0; i < k; i += 2, to += 2 * s->nr) to[0] = (uint8_t)from[i], to[1] = (uint8_t)from[i + 1];
		return;
	}
	const uint8_t *from = r->numbers;
	uint32_t shift = s->offset ? 0x80808080 : 0; /* adds 128 to each of four bytes */
	for (int i = 0; i < k; i += 4, to += 4 * s->nr) {
		uint32_t four;
		memcpy(&four, from + i, 4);
		four ^= shift;
		memcpy(to, &four, 4);
	}
}

static void pack_row(const og_kernels *s, int kind, const scratch *r, int k, int c, void *data, float *scales) {
	int p = c / s->nr, j = c % s->nr;
	size_t at = (size_t)p * k * s->nr;
	if (kind == OG_Q8_0) {
		pack_q8(s, r, k, j, (uint8_t *)data + at, scales + (size_t)p * groups_of(k) * s->nr);
	} else if (kind == OG_F16) {
		s->to_half(r->row, k, r->numbers);
		for (int i = 0; i < k; i++) ((uint16_t *)data)[at + (size_t)i * s->nr + j] = ((uint16_t *)r->numbers)[i];
	} else {
		for (int i = 0; i < k; i++) ((float *)data)[at + (size_t)i * s->nr + j] = r->row[i];
	}
}

int og_pack(const og_kernels *s, int kind, int type, const void *rows, int k, int n, int from, int to, void *data, float *scales) {
	scratch r = {og_alloc((size_t)k * 4), og_alloc((size_t)k * 2), og_alloc((size_t)groups_of(k) * 4), og_alloc((size_t)groups_of(k) * 4)};
	int enough = r.row && r.numbers && r.scales && r.start;
	for (int c = from * s->nr; enough && c < to * s->nr; c++) {
		if (c < n) og_dequantize(type, (const uint8_t *)rows + c * row_bytes(type, k), k, r.row);
		else memset(r.row, 0, (size_t)k * 4);
		pack_row(s, kind, &r, k, c, data, scales);
	}
	og_release(r.row);
	og_release(r.numbers);
	og_release(r.scales);
	og_release(r.start);
	return enough;
}

void og_column(const og_kernels *s, int kind, const og_panels *w, int column, float *out) {
	int p = column / s->nr, j = column % s->nr;
	for (int i = 0; i < w->k; i++) {
		size_t at = ((size_t)p * w->k + i) * s->nr + j;
		if (kind == OG_Q8_0) {
			int v = ((const uint8_t *)w->data)[(size_t)p * w->k * s->nr + q8_at(s, i, j)];
			v = s->offset ? v - s->offset : (int8_t)v;
			out[i] = (float)v * w->scales[((size_t)p * groups_of(w->k) + i / GROUP) * s->nr + j];
		} else {
			out[i] = kind == OG_F16 ? og_half(((const uint16_t *)w->data)[at]) : ((const float *)w->data)[at];
		}
	}
}

/* The nearest integer, ties to even, of a number of at most 2^22. */
static int32_t nearest(float f) {
	int32_t q;
	f += 12582912.0f;
	memcpy(&q, &f, 4);
	return q - 0x4b400000;
}

/* The largest magnitude of n floats: without the sign, the bits of floats are ordered as the floats are. */
static float furthest(const float *x, int n) {
	int32_t top = 0;
	float high;
	for (int i = 0; i < n; i++) {
		int32_t b;
		memcpy(&b, x + i, 4);
		b &= 0x7fffffff;
		top = b > top ? b : top;
	}
	memcpy(&high, &top, 4);
	return high;
}

static void pack_keys_16(const og_kernels *s, const og_attention *a, const float *x, long stride) {
	int t = a->keys.n, d = a->keys.k, pairs = (d + 1) / 2;
	float *scales = (float *)a->keys.scales;
	int16_t row[OG_WIDEST + 1];
	for (int c = 0; c < (t + s->nr - 1) / s->nr * s->nr; c++) {
		int32_t *to = (int32_t *)a->keys.data + (size_t)(c / s->nr) * s->nr * pairs + c % s->nr;
		const float *from = x + (c < t ? c : 0) * stride;
		float high = c < t ? furthest(from, d) : 0, by = high > 0 ? OG_LARGEST_KEY / high : 0;
		scales[c] = high / OG_LARGEST_KEY;
		for (int i = 0; i < d; i++) row[i] = (int16_t)nearest(from[i] * by);
		row[d] = 0;
		for (int i = 0; i < pairs; i++) memcpy(to + i * s->nr, row + 2 * i, 4);
	}
}

/* In each group of nr positions the first half is next to the second, as in a
 * row of weights. */
static void pack_values_16(const og_kernels *s, const og_attention *a, const float *x, long stride) {
	int t = a->values.k, d = a->values.n, half = s->nr / 2, deep = (t + s->nr - 1) / s->nr * s->nr;
	float *scales = (float *)a->values.scales, by[OG_WIDEST];
	memset((void *)a->values.data, 0, og_panel_bytes(s, OG_I16, t, d));
	memset(scales, 0, (size_t)(d + s->nr - 1) / s->nr * s->nr * 4);
	for (int c = 0; c < t; c++)
		for (int i = 0; i < d; i++) scales[i] = fabsf(x[c * stride + i]) > scales[i] ? fabsf(x[c * stride + i]) : scales[i];
	for (int i = 0; i < d; i++) by[i] = scales[i] > 0 ? OG_LARGEST_VALUE / scales[i] : 0, scales[i] /= OG_LARGEST_VALUE;
	for (int p = 0; p < d; p += s->nr) {
		int32_t *to = (int32_t *)a->values.data + (size_t)p * deep / 2;
		int width = d - p < s->nr ? d - p : s->nr;
		for (int pair = 0; pair < deep / 2; pair++, to += s->nr) {
			int c = pair / half * s->nr + pair % half;
			const float *first = x + c * stride + p, *second = first + half * stride, *scale = by + p;
			if (c >= t) continue;
			for (int i = 0; i < width; i++) to[i] = nearest(first[i] * scale[i]) & 0xffff;
			if (c + half >= t) continue;
			for (int i = 0; i < width; i++) to[i] |= (int32_t)((uint32_t)nearest(second[i] * scale[i]) << 16);
		}
	}
}

/* The keys are the right side's columns. */
static void pack_keys(const og_kernels *s, const og_attention *a, const float *x, long stride) {
	int t = a->keys.n, d = a->keys.k;
	float row[4096];
	uint16_t numbers[4096];
	float scale[16];
	int32_t start[16];
	scratch r = {row, numbers, scale, start};
	for (int c = 0; c < (t + s->nr - 1) / s->nr * s->nr; c++) {
		if (c < t) memcpy(row, x + c * stride, (size_t)d * 4);
		else memset(row, 0, (size_t)d * 4);
		pack_row(s, a->kind, &r, d, c, (void *)a->keys.data, (float *)a->keys.scales);
	}
}

static void pack_values(const og_kernels *s, const og_attention *a, const float *x, long stride) {
	int t = a->values.k, d = a->values.n, bytes = a->kind == OG_F32 ? 4 : a->kind == OG_F16 ? 2 : 1;
	uint16_t numbers[4096];
	for (int c = 0; c < t; c++, x += stride) {
		int32_t start[16];
		const void *from = a->kind == OG_F32 ? (const void *)x : numbers;
		if (a->kind == OG_Q8_0) s->quantize(x, d, 1, d, numbers, (float *)a->values.scales + c, start);
		if (a->kind == OG_F16) s->to_half(x, d, numbers);
		for (int i = 0; a->kind == OG_Q8_0 && s->element == 2 && i < d; i++) ((int8_t *)numbers)[i] = (int8_t)numbers[i];
		for (int p = 0; p < d; p += s->nr) {
			size_t width = (size_t)(d - p < s->nr ? d - p : s->nr) * bytes;
			char *to = (char *)a->values.data + ((size_t)p * t + (size_t)c * s->nr) * bytes;
			memcpy(to, (const char *)from + (size_t)p * bytes, width);
			memset(to + width, 0, (size_t)s->nr * bytes - width);
		}
	}
}

void og_pack_head(const og_kernels *s, const og_attention *a, const float *keys, const float *values, long stride) {
	if (a->kind == OG_I16) {
		pack_keys_16(s, a, keys, stride);
		pack_values_16(s, a, values, stride);
		return;
	}
	pack_keys(s, a, keys, stride);
	pack_values(s, a, values, stride);
}

void og_patches(const float *x, int frames, int channels, int step, int from, int to, float *out) {
	for (int t = from; t < to; t++)
		for (int j = -1; j <= 1; j++, out += channels) {
			int f = t * step + j;
			if (f < 0 || f >= frames) memset(out, 0, (size_t)channels * 4);
			else memcpy(out, x + (size_t)f * channels, (size_t)channels * 4);
		}
}
