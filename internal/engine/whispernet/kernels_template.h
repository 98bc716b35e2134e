/* The kernels in terms of vectors of VL floats; og_kernels describes each.
 * kernels_generic.c has the same in plain C, as a reference, and as a fallback
 * for other processors. Included once for each processor, with
 *   VL          floats in a vector
 *   MR          most rows of a tile of a product
 *   NAME        suffix of all names
 *   load_half   vector of VL halves as floats
 *   load_byte   vector of VL 8-bit numbers as floats
 *   store_half  VL floats as halves
 *   MAX         the larger of each pair of floats of two vectors
 *   DEEP, OFFSET, ELEMENT as og_kernels has them
 *   load_deep   DEEP 8-bit numbers of each of VL columns, as dot_deep takes them
 *   dot_deep    sums of VL columns += products with the same numbers of a row
 *   dot_pair    the same for two 16-bit numbers; undefined if floats are as fast
 * already defined. */
#include <math.h>
#include <string.h>

#define NR (2 * VL)
typedef float vf __attribute__((vector_size(4 * VL)));
typedef int32_t vi __attribute__((vector_size(4 * VL)));

#define INLINE static inline __attribute__((always_inline))

INLINE vf load(const float *p) { vf v; memcpy(&v, p, sizeof v); return v; }
INLINE void store(float *p, vf v) { memcpy(p, &v, sizeof v); }
INLINE vf splat(float x) { return x - (vf){0}; }
INLINE vi splati(int32_t x) { return x - (vi){0}; }
INLINE vf choose(vi mask, vf a, vf b) { return (vf)(((vi)a & mask) | ((vi)b & ~mask)); }
INLINE vf larger(vf a, vf b) { return MAX(a, b); }
INLINE float sum(vf v) {
	float s = 0;
	for (int i = 0; i < VL; i++) s += v[i];
	return s;
}
INLINE float largest(vf v) {
	float s[VL];
	store(s, v);
	_Pragma("GCC unroll 4") for (int n = VL / 2; n > 0; n /= 2)
		_Pragma("GCC unroll 16") for (int i = 0; i < n; i++) s[i] = s[i + n] > s[i] ? s[i + n] : s[i];
	return s[0];
}

/* The nearest integer, ties to even, by the rounding of floats above 2^23; x is
 * at most 2^22. */
INLINE int32_t nearest(float x) {
	int32_t q;
	x += 12582912.0f;
	memcpy(&q, &x, 4);
	return q - 0x4b400000;
}
INLINE vi nearestv(vf x) { return (vi)(x + 12582912.0f) - 0x4b400000; }

/* e^x, relative error below 2e-7 for x from -87 to 0; below it is e^-87. The fraction's
 * polynomial is Cephes' expf. */
INLINE vf expv(vf x) {
	x = larger(x, splat(-87.0f));
	vi n = nearestv(x * 1.44269504088896341f);
	vf r = __builtin_convertvector(n, vf);
	x = x - r * 0.693359375f;
	x = x + r * 2.12194440e-4f;
	vf p = splat(1.9875691500e-4f);
	p = p * x + 1.3981999507e-3f;
	p = p * x + 8.3334519073e-3f;
	p = p * x + 4.1665795894e-2f;
	p = p * x + 1.6666665459e-1f;
	p = p * x + 5.0000001201e-1f;
	p = p * x * x + x + 1.0f;
	return p * (vf)((n + 127) << 23);
}

/* GELU by the error function, as Whisper is trained: Abramowitz and Stegun 7.1.26, absolute
 * error below 2e-7. */
INLINE vf geluv(vf x) {
	vf z = (vf)((vi)x & 0x7fffffff) * 0.70710678118654752f;
	vf t = 1.0f / (z * 0.3275911f + 1.0f);
	vf p = splat(1.061405429f);
	p = p * t - 1.453152027f;
	p = p * t + 1.421413741f;
	p = p * t - 0.284496736f;
	p = p * t + 0.254829592f;
	vf erf = 1.0f - p * t * expv(-z * z);
	erf = (vf)((vi)erf | ((vi)x & (int32_t)0x80000000));
	return 0.5f * x * (1.0f + erf);
}

/* Write a tile of m rows and NR columns; the matrix has the first of these
 * columns. */
INLINE void finish(const float *tile, int m, int row, int column, int columns, const og_result *r) {
	for (int i = 0; i < m; i++) {
		long at = (long)(row + i) * r->stride + column;
		const float *t = tile + i * NR;
		if (columns == NR) {
			for (int j = 0; j < NR; j += VL) {
				vf v = load(t + j);
				if (r->bias) v += load(r->bias + column + j);
				if (r->gelu) v = geluv(v);
				if (r->add) v += load(r->add + at + j);
				store(r->c + at + j, v);
			}
			continue;
		}
		float rest[NR];
		for (int j = 0; j < NR; j += VL) {
			vf v = load(t + j);
			if (r->bias) {
				float b[VL] = {0};
				for (int l = 0; l < VL && j + l < columns; l++) b[l] = r->bias[column + j + l];
				v += load(b);
			}
			if (r->gelu) v = geluv(v);
			store(rest + j, v);
		}
		for (int j = 0; j < columns; j++) r->c[at + j] = rest[j] + (r->add ? r->add[at + j] : 0);
	}
}

INLINE vf load_float(const float *p) { return load(p); }
INLINE vi load_pairs(const int16_t *p) { vi v; memcpy(&v, p, sizeof v); return v; }
INLINE int32_t load_four(const void *p) { int32_t v; memcpy(&v, p, sizeof v); return v; } /* bytes */
INLINE int smaller(int a, int b) { return a < b ? a : b; }

#define TILE_FLOATS(FUNCTION, TYPE, LOAD) \
	INLINE void FUNCTION(const int m, const float *a, long stride, const TYPE *w, int k, float *tile) { \
		vf s[MR][2]; \
		_Pragma("GCC unroll 16") for (int i = 0; i < m; i++) s[i][0] = s[i][1] = (vf){0}; \
		for (int x = 0; x < k; x++, w += NR) { \
			vf w0 = LOAD(w), w1 = LOAD(w + VL); \
			_Pragma("GCC unroll 16") for (int i = 0; i < m; i++) { \
				vf b = splat(a[i * stride + x]); \
				s[i][0] += b * w0; \
				s[i][1] += b * w1; \
			} \
		} \
		_Pragma("GCC unroll 16") for (int i = 0; i < m; i++) { \
			store(tile + i * NR, s[i][0]); \
			store(tile + i * NR + VL, s[i][1]); \
		} \
	}
TILE_FLOATS(tile_float, float, load_float)
TILE_FLOATS(tile_half, uint16_t, load_half)
TILE_FLOATS(tile_byte, int8_t, load_byte)

/* Add sums of 32 bits to a tile, columns scaled by ws and rows by as. */
INLINE void gather(const int m, const vi (*s)[2], int first, const float *as, int groups, const float *ws, float *tile, long stride) {
	vf w0 = load(ws), w1 = load(ws + VL);
	_Pragma("GCC unroll 16") for (int i = 0; i < m; i++, tile += stride) {
		vf by = splat(as[i * groups]), t0 = first ? (vf){0} : load(tile), t1 = first ? (vf){0} : load(tile + VL);
		store(tile, t0 + __builtin_convertvector(s[i][0], vf) * (w0 * by));
		store(tile + VL, t1 + __builtin_convertvector(s[i][1], vf) * (w1 * by));
	}
}

INLINE void tile_q8(const int m, const uint8_t *a, long stride, const float *as, const int32_t *start, const uint8_t *w, const float *ws, int k, int groups, float *tile) {
	for (int g = 0; g < groups; g++, ws += NR) {
		vi s[MR][2];
		int from = g * GROUP, to = smaller(from + GROUP, k);
		_Pragma("GCC unroll 16") for (int i = 0; i < m; i++) s[i][0] = s[i][1] = splati(start[i * groups + g]);
		for (int x = from; x < to; x += DEEP, w += NR * DEEP) {
			vi w0 = load_deep(w), w1 = load_deep(w + VL * DEEP);
			_Pragma("GCC unroll 16") for (int i = 0; i < m; i++) {
				vi b = splati(load_four(a + (i * stride + x) * ELEMENT));
				dot_deep(s[i][0], w0, b);
				dot_deep(s[i][1], w1, b);
			}
		}
		gather(m, s, g == 0, as + g, groups, ws, tile, NR);
	}
}

#ifdef dot_pair
INLINE void tile_16(const int m, const int16_t *a, long stride, const float *as, const int16_t *w, const float *ws, int k, float *tile, long tile_stride) {
	for (int from = 0; from < k; from += RUN) {
		vi s[MR][2];
		int to = smaller(from + RUN, k);
		_Pragma("GCC unroll 16") for (int i = 0; i < m; i++) s[i][0] = s[i][1] = (vi){0};
		for (int x = from; x < to; x += 2, w += 2 * NR) {
			vi w0 = load_pairs(w), w1 = load_pairs(w + 2 * VL);
			_Pragma("GCC unroll 16") for (int i = 0; i < m; i++) {
				vi b = splati(load_four(a + i * stride + x));
				dot_pair(s[i][0], w0, b);
				dot_pair(s[i][1], w1, b);
			}
		}
		gather(m, s, from == 0, as, 1, ws, tile, tile_stride);
	}
}
#endif

/* Call a tile function with its number of rows as a constant. */
#define ROWS(m, CALL) \
	switch (m) { \
	case 1: CALL(1); break; \
	case 2: CALL(2); break; \
	case 3: CALL(3); break; \
	case 4: CALL(4); break; \
	ROWS_MORE(CALL) \
	}
#if MR == 12
#define ROWS_MORE(CALL) \
	case 5: CALL(5); break; \
	case 6: CALL(6); break; \
	case 7: CALL(7); break; \
	case 8: CALL(8); break; \
	case 9: CALL(9); break; \
	case 10: CALL(10); break; \
	case 11: CALL(11); break; \
	default: CALL(12);
#elif MR == 6
#define ROWS_MORE(CALL) \
	case 5: CALL(5); break; \
	default: CALL(6);
#else
#define ROWS_MORE(CALL) \
	default: break;
#endif

#define PRODUCT_FLOATS(FUNCTION, TYPE, TILE) \
	static void FUNCTION(const og_panels *w, int from, int to, const float *a, long stride, int m, const og_result *r) { \
		float tile[MR * NR]; \
		for (int p = from; p < to; p++) { \
			const TYPE *panel = (const TYPE *)w->data + (size_t)p * w->k * NR; \
			for (int i = 0; i < m; i += MR) { \
				int rows = smaller(MR, m - i); \
				const float *ai = a + i * stride; \
				ROWS(rows, TILE) \
				finish(tile, rows, i, p * NR, smaller(NR, w->n - p * NR), r); \
			} \
		} \
	}
#define CALL_FLOAT(M) tile_float(M, ai, stride, panel, w->k, tile)
#define CALL_HALF(M) tile_half(M, ai, stride, panel, w->k, tile)
PRODUCT_FLOATS(product_float, float, CALL_FLOAT)
#define CALL_BYTE(M) tile_byte(M, ai, stride, panel, w->k, tile)
PRODUCT_FLOATS(product_half, uint16_t, CALL_HALF)
PRODUCT_FLOATS(product_byte, int8_t, CALL_BYTE)

static void product_q8(const og_panels *w, int from, int to, const og_rows *a, const og_result *r) {
	float tile[MR * NR];
	int groups = (w->k + GROUP - 1) / GROUP;
	for (int p = from; p < to; p++) {
		const uint8_t *panel = (const uint8_t *)w->data + (size_t)p * w->k * NR;
		const float *scales = w->scales + (size_t)p * groups * NR;
		for (int i = 0; i < a->m; i += MR) {
			int rows = smaller(MR, a->m - i);
			const uint8_t *ai = (const uint8_t *)a->data + i * a->stride * ELEMENT;
			const float *as = a->scales + i * groups;
			const int32_t *start = a->start + i * groups;
#define CALL_Q8(M) tile_q8(M, ai, a->stride, as, start, panel, scales, w->k, groups, tile)
			ROWS(rows, CALL_Q8)
			finish(tile, rows, i, p * NR, smaller(NR, w->n - p * NR), r);
		}
	}
}

#ifdef dot_pair
/* The product of at most MR rows of 16-bit numbers, each scaled by by; deep is
 * the padded number of elements of the inner dimension. */
static void product_16(const og_panels *w, int deep, const int16_t *a, long stride, int m, const float *by, const og_result *r) {
	float tile[MR * NR];
	for (int p = 0; p * NR < w->n; p++) {
		const int16_t *panel = (const int16_t *)w->data + (size_t)p * deep * NR;
		int whole = (p + 1) * NR <= w->n;
		float *to = whole ? r->c + p * NR : tile;
		long to_stride = whole ? r->stride : NR;
#define CALL_16(M) tile_16(M, a, stride, by, panel, w->scales + p * NR, deep, to, to_stride)
		ROWS(m, CALL_16)
		if (!whole) finish(tile, m, 0, p * NR, w->n - p * NR, r);
	}
}
#endif

/* The largest distance of n floats from 0. */
INLINE float furthest(const float *x, int n) {
	vf top = {0};
	int j = 0;
	for (; j + VL <= n; j += VL) top = larger(top, (vf)((vi)load(x + j) & 0x7fffffff));
	float high = largest(top);
	for (; j < n; j++) high = fabsf(x[j]) > high ? fabsf(x[j]) : high;
	return high;
}

static void quantize(const float *x, long stride, int m, int k, void *data, float *scales, int32_t *start) {
	int groups = (k + GROUP - 1) / GROUP;
	for (int i = 0; i < m; i++, x += stride) {
		for (int g = 0; g < groups; g++) {
			int from = g * GROUP, to = smaller(k, from + GROUP);
			float high = furthest(x + from, to - from), by = high > 0 ? 127.0f / high : 0;
			int32_t total = 0;
			for (int j = from; j < to; j++) {
				int32_t q = nearest(x[j] * by);
				total += q;
#if ELEMENT == 2
				((int16_t *)data)[(size_t)i * k + j] = (int16_t)q;
#else
				((int8_t *)data)[(size_t)i * k + j] = (int8_t)q;
#endif
			}
			scales[i * groups + g] = high / 127.0f;
			start[i * groups + g] = -OFFSET * total;
		}
	}
}

static void normalize(const float *x, int m, int d, const float *weight, const float *bias, float *y) {
	for (int i = 0; i < m; i++, x += d, y += d) {
		vf s = {0};
		float rest = 0;
		int j = 0;
		for (; j + VL <= d; j += VL) s += load(x + j);
		for (; j < d; j++) rest += x[j];
		float mean = (sum(s) + rest) / d;
		s = (vf){0}, rest = 0;
		for (j = 0; j + VL <= d; j += VL) {
			vf c = load(x + j) - mean;
			s += c * c;
		}
		for (; j < d; j++) rest += (x[j] - mean) * (x[j] - mean);
		float by = 1.0f / sqrtf((sum(s) + rest) / d + 1e-5f);
		for (j = 0; j + VL <= d; j += VL) store(y + j, (load(x + j) - mean) * by * load(weight + j) + load(bias + j));
		for (; j < d; j++) y[j] = (x[j] - mean) * by * weight[j] + bias[j];
	}
}

INLINE float highest(const float *x, int n) {
	vf top = splat(-INFINITY), other = top;
	int j = 0;
	for (; j + NR <= n; j += NR) {
		top = larger(top, load(x + j));
		other = larger(other, load(x + j + VL));
	}
	float high = largest(larger(top, other));
	for (; j < n; j++) high = x[j] > high ? x[j] : high;
	return high;
}

/* x becomes e^(x - max x), times by unless by is NULL; returns the sum without
 * by. */
INLINE float exponents(float *x, const float *by, int n) {
	float high = highest(x, n);
	vf s = {0};
	int j = 0;
	for (; j + VL <= n; j += VL) {
		vf e = expv(load(x + j) - high);
		s += e;
		store(x + j, by ? e * load(by + j) : e);
	}
	float total = sum(s);
	if (j < n) {
		float rest[VL];
		for (int l = 0; l < VL; l++) rest[l] = j + l < n ? x[j + l] - high : -87.0f;
		store(rest, expv(load(rest)));
		for (int l = 0; j + l < n; l++) {
			total += rest[l];
			x[j + l] = by ? rest[l] * by[j + l] : rest[l];
		}
	}
	return total;
}

static void softmax(float *x, int n) {
	float by = 1.0f / exponents(x, NULL, n);
	int j = 0;
	for (; j + VL <= n; j += VL) store(x + j, load(x + j) * by);
	for (; j < n; j++) x[j] *= by;
}

static void log_softmax(float *x, int n, int begin, float *marks, float *best) {
	float text = highest(x, begin), mark = highest(x + begin, n - begin), high = mark > text ? mark : text;
	if (!(high > -INFINITY)) {
		*marks = *best = -INFINITY;
		return;
	}
	float total[2] = {0, 0};
	for (int part = 0; part < 2; part++) {
		int to = part ? n : begin, j = part ? begin : 0;
		vf s = {0};
		for (; j + VL <= to; j += VL) {
			vf v = load(x + j);
			s += choose(v > high - 80.0f, expv(v - high), (vf){0});
		}
		total[part] = sum(s);
		for (; j < to; j++) total[part] += x[j] > high - 80.0f ? expf(x[j] - high) : 0;
	}
	float all = high + logf(total[0] + total[1]);
	for (int j = 0; j < n; j++) x[j] -= all;
	*marks = total[1] > 0 ? high + logf(total[1]) - all : -INFINITY;
	*best = text - all;
}

#ifdef dot_pair
/* Queries as 16-bit numbers and their products with keys; m is at most MR. */
static void score_16(const float *q, long stride, int m, const og_panels *keys, const og_result *r) {
	_Alignas(64) int16_t data[MR * OG_WIDEST];
	float by[MR];
	int k = keys->k, deep = (k + 1) / 2 * 2;
	for (int i = 0; i < m; i++, q += stride) {
		float high = furthest(q, k), scale = high > 0 ? OG_LARGEST_KEY / high : 0;
		for (int j = 0; j < k; j++) data[i * deep + j] = (int16_t)nearest(q[j] * scale);
		if (k < deep) data[i * deep + k] = 0;
		by[i] = high / OG_LARGEST_KEY;
	}
	product_16(keys, deep, data, deep, m, by, r);
}

/* OG_LARGEST_WEIGHT * 2^x to the nearest integer, for x up to 0; the power's
 * relative error is below 3e-6. The fraction's polynomial is a minimax fit. */
INLINE vi weightv(vf x) {
	x = larger(x, splat(-40.0f));
	vf whole = x + 12582912.0f; /* its last bits are the integer */
	x -= whole - 12582912.0f;
	vf p = splat(0.0095700926f);
	p = p * x + 0.0559178637f;
	p = p * x + 0.240247451f;
	p = p * x + 0.693121814f;
	p = p * x + 0.999999261f;
	return nearestv((vf)((vi)p + ((vi)whole << 23)) * (float)OG_LARGEST_WEIGHT);
}

/* x becomes e^(x - max x) as 16-bit numbers in the order of 16-bit values;
 * returns their sum. x has room for whole panels. */
INLINE float exponents_16(float *x, int n) {
	float high = highest(x, n);
	vi total = {0};
	for (int j = n; j % NR; j++) x[j] = -INFINITY;
	for (int j = 0; j < n; j += NR) {
		vi a = weightv((load(x + j) - high) * 1.44269504f), b = weightv((load(x + j + VL) - high) * 1.44269504f);
		vi both = a | b << 16;
		total += a + b;
		memcpy(x + j / 2, &both, sizeof both);
	}
	int32_t sum = 0;
	for (int l = 0; l < VL; l++) sum += total[l];
	return (float)sum;
}
#endif

/* m is at most MR. */
static void score_tile(const float *q, long stride, int m, const og_attention *a, const og_result *r) {
	int all = (a->keys.n + NR - 1) / NR;
	if (a->kind == OG_F32) {
		product_float(&a->keys, 0, all, q, stride, m, r);
	} else if (a->kind == OG_F16) {
		product_half(&a->keys, 0, all, q, stride, m, r);
#ifdef dot_pair
	} else if (a->kind == OG_I16) {
		score_16(q, stride, m, &a->keys, r);
#endif
	} else {
		_Alignas(64) uint8_t data[MR * OG_WIDEST * ELEMENT];
		float scales[MR];
		int32_t start[MR];
		quantize(q, stride, m, a->keys.k, data, scales, start);
		og_rows rows = {.m = m, .data = data, .stride = a->keys.k, .scales = scales, .start = start};
		product_q8(&a->keys, 0, all, &rows, r);
	}
}

static void score(const float *q, long stride, int m, const og_attention *a, float *scores, long scores_stride) {
	for (int i = 0; i < m; i += MR) {
		og_result r = {.c = scores + i * scores_stride, .stride = scores_stride};
		score_tile(q + i * stride, stride, smaller(MR, m - i), a, &r);
	}
}

static void attend(const float *q, long stride, int m, const og_attention *a, float *scores, float *out, long out_stride) {
	int t = a->keys.n, padded = (t + NR - 1) / NR * NR, by = (a->values.n + NR - 1) / NR;
	for (int i = 0; i < m; i += MR) {
		int rows = smaller(MR, m - i);
		og_result s = {.c = scores, .stride = padded};
		og_result r = {.c = out + i * out_stride, .stride = out_stride};
		float total[MR];
		score_tile(q + i * stride, stride, rows, a, &s);
		for (int j = 0; j < rows; j++)
			for (int l = a->thin; l < t; l++) scores[(long)j * padded + l] += a->weight;
#ifdef dot_pair
		if (a->kind == OG_I16) {
			for (int j = 0; j < rows; j++) total[j] = 1.0f / exponents_16(scores + (long)j * padded, t);
			product_16(&a->values, padded, (const int16_t *)scores, 2L * padded, rows, total, &r);
			continue;
		}
#endif
		for (int j = 0; j < rows; j++) total[j] = exponents(scores + (long)j * padded, a->values.scales, t);
		if (a->kind == OG_F32) product_float(&a->values, 0, by, scores, padded, rows, &r);
		else if (a->kind == OG_F16) product_half(&a->values, 0, by, scores, padded, rows, &r);
		else product_byte(&a->values, 0, by, scores, padded, rows, &r);
		for (int j = 0; j < rows; j++)
			for (int l = 0; l < a->values.n; l++) r.c[j * out_stride + l] /= total[j];
	}
}

/* Cell by cell, because the keys and values of two cells are far apart. */
static void recall(const float *q, int d, int heads, const og_cell *cells, int count, long offset, float *scores, float *out) {
	int size = d / heads, whole = size / VL * VL;
	for (int t = 0; t < count; t++)
		for (int h = 0; h < heads; h++) {
			const uint16_t *k = cells[t] + offset + h * size;
			const float *qh = q + h * size;
			vf s = {0};
			float rest = 0;
			for (int j = 0; j < whole; j += VL) s += load(qh + j) * load_half(k + j);
			for (int j = whole; j < size; j++) rest += qh[j] * og_half(k[j]);
			scores[h * count + t] = sum(s) + rest;
		}
	for (int h = 0; h < heads; h++) softmax(scores + h * count, count);
	memset(out, 0, (size_t)d * sizeof *out);
	for (int t = 0; t < count; t++)
		for (int h = 0; h < heads; h++) {
			const uint16_t *v = cells[t] + offset + d + h * size;
			float *o = out + h * size, by = scores[h * count + t];
			for (int j = 0; j < whole; j += VL) store(o + j, load(o + j) + by * load_half(v + j));
			for (int j = whole; j < size; j++) o[j] += by * og_half(v[j]);
		}
}

static void to_half(const float *x, long n, uint16_t *y) {
	long j = 0;
	for (; j + VL <= n; j += VL) store_half(y + j, load(x + j));
	if (j < n) {
		float rest[VL] = {0};
		uint16_t halves[VL];
		for (int l = 0; j + l < n; l++) rest[l] = x[j + l];
		store_half(halves, load(rest));
		for (int l = 0; j + l < n; l++) y[j + l] = halves[l];
	}
}

static const og_kernels kernels = {
	.name = NAME, .nr = NR, .deep = DEEP, .offset = OFFSET, .element = ELEMENT,
#ifdef dot_pair
	.shorts = 1,
#endif
	.product_q8 = product_q8, .product_half = product_half, .product_float = product_float,
	.quantize = quantize, .normalize = normalize,
	.attend = attend, .score = score, .recall = recall,
	.to_half = to_half, .log_softmax = log_softmax,
};
