/* ggml's private structures, as far as a plug-in that lives in this program needs them,
 * and the operations that it computes. layout_test.go compares what ggml's own headers
 * declare; fits in kernels.c compares the rest with the CPU code at run time. */
#ifndef OTOGRAPH_KERNELS_H
#define OTOGRAPH_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* struct ggml_tensor */
typedef struct og_tensor {
	int type;
	void *buffer;
	int64_t ne[4];
	size_t nb[4];
	int op;
	int32_t op_params[16];
	int32_t flags;
	struct og_tensor *src[10];
	struct og_tensor *view_src;
	size_t view_offs;
	void *data;
	char name[64];
	void *extra;
	char padding[8];
} og_tensor;

/* ggml's version that the declarations are of, up to the last point */
#define OG_GGML_VERSION "0.27."

enum { OG_F32 = 0, OG_F16 = 1, OG_Q8_0 = 8, OG_MUL_MAT = 29, OG_FLASH_ATTN_EXT = 74, OG_FLAG_COMPUTE = 16, OG_ACCEL = 3 };

/* struct ggml_backend_dev_props */
typedef struct og_device_props {
	const char *name, *description;
	size_t memory_free, memory_total;
	int type;
	const char *device_id;
	bool caps[5];
} og_device_props;

/* The most columns that count as few: libwhisper has no more beams. */
enum { OG_COLUMNS = 8 };

/* og_part is the share of an operation that one thread computes. */
typedef struct og_part {
	const og_tensor *op;
	int index, parts;
	float *work; /* og_attention_work or og_product_work floats */
} og_part;

/* What the kernels for one instruction set offer. */
typedef struct og_kernels {
	const char *name;
	int tile; /* columns that are computed at a time */
	void (*attention)(const og_part *);
	void (*product)(const og_part *);
} og_kernels;

enum { OG_KEYS = 64, OG_DEPTH = 512 }; /* keys that attention takes at a time, and numbers of a row that a product does */

static inline int og_round_up(int64_t n, int to) { return (int)((n + to - 1) / to * to); }

/* og_attention_work returns how many floats attention needs beside its tensors. */
static inline size_t og_attention_work(const og_tensor *op, int tile)
{
	size_t width = og_round_up(op->src[0]->ne[0], tile), queries = (size_t)op->src[0]->ne[1] + 8;
	return queries * (2 * width + 2) + OG_KEYS * (2 * width + 8) + 64;
}

/* og_product_work is the same for a product. */
static inline size_t og_product_work(int tile)
{
	return (size_t)OG_DEPTH * (size_t)(tile + 8) + (size_t)tile * 8 + 64;
}

enum { OG_PAIR = 48, OG_PANEL = 272 }; /* floats that hold 64 numbers of the other side, and 32 rows of a block of weights */

/* og_quants_work is the same for og_quants. */
static inline size_t og_quants_work(const og_tensor *op)
{
	return (size_t)(op->src[1]->ne[0] / 64) * ((size_t)op->src[1]->ne[1] * OG_PAIR + 2 * OG_PANEL);
}

/* og_quants computes products of q8_0 weights, on processors that have what it needs of
 * AVX-512. */
void og_quants(const og_part *);
bool og_has_quants(void);

extern const og_kernels og_avx2, og_avx512;

#endif
