/* Compares the kernels with sums of doubles: attention and products of many shapes, whole
 * and in parts. kernels_test.go builds and runs it. */
#include "../kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>

static uint32_t seed = 1;

static float noise(void) { return (float)((int)((seed = seed * 1664525u + 1013904223u) >> 16) - 32768) / 32768; }

__attribute__((target("f16c"))) static uint16_t narrow(float x) { return _cvtss_sh(x, 0); }
__attribute__((target("f16c"))) static double widen(uint16_t x) { return (double)_cvtsh_ss(x); }

/* tensor makes one of random numbers; swapped puts the third dimension beside the first,
 * as libwhisper keeps heads. */
static og_tensor tensor(int type, int64_t a, int64_t b, int64_t c, bool swapped, float scale)
{
	size_t size = type == OG_F16 ? 2 : 4, n = (size_t)(a * b * c);
	og_tensor t = {.type = type, .ne = {a, b, c, 1}, .data = malloc(n * size)};
	t.nb[0] = size, t.nb[1] = size * (size_t)(swapped ? a * c : a), t.nb[2] = size * (size_t)(swapped ? a : a * b), t.nb[3] = n * size;
	for (size_t i = 0; i < n; i++) {
		float x = noise() * scale;
		if (type == OG_F16)
			((uint16_t *)t.data)[i] = narrow(x);
		else
			((float *)t.data)[i] = x;
	}
	return t;
}

static double at(const og_tensor *t, int64_t a, int64_t b, int64_t c)
{
	const char *p = (const char *)t->data + (size_t)a * t->nb[0] + (size_t)b * t->nb[1] + (size_t)c * t->nb[2];
	return t->type == OG_F16 ? widen(*(const uint16_t *)p) : (double)*(const float *)p;
}

static int run(const og_kernels *set, const og_tensor *op, int parts)
{
	for (int i = 0; i < parts; i++) {
		og_part p = {op, i, parts, NULL};
		p.work = malloc((op->op == OG_MUL_MAT ? og_product_work(set->tile) : og_attention_work(op, set->tile)) * sizeof(float));
		(op->op == OG_MUL_MAT ? set->product : set->attention)(&p);
		free(p.work);
	}
	return 0;
}

static double attention(const og_kernels *set, int width, int queries, int keys, int heads, int masked, int parts)
{
	og_tensor q = tensor(OG_F32, width, queries, heads, true, 4), k = tensor(OG_F16, width, keys, heads, true, 4);
	og_tensor v = tensor(OG_F16, width, keys, heads, masked == 0, 1), mask = tensor(OG_F16, keys, queries, 1, false, 0);
	for (int i = 0; i < queries * keys; i++) {
		int key = i % keys, query = i / keys;
		if (masked == 1 ? key > query + keys / 2 : masked == 2 ? key < 256 : masked == 3 && query % 2) ((uint16_t *)mask.data)[i] = narrow(-INFINITY);
	}
	og_tensor y = tensor(OG_F32, width, heads, queries, false, 1);
	y.op = OG_FLASH_ATTN_EXT, y.src[0] = &q, y.src[1] = &k, y.src[2] = &v, y.src[3] = masked ? &mask : NULL;
	float scale = 1 / sqrtf((float)width);
	memcpy(y.op_params, &scale, sizeof scale);
	run(set, &y, parts);
	double worst = 0, *w = malloc((size_t)keys * sizeof *w);
	for (int h = 0; h < heads; h++)
		for (int i = 0; i < queries; i++) {
			double top = -INFINITY, sum = 0;
			for (int j = 0; j < keys; j++) {
				w[j] = 0;
				for (int d = 0; d < width; d++) w[j] += at(&q, d, i, h) * at(&k, d, j, h);
				w[j] = w[j] * (double)scale + (masked ? at(&mask, j, i, 0) : 0);
				top = w[j] > top ? w[j] : top;
			}
			for (int j = 0; j < keys; j++) sum += w[j] = exp(w[j] - top);
			for (int d = 0; d < width; d++) {
				double want = 0; /* where every key is masked */
				for (int j = 0; j < keys && top > -INFINITY; j++) want += w[j] / sum * at(&v, d, j, h);
				double off = fabs(want - at(&y, d, h, i));
				if (!(off <= worst)) worst = off; /* NaN too */
			}
		}
	free(w), free(q.data), free(k.data), free(v.data), free(mask.data), free(y.data);
	return worst;
}

static double product(const og_kernels *set, int type, int depth, int rows, int columns, int parts)
{
	og_tensor w = tensor(OG_F16, depth, rows, 1, false, 1), x = tensor(type, depth, columns, 1, false, 1);
	og_tensor y = tensor(OG_F32, rows, columns, 1, false, 1);
	y.op = OG_MUL_MAT, y.src[0] = &w, y.src[1] = &x;
	run(set, &y, parts);
	double worst = 0;
	for (int r = 0; r < rows; r++)
		for (int c = 0; c < columns; c++) {
			double want = 0;
			for (int d = 0; d < depth; d++) want += at(&w, d, r, 0) * at(&x, d, c, 0);
			double off = fabs(want - at(&y, r, c, 0)) / sqrt(depth);
			if (!(off <= worst)) worst = off;
		}
	free(w.data), free(x.data), free(y.data);
	return worst;
}

/* quantized is a product of q8_0 weights. */
__attribute__((target("f16c"))) static double quantized(int depth, int rows, int columns, int parts)
{
	enum { BLOCK = 32, BYTES = 34 };
	const size_t row = (size_t)depth / BLOCK * BYTES;
	og_tensor w = {.type = OG_Q8_0, .ne = {depth, rows, 1, 1}, .nb = {BYTES, row, row * (size_t)rows, row * (size_t)rows}, .data = malloc(row * (size_t)rows)};
	for (uint8_t *p = w.data, *end = p + row * (size_t)rows; p < end; p += BYTES) {
		uint16_t scale = narrow(noise() * 0.01f);
		memcpy(p, &scale, 2);
		for (int i = 0; i < BLOCK; i++) p[2 + i] = (uint8_t)(int8_t)(noise() * 128);
	}
	og_tensor x = tensor(OG_F32, depth, columns, 1, false, 1), y = tensor(OG_F32, rows, columns, 1, false, 1);
	for (int i = 0; i < BLOCK && columns > 1; i++) ((float *)x.data)[depth + i] = 0; /* a block of nothing */
	y.op = OG_MUL_MAT, y.src[0] = &w, y.src[1] = &x;
	for (int i = 0; i < parts; i++) {
		og_part p = {&y, i, parts, malloc(og_quants_work(&y) * sizeof(float))};
		og_quants(&p);
		free(p.work);
	}
	double worst = 0;
	for (int c = 0; c < columns; c++)
		for (int r = 0; r < rows; r++) {
			double want = 0;
			for (int b = 0; b < depth; b += BLOCK) {
				const float *from = (const float *)x.data + (size_t)c * depth + b;
				const uint8_t *p = (const uint8_t *)w.data + row * (size_t)r + b / BLOCK * BYTES;
				float most = 0;
				int sum = 0;
				for (int i = 0; i < BLOCK; i++) most = fabsf(from[i]) > most ? fabsf(from[i]) : most;
				for (int i = 0; i < BLOCK; i++) sum += (int)nearbyintf(most > 0 ? from[i] * (127 / most) : 0) * (int8_t)p[2 + i];
				want += sum * widen((uint16_t)(p[0] | p[1] << 8)) * (double)most / 127;
			}
			double off = fabs(want - at(&y, r, c, 0)) / sqrt(depth);
			if (!(off <= worst)) worst = off;
		}
	free(w.data), free(x.data), free(y.data);
	return worst;
}

static bool check_quants(void)
{
	const int depths[] = {64, 384, 512, 2048}, rows[] = {32, 33, 47, 101, 128};
	double worst = 0;
	int shapes = 0;
	for (int d = 0; d < 4; d++)
		for (int r = 0; r < 5; r++)
			for (int c = 1; c <= 14; c++, shapes++) {
				double off = quantized(depths[d], rows[r], c, 1 + shapes % 3);
				if (!(off < 2e-5)) printf("q8_0 product of %d by %d by %d: off by %g\n", depths[d], rows[r], c, off);
				if (!(off <= worst)) worst = off;
			}
	printf("q8_0: %d shapes, at most %.2g off\n", shapes, worst);
	return worst < 2e-5;
}

static bool check(const og_kernels *set)
{
	const int widths[] = {16, 32, 48, 64, 128}, queries[] = {1, 3, 5, 8, 9, 40}, keys[] = {1, 7, 255, 256, 300, 1536};
	double worst = 0;
	int shapes = 0;
	for (int w = 0; w < 5; w++)
		for (int q = 0; q < 6; q++)
			for (int k = 0; k < 6; k++)
				for (int masked = 0; masked < 4; masked++, shapes++) {
					double off = attention(set, widths[w], queries[q], keys[k], 3, masked, 1 + shapes % 3);
					if (!(off < 2e-5)) printf("%s: attention of %d, %d queries, %d keys, masked %d: off by %g\n", set->name, widths[w], queries[q], keys[k], masked, off);
					if (!(off <= worst)) worst = off;
				}
	const int depths[] = {16, 48, 64, 512, 1040}, rows[] = {32, 33, 35, 101, 128};
	for (int d = 0; d < 5; d++)
		for (int r = 0; r < 5; r++)
			for (int c = 1; c <= OG_COLUMNS + 6; c++)
				for (int type = OG_F32; type <= OG_F16; type++, shapes++) {
					double off = product(set, type, depths[d], rows[r], c, 1 + shapes % 3);
					if (!(off < 2e-5)) printf("%s: product of %d by %d by %d: off by %g\n", set->name, depths[d], rows[r], c, off);
					if (!(off <= worst)) worst = off;
				}
	printf("%s: %d shapes, at most %.2g off\n", set->name, shapes, worst);
	return worst < 2e-5;
}

int main(void)
{
	__builtin_cpu_init();
	bool ok = true;
	unsigned a, b, c, d;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C)) {
		ok = check(&og_avx2);
		if (__builtin_cpu_supports("avx512f")) ok = check(&og_avx512) && ok;
		if (og_has_quants()) ok = check_quants() && ok;
	}
	return ok ? 0 : 1;
}

#else
int main(void) { return 0; }
#endif
