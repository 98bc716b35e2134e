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

enum { OG_F32 = 0, OG_F16 = 1, OG_MUL_MAT = 29, OG_FLASH_ATTN_EXT = 74, OG_FLAG_COMPUTE = 16, OG_ACCEL = 3 };

/* struct ggml_backend_dev_props */
typedef struct og_device_props {
	const char *name, *description;
	size_t memory_free, memory_total;
	int type;
	const char *device_id;
	bool caps[5];
} og_device_props;

/* The most columns of a product: libwhisper has no more beams. */
enum { OG_COLUMNS = 8 };

/* og_part is the share of an operation that one thread computes. */
typedef struct og_part {
	const og_tensor *op;
	int index, parts;
	float *work; /* og_attention_work floats for attention */
} og_part;

/* What the kernels for one instruction set offer. */
typedef struct og_kernels {
	const char *name;
	int tile; /* columns that are computed at a time */
	void (*attention)(const og_part *);
	void (*product)(const og_part *);
} og_kernels;

enum { OG_KEYS = 256 }; /* keys that attention takes at a time */

static inline int og_round_up(int64_t n, int to) { return (int)((n + to - 1) / to * to); }

/* og_attention_work returns how many floats attention needs beside its tensors. */
static inline size_t og_attention_work(const og_tensor *op, int tile)
{
	size_t width = og_round_up(op->src[0]->ne[0], tile), queries = (size_t)op->src[0]->ne[1] + 8;
	return queries * (2 * width + 2) + OG_KEYS * (2 * width + 8) + 64;
}

extern const og_kernels og_avx2, og_avx512;

#endif
