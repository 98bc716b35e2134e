/* The arithmetic of a Whisper network, in one variant for each kind of processor. All
 * functions compute on the calling thread; a row's result does not depend on which other
 * rows are computed with it.
 *
 * A matrix product reads its right side from panels: nr columns side by side, for one
 * element of the inner dimension after the other, so that a vector register takes a row of
 * a panel. The last panel is filled up with zeros. */
#ifndef OTOGRAPH_WHISPERNET_KERNELS_H
#define OTOGRAPH_WHISPERNET_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* Products of 8-bit numbers have one scale per row, or column, and GROUP
 * elements of the inner dimension. */
enum { GROUP = 256 };

/* panels is the right side of a product: k rows of n columns. */
typedef struct og_panels {
	int k, n;
	const void *data;    /* float, IEEE half, 8-bit or 16-bit numbers */
	const float *scales; /* of 8-bit numbers: [panel][group][nr]; of 16-bit numbers by column */
} og_panels;

/* og_rows is the left side of a product, with 8-bit numbers: m rows of k. */
typedef struct og_rows {
	int m;
	const void *data;
	long stride;          /* elements from one row to the next */
	const float *scales;  /* [row][group] */
	const int32_t *start; /* [row][group]: where the sum of a group begins */
} og_rows;

/* og_result is the output of a product: c = gelu(product + bias) + add. */
typedef struct og_result {
	float *c;
	long stride;
	const float *bias; /* by column; may be NULL */
	const float *add;  /* laid out as c, and may be c; may be NULL */
	int gelu;
} og_result;

/* og_attention holds the keys (columns) and the values (rows) of a head, of one
 * kind: floats, halves, 8-bit numbers with a scale per position, or 16-bit
 * numbers. 8-bit values have the layout of floats; 16-bit numbers are stored in
 * pairs along the inner dimension. */
typedef struct og_attention {
	int kind;
	og_panels keys, values;
	int thin;     /* each position from here on stands for several */
	float weight; /* the logarithm of their number */
} og_attention;

/* The largest head whose keys may be 8-bit or 16-bit numbers. */
enum { OG_WIDEST = 256 };

/* Limits of 16-bit numbers, so that the sum of RUN products fits into 32 bits:
 * queries and keys, attention weights, values. */
enum { RUN = 128, OG_LARGEST_KEY = 4095, OG_LARGEST_WEIGHT = 32767, OG_LARGEST_VALUE = 511 };

/* og_cell is the decoder's cache of a column at one position: for each layer
 * the keys and the values of all heads, as halves. */
typedef const uint16_t *og_cell;

typedef struct og_kernels {
	const char *name;
	int nr;      /* columns of a panel */
	int deep;    /* inner elements that lie together in panels of 8-bit numbers */
	int offset;  /* added to the 8-bit numbers of panels */
	int element; /* bytes of an 8-bit number of the left side */
	int shorts;  /* whether attention is faster with 16-bit numbers than with floats */
	/* c[m][n] = gelu(a[m][k] · w[k][n] + bias[n]) + add[m][n] for the panels
	 * from .. to-1 of w. */
	void (*product_q8)(const og_panels *, int from, int to, const og_rows *, const og_result *);
	void (*product_half)(const og_panels *, int from, int to, const float *a, long stride, int m, const og_result *);
	void (*product_float)(const og_panels *, int from, int to, const float *a, long stride, int m, const og_result *);
	/* data[m][k], scales[m][groups] and start[m][groups], as og_rows has them, of
	 * x[m][k]. */
	void (*quantize)(const float *x, long stride, int m, int k, void *data, float *scales, int32_t *start);
	/* y[m][d] = layer norm of x[m][d], times weight[d], plus bias[d]. */
	void (*normalize)(const float *x, int m, int d, const float *weight, const float *bias, float *y);
	/* out[m][d] = softmax(q[m][d] · keys[t][d]^T + weights[t]) · values[t][d] of one
	 * head; scores holds 12 rows of padded positions. */
	void (*attend)(const float *q, long stride, int m, const og_attention *, float *scores, float *out, long out_stride);
	/* scores[m][t] = q[m][d] · keys[t][d]^T of one head. */
	void (*score)(const float *q, long stride, int m, const og_attention *, float *scores, long scores_stride);
	/* out[d] = softmax(q[d] · keys[count][d]^T) · values[count][d], head by head,
	 * of one column over its text so far: keys are at offset in the cells, values
	 * d after the keys; scores holds count numbers for each head. */
	void (*recall)(const float *q, int d, int heads, const og_cell *cells, int count, long offset, float *scores, float *out);
	/* y[n] = x[n] as halves. */
	void (*to_half)(const float *x, long n, uint16_t *y);
	/* x[n] = log softmax(x[n]); marks is the log of the total probability from
	 * begin on, best the largest log probability below begin. */
	void (*log_softmax)(float *x, int n, int begin, float *marks, float *best);
} og_kernels;

const og_kernels *og_choose(const char *name); /* NULL if the CPU cannot; "" is the best */
const og_kernels *og_avx512(void);
const og_kernels *og_avxvnni(void);
const og_kernels *og_avx2(void);
const og_kernels *og_neon(void);
const og_kernels *og_generic(void);

float og_half(uint16_t);

/* Tensors as in ggml's files: rows of k numbers. */
enum { OG_F32 = 0, OG_F16 = 1, OG_Q4_0 = 2, OG_Q4_1 = 3, OG_Q5_0 = 6, OG_Q5_1 = 7, OG_Q8_0 = 8, OG_Q2_K = 10, OG_Q3_K = 11, OG_Q4_K = 12, OG_Q5_K = 13, OG_Q6_K = 14, OG_I16 = 25 };
void og_dequantize(int type, const void *row, int k, float *out);

size_t og_panel_bytes(const og_kernels *, int kind, int k, int n);
/* Pack panels from .. to-1 of a tensor of n rows of k numbers (its transpose is
 * the right side). kind is OG_F32, OG_F16 or OG_Q8_0. Returns 0 if memory ran
 * out. */
int og_pack(const og_kernels *, int kind, int type, const void *rows, int k, int n, int from, int to, void *data, float *scales);
/* Read one column of panels back. */
void og_column(const og_kernels *, int kind, const og_panels *, int column, float *out);
/* Pack keys (positions by columns: as the transpose) and values of one head as panels. */
void og_pack_head(const og_kernels *, const og_attention *, const float *keys, const float *values, long stride);

/* Patches of three frames for a convolution over time: out[t] = x[t*step-1 .. t*step+1]. */
void og_patches(const float *x, int frames, int channels, int step, int from, int to, float *out);

void *og_alloc(size_t);
void og_release(void *);

#endif
